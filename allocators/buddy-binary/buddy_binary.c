/* SPDX-License-Identifier: 0BSD */
/* The binary buddy system of P02 section 2.5 and M06 section 2 (see README.md). The manual is buddy_binary.h. */
#include "buddy_binary.h"

_Static_assert(BUDDY_BINARY_ALIGN == 4 || BUDDY_BINARY_ALIGN == 8, "BUDDY_BINARY_ALIGN is 4 or 8");
_Static_assert(BUDDY_BINARY_MINIMUM_BLOCK == (size_t)1 << BUDDY_BINARY_MINIMUM_BITS,
               "BUDDY_BINARY_MINIMUM is 16, 32 or 64");
_Static_assert(BUDDY_BINARY_HEAP_BITS > BUDDY_BINARY_MINIMUM_BITS && BUDDY_BINARY_HEAP_BITS < 32,
               "sizes are 32-bit words");
_Static_assert(sizeof(struct buddy_binary_block) <= BUDDY_BINARY_MINIMUM_BLOCK, "the minimum block holds the links");

struct buddy_binary_control buddy_binary_control;

/* ----------------------------------------------------------------------------------------------------------- blocks */

static inline size_t bytes_of(size_t order)
{
    return BUDDY_BINARY_MINIMUM_BLOCK << order;
}

static inline struct buddy_binary_block *block_at(size_t offset)
{
    return (void *)(buddy_binary_control.base + offset);
}

static inline struct buddy_binary_block *block_of(void *payload)
{
    return (void *)((unsigned char *)payload - BUDDY_BINARY_HEADER_BYTES);
}

static inline size_t order_of(void *payload)
{
    return block_of(payload)->tag >> 1;
}

static inline size_t used_tag(size_t order)
{
    return order << 1;
}

static inline size_t free_tag(size_t order)
{
    return used_tag(order) | BUDDY_BINARY_FREE_BIT;
}

/* ------------------------------------------------------------------------------------------------------------ lists */

/* Makes the memory at `block` a free block of the order. */
static inline void push(struct buddy_binary_block *block, size_t order)
{
    struct buddy_binary_block *head = buddy_binary_control.heads[order];

    block->tag = free_tag(order);
    block->next = head;
    block->prev = NULL;
    /* point: tested */
    if (head != NULL)
        /* point: joined */
        head->prev = block;
    /* point: pushed */
    buddy_binary_control.heads[order] = block;
}

static inline struct buddy_binary_block *pop(size_t order)
{
    struct buddy_binary_block *head = buddy_binary_control.heads[order];
    struct buddy_binary_block *next = head->next;

    if (next != NULL)
        /* point: joined */
        next->prev = NULL;
    buddy_binary_control.heads[order] = next;
    return head;
}

/* Takes a block out of its list, wherever it stands there. */
static inline void detach(struct buddy_binary_block *block, size_t order)
{
    struct buddy_binary_block *next = block->next;
    struct buddy_binary_block *prev = block->prev;

    if (prev != NULL)
        /* point: follows */
        prev->next = next;
    else
        /* point: first */
        buddy_binary_control.heads[order] = next;
    if (next != NULL)
        /* point: joined */
        next->prev = prev;
}

/* ------------------------------------------------------------------------------------------------------- operations */

/* Written through volatile, or the compiler makes the loop a call of memset. */
static void forget_all_lists(void)
{
    for (size_t order = 0; order < BUDDY_BINARY_ORDERS; order++)
        *(struct buddy_binary_block *volatile *)&buddy_binary_control.heads[order] = NULL;
}

/* Cuts the heap into its roots, largest first. */
static void make_roots(size_t bytes)
{
    size_t order = BUDDY_BINARY_ORDERS - 1;
    size_t offset = 0;

    while (bytes_of(order) > bytes)
        order--;
    buddy_binary_control.orders = order + 1;
    buddy_binary_control.largest_request = bytes_of(order) - BUDDY_BINARY_HEADER_BYTES;
    do {
        if ((bytes & bytes_of(order)) != 0) {
            push(block_at(offset), order);
            offset += bytes_of(order);
        }
    } while (order-- > 0);
    buddy_binary_control.bytes = offset;
}

int buddy_binary_init(void *arena, size_t bytes)
{
    if (arena == NULL || (uintptr_t)arena % BUDDY_BINARY_MINIMUM_BLOCK != 0 || bytes % BUDDY_BINARY_ALIGNMENT != 0)
        return -1;
    if (bytes < BUDDY_BINARY_MINIMUM_BLOCK || bytes > BUDDY_BINARY_MAX_HEAP)
        return -1;

    buddy_binary_control.base = arena;
    forget_all_lists();
    make_roots(bytes);
    return 0;
}

void *buddy_binary_malloc(size_t bytes)
{
    if (bytes - 1 >= buddy_binary_control.largest_request) /* 0 wraps around to SIZE_MAX */
        return NULL;

    size_t order = 0;
    while (bytes_of(order) < bytes + BUDDY_BINARY_HEADER_BYTES) /* loop: round */
        order++;

    size_t found = order;
    while (buddy_binary_control.heads[found] == NULL) { /* loop: search */
        found++;
        if (found == buddy_binary_control.orders)
            return NULL;
    }

    struct buddy_binary_block *block = pop(found);
    while (found > order) { /* loop: split */
        found--;
        push((void *)((unsigned char *)block + bytes_of(found)), found);
    }
    /* point: done */
    block->tag = used_tag(order);
    return (unsigned char *)block + BUDDY_BINARY_HEADER_BYTES;
}

void buddy_binary_free(void *payload)
{
    if (payload == NULL)
        return;

    size_t offset = (size_t)((unsigned char *)block_of(payload) - buddy_binary_control.base);
    size_t order = order_of(payload);

    for (;;) { /* loop: merge */
        size_t buddy_offset = offset ^ bytes_of(order);
        if (buddy_offset >= buddy_binary_control.bytes) /* the block is the last root */
            break;
        struct buddy_binary_block *buddy = block_at(buddy_offset);
        if (buddy->tag != free_tag(order))
            break;
        detach(buddy, order);
        /* point: merged */ offset &= buddy_offset;
        order++;
    }
    push(block_at(offset), order);
}
