/* SPDX-License-Identifier: 0BSD */
/* Best fit over an AVL tree, named in C06 section 2 and table 1 (see README.md). The manual is avl_best_fit.h. */
#include "avl_best_fit.h"

#define ALIGNMENT AVL_BEST_FIT_SCALED(AVL_BEST_FIT_ALIGNMENT)

typedef struct avl_best_fit_block block_t;

_Static_assert(AVL_BEST_FIT_ALIGNMENT == 4 || AVL_BEST_FIT_ALIGNMENT == 8, "the state needs two bits of a size");
_Static_assert((AVL_BEST_FIT_UNIT & (AVL_BEST_FIT_UNIT - 1)) == 0, "the granule is a power of two");
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
    size_t size = AVL_BEST_FIT_ROUND_UP(bytes + AVL_BEST_FIT_HEADER_BYTES);
#if AVL_BEST_FIT_MINIMUM_BLOCK > 8 + AVL_BEST_FIT_ALIGNMENT && AVL_BEST_FIT_MINIMUM_BLOCK > AVL_BEST_FIT_GRANULE
    /* else a payload of one byte already makes as much */
    if (size < AVL_BEST_FIT_MIN_BLOCK)
        return AVL_BEST_FIT_MIN_BLOCK;
#endif
    return size;
}

/* --------------------------------------------------------------------------------------------------------- the tree */

#define ROOT (avl_best_fit_control.head.child[0])

/* Whether the way to the key (size, address) goes left of `node`, 0, or right of it, 1: left of that very key. */
static inline unsigned side_of(const block_t *node, size_t size, const block_t *address)
{
    size_t own = size_of(node);
    return own != size ? own < size : (uintptr_t)node < (uintptr_t)address;
}

static inline void set_link(block_t **link, block_t *node)
{
    *link = node;
}

/* As rebalance, for a constant side: so the places of the links in their blocks are constants. */
static inline int rotate(block_t **link, block_t *node, unsigned side)
{
    block_t *child = node->child[side];
    block_t *inner = child->child[side ^ 1];
    unsigned child_state = state_of(child);

    if (child_state == AVL_BEST_FIT_TALLER(side ^ 1)) { /* its inner subtree is the tall one: whose root comes up */
        unsigned inner_state = state_of(inner);
        node->child[side] = inner->child[side ^ 1];
        child->child[side ^ 1] = inner->child[side];
        inner->child[side ^ 1] = node;
        inner->child[side] = child;
        set_state(inner, AVL_BEST_FIT_BALANCED);
        set_state(child, inner_state == AVL_BEST_FIT_TALLER(side ^ 1) ? inner_state ^ 1 : AVL_BEST_FIT_BALANCED);
        set_state(node, inner_state == AVL_BEST_FIT_TALLER(side) ? inner_state ^ 1 : AVL_BEST_FIT_BALANCED);
        set_link(link, inner);
        return 1;
    }
    node->child[side] = inner;
    child->child[side ^ 1] = node;
    set_link(link, child);
    if (child_state == AVL_BEST_FIT_BALANCED) {
        set_state(child, AVL_BEST_FIT_TALLER(side ^ 1));
        return 0;
    }
    set_state(child, AVL_BEST_FIT_BALANCED);
    set_state(node, AVL_BEST_FIT_BALANCED);
    return 1;
}

/* The subtree on `side` of `node`, which *link leads to, is two levels taller than the other: the child on that side
 * takes the place of `node`, or a child of that does. Returns whether the whole has become lower. A call would store
 * registers for each node of a way: hence the attribute. */
__attribute__((always_inline)) static inline int rebalance(block_t **link, block_t *node, unsigned side)
{
    return side == 0 ? rotate(link, node, 0) : rotate(link, node, 1);
}

/* -------------------------------------------------------------------------------------------------------- insertion */

/* `leaf`, with the key (size, leaf), is new in the tree. What is above it has become one level higher, up to the node
 * that *top leads to: the last one on the way to it that was not balanced, or the root if all were. */
static inline void grown(block_t **top, const block_t *leaf, size_t size)
{
    /* point: top */
    block_t *node = *top;
    unsigned side = side_of(node, size, leaf);

    for (block_t *below = node->child[side]; below != leaf;) { /* loop: grow */
        unsigned side_below = side_of(below, size, leaf);
        set_state(below, AVL_BEST_FIT_TALLER(side_below));
        /* point: again */
        below = below->child[side_below];
    }
    if (state_of(node) == AVL_BEST_FIT_TALLER(side))
        rebalance(top, node, side);
    else if (state_of(node) == AVL_BEST_FIT_BALANCED)
        set_state(node, AVL_BEST_FIT_TALLER(side));
    else
        set_state(node, AVL_BEST_FIT_BALANCED);
}

/* Makes `block` of `size` bytes a free one. Its neighbours are not free, its prev_physical is right. */
static void release(block_t *block, size_t size)
{
    block_t **link = &ROOT;
    block_t **top = link;

    block->size_and_state = size | AVL_BEST_FIT_BALANCED;
    next_physical(block)->prev_physical = block;
    for (block_t *node = *link; node != NULL; node = *link) { /* loop: descent */
        /* point: down */
        if (state_of(node) != AVL_BEST_FIT_BALANCED)
            top = link;
        link = &node->child[side_of(node, size, block)];
    }
    block->child[0] = NULL;
    block->child[1] = NULL;
    *link = block;
    if (link != top) /* else it is the only node */
        grown(top, block, size);
}

/* ---------------------------------------------------------------------------------------------------------- removal */

/* A way down the tree: nodes[0] is the head, nodes[1] the root, nodes[last] where it ends. Bit d of `sides` tells which
 * child of nodes[d] it goes on to. */
struct path {
    block_t *nodes[AVL_BEST_FIT_MAX_HEIGHT + 1];
    uint32_t sides;
    unsigned last;
};

static inline unsigned side_at(const struct path *path, unsigned depth)
{
    return path->sides >> depth & 1;
}

/* What leads to nodes[depth]. */
static inline block_t **link_to(const struct path *path, unsigned depth)
{
    return &path->nodes[depth - 1]->child[side_at(path, depth - 1)];
}

/* Goes to where a node with the key (size, address) would hang as a leaf, left of a node with that very key. Returns
 * the depth of the least node that is not below the key, 0 if all are below. */
static inline unsigned descend(struct path *path, size_t size, const block_t *address)
{
    unsigned found = 0;
    unsigned depth = 0;
    unsigned side = 0;

    path->nodes[0] = &avl_best_fit_control.head;
    path->sides = 0;
    for (block_t *node = ROOT; node != NULL; node = node->child[side]) { /* loop: descent */
        path->sides |= (uint32_t)side << depth;
        /* point: down */
        path->nodes[++depth] = node;
        side = side_of(node, size, address);
        if (side == 0)
            found = depth;
    }
    path->last = depth;
    return found;
}

/* Where the path ends, its subtree has become one level lower: up the path, until a subtree's height stays. */
static inline void shrunk(const struct path *path)
{
    unsigned depth = path->last - 1;
    block_t *node = path->nodes[depth];

    while (depth > 0) { /* loop: shrink */
        unsigned side = side_at(path, depth);
        block_t *above = path->nodes[--depth];
        /* point: up */
        if (state_of(node) == AVL_BEST_FIT_BALANCED) {
            set_state(node, AVL_BEST_FIT_TALLER(side ^ 1));
            return;
        }
        if (state_of(node) == AVL_BEST_FIT_TALLER(side)) {
            set_state(node, AVL_BEST_FIT_BALANCED);
        } else {
            /* point: rebalance */
            block_t **link = &above->child[side_at(path, depth)];
            if (!rebalance(link, node, side ^ 1))
                return;
        }
        node = above;
    }
}

/* Takes the least free block whose key is not below (size, address) out of the tree, or returns NULL. The way down went
 * left of it and from there right, as far as there were nodes: it ends at the block that precedes it in the tree, if
 * one hangs below it, and that block can take its place. */
static block_t *take(size_t size, const block_t *address)
{
    struct path path;
    unsigned at = descend(&path, size, address);
    if (at == 0)
        return NULL;

    /* point: found */
    block_t *taken = path.nodes[at];
    if (at == path.last) {
        *link_to(&path, at) = taken->child[1];
    } else {
        block_t *heir = path.nodes[path.last];
        *link_to(&path, path.last) = heir->child[0];
        heir->child[0] = taken->child[0];
        heir->child[1] = taken->child[1];
        set_state(heir, state_of(taken));
        *link_to(&path, at) = heir;
        path.nodes[at] = heir;
    }
    shrunk(&path);
    return taken;
}

/* ------------------------------------------------------------------------------------------------------- operations */

int avl_best_fit_init(void *arena, size_t bytes)
{
    if (arena == NULL || ((uintptr_t)arena & (AVL_BEST_FIT_UNIT - 1)) != 0 || (bytes & (ALIGNMENT - 1)) != 0)
        return -1;
    if (bytes < AVL_BEST_FIT_MIN_HEAP || bytes > AVL_BEST_FIT_MAX_HEAP)
        return -1;

    block_t *first = arena;
    size_t size = (bytes - AVL_BEST_FIT_HEADER_BYTES) & ~(AVL_BEST_FIT_UNIT - 1);
    block_t *sentinel = (void *)((unsigned char *)arena + size);
    ROOT = NULL;
    avl_best_fit_control.first = first;
    avl_best_fit_control.sentinel = sentinel;
    first->prev_physical = NULL;
    sentinel->size_and_state = AVL_BEST_FIT_USED;
    release(first, size);
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
