/* SPDX-License-Identifier: 0BSD */
/* Best fit over an AVL tree, named in C06 section 2 and table 1 (see README.md). The manual is avl_best_fit.h. */
#include "avl_best_fit.h"

typedef struct avl_best_fit_block block_t;

_Static_assert(AVL_BEST_FIT_ALIGNMENT == 4 || AVL_BEST_FIT_ALIGNMENT == 8, "the state needs two bits of a size");
_Static_assert(AVL_BEST_FIT_MINIMUM_BLOCK >= 16 && AVL_BEST_FIT_MINIMUM_BLOCK % 8 == 0, "a block holds its links");
_Static_assert(offsetof(block_t, child) == AVL_BEST_FIT_HEADER_BYTES, "the payload keeps its alignment");
_Static_assert(sizeof(block_t) == AVL_BEST_FIT_SCALED(16), "the least payload holds the links");

struct avl_best_fit_control avl_best_fit_control;

/* ----------------------------------------------------------------------------------------------------------- blocks */

static inline size_t size_of(const block_t *block)
{
    return block->size_and_state & ~AVL_BEST_FIT_STATE_MASK;
}

static inline unsigned state_of(const block_t *block)
{
    return (unsigned)(block->size_and_state & AVL_BEST_FIT_STATE_MASK);
}

static inline void set_state(block_t *block, unsigned state)
{
    block->size_and_state = size_of(block) | state;
}

static inline void *payload_of(block_t *block)
{
    return (unsigned char *)block + AVL_BEST_FIT_HEADER_BYTES;
}

static inline block_t *block_of(void *payload)
{
    return (void *)((unsigned char *)payload - AVL_BEST_FIT_HEADER_BYTES);
}

static inline block_t *next_physical(block_t *block)
{
    return (void *)((unsigned char *)block + size_of(block));
}

static inline size_t block_size_for(size_t bytes)
{
    size_t size = (bytes + AVL_BEST_FIT_HEADER_BYTES + AVL_BEST_FIT_UNIT - 1) & ~(AVL_BEST_FIT_UNIT - 1);
#if AVL_BEST_FIT_MINIMUM_BLOCK > 8 + AVL_BEST_FIT_ALIGNMENT /* else a payload of one byte already makes as much */
    if (size < AVL_BEST_FIT_MIN_BLOCK)
        return AVL_BEST_FIT_MIN_BLOCK;
#endif
    return size;
}

/* ---------------------------------------------------------------------------------------------- a way down the tree */

/* links[0] is the tree's root, each further link that of a child of the node the one before it leads to. The node at
 * depth d is thus *links[d]; links[length] is NULL: there the way ends. */
struct path {
    block_t **links[AVL_BEST_FIT_MAX_HEIGHT + 1];
    unsigned length;
};

#define NOWHERE (AVL_BEST_FIT_MAX_HEIGHT + 1u)

/* Which child of the node at `depth` the path goes on to. */
static inline unsigned side_at(const struct path *path, unsigned depth)
{
    return path->links[depth + 1] == &(*path->links[depth])->child[1];
}

static inline int is_below(const block_t *node, size_t size, const block_t *address)
{
    size_t own = size_of(node);
    return own != size ? own < size : (uintptr_t)node < (uintptr_t)address;
}

/* Goes to where a node with the key (size, address) would hang as a leaf, left of a node with that very key. Returns
 * the depth of the least node that is not below the key, NOWHERE if all are below. */
static inline unsigned descend(struct path *path, size_t size, const block_t *address)
{
    block_t **link = &avl_best_fit_control.root;
    unsigned depth = 0;
    unsigned found = NOWHERE;

    path->links[0] = link;
    for (block_t *node = *link; node != NULL; node = *link) { /* loop: descent */
        if (is_below(node, size, address)) {
            link = &node->child[1];
        } else {
            found = depth;
            link = &node->child[0];
        }
        /* point: down */
        path->links[++depth] = link;
    }
    path->length = depth;
    return found;
}

/* -------------------------------------------------------------------------------------------------------- balancing */

/* The child on `side` of *link takes its place and has it as its other child. States are not touched. */
static inline void rotate(block_t **link, unsigned side)
{
    block_t *down = *link;
    block_t *up = down->child[side];

    down->child[side] = up->child[side ^ 1];
    up->child[side ^ 1] = down;
    *link = up;
}

/* The subtree on `side` of *link is two levels taller than the other. Returns whether the whole has become lower. */
static inline int rebalance(block_t **link, unsigned side)
{
    block_t *node = *link;
    /* point: rebalance */
    block_t *child = node->child[side];
    unsigned child_state = state_of(child);

    if (child_state == AVL_BEST_FIT_TALLER(side ^ 1)) { /* its inner subtree is the tall one: whose root comes up */
        block_t *inner = child->child[side ^ 1];
        unsigned inner_state = state_of(inner);
        rotate(&node->child[side], side ^ 1);
        rotate(link, side);
        set_state(node, inner_state == AVL_BEST_FIT_TALLER(side) ? inner_state ^ 1 : AVL_BEST_FIT_BALANCED);
        set_state(child, inner_state == AVL_BEST_FIT_TALLER(side ^ 1) ? inner_state ^ 1 : AVL_BEST_FIT_BALANCED);
        set_state(inner, AVL_BEST_FIT_BALANCED);
        return 1;
    }
    rotate(link, side);
    if (child_state == AVL_BEST_FIT_BALANCED) {
        set_state(node, AVL_BEST_FIT_TALLER(side));
        set_state(child, AVL_BEST_FIT_TALLER(side ^ 1));
        return 0;
    }
    set_state(node, AVL_BEST_FIT_BALANCED);
    set_state(child, AVL_BEST_FIT_BALANCED);
    return 1;
}

/* The subtree at the end of the path has become one level higher: up the path, until a subtree's height stays. */
static inline void grown(const struct path *path)
{
    for (unsigned depth = path->length; depth-- > 0;) { /* loop: grow */
        /* point: up */
        block_t *node = *path->links[depth];
        unsigned side = side_at(path, depth);
        if (state_of(node) == AVL_BEST_FIT_TALLER(side)) {
            rebalance(path->links[depth], side);
            return;
        }
        if (state_of(node) != AVL_BEST_FIT_BALANCED) {
            set_state(node, AVL_BEST_FIT_BALANCED);
            return;
        }
        set_state(node, AVL_BEST_FIT_TALLER(side));
    }
}

/* The subtree at the end of the path has become one level lower: up the path, until a subtree's height stays. */
static inline void shrunk(const struct path *path)
{
    for (unsigned depth = path->length; depth-- > 0;) { /* loop: shrink */
        /* point: up */
        block_t *node = *path->links[depth];
        unsigned side = side_at(path, depth);
        if (state_of(node) == AVL_BEST_FIT_BALANCED) {
            set_state(node, AVL_BEST_FIT_TALLER(side ^ 1));
            return;
        }
        if (state_of(node) == AVL_BEST_FIT_TALLER(side))
            set_state(node, AVL_BEST_FIT_BALANCED);
        else if (!rebalance(path->links[depth], side ^ 1))
            return;
    }
}

/* ----------------------------------------------------------------------------------------------- insertion, removal */

/* Makes `block` of `size` bytes a free one. Its neighbours are not free, its prev_physical is right. */
static void release(block_t *block, size_t size)
{
    struct path path;

    block->size_and_state = size | AVL_BEST_FIT_BALANCED;
    next_physical(block)->prev_physical = block;
    descend(&path, size, block);
    block->child[0] = NULL;
    block->child[1] = NULL;
    *path.links[path.length] = block;
    grown(&path);
}

/* Takes the least free block whose key is not below (size, address) out of the tree, or returns NULL. The way down went
 * left of it and from there right, as far as there were nodes: it ends behind the block that precedes it in the
 * tree, if one hangs below it, and that block can take its place. */
static block_t *take(size_t size, const block_t *address)
{
    struct path path;
    unsigned at = descend(&path, size, address);
    if (at == NOWHERE)
        return NULL;

    /* point: found */
    unsigned last = --path.length;
    block_t *taken = *path.links[at];
    if (last == at) {
        *path.links[at] = taken->child[1];
    } else {
        block_t *heir = *path.links[last];
        *path.links[last] = heir->child[0];
        heir->child[0] = taken->child[0];
        heir->child[1] = taken->child[1];
        set_state(heir, state_of(taken));
        *path.links[at] = heir;
        path.links[at + 1] = &heir->child[0];
    }
    shrunk(&path);
    return taken;
}

/* ------------------------------------------------------------------------------------------------------- operations */

int avl_best_fit_init(void *arena, size_t bytes)
{
    if (arena == NULL || (((uintptr_t)arena | bytes) & (AVL_BEST_FIT_UNIT - 1)) != 0)
        return -1;
    if (bytes < AVL_BEST_FIT_MIN_HEAP || bytes > AVL_BEST_FIT_MAX_HEAP)
        return -1;

    block_t *first = arena;
    block_t *sentinel = (void *)((unsigned char *)arena + bytes - AVL_BEST_FIT_HEADER_BYTES);
    avl_best_fit_control.root = NULL;
    avl_best_fit_control.first = first;
    avl_best_fit_control.sentinel = sentinel;
    first->prev_physical = NULL;
    sentinel->size_and_state = AVL_BEST_FIT_USED;
    release(first, bytes - AVL_BEST_FIT_HEADER_BYTES);
    return 0;
}

void *avl_best_fit_malloc(size_t bytes)
{
    if (bytes - 1 >= AVL_BEST_FIT_MAX_HEAP) /* 0 wraps around to SIZE_MAX */
        return NULL;

    size_t size = block_size_for(bytes);
    block_t *block = take(size, NULL);
    if (block == NULL)
        return NULL;

    size_t spare = size_of(block) - size;
    if (spare < AVL_BEST_FIT_MIN_REST) {
        set_state(block, AVL_BEST_FIT_USED);
        return payload_of(block);
    }
    block->size_and_state = size | AVL_BEST_FIT_USED;
    block_t *rest = next_physical(block);
    rest->prev_physical = block;
    release(rest, spare);
    return payload_of(block);
}

void avl_best_fit_free(void *payload)
{
    if (payload == NULL)
        return;

    block_t *block = block_of(payload);
    block_t *prev = block->prev_physical;
    block_t *next = next_physical(block);
    size_t size = size_of(block);

    if (state_of(next) != AVL_BEST_FIT_USED)
        size += size_of(take(size_of(next), next));
    if (prev != NULL && state_of(prev) != AVL_BEST_FIT_USED) {
        block = take(size_of(prev), prev);
        size += size_of(block);
    }
    release(block, size);
}
