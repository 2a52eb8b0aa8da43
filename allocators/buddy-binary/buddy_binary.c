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

/* Blocks start at multiples of the minimum block; their payloads start less than one behind. */
static inline size_t offset_of_block(const void *payload)
{
    return (size_t)((const unsigned char *)payload - buddy_binary_control.base) & ~(BUDDY_BINARY_MINIMUM_BLOCK - 1);
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

/* `filled` is the bitmap of lists that are not empty: control's, or a copy that its owner writes back. */

static inline size_t bit(size_t order)
{
    return (size_t)1 << order;
}

/* The bit of the order that has blocks of so many bytes. */
static inline size_t bit_of(size_t bytes)
{
    return bytes >> BUDDY_BINARY_MINIMUM_BITS;
}

/* Functions of their own, as flow facts say less of where a link is than of where blocks are. */

static inline struct buddy_binary_block *linked(struct buddy_binary_block *const *link)
{
    return *link;
}

static inline void redirect(struct buddy_binary_block **link, struct buddy_binary_block *block)
{
    *link = block;
}

/* Makes the memory at `block` the first free block of an order; its bit is the caller's to set. */
static inline void start_list(struct buddy_binary_block *block, size_t order)
{
    struct buddy_binary_block **head = &buddy_binary_control.heads[order];

    block->tag = free_tag(order);
    block->next = NULL;
    block->link = head;
    /* point: started */
    *head = block;
}

/* Makes the memory at `block` a free block of the order. */
static inline void push(struct buddy_binary_block *block, size_t order, size_t *filled)
{
    struct buddy_binary_block **head = &buddy_binary_control.heads[order];
    struct buddy_binary_block *next = linked(head);

    block->tag = free_tag(order);
    block->next = next;
    /* point: pushed */
    block->link = head;
    /* point: tested */
    if (next != NULL)
        /* point: joined */
        next->link = &block->next;
    redirect(head, block);
    *filled |= bit(order);
}

static inline struct buddy_binary_block *pop(size_t order, size_t *filled)
{
    struct buddy_binary_block **head = &buddy_binary_control.heads[order];
    struct buddy_binary_block *block = *head;
    struct buddy_binary_block *next = block->next;

    *head = next;
    if (next != NULL)
        next->link = head;
    else
        *filled &= ~bit(order);
    return block;
}

/* Else it is the head of a list. */
static inline int is_in_block(struct buddy_binary_block **link)
{
    return (size_t)((unsigned char *)link - buddy_binary_control.base) < buddy_binary_control.bytes;
}

/* Takes a block out of its list, whose bit is `list`, wherever it stands there. */
static inline void detach(struct buddy_binary_block *block, size_t list, size_t *filled)
{
    struct buddy_binary_block *next = block->next;
    struct buddy_binary_block **link = block->link;

    redirect(link, next);
    /* point: tested */
    if (next != NULL)
        /* point: joined */
        next->link = link;
    else if (!is_in_block(link))
        *filled &= ~list;
}

/* ------------------------------------------------------------------------------------------------------- operations */

/* Written through volatile, or the compiler makes the loop a call of memset. */
static void forget_all_lists(void)
{
    buddy_binary_control.filled = 0;
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
    buddy_binary_control.largest_request = bytes_of(order) - BUDDY_BINARY_HEADER_BYTES;
    do {
        if ((bytes & bytes_of(order)) != 0) {
            push(block_at(offset), order, &buddy_binary_control.filled);
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

    size_t filled = buddy_binary_control.filled;
    size_t found = order;
    if (filled >> order == 0)
        return NULL;
    while ((filled >> found & 1) == 0) /* loop: search */
        found++;

    struct buddy_binary_block *block = pop(found, &filled);
    buddy_binary_control.filled = filled | (bit(found) - bit(order)); /* the lists that the search has passed */
    while (found > order) { /* loop: split */
        found--;
        start_list((void *)((unsigned char *)block + bytes_of(found)), found);
    }
    /* point: done */
    block->tag = used_tag(order);
    return (unsigned char *)block + BUDDY_BINARY_HEADER_BYTES;
}

void buddy_binary_free(void *payload)
{
    if (payload == NULL)
        return;

    size_t offset = offset_of_block(payload);
    size_t order = block_at(offset)->tag >> 1;
    size_t tag = free_tag(order); /* of a free block of the same order */
    size_t bytes = bytes_of(order);
    size_t filled = buddy_binary_control.filled;

    for (;;) { /* loop: merge */
        size_t buddy_offset = offset ^ bytes;
        if (buddy_offset >= buddy_binary_control.bytes) /* the block is the last root */
            break;
        struct buddy_binary_block *buddy = block_at(buddy_offset);
        if (buddy->tag != tag)
            break;
        detach(buddy, bit_of(bytes), &filled);
        /* point: merged */ offset &= buddy_offset;
        tag += used_tag(1);
        bytes <<= 1;
    }
    push(block_at(offset), tag >> 1, &filled);
    buddy_binary_control.filled = filled;
}
