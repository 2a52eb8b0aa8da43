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

static inline size_t without_state(size_t word)
{
    return word & ~AVL_BEST_FIT_STATE_MASK;
}

static inline unsigned state_in(size_t word)
{
    return (unsigned)(word & AVL_BEST_FIT_STATE_MASK);
}

/* A word with another state. */
static inline size_t with_state(size_t word, unsigned state)
{
    return without_state(word) | state;
}

static inline size_t size_of(const block_t *block)
{
    return without_state(block->size_and_state);
}

static inline unsigned state_of(const block_t *block)
{
    return state_in(block->size_and_state);
}

/* Size and state of a node on a way down. */
static inline size_t word_of(const block_t *node)
{
    return node->size_and_state;
}

/* The same of a node that is met again on that way, unchanged. */
static inline size_t word_again(const block_t *node)
{
    return node->size_and_state;
}

/* Size and state of a block that is reached by its payload, and of the one behind it. */
static inline size_t given_word(const block_t *block)
{
    return block->size_and_state;
}

static inline size_t word_behind(const block_t *next)
{
    return next->size_and_state;
}

static inline void set_word(block_t *block, size_t word)
{
    block->size_and_state = word;
}

static inline void set_child(block_t *block, unsigned side, block_t *child)
{
    block->child[side] = child;
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

/* Whether the way to the key (size, address) goes left of `node`, whose size is in `word`, 0, or right of it, 1: left of
 * that very key. */
static inline unsigned side_of(const block_t *node, size_t word, size_t size, const block_t *address)
{
    size_t own = without_state(word);
    return own != size ? own < size : (uintptr_t)node < (uintptr_t)address;
}

/* The subtree on `side` of `node`, a constant, is two levels taller than the other: the child on that side takes the
 * place of `node`, or a child of that does. Returns which, and whether the whole has become lower. Size and state of
 * `node` are in `word`. No node is read after it was written. */
static inline block_t *rotated(block_t *node, size_t word, unsigned side, int *is_lower)
{
    block_t *child = node->child[side];
    block_t *inner = child->child[side ^ 1];
    size_t child_word = child->size_and_state;

    *is_lower = state_in(child_word) != AVL_BEST_FIT_BALANCED;
    if (state_in(child_word) == AVL_BEST_FIT_TALLER(side ^ 1)) { /* its inner subtree is the tall one */
        size_t inner_word = inner->size_and_state;
        unsigned state = state_in(inner_word);
        node->child[side] = inner->child[side ^ 1];
        child->child[side ^ 1] = inner->child[side];
        inner->child[side ^ 1] = node;
        inner->child[side] = child;
        set_word(inner, with_state(inner_word, AVL_BEST_FIT_BALANCED));
        set_word(child, with_state(child_word, state == AVL_BEST_FIT_TALLER(side ^ 1) ? state ^ 1 : AVL_BEST_FIT_BALANCED));
        set_word(node, with_state(word, state == AVL_BEST_FIT_TALLER(side) ? state ^ 1 : AVL_BEST_FIT_BALANCED));
        return inner;
    }
    node->child[side] = inner;
    child->child[side ^ 1] = node;
    if (state_in(child_word) == AVL_BEST_FIT_BALANCED) {
        set_word(child, with_state(child_word, AVL_BEST_FIT_TALLER(side ^ 1)));
    } else {
        set_word(child, with_state(child_word, AVL_BEST_FIT_BALANCED));
        set_word(node, with_state(word, AVL_BEST_FIT_BALANCED));
    }
    return child;
}

/* -------------------------------------------------------------------------------------------------------- insertion */

/* Makes `block` of `size` bytes a free one. Its neighbours are not free, its prev_physical is right. The way down to it
 * changes no node above the last one that was not balanced, *top, or the root if all were: from there it is gone again,
 * and what is below becomes one level higher. A node is read before anything near it is written, both times. */
static void release(block_t *block, size_t size)
{
    block_t **link = &ROOT;
    block_t **top = link;

    block->size_and_state = size | AVL_BEST_FIT_BALANCED;
    next_physical(block)->prev_physical = block;
    for (block_t *node = *link; node != NULL; node = *link) { /* loop: descent */
        size_t word = word_of(node);
        /* point: down */
        if (state_in(word) != AVL_BEST_FIT_BALANCED)
            top = link;
        link = &node->child[side_of(node, word, size, block)];
    }
    block->child[0] = NULL;
    block->child[1] = NULL;
    if (link == &ROOT) { /* it is the only node */
        *link = block;
        return;
    }

    /* point: top */
    block_t *node = *top;
    size_t word = word_again(node);
    unsigned side = side_of(node, word, size, block);
    for (block_t *below = node->child[side]; below != NULL;) { /* loop: grow */
        size_t word_below = word_again(below);
        unsigned side_below = side_of(below, word_below, size, block);
        set_word(below, with_state(word_below, AVL_BEST_FIT_TALLER(side_below)));
        /* point: again */
        below = below->child[side_below];
    }
    *link = block;
    if (state_in(word) == AVL_BEST_FIT_BALANCED) {
        set_word(node, with_state(word, AVL_BEST_FIT_TALLER(side)));
    } else if (state_in(word) != AVL_BEST_FIT_TALLER(side)) {
        set_word(node, with_state(word, AVL_BEST_FIT_BALANCED));
    } else {
        int is_lower;
        *top = side == 0 ? rotated(node, word, 0, &is_lower) : rotated(node, word, 1, &is_lower);
    }
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
        side = side_of(node, word_of(node), size, address);
        if (side == 0)
            found = depth;
    }
    path->last = depth;
    return found;
}

/* Where the path ends there is `subtree` now, one level lower: up the path, until a subtree's height stays. A node gets
 * its new subtree when it is its turn: so a turn reads the path once, and no more than three nodes, and a node is as it
 * was left on the way down. */
static inline void shrunk(const struct path *path, block_t *subtree)
{
    unsigned depth = path->last - 1;

    while (depth > 0) { /* loop: shrink */
        block_t *node = path->nodes[depth];
        unsigned side = side_at(path, depth--);
        size_t word = word_again(node);
        int is_lower = 1;
        set_child(node, side, subtree);
        subtree = node;
        /* point: up */
        if (state_in(word) == AVL_BEST_FIT_BALANCED) {
            set_word(node, with_state(word, AVL_BEST_FIT_TALLER(side ^ 1)));
            break;
        }
        if (state_in(word) == AVL_BEST_FIT_TALLER(side)) {
            set_word(node, with_state(word, AVL_BEST_FIT_BALANCED));
        } else {
            /* point: rebalance */
            if (side == 0)
                subtree = rotated(node, word, 1, &is_lower);
            else
                subtree = rotated(node, word, 0, &is_lower);
            if (!is_lower)
                break;
        }
    }
    path->nodes[depth]->child[side_at(path, depth)] = subtree;
}

/* `heir` takes the place of `taken`, which *link leads to. */
static inline void succeed(block_t *heir, const block_t *taken, block_t **link)
{
    heir->child[0] = taken->child[0];
    heir->child[1] = taken->child[1];
    heir->size_and_state = with_state(heir->size_and_state, state_of(taken));
    *link = heir;
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
    block_t *heir = path.nodes[path.last];
    block_t *subtree = taken->child[1];
    if (heir != taken) {
        subtree = heir->child[0];
        succeed(heir, taken, link_to(&path, at));
        path.nodes[at] = heir;
    }
    shrunk(&path, subtree);
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

    size_t word = block->size_and_state;
    size_t spare = without_state(word) - size;
    if (spare < AVL_BEST_FIT_MIN_REST) {
        set_word(block, with_state(word, AVL_BEST_FIT_USED));
        return payload_of(block);
    }
    set_word(block, size | AVL_BEST_FIT_USED);
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
    size_t size = without_state(given_word(block));
    block_t *next = (void *)((unsigned char *)block + size);
    size_t word = word_behind(next);

    if (state_in(word) != AVL_BEST_FIT_USED)
        size += size_of(take(without_state(word), next));
    if (prev != NULL && state_of(prev) != AVL_BEST_FIT_USED) {
        block = take(size_of(prev), prev);
        size += size_of(block);
    }
    release(block, size);
}
