/* SPDX-License-Identifier: 0BSD */
/*
 * TLSF, two-level segregated fit: a memory allocator whose malloc and free run in constant time.
 *
 * Neither call contains a loop, a recursion, a division or 64-bit arithmetic on a 32-bit target, and nothing here calls
 * a library function. There is one heap. Nothing is thread-safe: the caller locks, or calls from one thread only.
 *
 * Layout of the heap: blocks lie side by side from the start of the arena to a sentinel at its end. Each block is a
 * header of two words and a payload. `size` always means the bytes of the payload; a block occupies
 * TLSF_HEADER_BYTES + size. The links of the free lists live in the payload of free blocks. No two neighbours are free.
 *
 * Classes: a free block is in the list of class (fl, sl), first-level and second-level index.
 *
 *     size <  TLSF_SMALL_LIMIT:  fl = 0                                    sl = size >> TLSF_SMALL_WIDTH_BITS
 *     size >= TLSF_SMALL_LIMIT:  fl = floor(log2 size) - TLSF_SMALL_BITS + 1
 *                                sl = (size >> (floor(log2 size) - TLSF_SL_BITS)) - TLSF_SL_COUNT
 *
 * The first row is linear, one class per size at least. Row fl >= 1 holds the sizes of [2^k, 2^(k+1)), k = fl + TLSF_SMALL_BITS
 * - 1, cut into TLSF_SL_COUNT classes of equal width. Lists are last in, first out.
 */
#ifndef TLSF_H
#define TLSF_H

#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------------------------------ parameters of the build */

/* Second-level bits, L: each row of classes is cut into 2^L. C06 section 3 recommends "4 or, at most, 5 for a 32-bit
 * processor": one bitmap word then serves a row. 5 wastes least: rounding adds less than 1/32 to a request. */
#ifndef TLSF_SL_BITS
#define TLSF_SL_BITS 5
#endif

/* Sizes below the limit have a row of their own, need neither rounding nor a logarithm: 128 or 256 bytes on 32-bit targets,
 * twice as many on 64-bit hosts; 0: 2^L times 8, so that row has a class for each size. M06 section 4.2 shows 128. */
#ifndef TLSF_SMALL
#define TLSF_SMALL 0
#endif

/* Whether a header tells if the block before is free, 1, as that of the program that C06 section 4 measured does: only
 * then is prev_physical kept, and what changes that tells the block behind. 0: free looks at the block before. */
#ifndef TLSF_TELLS_PREVIOUS
#define TLSF_TELLS_PREVIOUS 0
#endif

/* How the highest or lowest set bit of a word is found: BIT_SEARCH, see bit_search.h. */

/* The largest arena is 2^TLSF_HEAP_BITS bytes. It fixes the number of rows, whatever the size of the arena in use. */
#ifndef TLSF_HEAP_BITS
#define TLSF_HEAP_BITS 28
#endif

/* ----------------------------------------------------------------------------------------------------- what follows */

/* Two words: 8 on 32-bit targets, 16 on 64-bit hosts. Alignment of payloads, granularity of sizes, least payload. */
#if UINTPTR_MAX > 0xFFFFFFFF
#define TLSF_ALIGNMENT_BITS 4
#else
#define TLSF_ALIGNMENT_BITS 3
#endif
#define TLSF_ALIGNMENT ((size_t)1 << TLSF_ALIGNMENT_BITS)

#define TLSF_HEADER_BYTES TLSF_ALIGNMENT
#define TLSF_MIN_PAYLOAD TLSF_ALIGNMENT
#define TLSF_MIN_BLOCK (TLSF_HEADER_BYTES + TLSF_MIN_PAYLOAD)

/* Sizes below the limit need neither rounding nor a logarithm: 256 for L = 5, 128 for L = 4 on 32-bit targets. */
#if TLSF_SMALL == 0
#define TLSF_SMALL_BITS (TLSF_SL_BITS + TLSF_ALIGNMENT_BITS)
#else
#define TLSF_SMALL_BITS ((TLSF_SMALL == 128 ? 4 : 5) + TLSF_ALIGNMENT_BITS)
#endif
#define TLSF_SMALL_LIMIT ((size_t)1 << TLSF_SMALL_BITS)
#define TLSF_SMALL_WIDTH_BITS (TLSF_SMALL_BITS - TLSF_SL_BITS) /* of a class of the first row */

#define TLSF_SL_COUNT (1u << TLSF_SL_BITS)
#define TLSF_FL_COUNT (TLSF_HEAP_BITS - TLSF_SMALL_BITS + 1)

/* One block of the least size, and the sentinel. 24 on 32-bit targets. */
#define TLSF_MIN_HEAP (TLSF_MIN_BLOCK + TLSF_HEADER_BYTES)
#define TLSF_MAX_HEAP ((size_t)1 << TLSF_HEAP_BITS)

/* The lower end of the last class: a larger request has no class to be rounded up to. */
#define TLSF_MAX_REQUEST ((size_t)(2 * TLSF_SL_COUNT - 1) << (TLSF_HEAP_BITS - 1 - TLSF_SL_BITS))

/* -------------------------------------------------------------------------------------------------- data structures */

#define TLSF_FREE_BIT ((size_t)1)
#define TLSF_PREV_FREE_BIT ((size_t)2) /* with TLSF_TELLS_PREVIOUS */
#define TLSF_FLAGS (TLSF_FREE_BIT | TLSF_PREV_FREE_BIT)

/* A block. The last two members exist in free blocks only: the payload of a used block starts at next_free. */
struct tlsf_block {
    struct tlsf_block *prev_physical; /* the block that ends where this one starts, NULL in the first block */
    size_t size_and_free;             /* bytes of the payload, plus TLSF_FREE_BIT if the block is free, and flags */
    struct tlsf_block *next_free;     /* NULL in the last block of a list */
    struct tlsf_block *prev_free;     /* NULL in the first block of a list */
};

/* What the allocator knows apart from the heap. All zero before tlsf_init: then every malloc returns NULL. */
struct tlsf_control {
    struct tlsf_block *first;                               /* first block: the start of the arena */
    struct tlsf_block *sentinel;                            /* header at the arena's end: size 0, never free */
    uint32_t fl_bitmap;                                     /* bit fl: sl_bitmap[fl] is not zero */
    uint32_t sl_bitmap[TLSF_FL_COUNT];                      /* bit sl of word fl: the list is not empty */
    struct tlsf_block *heads[TLSF_FL_COUNT][TLSF_SL_COUNT]; /* NULL: the list is empty */
};

extern struct tlsf_control tlsf_control;

/* ------------------------------------------------------------------------------------------------------- operations */

/*
 * Makes the arena the heap: one free block. Blocks of an earlier heap are forgotten.
 *
 * Returns 0, or nonzero iff arena is NULL or not a multiple of TLSF_ALIGNMENT, or bytes is not a multiple of
 * TLSF_ALIGNMENT, below TLSF_MIN_HEAP or above TLSF_MAX_HEAP; then nothing has changed.
 * Time: linear in the size of the control structure, whatever the size of the arena.
 */
int tlsf_init(void *arena, size_t bytes);

/*
 * Returns a block of at least `bytes` bytes, aligned on TLSF_ALIGNMENT. The request is rounded up to the alignment and
 * then to the lower end of a class, so that a block once cut serves every request of its class again. The block
 * comes from the first list that is not empty, in the order of classes from there on; what is left of it becomes a
 * free block if it can hold one.
 *
 * Returns NULL iff bytes is 0, or bytes is above TLSF_MAX_REQUEST, or no list of the request's class or of a
 * larger one holds a block; then nothing has changed.
 * Time: O(1). No loop.
 */
void *tlsf_malloc(size_t bytes);

/*
 * Gives a block back and merges it with its free neighbours at once. tlsf_free(NULL) does nothing. The behaviour is
 * undefined if the argument is not a block of the current heap that is in use.
 * Time: O(1). No loop.
 */
void tlsf_free(void *payload);

/* The invariants, in the order in which they are looked at. */
enum tlsf_violation {
    TLSF_HEAP_SOUND = 0,
    TLSF_NO_HEAP,            /* tlsf_init has not succeeded yet */
    TLSF_BAD_PREV_PHYSICAL,  /* prev_physical is not the block before (the sentinel's included) */
    TLSF_BAD_SIZE_ALIGNMENT, /* a size is not a multiple of TLSF_ALIGNMENT */
    TLSF_BAD_SIZE_MINIMUM,   /* a size is below TLSF_MIN_PAYLOAD */
    TLSF_BAD_CHAIN_END,      /* a block reaches beyond the sentinel: the chain does not cover the arena exactly */
    TLSF_BAD_ADJACENT_FREE,  /* two neighbours are free */
    TLSF_BAD_SENTINEL,       /* the sentinel is marked free or has a size */
    TLSF_BAD_LIST_ADDRESS,   /* a list leads to an address where no block can be */
    TLSF_BAD_LIST_FREE_BIT,  /* a block in a list is marked used */
    TLSF_BAD_LIST_CLASS,     /* a block in a list has a size of another class */
    TLSF_BAD_LIST_LINK,      /* prev_free is not the block before it in the list: includes every cycle */
    TLSF_BAD_SL_BITMAP,      /* a bit of sl_bitmap differs from "the list is not empty" */
    TLSF_BAD_FL_BITMAP,      /* a bit of fl_bitmap differs from "the word of sl_bitmap is not zero" */
    TLSF_BAD_FREE_COUNT,     /* the lists hold more or fewer blocks than the chain has free ones */
    TLSF_BAD_FREE_MEMBERS    /* as many, but not the same: the sums of the addresses differ */
};

/*
 * Returns TLSF_HEAP_SOUND or the first violated invariant. Changes nothing. For tests.
 * Time: linear in the number of blocks and lists; ends on every heap, however broken, whose control.first and
 * control.sentinel are intact.
 */
int tlsf_check(void);

#endif
