/* SPDX-License-Identifier: 0BSD */
/*
 * Fast-fit: free blocks in a Cartesian tree, ordered by address and heap-ordered by size.
 *
 * malloc descends from the root, the largest free block, to a small one that is large enough ("better fit"); free
 * descends by address, finds the free neighbours on its way and merges with them at once. All walk paths of the tree,
 * which nothing balances: with blocks of equal size a path may hold every free block. No recursion, no division, no
 * 64-bit arithmetic on a 32-bit target, no library function. There is one heap. Nothing is thread-safe: the caller
 * locks, or calls from one thread only.
 *
 * Layout of the heap: blocks side by side up to the end of the arena. Each block is a header of one word and a payload;
 * there are no boundary tags, for the tree knows the neighbours. `size` always means that of a whole block, header
 * included. The links of the tree live in the payload of free blocks. No two neighbours are free.
 *
 * The tree: lower addresses to the left, higher ones to the right, and no child is larger than its parent. Addresses
 * and sizes determine its shape, but for blocks of equal size: of them a free block that is inserted comes to lie
 * above the others, and where two subtrees are merged the left one.
 */
#ifndef FAST_FIT_H
#define FAST_FIT_H

#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------------------------------ parameters of the build */

/* Bytes on 32-bit targets; all four are twice as much on 64-bit hosts. */

/* Of payloads: 4 or 8. */
#ifndef FAST_FIT_ALIGNMENT
#define FAST_FIT_ALIGNMENT 8
#endif

/* Of sizes: a power of two, at least the alignment. With 16 or more no node of the tree lies in two lines of a cache. */
#ifndef FAST_FIT_GRANULE
#define FAST_FIT_GRANULE 8
#endif

/* The least block, header included: at least 12, rounded up to a multiple of the granule. */
#ifndef FAST_FIT_MINIMUM
#define FAST_FIT_MINIMUM 16
#endif

/* A block is split if at least this much is left of it, and a least block besides. */
#ifndef FAST_FIT_SPLIT
#define FAST_FIT_SPLIT 16
#endif

/* ----------------------------------------------------------------------------------------------------- what follows */

#define FAST_FIT_WORD sizeof(size_t)
#define FAST_FIT_SCALED(bytes_of_32_bit_target) ((size_t)(bytes_of_32_bit_target) / 4 * FAST_FIT_WORD)

#define FAST_FIT_ALIGNMENT_BYTES FAST_FIT_SCALED(FAST_FIT_ALIGNMENT)
#define FAST_FIT_GRANULE_BYTES \
    FAST_FIT_SCALED(FAST_FIT_GRANULE > FAST_FIT_ALIGNMENT ? FAST_FIT_GRANULE : FAST_FIT_ALIGNMENT)
#define FAST_FIT_ROUND_UP(bytes) (((bytes) + FAST_FIT_GRANULE_BYTES - 1) & ~(FAST_FIT_GRANULE_BYTES - 1))
#define FAST_FIT_LEAST FAST_FIT_ROUND_UP(FAST_FIT_SCALED(FAST_FIT_MINIMUM))
#define FAST_FIT_LEAST_REST \
    (FAST_FIT_SCALED(FAST_FIT_SPLIT) > FAST_FIT_LEAST ? FAST_FIT_SCALED(FAST_FIT_SPLIT) : FAST_FIT_LEAST)

/* Where the first block starts, so that payloads are aligned: a word below a multiple of the alignment. */
#define FAST_FIT_FIRST_OFFSET (FAST_FIT_ALIGNMENT_BYTES - FAST_FIT_WORD)

#define FAST_FIT_LEAST_HEAP (FAST_FIT_FIRST_OFFSET + FAST_FIT_LEAST)
#define FAST_FIT_MOST_HEAP ((size_t)1 << 28)

/* -------------------------------------------------------------------------------------------------- data structures */

#define FAST_FIT_USED_BIT ((size_t)1)

/* A block. The last two members exist in free blocks only: the payload of a used block starts at left. */
struct fast_fit_block {
    size_t size_and_used;         /* bytes of the block, plus FAST_FIT_USED_BIT if it is in use: for the checker alone */
    struct fast_fit_block *left;  /* the tree of lower addresses, or NULL */
    struct fast_fit_block *right; /* the tree of higher addresses, or NULL */
};

/* What the allocator knows apart from the heap. All zero before fast_fit_init: then every malloc returns NULL. */
struct fast_fit_control {
    struct fast_fit_block *first; /* first block: FAST_FIT_FIRST_OFFSET bytes into the arena */
    struct fast_fit_block *end;   /* behind the last block */
    struct fast_fit_block *root;  /* the largest free block, NULL if no block is free */
};

extern struct fast_fit_control fast_fit_control;

/* ------------------------------------------------------------------------------------------------------- operations */

/*
 * Makes the arena the heap: one free block. Blocks of an earlier heap are forgotten.
 *
 * Returns 0, or nonzero iff arena is NULL or not a multiple of the granule, or bytes is not a multiple of the
 * alignment, below FAST_FIT_LEAST_HEAP or above FAST_FIT_MOST_HEAP; then nothing has changed.
 * Time: O(1).
 */
int fast_fit_init(void *arena, size_t bytes);

/*
 * Returns a block of at least `bytes` bytes, aligned: the upper part of a free block that is large enough and has no
 * child that is so. The rest stays a free block at its address if it is large enough for that.
 *
 * Returns NULL iff bytes is 0 or no free block is large enough; then nothing has changed.
 * Time: linear in the height of the tree; O(1) if it returns NULL.
 */
void *fast_fit_malloc(size_t bytes);

/*
 * Gives a block back and merges it with its free neighbours at once. fast_fit_free(NULL) does nothing. The behaviour is
 * undefined if the argument is not a block of the current heap that is in use.
 * Time: linear in the height of the tree: one walk to find the neighbours, one to remove them, one to insert.
 */
void fast_fit_free(void *payload);

/* The invariants, in the order in which they are looked at. */
enum fast_fit_violation {
    FAST_FIT_SOUND = 0,
    FAST_FIT_NO_HEAP,        /* fast_fit_init has not succeeded yet */
    FAST_FIT_BAD_SIZE,       /* a size is not a multiple of the granule, or below the least */
    FAST_FIT_BAD_CHAIN_END,  /* a block reaches beyond the end */
    FAST_FIT_BAD_NEIGHBOURS, /* two neighbours are free */
    FAST_FIT_BAD_LINK,       /* a link leads to an address where no free block can be */
    FAST_FIT_BAD_ADDRESS,    /* a left child lies above its parent, or a right child below it */
    FAST_FIT_BAD_HEAP_ORDER, /* a child is larger than its parent */
    FAST_FIT_BAD_ORDER,      /* the order of the tree is not that of the addresses, or a free block is not in it */
    FAST_FIT_BAD_MEMBERS     /* a free block has no parent or two: the sums of the addresses differ */
};

/*
 * Returns FAST_FIT_SOUND or the first violated invariant. Changes nothing. For tests.
 * Time: linear in the number of blocks, for sound heaps; ends on every heap, however broken, whose control.first and
 * control.end are intact.
 */
int fast_fit_check(void);

#endif
