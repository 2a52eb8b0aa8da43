/* SPDX-License-Identifier: 0BSD */
/*
 * Fibonacci buddy system: every block is a Fibonacci number times the minimum block; malloc splits a block into the two
 * Fibonacci numbers it is the sum of, free joins them again.
 *
 * malloc and free run in O(log(H / M)), H the size of the heap, M the minimum block. Neither contains a recursion, a
 * division or 64-bit arithmetic on a 32-bit target, and nothing here calls a library function. There is one heap.
 * Nothing is thread-safe: the caller locks, or calls from one thread only.
 *
 * Classes: a block of class k has F(k+1) * BUDDY_FIBONACCI_MINIMUM_BLOCK bytes, header included; F = 1, 1, 2, 3, 5 ...
 * Classes 0 and 1 are of the same size: 0 is the right half of a block of class 2 or nothing, 1 all others. A block of
 * class k >= 2 splits into a left child of class k-1 and, behind it, a right child of class k-2: buddies of each other.
 * Free blocks are in one doubly-linked list a class, last in, first out.
 *
 * Which child a block is, and what its parent was, is told by two bits (Cranston and Thomas): RIGHT, the block is a
 * right child; INHERITED, one bit of the parent: its RIGHT in the left child, its INHERITED in the right one. Merging
 * gives the parent both bits back.
 *
 * Roots: a heap whose size is no Fibonacci number is cut, from its start, into the largest that fits, the largest that
 * fits into the rest, and so on. By Zeckendorf's theorem no two roots have neighbouring classes. A root is marked as a
 * left child whose buddy can never be free: it would have the class just below, and there lies a smaller root, or the
 * end of the heap. What is left at the end, less than a minimum block, is not used.
 */
#ifndef BUDDY_FIBONACCI_H
#define BUDDY_FIBONACCI_H

#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------------------------------ parameters of the build */

/* Bytes of the minimum block on a 32-bit target, header included: 16, 32 or 64. */
#ifndef BUDDY_FIBONACCI_MINIMUM
#define BUDDY_FIBONACCI_MINIMUM 16
#endif

/* Alignment of payloads on a 32-bit target, and bytes of a header: 4 or 8. */
#ifndef BUDDY_FIBONACCI_ALIGN
#define BUDDY_FIBONACCI_ALIGN 8
#endif

/* Which child malloc goes on with, if both can hold the request. */
#define BUDDY_FIBONACCI_SMALLER 0
#define BUDDY_FIBONACCI_LARGER 1
#ifndef BUDDY_FIBONACCI_FOLLOW
#define BUDDY_FIBONACCI_FOLLOW BUDDY_FIBONACCI_SMALLER
#endif

/* ----------------------------------------------------------------------------------------------------- what follows */

/* Both double on 64-bit hosts, with the pointers. */
#if UINTPTR_MAX > 0xFFFFFFFF
#define BUDDY_FIBONACCI_SCALE 2
#else
#define BUDDY_FIBONACCI_SCALE 1
#endif
#define BUDDY_FIBONACCI_ALIGNMENT ((size_t)BUDDY_FIBONACCI_ALIGN * BUDDY_FIBONACCI_SCALE)
#define BUDDY_FIBONACCI_MINIMUM_BLOCK ((size_t)BUDDY_FIBONACCI_MINIMUM * BUDDY_FIBONACCI_SCALE)
#define BUDDY_FIBONACCI_HEADER_BYTES BUDDY_FIBONACCI_ALIGNMENT

/* F(1) to F(36): the last is the largest with 16 * F(k) <= 2^28. */
#define BUDDY_FIBONACCI_CLASSES 36
#define BUDDY_FIBONACCI_MAX_HEAP ((size_t)1 << 28)

/* -------------------------------------------------------------------------------------------------- data structures */

#define BUDDY_FIBONACCI_FREE_BIT ((size_t)1)
#define BUDDY_FIBONACCI_RIGHT_BIT ((size_t)2)
#define BUDDY_FIBONACCI_INHERITED_BIT ((size_t)4)
#define BUDDY_FIBONACCI_CLASS_SHIFT 3

/* A block. The links exist in free blocks only: the payload of a used block starts BUDDY_FIBONACCI_HEADER_BYTES behind
 * its start, over a link. */
struct buddy_fibonacci_block {
    size_t tag;                         /* 8 * class, plus the three bits */
    struct buddy_fibonacci_block *next; /* NULL in the last block of a list */
    struct buddy_fibonacci_block *prev; /* NULL in the first block of a list */
};

/* What the allocator knows apart from the heap. All zero before buddy_fibonacci_init: malloc then returns NULL. */
struct buddy_fibonacci_control {
    unsigned char *base;                                          /* start of the arena */
    size_t bytes;                                                 /* of all roots */
    size_t largest_request;                                       /* payload of the largest root */
    size_t classes;                                               /* class of the largest root, plus 1 */
    struct buddy_fibonacci_block *heads[BUDDY_FIBONACCI_CLASSES]; /* by class; NULL: the list is empty */
};

extern struct buddy_fibonacci_control buddy_fibonacci_control;

/* ------------------------------------------------------------------------------------------------------- operations */

/*
 * Makes the arena the heap: its roots are free. Blocks of an earlier heap are forgotten.
 *
 * Returns 0, or nonzero iff arena is NULL or not a multiple of BUDDY_FIBONACCI_MINIMUM_BLOCK, or bytes is not a
 * multiple of BUDDY_FIBONACCI_ALIGNMENT, below BUDDY_FIBONACCI_MINIMUM_BLOCK or above BUDDY_FIBONACCI_MAX_HEAP; then
 * nothing has changed.
 */
int buddy_fibonacci_init(void *arena, size_t bytes);

/*
 * Returns a block of at least `bytes` bytes, aligned on BUDDY_FIBONACCI_ALIGNMENT. Request and header are rounded up to
 * a class. The block comes from the list of the least class, from there on, that is not empty. It is split until it has
 * the class of the request; malloc goes on with the child that BUDDY_FIBONACCI_FOLLOW names, if that one can hold the
 * request, and the other child becomes a free block.
 *
 * Returns NULL iff bytes is 0, or exceeds the payload of the largest root, or no list from the request's class on
 * holds a block; then nothing has changed.
 * Time: O(log(H / M)): at most classes - 1 steps of rounding and search together; at most (classes - 1) / 2 splits, or
 * classes - 2 with BUDDY_FIBONACCI_LARGER.
 */
void *buddy_fibonacci_malloc(size_t bytes);

/*
 * Gives a block back and merges it with its buddy, as long as that is free and whole. buddy_fibonacci_free(NULL) does
 * nothing. The behaviour is undefined if the argument is not a block of the current heap that is in use.
 * Time: O(log(H / M)): at most classes - 2 merges, whichever child malloc follows.
 */
void buddy_fibonacci_free(void *payload);

/* The invariants, in the order in which they are looked at. */
enum buddy_fibonacci_violation {
    BUDDY_FIBONACCI_HEAP_SOUND = 0,
    BUDDY_FIBONACCI_NO_HEAP,          /* buddy_fibonacci_init has not succeeded yet */
    BUDDY_FIBONACCI_BAD_CLASS,        /* no splitting of the roots has a block of this class here */
    BUDDY_FIBONACCI_BAD_BITS,         /* it has, but with other bits RIGHT and INHERITED */
    BUDDY_FIBONACCI_BAD_UNMERGED,     /* a block and its buddy are free */
    BUDDY_FIBONACCI_BAD_LIST_ADDRESS, /* a list leads to an address where no block can be */
    BUDDY_FIBONACCI_BAD_LIST_TAG,     /* a block in a list is marked used or has another class */
    BUDDY_FIBONACCI_BAD_LIST_LINK,    /* prev is not the block before it in the list: includes every cycle */
    BUDDY_FIBONACCI_BAD_FREE_COUNT,   /* the lists hold more or fewer blocks than the heap has free ones */
    BUDDY_FIBONACCI_BAD_FREE_MEMBERS  /* as many, but not the same: the sums of the addresses differ */
};

/*
 * Returns BUDDY_FIBONACCI_HEAP_SOUND or the first violated invariant. Changes nothing. For tests.
 * Time: linear in the number of blocks; ends on every heap, however broken, whose control has the first four members
 * intact.
 */
int buddy_fibonacci_check(void);

#endif
