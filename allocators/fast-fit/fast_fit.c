/* SPDX-License-Identifier: 0BSD */
/* Fast-fit after P02 section 2.3.2 and its summary of Stephenson 1983 (see README.md). The manual is fast_fit.h. */
#include "fast_fit.h"

#define ALIGNMENT FAST_FIT_ALIGNMENT_BYTES
#define LEAST FAST_FIT_LEAST
#define USED_BIT FAST_FIT_USED_BIT

_Static_assert(FAST_FIT_ALIGNMENT == 4 || FAST_FIT_ALIGNMENT == 8, "the alignment is 4 or 8");
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

/* Puts the subtrees of the node *link, merged, in its place. */
static inline void remove_node(block_t **link)
{
    block_t *left = left_of(*link);
    block_t *right = right_of(*link);
    size_t left_size = size_of(left);
    size_t right_size = size_of(right);

    while (left_size != 0 && right_size != 0) { /* loop: merge */
        if (left_size >= right_size) {
            *link = left;
            link = &left->right;
            left = *link;
            left_size = size_of(left);
        } else {
            *link = right;
            link = &right->left;
            right = *link;
            right_size = size_of(right);
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
            link = &left->right;
            left = *link;
            left_size = size_of(left);
        } else {
            *link = right;
            link = &right->left;
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
            left = &rest->right;
            rest = *left;
        } else {
            *right = rest;
            right = &rest->left;
            rest = *right;
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

    for (;;) { /* loop: better */
        block_t *node = *link;
        block_t *left = left_of(node);
        block_t *right = right_of(node);
        size_t left_size = 0;
        size_t right_size = 0;
        if (left != NULL)
            /* point: left-child */
            left_size = node_size(left);
        if (right != NULL)
            /* point: right-child */
            right_size = node_size(right);
        /* point: left */
        if (left_size >= size && (right_size < size || left_size <= right_size))
            link = &node->left;
        else /* point: right */ if (right_size >= size)
            link = &node->right;
        else
            return link;
    }
}

/* ------------------------------------------------------------------------------------------------------- operations */

int fast_fit_init(void *arena, size_t bytes)
{
    if (arena == NULL || (((uintptr_t)arena | bytes) & (ALIGNMENT - 1)) != 0)
        return -1;
    if (bytes < FAST_FIT_LEAST_HEAP || bytes > FAST_FIT_MOST_HEAP)
        return -1;

    size_t size = bytes - FAST_FIT_LOST;
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

    size_t size = (bytes + FAST_FIT_WORD + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
    if (size < LEAST)
        size = LEAST;
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

    for (block_t *node = *link; node != NULL; node = *link) { /* loop: walk */
        if (node < block) {
            below = link;
            link = &node->right;
        } else {
            above = link;
            link = &node->left;
        }
    }
    int is_above_deeper = above != NULL && link == &(*above)->left; /* the walk ended there */
    if (below != NULL && at_offset(*below, (*below)->size_and_used) != block)
        below = NULL;
    if (above != NULL && *above != at_offset(block, size))
        above = NULL;

    block_t **neighbours[2];
    unsigned count = 0;
    if (above != NULL && !is_above_deeper)
        neighbours[count++] = above;
    if (below != NULL)
        neighbours[count++] = below;
    if (above != NULL && is_above_deeper)
        neighbours[count++] = above;
    /* loop: neighbours */
    while (count > 0) { /* the deeper one first: the link to it may lie in the other one */
        link = neighbours[--count];
        block_t *node = *link;
        size += node->size_and_used;
        if (node < block)
            block = node;
        remove_node(link);
    }
    insert(block, size);
}
