/* SPDX-License-Identifier: 0BSD */
/* The invariants of the heap. Shares the layout with avl_best_fit.c and no code. */
#include "avl_best_fit.h"

typedef struct avl_best_fit_block block_t;

/* The free blocks, as seen by the chain or by the tree. Unsigned sums wrap around, which does no harm. */
struct census {
    size_t count;
    uintptr_t address_sum;
};

/* A node of the tree that is being looked at: first its left subtree, then its right one. */
struct visit {
    const block_t *node;
    unsigned side;
    unsigned height[2];
};

static void count_block(struct census *census, const block_t *block)
{
    census->count++;
    census->address_sum += (uintptr_t)block;
}

static size_t bytes_of(const block_t *block)
{
    return block->size_and_state & ~AVL_BEST_FIT_STATE_MASK;
}

static int is_free(const block_t *block)
{
    return (block->size_and_state & AVL_BEST_FIT_STATE_MASK) != AVL_BEST_FIT_USED;
}

/* Ends because the address grows with every step. */
static int check_chain(struct census *census)
{
    const uintptr_t end = (uintptr_t)avl_best_fit_control.sentinel;
    const block_t *prev = NULL;
    const block_t *block = avl_best_fit_control.first;

    while (block != avl_best_fit_control.sentinel) {
        const size_t size = bytes_of(block);
        if (block->prev_physical != prev)
            return AVL_BEST_FIT_BAD_PREV_PHYSICAL;
        if (size % AVL_BEST_FIT_UNIT != 0)
            return AVL_BEST_FIT_BAD_SIZE_ALIGNMENT;
        if (size < AVL_BEST_FIT_MIN_BLOCK)
            return AVL_BEST_FIT_BAD_SIZE_MINIMUM;
        if (size > end - (uintptr_t)block)
            return AVL_BEST_FIT_BAD_CHAIN_END;
        if (is_free(block)) {
            if (prev != NULL && is_free(prev))
                return AVL_BEST_FIT_BAD_ADJACENT_FREE;
            count_block(census, block);
        }
        prev = block;
        block = (const void *)((const unsigned char *)block + size);
    }
    if (block->prev_physical != prev)
        return AVL_BEST_FIT_BAD_PREV_PHYSICAL;
    return block->size_and_state == AVL_BEST_FIT_USED ? AVL_BEST_FIT_HEAP_SOUND : AVL_BEST_FIT_BAD_SENTINEL;
}

static int check_node(const block_t *block)
{
    const uintptr_t address = (uintptr_t)block;

    if (address % AVL_BEST_FIT_UNIT != 0 || address < (uintptr_t)avl_best_fit_control.first
        || address > (uintptr_t)avl_best_fit_control.sentinel - AVL_BEST_FIT_MIN_BLOCK)
        return AVL_BEST_FIT_BAD_NODE_ADDRESS;
    return is_free(block) ? AVL_BEST_FIT_HEAP_SOUND : AVL_BEST_FIT_BAD_NODE_STATE;
}

static int is_before(const block_t *one, const block_t *other)
{
    if (bytes_of(one) != bytes_of(other))
        return bytes_of(one) < bytes_of(other);
    return (uintptr_t)one < (uintptr_t)other;
}

static unsigned state_for(const unsigned height[2])
{
    if (height[0] == height[1])
        return AVL_BEST_FIT_BALANCED;
    if (height[0] == height[1] + 1)
        return AVL_BEST_FIT_TALLER(0);
    return height[1] == height[0] + 1 ? AVL_BEST_FIT_TALLER(1) : AVL_BEST_FIT_USED; /* used: no node has that */
}

/* In order, without recursion. Ends because no path is followed deeper than MAX_HEIGHT and every node that is passed on
 * the way has a larger key than the one before it. */
static int check_tree(struct census *census)
{
    struct visit visits[AVL_BEST_FIT_MAX_HEIGHT];
    const block_t *before = NULL;
    const block_t *subtree = avl_best_fit_control.head.child[0];
    unsigned depth = 0;
    unsigned height = 0; /* of the subtree finished last, or of the empty one about to be */

    for (;;) {
        if (subtree != NULL) {
            const int violation = depth == AVL_BEST_FIT_MAX_HEIGHT ? AVL_BEST_FIT_BAD_HEIGHT : check_node(subtree);
            if (violation != AVL_BEST_FIT_HEAP_SOUND)
                return violation;
            visits[depth++] = (struct visit){subtree, 0, {0, 0}};
            subtree = subtree->child[0];
            height = 0;
            continue;
        }
        if (depth == 0)
            return AVL_BEST_FIT_HEAP_SOUND;
        struct visit *visit = &visits[depth - 1];
        visit->height[visit->side] = height;
        if (visit->side == 0) {
            if (before != NULL && !is_before(before, visit->node))
                return AVL_BEST_FIT_BAD_ORDER;
            count_block(census, visit->node);
            before = visit->node;
            visit->side = 1;
            subtree = visit->node->child[1];
            height = 0;
        } else {
            if (state_for(visit->height) != (visit->node->size_and_state & AVL_BEST_FIT_STATE_MASK))
                return AVL_BEST_FIT_BAD_BALANCE;
            height = 1 + (visit->height[0] > visit->height[1] ? visit->height[0] : visit->height[1]);
            depth--;
        }
    }
}

int avl_best_fit_check(void)
{
    struct census chain = {0, 0};
    struct census tree = {0, 0};

    if (avl_best_fit_control.first == NULL)
        return AVL_BEST_FIT_NO_HEAP;
    int violation = check_chain(&chain);
    if (violation == AVL_BEST_FIT_HEAP_SOUND)
        violation = check_tree(&tree);
    if (violation != AVL_BEST_FIT_HEAP_SOUND)
        return violation;
    if (tree.count != chain.count)
        return AVL_BEST_FIT_BAD_FREE_COUNT;
    return tree.address_sum == chain.address_sum ? AVL_BEST_FIT_HEAP_SOUND : AVL_BEST_FIT_BAD_FREE_MEMBERS;
}
