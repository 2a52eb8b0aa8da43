/* SPDX-License-Identifier: 0BSD */
/* Fast-fit after P02 section 2.3.2 and its summary of Stephenson 1983 (see README.md). The manual is fast_fit.h. */
#include "fast_fit.h"

#define ALIGNMENT FAST_FIT_ALIGNMENT_BYTES
#define GRANULE FAST_FIT_GRANULE_BYTES
#define LEAST FAST_FIT_LEAST
#define USED_BIT FAST_FIT_USED_BIT

_Static_assert(FAST_FIT_ALIGNMENT == 4 || FAST_FIT_ALIGNMENT == 8, "the alignment is 4 or 8");
_Static_assert((GRANULE & (GRANULE - 1)) == 0, "the granule is a power of two");
_Static_assert(LEAST >= sizeof(struct fast_fit_block), "the least block holds the links");
_Static_assert(offsetof(struct fast_fit_block, left) == FAST_FIT_WORD, "the payload is behind the header");

typedef struct fast_fit_block block_t;

struct fast_fit_control fast_fit_control;

/* ----------------------------------------------------------------------------------------------------------- blocks */

/* Of a free block: its header is the plain size. */
static inline size_t node_size(const block_t *node)
{
    return node->size_and_used;
}

/* 0 of none: too small for anything. */
static inline size_t size_of(const block_t *node)
{
    return node != NULL ? node_size(node) : 0;
}

static inline block_t *left_of(const block_t *node)
{
    return node->left;
}

static inline block_t *right_of(const block_t *node)
{
    return node->right;
}

static inline block_t *at_offset(block_t *block, size_t bytes)
{
    return (void *)((unsigned char *)block + bytes);
}

static inline void *payload_of(block_t *block)
{
    return &block->left;
}

static inline block_t *block_of(void *payload)
{
    return (void *)((unsigned char *)payload - FAST_FIT_WORD);
}

/* ------------------------------------------------------------------------------------------------------------- tree */

/* From `node` along right links, past all nodes of at least `size` bytes. Returns the link to the first that is smaller. */
static inline block_t **along_right(block_t *node, size_t size)
{
    for (;;) { /* loop: right */
        block_t *next = right_of(node);
        if (next == NULL || node_size(next) < size)
            return &node->right;
        node = next;
    }
}

/* The same along left links, past all nodes of more than `size` bytes. */
static inline block_t **along_left(block_t *node, size_t size)
{
    for (;;) { /* loop: left */
        block_t *next = left_of(node);
        if (next == NULL || node_size(next) <= size)
            return &node->left;
        node = next;
    }
}

/* Puts the subtrees of the node *link, merged, in its place. */
static inline void remove_node(block_t **link)
{
    block_t *left = left_of(*link);
    block_t *right = right_of(*link);

    while (left != NULL && right != NULL) { /* loop: merge */
        if (node_size(left) >= node_size(right)) {
            *link = left;
            link = along_right(left, node_size(right));
            left = *link;
        } else {
            *link = right;
            link = along_left(right, node_size(left));
            right = *link;
        }
    }
    *link = left != NULL ? left : right;
}

/* The node *link has shrunk: moves it down until no child is larger. Its subtrees are merged on the way. */
static inline void demote(block_t **link)
{
    block_t *node = *link;
    block_t *left = left_of(node);
    block_t *right = right_of(node);
    size_t size = node_size(node);
    size_t left_size = size_of(left);
    size_t right_size = size_of(right);

    while ((left_size > right_size ? left_size : right_size) > size) { /* loop: sink */
        if (left_size >= right_size) {
            *link = left;
            link = along_right(left, right_size > size ? right_size : size + 1);
            left = *link;
            left_size = size_of(left);
        } else {
            *link = right;
            link = along_left(right, left_size > size ? left_size : size);
            right = *link;
            right_size = size_of(right);
        }
    }
    *link = node;
    node->left = left;
    node->right = right;
}

/* Cuts the tree `rest` at the address of `block`, which gets the two parts as its subtrees. */
static inline void split_around(block_t *block, block_t *rest)
{
    block_t **left = &block->left;
    block_t **right = &block->right;

    while (rest != NULL) { /* loop: cut */
        if (rest < block) {
            *left = rest;
            do { /* loop: below */
                left = &rest->right;
                /* point: next-below */
                rest = *left;
            } while (rest != NULL && rest < block);
        } else {
            *right = rest;
            do { /* loop: above */
                right = &rest->left;
                /* point: next-above */
                rest = *right;
            } while (rest != NULL && rest > block);
        }
    }
    *left = NULL;
    *right = NULL;
}

/* Makes `block` a free block and puts it into the tree: below all that are larger, above all that are not. */
static inline void insert(block_t *block, size_t size)
{
    block_t **link = &fast_fit_control.root;

    while (size_of(*link) > size) /* loop: place */
        link = block < *link ? &(*link)->left : &(*link)->right;
    block->size_and_used = size;
    block_t *rest = *link;
    *link = block;
    split_around(block, rest);
}

/*
 * From a node that is large enough to the one that is taken: on to the smaller of the children that are large enough,
 * until there is none. Returns the link to it.
 */
static inline block_t **find(size_t size)
{
    block_t **link = &fast_fit_control.root;
    block_t *node = *link;

    for (;;) { /* loop: better */
        block_t *left = left_of(node);
        block_t *right = right_of(node);
        if (left == NULL) {
            if (right == NULL || node_size(right) < size)
                return link;
            link = &node->right;
            node = right;
        } else if (right == NULL) {
            if (node_size(left) < size)
                return link;
            link = &node->left;
            node = left;
        } else {
            /* point: both */
            size_t left_rest = node_size(left) - size; /* wraps around if the child is too small */
            size_t right_rest = node_size(right) - size;
            if (left_rest <= right_rest) {
                if (left_rest >= FAST_FIT_MOST_HEAP)
                    return link;
                link = &node->left;
                node = left;
            } else {
                if (right_rest >= FAST_FIT_MOST_HEAP)
                    return link;
                link = &node->right;
                node = right;
            }
        }
    }
}

/* ------------------------------------------------------------------------------------------------------- operations */

int fast_fit_init(void *arena, size_t bytes)
{
    if (arena == NULL || ((uintptr_t)arena & (GRANULE - 1)) != 0 || (bytes & (ALIGNMENT - 1)) != 0)
        return -1;
    if (bytes < FAST_FIT_LEAST_HEAP || bytes > FAST_FIT_MOST_HEAP)
        return -1;

    size_t size = (bytes - FAST_FIT_FIRST_OFFSET) & ~(GRANULE - 1);
    block_t *first = at_offset(arena, FAST_FIT_FIRST_OFFSET);
    fast_fit_control.first = first;
    fast_fit_control.end = at_offset(first, size);
    fast_fit_control.root = NULL;
    insert(first, size);
    return 0;
}

void *fast_fit_malloc(size_t bytes)
{
    if (bytes - 1 >= FAST_FIT_MOST_HEAP) /* 0 wraps around to SIZE_MAX */
        return NULL;

    if (bytes < LEAST - FAST_FIT_WORD)
        bytes = LEAST - FAST_FIT_WORD;
    size_t size = FAST_FIT_ROUND_UP(bytes + FAST_FIT_WORD);
    if (size_of(fast_fit_control.root) < size)
        return NULL;

    block_t **link = find(size);
    block_t *block = *link;
    size_t rest = block->size_and_used - size;
    if (rest < FAST_FIT_LEAST_REST) {
        remove_node(link);
        block->size_and_used |= USED_BIT;
        return payload_of(block);
    }
    block->size_and_used = rest;
    demote(link);
    block = at_offset(block, rest);
    block->size_and_used = size | USED_BIT;
    return payload_of(block);
}

void fast_fit_free(void *payload)
{
    if (payload == NULL)
        return;

    block_t *block = block_of(payload);
    size_t size = block->size_and_used & ~USED_BIT;
    block_t **link = &fast_fit_control.root;
    block_t **below = NULL; /* links to the last free block before this one and to the first one behind it */
    block_t **above = NULL;

    block_t *node = *link;
    while (node != NULL) { /* loop: walk */
        if (node < block) {
            do { /* loop: to-right */
                below = link;
                link = &node->right;
                /* point: next-right */
                node = *link;
            } while (node != NULL && node < block);
        } else {
            do { /* loop: to-left */
                above = link;
                link = &node->left;
                /* point: next-left */
                node = *link;
            } while (node != NULL && node > block);
        }
    }
    int is_above_deeper = above != NULL && link == &(*above)->left; /* the walk ended there */
    if (below != NULL && at_offset(*below, node_size(*below)) != block)
        below = NULL;
    if (above != NULL && *above != at_offset(block, size))
        above = NULL;

    if (below != NULL) {
        block = *below;
        size += node_size(block);
    }
    if (above != NULL)
        size += node_size(*above);
    block_t **deeper = is_above_deeper ? above : below; /* it leaves first: the link to it may lie in the other one */
    block_t **other = is_above_deeper ? below : above;
    if (deeper != NULL)
        remove_node(deeper);
    if (other != NULL)
        remove_node(other);
    insert(block, size);
}
