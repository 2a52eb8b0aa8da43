/* SPDX-License-Identifier: 0BSD */
/* The invariants of the heap. Shares the layout with tlsf.c and no code: classes are intervals here, not logarithms. */
#include "tlsf.h"

/* The free blocks, as seen by the chain or by the lists. Unsigned sums wrap around, which does no harm. */
struct census {
    size_t count;
    uintptr_t address_sum;
};

static void count_block(struct census *census, const struct tlsf_block *block)
{
    census->count++;
    census->address_sum += (uintptr_t)block;
}

static int is_marked_free(const struct tlsf_block *block)
{
    return (block->size_and_free & TLSF_FREE_BIT) != 0;
}

/* Whether a header that follows `prev`, NULL for none, says so. */
static int follows(const struct tlsf_block *block, const struct tlsf_block *prev)
{
#if TLSF_TELLS_PREVIOUS
    const int is_told = (block->size_and_free & TLSF_PREV_FREE_BIT) != 0;
    const int is_true = prev != NULL && is_marked_free(prev);

    return is_told == is_true && (!is_true || block->prev_physical == prev);
#else
    return block->prev_physical == prev;
#endif
}

/* Ends because the address grows with every step. */
static int check_chain(struct census *census)
{
    const uintptr_t end = (uintptr_t)tlsf_control.sentinel;
    const struct tlsf_block *prev = NULL;
    const struct tlsf_block *block = tlsf_control.first;

    while (block != tlsf_control.sentinel) {
        const size_t size = block->size_and_free & ~(TLSF_TELLS_PREVIOUS ? TLSF_FLAGS : TLSF_FREE_BIT);
        if (!follows(block, prev))
            return TLSF_BAD_PREV_PHYSICAL;
        if (size % TLSF_ALIGNMENT != 0)
            return TLSF_BAD_SIZE_ALIGNMENT;
        if (size < TLSF_MIN_PAYLOAD)
            return TLSF_BAD_SIZE_MINIMUM;
        if (size > end - (uintptr_t)block - TLSF_HEADER_BYTES)
            return TLSF_BAD_CHAIN_END;
        if (is_marked_free(block)) {
            if (prev != NULL && is_marked_free(prev))
                return TLSF_BAD_ADJACENT_FREE;
            count_block(census, block);
        }
        prev = block;
        block = (const void *)((const unsigned char *)block + TLSF_HEADER_BYTES + size);
    }
    if (!follows(block, prev))
        return TLSF_BAD_PREV_PHYSICAL;
    return (block->size_and_free & ~(TLSF_TELLS_PREVIOUS ? TLSF_PREV_FREE_BIT : 0)) == 0 ? TLSF_HEAP_SOUND : TLSF_BAD_SENTINEL;
}

static int may_be_block(const struct tlsf_block *block)
{
    const uintptr_t address = (uintptr_t)block;

    return address % TLSF_ALIGNMENT == 0 && address >= (uintptr_t)tlsf_control.first
           && address <= (uintptr_t)tlsf_control.sentinel - TLSF_MIN_BLOCK;
}

static int is_of_class(size_t size, unsigned fl, unsigned sl)
{
    const size_t width = (size_t)1 << (fl == 0 ? TLSF_SMALL_WIDTH_BITS : TLSF_SMALL_WIDTH_BITS + fl - 1);
    const size_t lower = width * (fl == 0 ? sl : TLSF_SL_COUNT + sl);

    return lower <= size && size < lower + width;
}

/* Ends because a block cannot have two blocks before it, nor the head any: every step leads to another block. */
static int check_list(unsigned fl, unsigned sl, struct census *census)
{
    const struct tlsf_block *prev = NULL;
    const struct tlsf_block *block = tlsf_control.heads[fl][sl];

    while (block != NULL) {
        if (!may_be_block(block))
            return TLSF_BAD_LIST_ADDRESS;
        if (!is_marked_free(block))
            return TLSF_BAD_LIST_FREE_BIT;
        if (!is_of_class(block->size_and_free & ~TLSF_FLAGS, fl, sl))
            return TLSF_BAD_LIST_CLASS;
        if (block->prev_free != prev)
            return TLSF_BAD_LIST_LINK;
        count_block(census, block);
        prev = block;
        block = block->next_free;
    }
    return TLSF_HEAP_SOUND;
}

static int check_row(unsigned fl, struct census *census)
{
    uint32_t lists = 0;

    for (unsigned sl = 0; sl < TLSF_SL_COUNT; sl++) {
        const int violation = check_list(fl, sl, census);
        if (violation != TLSF_HEAP_SOUND)
            return violation;
        lists |= (uint32_t)(tlsf_control.heads[fl][sl] != NULL) << sl;
    }
    return lists == tlsf_control.sl_bitmap[fl] ? TLSF_HEAP_SOUND : TLSF_BAD_SL_BITMAP;
}

static int check_lists(struct census *census)
{
    uint32_t rows = 0;

    for (unsigned fl = 0; fl < TLSF_FL_COUNT; fl++) {
        const int violation = check_row(fl, census);
        if (violation != TLSF_HEAP_SOUND)
            return violation;
        rows |= (uint32_t)(tlsf_control.sl_bitmap[fl] != 0) << fl;
    }
    return rows == tlsf_control.fl_bitmap ? TLSF_HEAP_SOUND : TLSF_BAD_FL_BITMAP;
}

int tlsf_check(void)
{
    struct census chain = {0, 0};
    struct census lists = {0, 0};

    if (tlsf_control.first == NULL)
        return TLSF_NO_HEAP;
    int violation = check_chain(&chain);
    if (violation == TLSF_HEAP_SOUND)
        violation = check_lists(&lists);
    if (violation != TLSF_HEAP_SOUND)
        return violation;
    if (lists.count != chain.count)
        return TLSF_BAD_FREE_COUNT;
    return lists.address_sum == chain.address_sum ? TLSF_HEAP_SOUND : TLSF_BAD_FREE_MEMBERS;
}
