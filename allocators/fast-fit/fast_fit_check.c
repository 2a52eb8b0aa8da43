/* SPDX-License-Identifier: 0BSD */
/* The invariants of the heap. Shares the layout with fast_fit.c and no code. */
#include "fast_fit.h"

typedef struct fast_fit_block block_t;

static size_t size_of(const block_t *block)
{
    return block->size_and_used & ~FAST_FIT_USED_BIT;
}

static int is_used(const block_t *block)
{
    return (block->size_and_used & FAST_FIT_USED_BIT) != 0;
}

static const block_t *behind(const block_t *block)
{
    return (const void *)((const unsigned char *)block + size_of(block));
}

/* Ends because the address grows with every step. */
static int check_chain(void)
{
    int before_is_free = 0;

    for (const block_t *block = fast_fit_control.first; block != fast_fit_control.end; block = behind(block)) {
        if (size_of(block) < FAST_FIT_LEAST || size_of(block) % FAST_FIT_GRANULE_BYTES != 0)
            return FAST_FIT_BAD_SIZE;
        if (size_of(block) > (uintptr_t)fast_fit_control.end - (uintptr_t)block)
            return FAST_FIT_BAD_CHAIN_END;
        if (before_is_free && !is_used(block))
            return FAST_FIT_BAD_NEIGHBOURS;
        before_is_free = !is_used(block);
    }
    return FAST_FIT_SOUND;
}

static int may_be_free_block(const block_t *block)
{
    const uintptr_t first = (uintptr_t)fast_fit_control.first;
    const uintptr_t last = (uintptr_t)fast_fit_control.end - FAST_FIT_LEAST;
    const uintptr_t address = (uintptr_t)block;

    return address >= first && address <= last && (address - first) % FAST_FIT_GRANULE_BYTES == 0 && !is_used(block);
}

static int check_child(const block_t *node, const block_t *child, int is_left)
{
    if (child == NULL)
        return FAST_FIT_SOUND;
    if (!may_be_free_block(child))
        return FAST_FIT_BAD_LINK;
    if (child == node || (child < node) != is_left)
        return FAST_FIT_BAD_ADDRESS;
    return size_of(child) > size_of(node) ? FAST_FIT_BAD_HEAP_ORDER : FAST_FIT_SOUND;
}

/* The first free block from `block` on, or the end. */
static const block_t *free_from(const block_t *block)
{
    while (block != fast_fit_control.end && is_used(block))
        block = behind(block);
    return block;
}

/* The links of every free block, each by itself. From here on a walk to the left goes downwards, one to the right
 * upwards, and both end. */
static int check_links(uintptr_t *sum)
{
    const block_t *node = free_from(fast_fit_control.first);

    if (fast_fit_control.root != NULL && !may_be_free_block(fast_fit_control.root))
        return FAST_FIT_BAD_LINK;
    *sum = (uintptr_t)fast_fit_control.root;
    for (; node != fast_fit_control.end; node = free_from(behind(node))) {
        int violation = check_child(node, node->left, 1);
        if (violation == FAST_FIT_SOUND)
            violation = check_child(node, node->right, 0);
        if (violation != FAST_FIT_SOUND)
            return violation;
        *sum += (uintptr_t)node->left + (uintptr_t)node->right - (uintptr_t)node;
    }
    return FAST_FIT_SOUND;
}

static const block_t *leftmost(const block_t *node)
{
    while (node->left != NULL && may_be_free_block(node->left) && node->left < node)
        node = node->left;
    return node;
}

static const block_t *rightmost(const block_t *node)
{
    while (node->right != NULL && may_be_free_block(node->right) && node->right > node)
        node = node->right;
    return node;
}

/*
 * Whether `next` follows `node` in the order of the tree: it is the leftmost one to the right of `node`, or `node` is
 * the rightmost one to the left of it. Of two neighbours exactly one has a link towards the other.
 */
static int are_in_order(const block_t *node, const block_t *next)
{
    if ((node->right != NULL) == (next->left != NULL))
        return 0;
    return node->right != NULL ? leftmost(node->right) == next : rightmost(next->left) == node;
}

/* No stack and no marks: all these walks together use every link once, for each walk is a whole run of links of one
 * side below a link of the other side. */
static int check_order(void)
{
    const block_t *node = free_from(fast_fit_control.first);

    if (node == fast_fit_control.end)
        return fast_fit_control.root == NULL ? FAST_FIT_SOUND : FAST_FIT_BAD_ORDER;
    if (fast_fit_control.root == NULL || leftmost(fast_fit_control.root) != node || node->left != NULL)
        return FAST_FIT_BAD_ORDER;
    for (;;) {
        const block_t *next = free_from(behind(node));
        if (next == fast_fit_control.end)
            return node->right == NULL ? FAST_FIT_SOUND : FAST_FIT_BAD_ORDER;
        if (!are_in_order(node, next))
            return FAST_FIT_BAD_ORDER;
        node = next;
    }
}

int fast_fit_check(void)
{
    uintptr_t sum;

    if (fast_fit_control.first == NULL)
        return FAST_FIT_NO_HEAP;
    int violation = check_chain();
    if (violation == FAST_FIT_SOUND)
        violation = check_links(&sum);
    if (violation == FAST_FIT_SOUND)
        violation = check_order();
    if (violation != FAST_FIT_SOUND)
        return violation;
    return sum == 0 ? FAST_FIT_SOUND : FAST_FIT_BAD_MEMBERS;
}
