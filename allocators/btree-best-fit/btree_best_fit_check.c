/* SPDX-License-Identifier: 0BSD */
/* The invariants of the heap. Shares the layout with btree_best_fit.c and no code. */
#include "btree_best_fit.h"

typedef struct btree_best_fit_block block_t;

/* What the chain of blocks and what tree and lists hold. */
struct census {
    size_t free_blocks;   /* blocks of the chain that are marked free */
    size_t listed_blocks; /* nodes and their members */
    size_t nodes;
    size_t links; /* of the tree that are not NULL, the root's included */
};


static int check_block(const struct bt_block *block)
{
    const size_t size = block->header & ~BT_FREE_BIT;

    if (size < BTREE_BEST_FIT_LEAST || size % BTREE_BEST_FIT_ALIGNMENT_BYTES != 0)
        return BTREE_BEST_FIT_BAD_SIZE;
    if (size > (uintptr_t)btree_best_fit_control.fence - (uintptr_t)block)
        return BTREE_BEST_FIT_BAD_CHAIN_END;
    const unsigned char *end = (const unsigned char *)block + size;
    if (*(const size_t *)(const void *)(end - BT_WORD) != block->header)
        return BTREE_BEST_FIT_BAD_FOOTER;
    if ((block->header & block[-1].header & BT_FREE_BIT) != 0)
        return BTREE_BEST_FIT_BAD_NEIGHBOURS;
    return BTREE_BEST_FIT_SOUND;
}

static const struct bt_block *behind(const struct bt_block *block)
{
    return (const void *)((const unsigned char *)block + (block->header & ~BT_FREE_BIT));
}

/* Ends because the address grows with every step. */
static int check_chain(struct census *census)
{
    const struct bt_block *block = btree_best_fit_control.first;

    if (block[-1].header != 0 || btree_best_fit_control.fence->header != 0)
        return BTREE_BEST_FIT_BAD_FENCE;
    for (; block != btree_best_fit_control.fence; block = behind(block)) {
        const int violation = check_block(block);
        if (violation != BTREE_BEST_FIT_SOUND)
            return violation;
        census->free_blocks += block->header & BT_FREE_BIT;
    }
    return BTREE_BEST_FIT_SOUND;
}

static int may_be_free_block(const block_t *block)
{
    const uintptr_t first = (uintptr_t)btree_best_fit_control.first;
    const uintptr_t last = (uintptr_t)btree_best_fit_control.fence - BTREE_BEST_FIT_LEAST;
    const uintptr_t address = (uintptr_t)block;

    return address >= first && address <= last && (address - first) % BTREE_BEST_FIT_ALIGNMENT_BYTES == 0
           && (block->tag.header & BT_FREE_BIT) != 0;
}

static int is_member(const block_t *block)
{
    return (block->link.prev_and_member & BTREE_BEST_FIT_MEMBER) != 0;
}

/* Ends because a block has one block before it, and the node none. */
static int check_list(const block_t *node, struct census *census)
{
    const block_t *prev = node;

    census->listed_blocks++;
    for (const block_t *block = node->next; block != NULL; block = block->next) {
        if (!may_be_free_block(block) || block->tag.header != node->tag.header)
            return BTREE_BEST_FIT_BAD_LIST;
        if (block->link.prev_and_member != ((uintptr_t)prev | BTREE_BEST_FIT_MEMBER))
            return BTREE_BEST_FIT_BAD_LIST_LINK;
        census->listed_blocks++;
        prev = block;
    }
    return BTREE_BEST_FIT_SOUND;
}

/* The path from the root to the size of `node`. Ends because every step narrows the sizes that may follow. */
static int check_path(const block_t *node)
{
    size_t low = 0;
    size_t high = SIZE_MAX;
    const block_t *step = btree_best_fit_control.root;

    while (step != node) {
        if (!may_be_free_block(step)) /* not NULL either */
            return BTREE_BEST_FIT_BAD_PATH;
        const size_t key = step->tag.header;
        if (is_member(step) || key <= low || key >= high)
            return BTREE_BEST_FIT_BAD_PATH;
        if (key == node->tag.header)
            return BTREE_BEST_FIT_BAD_NODE;
        if (key < node->tag.header) {
            low = key;
            step = step->link.right;
        } else {
            high = key;
            step = step->left; /* there is one: no node before it is of the least size */
        }
    }
    return BTREE_BEST_FIT_SOUND;
}

static int check_node(const block_t *node, struct census *census)
{
    census->nodes++;
    census->links += node->link.right != NULL;
    if ((node->tag.header & ~BT_FREE_BIT) > 4 * BT_WORD)
        census->links += node->left != NULL;
    const int violation = check_path(node);
    return violation != BTREE_BEST_FIT_SOUND ? violation : check_list(node, census);
}

/*
 * Walks once from the root for every node: with n nodes, which have n different sizes, n * n / 2 steps at most, and the
 * sizes are a multiple of n * n bytes together.
 */
static int check_nodes(struct census *census)
{
    const struct bt_block *block = btree_best_fit_control.first;

    for (; block != btree_best_fit_control.fence; block = behind(block)) {
        const block_t *node = (const void *)block;
        if ((block->header & BT_FREE_BIT) == 0 || is_member(node))
            continue;
        const int violation = check_node(node, census);
        if (violation != BTREE_BEST_FIT_SOUND)
            return violation;
    }
    return BTREE_BEST_FIT_SOUND;
}

int btree_best_fit_check(void)
{
    struct census census = {0, 0, 0, btree_best_fit_control.root != NULL};

    if (btree_best_fit_control.first == NULL)
        return BTREE_BEST_FIT_NO_HEAP;
    int violation = check_chain(&census);
    if (violation == BTREE_BEST_FIT_SOUND)
        violation = check_nodes(&census);
    if (violation != BTREE_BEST_FIT_SOUND)
        return violation;
    if (census.links != census.nodes)
        return BTREE_BEST_FIT_BAD_LINK_COUNT;
    return census.listed_blocks == census.free_blocks ? BTREE_BEST_FIT_SOUND : BTREE_BEST_FIT_BAD_FREE_COUNT;
}
