/* SPDX-License-Identifier: 0BSD */
/*
 * Half-fit: free lists per power of two and a bitmap that tells which hold a block. malloc and free run in constant
 * time.
 *
 * Neither call contains a loop, a recursion, a division or 64-bit arithmetic on a 32-bit target, and nothing here calls
 * a library function. There is one heap. Nothing is thread-safe: the caller locks, or calls from one thread only.
 *
 * Blocks lie side by side between two fences, each with its size in a header and a footer (boundary_tags.h). A free
 * block is in the list of its class, whose links lie in its payload (dlist.h). No two neighbours are free.
 *
 * Classes, of r bytes of payload:   a block is filed in list   floor(log2 r)
 *                                   a request searches from    floor(log2 (r - 1)) + 1
 *
 * Every block of the lists searched is therefore large enough, and none is looked at.
 */
#ifndef HALF_FIT_H
#define HALF_FIT_H

#include "boundary_tags.h"
#include "dlist.h"

/* ------------------------------------------------------------------------------------------ parameters of the build */

/* Lengths for 32-bit targets: on 64-bit hosts they are twice as long. */

/* Alignment of payloads and granularity of sizes: 4 or 8. Not less: unaligned words trap or rotate on ARMv5. */
#ifndef HALF_FIT_ALIGNMENT
#define HALF_FIT_ALIGNMENT 8
#endif

/* Bytes of the least block, tags included: M of the literature. */
#ifndef HALF_FIT_MINIMUM_BLOCK
#define HALF_FIT_MINIMUM_BLOCK 16
#endif

/* What is left of a block is split off if it has as many bytes, and can be a block. */
#ifndef HALF_FIT_SPLIT_THRESHOLD
#define HALF_FIT_SPLIT_THRESHOLD 16
#endif

/* How the highest set bit of a word is found: BIT_SEARCH, see bit_search.h. */

/* ----------------------------------------------------------------------------------------------------- what follows */

#define HALF_FIT_ALIGN BT_SCALED(HALF_FIT_ALIGNMENT)
#define HALF_FIT_MINIMUM BT_SCALED(HALF_FIT_MINIMUM_BLOCK)
#if HALF_FIT_SPLIT_THRESHOLD > HALF_FIT_MINIMUM_BLOCK
#define HALF_FIT_SPLIT BT_SCALED(HALF_FIT_SPLIT_THRESHOLD)
#else
#define HALF_FIT_SPLIT HALF_FIT_MINIMUM
#endif

/* The largest arena is 2^28 bytes: its classes are those below 28, whatever the size of the arena in use. */
#define HALF_FIT_CLASSES 28
#define HALF_FIT_MIN_HEAP (HALF_FIT_MINIMUM + BT_OVERHEAD)
#define HALF_FIT_MAX_HEAP ((size_t)1 << HALF_FIT_CLASSES)

/* -------------------------------------------------------------------------------------------------- data structures */

/* What the allocator knows apart from the heap. All zero before half_fit_init: then every malloc returns NULL. */
struct half_fit_control {
    struct bt_block *first;                /* first block */
    struct bt_block *upper;                /* the fence behind the last block */
    struct dlist lists[HALF_FIT_CLASSES];  /* heads; the nodes are the payloads of free blocks */
    uint32_t bitmap;                       /* bit i: list i is not empty */
};

extern struct half_fit_control half_fit_control;

/* ------------------------------------------------------------------------------------------------------- operations */

/*
 * Makes the arena the heap: one free block. Blocks of an earlier heap are forgotten.
 *
 * Returns 0, or nonzero iff arena is NULL or not a multiple of two words, or bytes is not a multiple of the alignment,
 * below HALF_FIT_MIN_HEAP or above HALF_FIT_MAX_HEAP; then nothing has changed.
 * Time: linear in the number of classes, whatever the size of the arena.
 */
int half_fit_init(void *arena, size_t bytes);

/*
 * Returns a block of at least `bytes` bytes, aligned on HALF_FIT_ALIGNMENT. What is left of the free block that it is
 * cut from becomes a free block itself if it reaches the split threshold.
 *
 * Returns NULL iff bytes is 0 or no list from the request's class on holds a block; then nothing has changed. A block
 * of the class below may be large enough and is not looked at.
 * Time: O(1). No loop.
 */
void *half_fit_malloc(size_t bytes);

/*
 * Gives a block back and merges it with its free neighbours at once. half_fit_free(NULL) does nothing. The behaviour is
 * undefined if the argument is not a block of the current heap that is in use.
 * Time: O(1). No loop.
 */
void half_fit_free(void *payload);

/* What can be wrong beyond enum bt_violation of boundary_tags_check.h, whose values come first: they end at 8. */
enum half_fit_violation {
    HALF_FIT_BAD_LIST_ADDRESS = 9, /* a list leads to an address where no block can be */
    HALF_FIT_BAD_LIST_FREE_BIT,    /* a block in a list is marked used */
    HALF_FIT_BAD_LIST_CLASS,       /* a block in a list has a size of another class */
    HALF_FIT_BAD_LIST_LINK,        /* prev is not the node before it in the list: includes every cycle */
    HALF_FIT_BAD_BITMAP,           /* a bit of the bitmap differs from "the list is not empty" */
    HALF_FIT_BAD_FREE_BLOCKS       /* the lists hold others than the free blocks of the chain */
};

/*
 * Returns 0 or the first violated invariant. Changes nothing. For tests.
 * Time: linear in the number of blocks; ends on every heap, however broken, whose control.first and control.upper are
 * intact.
 */
int half_fit_check(void);

#endif
