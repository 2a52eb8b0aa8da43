/* SPDX-License-Identifier: 0BSD */
/*
 * What first-fit and best-fit share (P02 section 2.2): one doubly-linked list of all free blocks, whose links lie in
 * their payloads, boundary tags, merging at once. How a block is chosen is the allocator's own, and so is at which end
 * of the list one is inserted: it defines LIST_FIT_INSERT(head, node) before it includes this.
 */
#ifndef LIST_FIT_H
#define LIST_FIT_H

#include "boundary_tags.h"
#include "dlist.h"

/* ------------------------------------------------------------------------------------------ parameters of the build */

/* All for 32-bit targets: on 64-bit hosts lengths are twice as long. */

/* Alignment of payloads and granularity of sizes: 4 or 8. Not less: unaligned words trap or rotate on ARMv5. */
#ifndef LIST_FIT_ALIGNMENT
#define LIST_FIT_ALIGNMENT 8
#endif

/* Bytes of the least block, tags included: M of the literature. */
#ifndef LIST_FIT_MINIMUM_BLOCK
#define LIST_FIT_MINIMUM_BLOCK 16
#endif

/* What is left of a block is split off if it has as many bytes, and can be a block. */
#ifndef LIST_FIT_SPLIT_THRESHOLD
#define LIST_FIT_SPLIT_THRESHOLD 16
#endif

/* ----------------------------------------------------------------------------------------------------- what follows */

#define LIST_FIT_ALIGN BT_SCALED(LIST_FIT_ALIGNMENT)
#define LIST_FIT_MINIMUM BT_SCALED(LIST_FIT_MINIMUM_BLOCK)
#if LIST_FIT_SPLIT_THRESHOLD > LIST_FIT_MINIMUM_BLOCK
#define LIST_FIT_SPLIT BT_SCALED(LIST_FIT_SPLIT_THRESHOLD)
#else
#define LIST_FIT_SPLIT LIST_FIT_MINIMUM
#endif
#define LIST_FIT_MIN_HEAP (LIST_FIT_MINIMUM + BT_OVERHEAD)
#define LIST_FIT_MAX_HEAP ((size_t)1 << 28)

_Static_assert(LIST_FIT_ALIGNMENT == 4 || LIST_FIT_ALIGNMENT == 8, "LIST_FIT_ALIGNMENT is 4 or 8");
_Static_assert(LIST_FIT_MINIMUM_BLOCK % LIST_FIT_ALIGNMENT == 0, "the least block keeps the alignment");
_Static_assert(LIST_FIT_MINIMUM >= BT_OVERHEAD + sizeof(struct dlist), "the least block holds the links");

/* ---------------------------------------------------------------------------------------------------- data structure */

/* What the allocator knows apart from the heap. Offsets on 32-bit targets: 0, 4, 8 (next), 12 (prev). */
struct list_fit {
    struct bt_block *first; /* first block */
    struct bt_block *upper; /* the fence behind the last block */
    struct dlist free;      /* head of the list of free blocks: its nodes are their payloads */
};

/* ------------------------------------------------------------------------------------------------------- operations */

/* Makes the memory of `block` a free block of `size` bytes. Its neighbours are not free. The links are written before
 * the tags: those of a block that has just left the list are still in the cache. */
static inline void list_fit_release(struct list_fit *heap, struct bt_block *block, size_t size)
{
    LIST_FIT_INSERT(&heap->free, bt_payload(block));
    bt_set(block, size, BT_FREE_BIT);
}

static inline int list_fit_init(struct list_fit *heap, void *arena, size_t bytes)
{
    if (arena == NULL || (uintptr_t)arena % BT_OVERHEAD != 0 || bytes % LIST_FIT_ALIGN != 0)
        return -1;
    if (bytes < LIST_FIT_MIN_HEAP || bytes > LIST_FIT_MAX_HEAP)
        return -1;

    heap->first = bt_found(arena, bytes);
    heap->upper = bt_next(heap->first);
    dlist_init(&heap->free);
    list_fit_release(heap, heap->first, bytes - BT_OVERHEAD);
    return 0;
}

/* Makes the first `size` bytes of a free block, which are enough to be one, a used block; its payload. */
static inline void *list_fit_take(struct list_fit *heap, struct bt_block *block, size_t size)
{
    size_t spare = bt_size(block) - size;

    dlist_unlink(bt_payload(block));
    if (spare >= LIST_FIT_SPLIT) {
        bt_set(block, size, 0);
        list_fit_release(heap, bt_behind(block, size), spare);
    } else {
        bt_set(block, size + spare, 0);
    }
    return bt_payload(block);
}

/* Makes a used block free and merges it with its free neighbours. */
static inline void list_fit_give_back(struct list_fit *heap, struct bt_block *block)
{
    size_t size = bt_size(block);
    struct bt_block *next = bt_next(block);

    if (bt_is_free(next)) {
        dlist_unlink(bt_payload(next));
        size += bt_size(next);
    }
    if (bt_is_free_before(block)) {
        struct bt_block *prev = bt_prev(block);
        dlist_unlink(bt_payload(prev));
        size += bt_size_before(block);
        block = prev;
    }
    list_fit_release(heap, block, size);
}

#endif
