/* SPDX-License-Identifier: 0BSD */
/*
 * Binary buddy system: every block is 2^k times the minimum block; malloc halves, free joins the halves again.
 *
 * malloc and free run in O(log2(H / M)), H the size of the heap, M the minimum block. Neither contains a recursion, a
 * division or 64-bit arithmetic on a 32-bit target, and nothing here calls a library function. There is one heap.
 * Nothing is thread-safe: the caller locks, or calls from one thread only.
 *
 * Orders: a block of order k has BUDDY_BINARY_MINIMUM_BLOCK << k bytes, header included, and starts at a multiple of
 * its size from the start of the arena. Its buddy, the other half of the block it was cut from, is where its offset has
 * the bit of its size inverted. Free blocks are in one doubly-linked list an order, last in, first out.
 *
 * Roots: a heap that is no power of two is cut, from its start, into the powers of two of its binary representation,
 * largest first. A root has no buddy: the place where it would be lies in a smaller root or behind the heap. What is
 * left at the end, less than a minimum block, is not used.
 */
#ifndef BUDDY_BINARY_H
#define BUDDY_BINARY_H

#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------------------------------ parameters of the build */

/* Bytes of the minimum block on a 32-bit target, header included: 16, 32 or 64. */
#ifndef BUDDY_BINARY_MINIMUM
#define BUDDY_BINARY_MINIMUM 16
#endif

/* Alignment of payloads on a 32-bit target, and bytes of a header: 4 or 8. */
#ifndef BUDDY_BINARY_ALIGN
#define BUDDY_BINARY_ALIGN 8
#endif

/* The largest arena is 2^BUDDY_BINARY_HEAP_BITS bytes. It fixes the length of the table of lists. */
#ifndef BUDDY_BINARY_HEAP_BITS
#define BUDDY_BINARY_HEAP_BITS 28
#endif

/* ----------------------------------------------------------------------------------------------------- what follows */

/* Both double on 64-bit hosts, with the pointers. */
#if UINTPTR_MAX > 0xFFFFFFFF
#define BUDDY_BINARY_SCALE_BITS 1
#else
#define BUDDY_BINARY_SCALE_BITS 0
#endif
#define BUDDY_BINARY_ALIGNMENT ((size_t)BUDDY_BINARY_ALIGN << BUDDY_BINARY_SCALE_BITS)
#define BUDDY_BINARY_MINIMUM_BLOCK ((size_t)BUDDY_BINARY_MINIMUM << BUDDY_BINARY_SCALE_BITS)
#define BUDDY_BINARY_HEADER_BYTES BUDDY_BINARY_ALIGNMENT

#define BUDDY_BINARY_MINIMUM_BITS \
    ((BUDDY_BINARY_MINIMUM == 16 ? 4 : BUDDY_BINARY_MINIMUM == 32 ? 5 : 6) + BUDDY_BINARY_SCALE_BITS)
#define BUDDY_BINARY_ORDERS (BUDDY_BINARY_HEAP_BITS - BUDDY_BINARY_MINIMUM_BITS + 1)

#define BUDDY_BINARY_MAX_HEAP ((size_t)1 << BUDDY_BINARY_HEAP_BITS)

/* -------------------------------------------------------------------------------------------------- data structures */

#define BUDDY_BINARY_FREE_BIT ((size_t)1)

/* A block. The links exist in free blocks only: the payload of a used block starts BUDDY_BINARY_HEADER_BYTES behind
 * its start, over a link. */
struct buddy_binary_block {
    size_t tag;                      /* 2 * order, plus BUDDY_BINARY_FREE_BIT if the block is free */
    struct buddy_binary_block *next; /* NULL in the last block of a list */
    struct buddy_binary_block *prev; /* NULL in the first block of a list */
};

/* What the allocator knows apart from the heap. All zero before buddy_binary_init: then every malloc returns NULL. */
struct buddy_binary_control {
    unsigned char *base;                                   /* start of the arena */
    size_t bytes;                                          /* of all roots */
    size_t largest_request;                                /* payload of the largest root */
    size_t orders;                                         /* order of the largest root, plus 1 */
    struct buddy_binary_block *heads[BUDDY_BINARY_ORDERS]; /* by order; NULL: the list is empty */
};

extern struct buddy_binary_control buddy_binary_control;

/* ------------------------------------------------------------------------------------------------------- operations */

/*
 * Makes the arena the heap: its roots are free. Blocks of an earlier heap are forgotten.
 *
 * Returns 0, or nonzero iff arena is NULL or not a multiple of BUDDY_BINARY_MINIMUM_BLOCK, or bytes is not a multiple
 * of BUDDY_BINARY_ALIGNMENT, below BUDDY_BINARY_MINIMUM_BLOCK or above BUDDY_BINARY_MAX_HEAP; then nothing has changed.
 */
int buddy_binary_init(void *arena, size_t bytes);

/*
 * Returns a block of at least `bytes` bytes, aligned on BUDDY_BINARY_ALIGNMENT. Request and header are rounded up to
 * an order. The block comes from the list of the least order, from there on, that is not empty; it is halved until it
 * has the order of the request: the lower half is kept, the upper becomes a free block.
 *
 * Returns NULL iff bytes is 0, or exceeds the payload of the largest root, or no list from the request's order on
 * holds a block; then nothing has changed.
 * Time: O(log2(H / M)): at most as many steps of rounding and search together, and as many splits, as the largest
 * root's order.
 */
void *buddy_binary_malloc(size_t bytes);

/*
 * Gives a block back and merges it with its buddy, as long as that is free and whole. buddy_binary_free(NULL) does
 * nothing. The behaviour is undefined if the argument is not a block of the current heap that is in use.
 * Time: O(log2(H / M)): at most as many merges as the largest root's order.
 */
void buddy_binary_free(void *payload);

/* The invariants, in the order in which they are looked at. */
enum buddy_binary_violation {
    BUDDY_BINARY_HEAP_SOUND = 0,
    BUDDY_BINARY_NO_HEAP,           /* buddy_binary_init has not succeeded yet */
    BUDDY_BINARY_BAD_ORDER,         /* a tag holds no order of this heap */
    BUDDY_BINARY_BAD_PLACE,         /* a block does not start at a multiple of its size, or reaches beyond the heap */
    BUDDY_BINARY_BAD_UNMERGED,      /* a block and its buddy are free */
    BUDDY_BINARY_BAD_LIST_ADDRESS,  /* a list leads to an address where no block of its order can be */
    BUDDY_BINARY_BAD_LIST_TAG,      /* a block in a list is marked used or has another order */
    BUDDY_BINARY_BAD_LIST_LINK,     /* prev is not the block before it in the list: includes every cycle */
    BUDDY_BINARY_BAD_FREE_COUNT,    /* the lists hold more or fewer blocks than the heap has free ones */
    BUDDY_BINARY_BAD_FREE_MEMBERS   /* as many, but not the same: the sums of the addresses differ */
};

/*
 * Returns BUDDY_BINARY_HEAP_SOUND or the first violated invariant. Changes nothing. For tests.
 * Time: linear in the number of blocks; ends on every heap, however broken, whose control has the first four members
 * intact.
 */
int buddy_binary_check(void);

#endif
