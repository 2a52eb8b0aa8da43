/* SPDX-License-Identifier: 0BSD */
/* TLSF after C06 section 3, M06 section 2 and H11 section III (see README.md). The manual is tlsf.h. */
#include "tlsf.h"

#include "bit_search.h"

_Static_assert(TLSF_SL_BITS == 4 || TLSF_SL_BITS == 5, "TLSF_SL_BITS is 4 or 5");
_Static_assert(TLSF_SMALL == 0 || TLSF_SMALL == 128 || TLSF_SMALL == 256, "TLSF_SMALL is 0, 128 or 256");
_Static_assert(TLSF_SMALL_BITS <= TLSF_SL_BITS + TLSF_ALIGNMENT_BITS, "a size of the first row has a class of its own");
_Static_assert(TLSF_HEAP_BITS > TLSF_SMALL_BITS && TLSF_HEAP_BITS < 32, "sizes and bitmaps are 32-bit words");
_Static_assert(offsetof(struct tlsf_block, next_free) == TLSF_HEADER_BYTES, "the payload keeps its alignment");
_Static_assert(sizeof(struct tlsf_block) == TLSF_MIN_BLOCK, "the least payload holds the links");

struct tlsf_control tlsf_control;

/* ---------------------------------------------------------------------------------------------------------- classes */

struct size_class {
    unsigned fl;
    unsigned sl;
};

/* The class that holds blocks of this size. */
static inline struct size_class class_of(size_t size)
{
    if (size < TLSF_SMALL_LIMIT)
        return (struct size_class){0, (unsigned)(size >> TLSF_SMALL_WIDTH_BITS)};
    unsigned log2 = floor_log2((uint32_t)size);
    unsigned part = (unsigned)(size >> (log2 - TLSF_SL_BITS));
    return (struct size_class){log2 - (TLSF_SMALL_BITS - 1), part - TLSF_SL_COUNT};
}

/* The least size >= `size` that is the lower end of a class: every block of that class is large enough. */
static inline size_t round_up_to_class(size_t size)
{
    if (size < TLSF_SMALL_LIMIT)
        return size;
    size_t below_width = ((size_t)1 << (floor_log2((uint32_t)size) - TLSF_SL_BITS)) - 1;
    return (size + below_width) & ~below_width;
}

/* ----------------------------------------------------------------------------------------------------------- blocks */

#if TLSF_TELLS_PREVIOUS
static inline size_t size_of(const struct tlsf_block *block)
{
    return block->size_and_free & ~TLSF_FLAGS;
}
#else
static inline size_t size_of(const struct tlsf_block *block)
{
    return block->size_and_free & ~TLSF_FREE_BIT;
}
#endif

static inline int is_free(const struct tlsf_block *block)
{
    return (block->size_and_free & TLSF_FREE_BIT) != 0;
}

static inline void *payload_of(struct tlsf_block *block)
{
    return (unsigned char *)block + TLSF_HEADER_BYTES;
}

static inline struct tlsf_block *block_of(void *payload)
{
    return (void *)((unsigned char *)payload - TLSF_HEADER_BYTES);
}

static inline struct tlsf_block *next_physical(struct tlsf_block *block)
{
    return (void *)((unsigned char *)payload_of(block) + size_of(block));
}

/* ------------------------------------------------------------------------------------------------------------ lists */

static inline struct tlsf_block *head_of(struct size_class class)
{
    return tlsf_control.heads[class.fl][class.sl];
}

static inline void set_head(struct size_class class, struct tlsf_block *head)
{
    tlsf_control.heads[class.fl][class.sl] = head;
}

static inline void push(struct tlsf_block *block)
{
    struct size_class class = class_of(size_of(block));
    struct tlsf_block *head = head_of(class);

    block->next_free = head;
    block->prev_free = NULL;
    set_head(class, block);
    if (head != NULL) {
        head->prev_free = block;
    } else {
        tlsf_control.sl_bitmap[class.fl] |= 1u << class.sl;
        tlsf_control.fl_bitmap |= 1u << class.fl;
    }
}

/* Takes the first block of a list out of it. */
static inline void take_first(struct tlsf_block *head, struct size_class class)
{
    struct tlsf_block *next = head->next_free;

    set_head(class, next);
    if (next != NULL) {
        next->prev_free = NULL;
    } else {
        tlsf_control.sl_bitmap[class.fl] &= ~(1u << class.sl);
        if (tlsf_control.sl_bitmap[class.fl] == 0)
            tlsf_control.fl_bitmap &= ~(1u << class.fl);
    }
}

static inline struct tlsf_block *pop(struct size_class class)
{
    struct tlsf_block *head = head_of(class);

    take_first(head, class);
    return head;
}

/* Takes a block out of its list, wherever it stands there. */
static inline void detach(struct tlsf_block *block)
{
    if (block->prev_free == NULL) {
        take_first(block, class_of(size_of(block)));
        return;
    }
    block->prev_free->next_free = block->next_free;
    if (block->next_free != NULL)
        block->next_free->prev_free = block->prev_free;
}

/* Moves *class to the first class, from *class on, whose list is not empty. Returns 0 iff there is none. */
static inline int find(struct size_class *class)
{
    uint32_t lists = tlsf_control.sl_bitmap[class->fl] & (~0u << class->sl);

    if (lists == 0) {
        uint32_t rows = tlsf_control.fl_bitmap & (~0u << (class->fl + 1));
        if (rows == 0)
            return 0;
        class->fl = lowest_bit(rows);
        lists = tlsf_control.sl_bitmap[class->fl];
    }
    class->sl = lowest_bit(lists);
    return 1;
}

/* ----------------------------------------------------------------------------------------------------- split, merge */

/* Whether `prev`, the block before, is free. */
static inline int is_free_before(const struct tlsf_block *block, const struct tlsf_block *prev)
{
#if TLSF_TELLS_PREVIOUS
    (void)prev;
    return (block->size_and_free & TLSF_PREV_FREE_BIT) != 0;
#else
    (void)block;
    return prev != NULL && is_free(prev);
#endif
}

/* Makes the memory of `block` a free block of `size` bytes. Its neighbours are not free; where headers do not tell that,
 * its prev_physical is right. */
static inline void release(struct tlsf_block *block, size_t size)
{
    block->size_and_free = size | TLSF_FREE_BIT;
    struct tlsf_block *next = next_physical(block);
    next->prev_physical = block;
#if TLSF_TELLS_PREVIOUS
    next->size_and_free |= TLSF_PREV_FREE_BIT;
#endif
    push(block);
}

/* Makes `block` a used one of `size` bytes and releases what is left, unless that is too small to be a block. */
static inline void cut(struct tlsf_block *block, size_t size)
{
    size_t spare = size_of(block) - size;

    if (spare < TLSF_MIN_BLOCK) {
#if TLSF_TELLS_PREVIOUS
        next_physical(block)->size_and_free &= ~TLSF_PREV_FREE_BIT;
#endif
        block->size_and_free &= ~TLSF_FREE_BIT;
        return;
    }
    block->size_and_free = size;
    struct tlsf_block *rest = next_physical(block);
#if !TLSF_TELLS_PREVIOUS
    rest->prev_physical = block;
#endif
    release(rest, spare - TLSF_HEADER_BYTES);
}

/* ------------------------------------------------------------------------------------------------------- operations */

/* Written through volatile, or the compiler makes the loops calls of memset and its like. */
static void forget_all_lists(void)
{
    tlsf_control.fl_bitmap = 0;
    for (unsigned fl = 0; fl < TLSF_FL_COUNT; fl++) {
        *(volatile uint32_t *)&tlsf_control.sl_bitmap[fl] = 0;
        for (unsigned sl = 0; sl < TLSF_SL_COUNT; sl++)
            *(struct tlsf_block *volatile *)&tlsf_control.heads[fl][sl] = NULL;
    }
}

int tlsf_init(void *arena, size_t bytes)
{
    if (arena == NULL || (((uintptr_t)arena | bytes) & (TLSF_ALIGNMENT - 1)) != 0)
        return -1;
    if (bytes < TLSF_MIN_HEAP || bytes > TLSF_MAX_HEAP)
        return -1;

    struct tlsf_block *first = arena;
    struct tlsf_block *sentinel = (void *)((unsigned char *)arena + bytes - TLSF_HEADER_BYTES);
    forget_all_lists();
    tlsf_control.first = first;
    tlsf_control.sentinel = sentinel;
    first->prev_physical = NULL;
    sentinel->size_and_free = 0;
    release(first, bytes - 2 * TLSF_HEADER_BYTES);
    return 0;
}

void *tlsf_malloc(size_t bytes)
{
    if (bytes - 1 >= TLSF_MAX_REQUEST) /* 0 wraps around to SIZE_MAX */
        return NULL;

    size_t size = round_up_to_class((bytes + TLSF_ALIGNMENT - 1) & ~(TLSF_ALIGNMENT - 1));
    struct size_class class = class_of(size);
    if (!find(&class))
        return NULL;
    struct tlsf_block *block = pop(class);
    cut(block, size);
    return payload_of(block);
}

void tlsf_free(void *payload)
{
    if (payload == NULL)
        return;

    struct tlsf_block *block = block_of(payload);
    struct tlsf_block *prev = block->prev_physical;
    struct tlsf_block *next = next_physical(block);
    size_t size = size_of(block);

    if (is_free(next)) {
        detach(next);
        size += TLSF_HEADER_BYTES + size_of(next);
    }
    if (is_free_before(block, prev)) {
        detach(prev);
        size += TLSF_HEADER_BYTES + size_of(prev);
        block = prev;
    }
    release(block, size);
}
