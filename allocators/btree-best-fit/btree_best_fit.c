/* SPDX-License-Identifier: 0BSD */
/* Ordered binary tree best-fit after P02 section 2.3.1 (see README.md). The manual is btree_best_fit.h. */
#include "btree_best_fit.h"

#define ALIGNMENT BTREE_BEST_FIT_ALIGNMENT_BYTES
#define LEAST BTREE_BEST_FIT_LEAST
#define MEMBER BTREE_BEST_FIT_MEMBER

_Static_assert(BTREE_BEST_FIT_ALIGNMENT == 4 || BTREE_BEST_FIT_ALIGNMENT == 8, "the alignment is 4 or 8");
_Static_assert(BTREE_BEST_FIT_MINIMUM >= 16, "the least block holds two tags and two links");
_Static_assert(BTREE_BEST_FIT_MINIMUM % BTREE_BEST_FIT_ALIGNMENT == 0, "all sizes are multiples of the alignment");
_Static_assert(offsetof(struct btree_best_fit_block, left) == 3 * BT_WORD, "the footer of the least block is there");

typedef struct btree_best_fit_block block_t;

struct btree_best_fit_control btree_best_fit_control;

/* ---------------------------------------------------------------------------------------------------------- members */

static inline int is_member(const block_t *block)
{
    return (block->link.prev_and_member & MEMBER) != 0;
}

static inline void link_back(block_t *member, block_t *prev)
{
    member->link.prev_and_member = (uintptr_t)prev | MEMBER;
}

static inline void insert_member(block_t *node, block_t *block)
{
    block_t *next = node->next;

    block->next = next;
    link_back(block, node);
    node->next = block;
    if (next != NULL)
        link_back(next, block);
}

static inline void remove_member(block_t *block)
{
    block_t *prev = (void *)(block->link.prev_and_member & ~MEMBER);
    block_t *next = block->next;

    prev->next = next;
    if (next != NULL)
        link_back(next, prev);
}

/* ------------------------------------------------------------------------------------------------------------- tree */

/* In a block of four words the footer lies where the left child would be. */
static inline int has_left(const block_t *node)
{
    return node->tag.header > (4 * BT_WORD | BT_FREE_BIT);
}

/*
 * Sets what *link is, a node, aside and puts the next larger node below it in its place. Both children are there: so
 * that node is not of the least size, and neither is the one that is set aside.
 */
static inline void replace_by_successor(block_t **link)
{
    block_t *node = *link;
    block_t **at = &node->link.right;

    while ((*at)->left != NULL) /* loop: successor */
        at = &(*at)->left;
    block_t *successor = *at;
    *at = successor->link.right;
    successor->left = node->left;
    successor->link.right = node->link.right;
    *link = successor;
}

/* Takes the node *link, alone in its list, out of the tree. */
static inline void remove_node(block_t **link)
{
    block_t *node = *link;

    if (!has_left(node) || node->left == NULL)
        *link = node->link.right;
    else if (node->link.right == NULL)
        *link = node->left;
    else
        replace_by_successor(link);
}

/* Takes the node *link out of its list and makes the first member the node. */
static inline void replace_by_member(block_t **link)
{
    block_t *node = *link;
    block_t *heir = node->next;

    heir->link.right = node->link.right;
    if (has_left(node))
        heir->left = node->left;
    *link = heir;
}

static inline void insert(block_t *block)
{
    size_t key = block->tag.header;
    block_t **link = &btree_best_fit_control.root;
    block_t *node;

    while ((node = *link) != NULL) { /* loop: place */
        if (node->tag.header == key) {
            insert_member(node, block);
            return;
        }
        link = node->tag.header < key ? &node->link.right : &node->left;
    }
    *link = block;
    block->next = NULL;
    block->link.right = NULL;
    if (has_left(block))
        block->left = NULL;
}

/* Takes a free block out of list and tree. A node has no link to its parent: its size leads there. */
static inline void detach(block_t *block)
{
    if (is_member(block)) {
        remove_member(block);
        return;
    }
    block_t **link = &btree_best_fit_control.root;
    while (*link != block) /* loop: seek */
        link = (*link)->tag.header < block->tag.header ? &(*link)->link.right : &(*link)->left;
    if (block->next != NULL)
        replace_by_member(link);
    else
        remove_node(link);
}

/* Link to the node of the smallest size that is at least `size`, or NULL. */
static inline block_t **find(size_t size)
{
    size_t key = size | BT_FREE_BIT;
    block_t **best = NULL;
    block_t **link = &btree_best_fit_control.root;
    block_t *node;

    while ((node = *link) != NULL) { /* loop: fit */
        /* point: visited */
        if (node->tag.header < key) {
            link = &node->link.right;
            continue;
        }
        best = link;
        if (node->tag.header == key)
            break;
        link = &node->left;
    }
    return best;
}

/* Takes a block of the size of the node *link: a member if there is one. */
static inline block_t *take(block_t **link)
{
    block_t *node = *link;

    if (node->next == NULL) {
        remove_node(link);
        return node;
    }
    block_t *member = node->next;
    remove_member(member);
    return member;
}

/* ----------------------------------------------------------------------------------------------------- split, merge */

/* Makes the memory of `block` a free block of `size` bytes. Its neighbours are not free. */
static inline void release(struct bt_block *block, size_t size)
{
    bt_set(block, size, BT_FREE_BIT);
    insert((block_t *)block);
}

/* Makes `block` a used one of `size` bytes and releases what is left, unless that is too little. */
static inline void cut(struct bt_block *block, size_t size)
{
    size_t rest = bt_size(block) - size;

    if (rest < BTREE_BEST_FIT_LEAST_REST) {
        bt_set(block, size + rest, 0);
        return;
    }
    bt_set(block, size, 0);
    release(bt_next(block), rest);
}

/* ------------------------------------------------------------------------------------------------------- operations */

int btree_best_fit_init(void *arena, size_t bytes)
{
    if (arena == NULL || (((uintptr_t)arena | bytes) & (ALIGNMENT - 1)) != 0)
        return -1;
    if (bytes < BTREE_BEST_FIT_LEAST_HEAP || bytes > BTREE_BEST_FIT_MOST_HEAP)
        return -1;

    struct bt_block *first = bt_found(arena, bytes);
    btree_best_fit_control.first = first;
    btree_best_fit_control.fence = bt_next(first);
    btree_best_fit_control.root = NULL;
    insert((block_t *)first);
    return 0;
}

void *btree_best_fit_malloc(size_t bytes)
{
    if (bytes - 1 >= BTREE_BEST_FIT_MOST_HEAP) /* 0 wraps around to SIZE_MAX */
        return NULL;

    size_t size = bt_size_for(bytes, ALIGNMENT, LEAST);
    block_t **link = find(size);
    if (link == NULL)
        return NULL;
    struct bt_block *block = &take(link)->tag;
    cut(block, size);
    return bt_payload(block);
}

void btree_best_fit_free(void *payload)
{
    if (payload == NULL)
        return;

    struct bt_block *block = bt_block_of(payload);
    struct bt_block *next = bt_next(block);
    size_t size = bt_size(block);

    if (bt_is_free(next)) {
        detach((block_t *)next);
        size += bt_size(next);
    }
    if (bt_is_free_before(block)) {
        block = bt_prev(block);
        detach((block_t *)block);
        size += bt_size(block);
    }
    release(block, size);
}
