/* SPDX-License-Identifier: 0BSD */
#include "djgpp_cached.h"

#include "djgpp_tags_check.h"

/* What can be wrong beyond enum djgpp_tags_violation, whose values come first. */
enum djgpp_cached_violation {
    DJGPP_CACHED_BAD_BIN_ADDRESS = DJGPP_TAGS_VIOLATIONS, /* a bin leads to an address where no block can be */
    DJGPP_CACHED_BAD_BIN_SIZE,                            /* a block in a bin is free, or of another bin's size */
    DJGPP_CACHED_BAD_BIN_FOOTER,                          /* what is in a bin is no block: its tags differ */
    DJGPP_CACHED_BAD_BIN_LENGTH                           /* bins hold more than the used blocks: includes cycles */
};

static size_t used_blocks(struct djgpp_tags *heap)
{
    size_t count = 0;

    for (struct bt_block *block = heap->first; block != heap->brk; block = bt_next(block))
        count += !bt_is_free(block);
    return count;
}

/* Ends because the bins are not longer than the chain has used blocks; *left counts those not met yet. */
static int check_bin(const struct djgpp_tags *heap, const struct djgpp_tags_node *node, size_t size, size_t *left)
{
    for (; node != NULL; node = node->next) {
        const struct bt_block *block = (const struct bt_block *)(const void *)node - 1;
        if (!bt_may_be_block(block, heap->first, heap->brk, DJGPP_TAGS_ALIGN, size))
            return DJGPP_CACHED_BAD_BIN_ADDRESS;
        if (block->header != size)
            return DJGPP_CACHED_BAD_BIN_SIZE;
        if (*(const size_t *)(const void *)((const unsigned char *)block + size - BT_WORD) != size)
            return DJGPP_CACHED_BAD_BIN_FOOTER;
        if (*left == 0)
            return DJGPP_CACHED_BAD_BIN_LENGTH;
        --*left;
    }
    return BT_HEAP_SOUND;
}

int djgpp_cached_check(void)
{
    int violation = djgpp_tags_check_heap(&djgpp_cached_control.heap);
    if (violation != BT_HEAP_SOUND)
        return violation;

    size_t left = used_blocks(&djgpp_cached_control.heap);
    size_t size = DJGPP_TAGS_MINIMUM;
    for (size_t bin = 0; bin < DJGPP_CACHED_BINS && violation == BT_HEAP_SOUND; bin++) {
        violation = check_bin(&djgpp_cached_control.heap, djgpp_cached_control.bins[bin], size, &left);
        size += DJGPP_TAGS_ALIGN;
    }
    return violation;
}
