/* SPDX-License-Identifier: 0BSD */
/* The invariants of the heap. Shares the layout with buddy_fibonacci.c and no code: blocks are compared with the tree
 * of splits, walked from the roots. */
#include "buddy_fibonacci.h"

/* The free blocks, as seen by the walk or by the lists. Unsigned sums wrap around, which does no harm. */
struct census {
    size_t count;
    uintptr_t address_sum;
};

/* A node of the tree of splits: a root or a child. */
struct node {
    size_t class;
    size_t right;     /* 1: a right child */
    size_t inherited; /* a left child: the parent's `right`; a right child: the parent's `inherited` */
};

static void count_block(struct census *census, const struct buddy_fibonacci_block *block)
{
    census->count++;
    census->address_sum += (uintptr_t)block;
}

static size_t bytes_of(size_t class)
{
    size_t bytes = BUDDY_FIBONACCI_MINIMUM_BLOCK;
    size_t before = 0;

    while (class-- > 0) {
        const size_t sum = before + bytes;
        before = bytes;
        bytes = sum;
    }
    return bytes;
}

static struct node largest_root(size_t bytes)
{
    size_t class = 1;

    while (bytes_of(class + 1) <= bytes)
        class++;
    return (struct node){class, 0, 0};
}

static size_t tag_of(struct node node)
{
    return node.class << BUDDY_FIBONACCI_CLASS_SHIFT | node.inherited * BUDDY_FIBONACCI_INHERITED_BIT
           | node.right * BUDDY_FIBONACCI_RIGHT_BIT;
}

/*
 * Walks down the left children to the node that the block at this place is, and remembers their right siblings.
 * Ends because every step to a left child lowers the class.
 */
static int descend(struct node *node, size_t class, struct node *siblings, size_t *count)
{
    while (node->class > class) {
        if (node->class < 2)
            return BUDDY_FIBONACCI_BAD_CLASS;
        siblings[(*count)++] = (struct node){node->class - 2, 1, node->inherited};
        *node = (struct node){node->class - 1, 0, node->right};
    }
    return node->class == class ? BUDDY_FIBONACCI_HEAP_SOUND : BUDDY_FIBONACCI_BAD_CLASS;
}

/* Ends because the offset grows with every step. */
static int check_blocks(struct census *census)
{
    struct node siblings[BUDDY_FIBONACCI_CLASSES]; /* not visited yet, innermost last: their classes descend */
    size_t count = 0;
    struct node before = {0, 1, 0};
    size_t free_before = 0;

    for (size_t offset = 0; offset < buddy_fibonacci_control.bytes;) {
        const struct buddy_fibonacci_block *block = (const void *)(buddy_fibonacci_control.base + offset);
        const size_t class = block->tag >> BUDDY_FIBONACCI_CLASS_SHIFT;
        const size_t free = block->tag & BUDDY_FIBONACCI_FREE_BIT;
        struct node node = count > 0 ? siblings[--count] : largest_root(buddy_fibonacci_control.bytes - offset);
        const int violation = descend(&node, class, siblings, &count);
        if (violation != BUDDY_FIBONACCI_HEAP_SOUND)
            return violation;
        if (block->tag != (tag_of(node) | free))
            return BUDDY_FIBONACCI_BAD_BITS;
        if (free != 0) {
            if (node.right && free_before && before.class == class + 1) /* the left sibling, whole */
                return BUDDY_FIBONACCI_BAD_UNMERGED;
            count_block(census, block);
        }
        before = node;
        free_before = free;
        offset += bytes_of(class);
    }
    return BUDDY_FIBONACCI_HEAP_SOUND;
}

static int may_be_block(const struct buddy_fibonacci_block *block)
{
    const size_t offset = (uintptr_t)block - (uintptr_t)buddy_fibonacci_control.base;

    return offset % BUDDY_FIBONACCI_MINIMUM_BLOCK == 0 && offset < buddy_fibonacci_control.bytes;
}

/* Ends because a block cannot have two blocks before it, nor the head any: every step leads to another block. */
static int check_list(size_t class, struct census *census)
{
    const struct buddy_fibonacci_block *prev = NULL;
    const struct buddy_fibonacci_block *block = buddy_fibonacci_control.heads[class];

    while (block != NULL) {
        if (!may_be_block(block))
            return BUDDY_FIBONACCI_BAD_LIST_ADDRESS;
        if ((block->tag & BUDDY_FIBONACCI_FREE_BIT) == 0 || block->tag >> BUDDY_FIBONACCI_CLASS_SHIFT != class)
            return BUDDY_FIBONACCI_BAD_LIST_TAG;
        if (block->prev != prev)
            return BUDDY_FIBONACCI_BAD_LIST_LINK;
        count_block(census, block);
        prev = block;
        block = block->next;
    }
    return BUDDY_FIBONACCI_HEAP_SOUND;
}

int buddy_fibonacci_check(void)
{
    struct census blocks = {0, 0};
    struct census lists = {0, 0};

    if (buddy_fibonacci_control.base == NULL)
        return BUDDY_FIBONACCI_NO_HEAP;
    int violation = check_blocks(&blocks);
    for (size_t class = 0; class < BUDDY_FIBONACCI_CLASSES && violation == BUDDY_FIBONACCI_HEAP_SOUND; class++)
        violation = check_list(class, &lists);
    if (violation != BUDDY_FIBONACCI_HEAP_SOUND)
        return violation;
    if (lists.count != blocks.count)
        return BUDDY_FIBONACCI_BAD_FREE_COUNT;
    return lists.address_sum == blocks.address_sum ? BUDDY_FIBONACCI_HEAP_SOUND : BUDDY_FIBONACCI_BAD_FREE_MEMBERS;
}
