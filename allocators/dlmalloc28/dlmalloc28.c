/* SPDX-License-Identifier: 0BSD */
/* Written from the public description of Doug Lea's design, version 2.8 (see README.md). The manual is dlmalloc28.h. */
#include "dlmalloc28.h"

#include "bit_search.h"

typedef struct dlmalloc28_chunk chunk;

_Static_assert(offsetof(chunk, ring) == DLMALLOC28_HEADER_BYTES, "the payload keeps its alignment");
_Static_assert(offsetof(chunk, child) == DLMALLOC28_MIN_CHUNK, "the least chunk holds the ring");
_Static_assert(sizeof(chunk) <= DLMALLOC28_SMALL_LIMIT, "the least chunk in a trie holds a node");

struct dlmalloc28_control dlmalloc28_control;

#define control dlmalloc28_control

/* ---------------------------------------------------------------------------------------------------------- chunks */

static inline size_t size_of(const chunk *c)
{
    return c->head & ~DLMALLOC28_FLAGS;
}

static inline chunk *at(chunk *c, size_t offset)
{
    return (void *)((unsigned char *)c + offset);
}

static inline void *payload_of(chunk *c)
{
    return &c->ring;
}

static inline chunk *chunk_of(void *payload)
{
    return (void *)((unsigned char *)payload - DLMALLOC28_HEADER_BYTES);
}

static inline chunk *chunk_of_ring(struct dlist *ring)
{
    return chunk_of(ring);
}

/* Size of the chunk that serves a request. */
static inline size_t size_for(size_t bytes)
{
    size_t size = (bytes + DLMALLOC28_OVERHEAD + DLMALLOC28_FLAGS) & ~DLMALLOC28_FLAGS;

    return size < DLMALLOC28_MIN_CHUNK ? DLMALLOC28_MIN_CHUNK : size;
}

/* Makes `c` a chunk in use. The one before it is. */
static inline void mark_used(chunk *c, size_t size)
{
    c->head = size | DLMALLOC28_USED | DLMALLOC28_PREV_USED;
}

/* As above, where the chunk behind took `c` for a free one. */
static inline void mark_whole_used(chunk *c, size_t size)
{
    mark_used(c, size);
    at(c, size)->head |= DLMALLOC28_PREV_USED;
}

/* Makes `c` a free chunk. The one before it is in use, the one behind knows already that this one is free. */
static inline void mark_free(chunk *c, size_t size)
{
    c->head = size | DLMALLOC28_PREV_USED;
    at(c, size)->prev_foot = size;
}

/* ------------------------------------------------------------------------------------------------------- small bins */

static inline unsigned small_index(size_t size)
{
    return (unsigned)(size >> DLMALLOC28_ALIGNMENT_BITS);
}

static inline void insert_small(chunk *c, size_t size)
{
    unsigned index = small_index(size);

    control.small_map |= (uint32_t)1 << index;
    dlist_insert_after(&control.small_bins[index], &c->ring);
}

/* The last of a bin has the bin's head on both sides. */
static inline void unlink_small(chunk *c, size_t size)
{
    if (c->ring.next == c->ring.prev)
        control.small_map &= ~((uint32_t)1 << small_index(size));
    dlist_unlink(&c->ring);
}

/* The first chunk of a bin that is not empty, taken out of it. */
static inline chunk *pop_small(unsigned index)
{
    chunk *c = chunk_of_ring(control.small_bins[index].next);

    unlink_small(c, (size_t)index << DLMALLOC28_ALIGNMENT_BITS);
    return c;
}

/* ------------------------------------------------------------------------------------------------------------ tries */

/* The last trie has no upper end. */
static inline unsigned tree_index(size_t size)
{
    unsigned log2 = floor_log2((uint32_t)size);

    if (log2 >= DLMALLOC28_TREE_BITS + DLMALLOC28_TREE_BINS / 2)
        return DLMALLOC28_TREE_BINS - 1;
    return 2 * (log2 - DLMALLOC28_TREE_BITS) + (unsigned)(size >> (log2 - 1) & 1);
}

/* The bits that the trie branches on, the first one on top: those that its interval fixes are shifted out. None is
 * fixed where there is no upper end. */
static inline uint32_t tree_key(size_t size, unsigned index)
{
    if (index == DLMALLOC28_TREE_BINS - 1)
        return (uint32_t)size;
    return (uint32_t)size << (33 - DLMALLOC28_TREE_BITS - index / 2);
}

static inline unsigned top_bit(uint32_t key)
{
    return key >> 31;
}

static inline void become_node(chunk *c, chunk *parent, unsigned index)
{
    c->bin = index;
    c->parent = parent;
    c->child[0] = NULL;
    c->child[1] = NULL;
    dlist_init(&c->ring);
}

/* A new node hangs where the path of its size ends; a chunk whose size has a node joins the node's ring. */
static inline void insert_tree(chunk *c, size_t size)
{
    unsigned index = tree_index(size);

    if ((control.tree_map >> index & 1) == 0) {
        control.tree_map |= (uint32_t)1 << index;
        control.tree_bins[index] = c;
        become_node(c, NULL, index);
        return;
    }

    chunk *node = control.tree_bins[index];
    /* loop: down */
    for (uint32_t key = tree_key(size, index); size_of(node) != size; key <<= 1) {
        /* point: passed */
        chunk **below = &node->child[top_bit(key)];
        if (*below == NULL) {
            *below = c;
            become_node(c, node, index);
            return;
        }
        node = *below;
    }
    c->bin = index;
    c->parent = NULL;
    dlist_insert_after(&node->ring, &c->ring);
}

/* Cuts off a leaf below `node`, or returns NULL if that is a leaf itself. Any leaf has the bits that `node` has. */
static inline chunk *cut_leaf_below(chunk *node)
{
    chunk *above = NULL;
    chunk *leaf = node;

    /* loop: to-leaf */
    for (;;) {
        chunk *right = leaf->child[1];
        chunk *below = right != NULL ? right : leaf->child[0];
        if (below == NULL)
            break;
        above = leaf;
        leaf = below;
    }
    if (above == NULL)
        return NULL;
    above->child[above->child[1] == leaf] = NULL;
    return leaf;
}

static inline void adopt(chunk *heir, chunk *child, unsigned bit)
{
    heir->child[bit] = child;
    if (child != NULL)
        child->parent = heir;
}

/* A node leaves its place to a chunk of its ring or, if it is alone there, to a leaf below it. */
static inline void unlink_tree(chunk *node)
{
    chunk *parent = node->parent;
    chunk **root = &control.tree_bins[node->bin];
    chunk *heir;

    if (node->ring.prev != &node->ring) {
        heir = chunk_of_ring(node->ring.prev);
        dlist_unlink(&node->ring);
    } else {
        heir = cut_leaf_below(node);
    }
    if (*root == node) {
        *root = heir;
        if (heir == NULL)
            control.tree_map &= ~((uint32_t)1 << node->bin);
    } else if (parent != NULL) {
        parent->child[parent->child[1] == node] = heir;
    } else {
        return; /* it was in a ring only */
    }
    if (heir != NULL) {
        heir->parent = parent;
        adopt(heir, node->child[0], 0);
        adopt(heir, node->child[1], 1);
    }
}

/* ----------------------------------------------------------------------------------------------------- all the bins */

static inline void insert(chunk *c, size_t size)
{
    if (size < DLMALLOC28_SMALL_LIMIT)
        insert_small(c, size);
    else
        insert_tree(c, size);
}

static inline void unlink(chunk *c, size_t size)
{
    if (size < DLMALLOC28_SMALL_LIMIT)
        unlink_small(c, size);
    else
        unlink_tree(c);
}

/* ------------------------------------------------------------------------------------------------------- allocation */

/* A chunk that was looked at, and by how much it is too large. */
struct fit {
    chunk *best;
    size_t spare;
};

/* In unsigned arithmetic a chunk that is too small has a spare not below 0 - size: with that the search begins. */
static inline struct fit better(struct fit fit, chunk *c, size_t size)
{
    size_t spare = size_of(c) - size;

    return spare < fit.spare ? (struct fit){c, spare} : fit;
}

/* The best fit among `fit` and the subtree of `node`, all of whose chunks are large enough: the smallest of them lies
 * on the leftmost path. */
static inline struct fit smallest_below(chunk *node, size_t size, struct fit fit)
{
    /* loop: leftmost */
    do {
        fit = better(fit, node, size);
        node = node->child[0] != NULL ? node->child[0] : node->child[1];
    } while (node != NULL);
    return fit;
}

/*
 * The best fit of the trie of this size, which is not empty. A chunk that fits lies on the path of the size's bits, or in a right subtree
 * beside it. The deepest of these subtrees holds smaller chunks than the others. An equal size fits best.
 */
static inline struct fit best_of_tree(size_t size, unsigned index, struct fit fit)
{
    chunk *deepest_right = NULL;
    chunk *node = control.tree_bins[index];
    uint32_t key = tree_key(size, index);

    /* loop: search */
    do {
        fit = better(fit, node, size);
        if (fit.spare == 0)
            return fit;
        chunk *left = node->child[0];
        chunk *right = node->child[1];
        node = top_bit(key) != 0 ? right : left;
        if (right != NULL && right != node)
            deepest_right = right;
        key <<= 1;
    } while (node != NULL);
    return deepest_right != NULL ? smallest_below(deepest_right, size, fit) : fit;
}

/* The best fit of all tries for a large request; the best is NULL if there is none. */
static inline struct fit best_of_trees(size_t size)
{
    unsigned index = tree_index(size);
    uint32_t from_here = control.tree_map >> index;
    struct fit fit = {NULL, 0 - size};

    if ((from_here & 1) != 0)
        fit = best_of_tree(size, index, fit);
    if (fit.best == NULL && (from_here & ~(uint32_t)1) != 0)
        fit = smallest_below(control.tree_bins[index + lowest_bit(from_here & ~(uint32_t)1)], size, fit);
    return fit;
}

/* Cuts `size` bytes off the low end of a free chunk that is in no bin. Returns the rest, a free chunk, or NULL if there
 * would be too little of it: then the whole chunk is in use. */
static inline chunk *cut(chunk *c, size_t size, size_t spare)
{
    if (spare < DLMALLOC28_MIN_CHUNK) {
        mark_whole_used(c, size + spare);
        return NULL;
    }
    chunk *rest = at(c, size);
    mark_used(c, size);
    mark_free(rest, spare);
    return rest;
}

/* As above; the rest is the designated victim from now on. The one so far was too small for a small request. */
static inline void *cut_for_small(chunk *c, size_t size, size_t spare)
{
    chunk *rest = cut(c, size, spare);

    if (rest != NULL) {
        if (control.dv_size != 0)
            insert_small(control.dv, control.dv_size);
        control.dv = rest;
        control.dv_size = spare;
    }
    return payload_of(c);
}

/* From the first small bin above, of `bins` as seen from the bin of this size, two bins or more away. */
static inline void *from_small_bin(size_t size, uint32_t bins)
{
    unsigned away = lowest_bit(bins);
    chunk *c = pop_small(small_index(size) + away);

    return cut_for_small(c, size, (size_t)away << DLMALLOC28_ALIGNMENT_BITS);
}

/* From the smallest chunk of all tries. */
static inline void *from_smallest_tree(size_t size)
{
    struct fit fit = {NULL, 0 - size};

    fit = smallest_below(control.tree_bins[lowest_bit(control.tree_map)], size, fit);
    unlink_tree(fit.best);
    return cut_for_small(fit.best, size, fit.spare);
}

static inline void *from_best_tree(struct fit fit, size_t size)
{
    unlink_tree(fit.best);
    chunk *rest = cut(fit.best, size, fit.spare);
    if (rest != NULL)
        insert(rest, fit.spare);
    return payload_of(fit.best);
}

static inline void *from_dv(size_t size)
{
    chunk *c = control.dv;
    chunk *rest = cut(c, size, control.dv_size - size);

    control.dv = rest;
    control.dv_size = rest == NULL ? 0 : control.dv_size - size;
    return payload_of(c);
}

static inline void *from_top(size_t size)
{
    chunk *c = control.top;

    control.top = at(c, size);
    control.top_size -= size;
    control.top->head = control.top_size | DLMALLOC28_PREV_USED;
    mark_used(c, size);
    return payload_of(c);
}

/* ----------------------------------------------------------------------------------------------------- deallocation */

/* Makes the free memory at `c` a part of the top chunk. */
static inline void join_top(chunk *c, size_t size)
{
    if (c == control.dv) {
        control.dv = NULL;
        control.dv_size = 0;
    }
    control.top = c;
    control.top_size = size;
    c->head = size | DLMALLOC28_PREV_USED;
}

static inline void become_dv(chunk *c, size_t size)
{
    control.dv = c;
    control.dv_size = size;
    mark_free(c, size);
}

/* ------------------------------------------------------------------------------------------------------- operations */

int dlmalloc28_init(void *arena, size_t bytes)
{
    if (arena == NULL || (((uintptr_t)arena | bytes) & DLMALLOC28_FLAGS) != 0)
        return -1;
    if (bytes < DLMALLOC28_MIN_HEAP || bytes > DLMALLOC28_MAX_HEAP)
        return -1;

    control.first = arena;
    control.top = arena;
    control.top_size = bytes;
    control.top->head = bytes | DLMALLOC28_PREV_USED;
    control.dv = NULL;
    control.dv_size = 0;
    control.small_map = 0;
    control.tree_map = 0;
    for (unsigned i = 0; i < DLMALLOC28_SMALL_BINS; i++)
        dlist_init(&control.small_bins[i]);
    return 0;
}

void *dlmalloc28_malloc(size_t bytes)
{
    if (bytes - 1 >= DLMALLOC28_MAX_REQUEST) /* 0 wraps around to SIZE_MAX */
        return NULL;

    size_t size = size_for(bytes);
    if (size < DLMALLOC28_SMALL_LIMIT) {
        unsigned index = small_index(size);
        uint32_t bins = control.small_map >> index;
        if ((bins & 3) != 0) { /* what one more unit leaves is no chunk */
            index += ~bins & 1;
            chunk *c = pop_small(index);
            mark_whole_used(c, (size_t)index << DLMALLOC28_ALIGNMENT_BITS);
            return payload_of(c);
        }
        if (size > control.dv_size) {
            if (bins != 0)
                return from_small_bin(size, bins);
            if (control.tree_map != 0)
                return from_smallest_tree(size);
        }
    } else if (control.tree_map != 0) {
        struct fit fit = best_of_trees(size);
        if (fit.best != NULL && fit.spare < control.dv_size - size) /* too small a victim wraps around, too */
            return from_best_tree(fit, size);
    }
    if (size <= control.dv_size)
        return from_dv(size);
    if (size < control.top_size)
        return from_top(size);
    return NULL;
}

void dlmalloc28_free(void *payload)
{
    if (payload == NULL)
        return;

    chunk *c = chunk_of(payload);
    size_t size = size_of(c);
    chunk *next = at(c, size);
    chunk *dv = control.dv;
    chunk *top = control.top;

    if ((c->head & DLMALLOC28_PREV_USED) == 0) {
        size_t before = c->prev_foot;
        c = (void *)((unsigned char *)c - before);
        size += before;
        if (c != dv)
            unlink(c, before);
    }
    if (next == top) {
        join_top(c, size + control.top_size);
        return;
    }
    if (next == dv) {
        become_dv(c, size + control.dv_size);
        return;
    }
    if ((next->head & DLMALLOC28_USED) == 0) {
        size_t behind = size_of(next);
        unlink(next, behind);
        size += behind;
    } else {
        next->head &= ~DLMALLOC28_PREV_USED;
    }
    if (c == dv) {
        become_dv(c, size);
        return;
    }
    insert(c, size);
    mark_free(c, size);
}
