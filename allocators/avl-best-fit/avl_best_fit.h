/* SPDX-License-Identifier: 0BSD */
/*
 * AVL best fit: a memory allocator that keeps its free blocks in a height-balanced binary tree.
 *
 * Nothing here recurses, divides or calls a library function, and no loop runs longer than the tree is high. There is
 * one heap. Nothing is thread-safe: the caller locks, or calls from one thread only.
 *
 * Layout of the heap: blocks lie side by side from the start of the arena to a sentinel near its end. Each block is a
 * header of two words and a payload. `size` always means the bytes of the whole block, header included. The links of
 * the tree live in the payload of free blocks. No two neighbours are free.
 *
 * The tree: each free block is a node of it. Its key is (size, address), so that no two keys are equal and the block
 * taken is the lowest of the smallest that fit. For each node the heights of its two subtrees differ by at most one;
 * which of them is taller stands in the low bits of the block's size. Nodes know their children and not their parent:
 * a removal notes the path that it went down, and goes it up again. An insertion changes no node above the last one on
 * its way that was not balanced: it goes down once more from there.
 */
#ifndef AVL_BEST_FIT_H
#define AVL_BEST_FIT_H

#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------------------------------ parameters of the build */

/* Bytes as they are on 32-bit targets; on 64-bit hosts, where each word is twice as long, each counts twice. */

/* The least block, with its header: 16, 24 or 32, rounded up to a multiple of the granule. */
#ifndef AVL_BEST_FIT_MINIMUM_BLOCK
#define AVL_BEST_FIT_MINIMUM_BLOCK 16
#endif

/* What is left of a block becomes a free block if it has as many bytes, and can be a block: 16, 24, 32 or 64. */
#ifndef AVL_BEST_FIT_SPLIT_THRESHOLD
#define AVL_BEST_FIT_SPLIT_THRESHOLD 16
#endif

/* Alignment of payloads: 4 or 8. */
#ifndef AVL_BEST_FIT_ALIGNMENT
#define AVL_BEST_FIT_ALIGNMENT 8
#endif

/* What blocks start at multiples of, and sizes are multiples of: a power of two, at least the alignment. With 16 or
 * more no node of the tree lies in two lines of a cache. */
#ifndef AVL_BEST_FIT_GRANULE
#define AVL_BEST_FIT_GRANULE 8
#endif

/* ----------------------------------------------------------------------------------------------------- what follows */

#define AVL_BEST_FIT_SCALED(bytes) ((size_t)(bytes) / 4 * sizeof(void *))

#define AVL_BEST_FIT_UNIT_32 (AVL_BEST_FIT_GRANULE > AVL_BEST_FIT_ALIGNMENT ? AVL_BEST_FIT_GRANULE : AVL_BEST_FIT_ALIGNMENT)
#define AVL_BEST_FIT_UNIT AVL_BEST_FIT_SCALED(AVL_BEST_FIT_UNIT_32)
#define AVL_BEST_FIT_ROUND_UP(bytes) (((bytes) + AVL_BEST_FIT_UNIT - 1) & ~(AVL_BEST_FIT_UNIT - 1))
#define AVL_BEST_FIT_HEADER_BYTES AVL_BEST_FIT_SCALED(8)
#define AVL_BEST_FIT_MIN_BLOCK AVL_BEST_FIT_ROUND_UP(AVL_BEST_FIT_SCALED(AVL_BEST_FIT_MINIMUM_BLOCK))
#define AVL_BEST_FIT_MIN_REST                                                                                         \
    AVL_BEST_FIT_SCALED(AVL_BEST_FIT_SPLIT_THRESHOLD > AVL_BEST_FIT_MINIMUM_BLOCK ? AVL_BEST_FIT_SPLIT_THRESHOLD      \
                                                                                  : AVL_BEST_FIT_MINIMUM_BLOCK)

/* One block of the least size, and the sentinel. */
#define AVL_BEST_FIT_MIN_HEAP (AVL_BEST_FIT_MIN_BLOCK + AVL_BEST_FIT_HEADER_BYTES)
#define AVL_BEST_FIT_MAX_HEAP ((size_t)1 << 28)

/* Nodes on the longest path: an AVL tree of height h has F(h + 2) - 1 nodes at least, F(35) - 1 = 9,227,464 for 33, and
 * a heap of 2^28 bytes has 2^28 / (2 * 16) = 8,388,608 free blocks at most, no two of which are neighbours. */
#define AVL_BEST_FIT_MAX_HEIGHT 32

/* -------------------------------------------------------------------------------------------------- data structures */

/* The low two bits of size_and_state. */
#define AVL_BEST_FIT_USED 0u
#define AVL_BEST_FIT_BALANCED 1u                                    /* free, both subtrees of one height */
#define AVL_BEST_FIT_TALLER(side) (2u + (unsigned)(side))           /* free, the subtree of that side is taller */
#define AVL_BEST_FIT_STATE_MASK ((size_t)3)

/* A block. child exists in free blocks only: the payload of a used block starts there. */
struct avl_best_fit_block {
    size_t size_and_state;                    /* bytes of the block, plus one of the four states */
    struct avl_best_fit_block *prev_physical; /* the block that ends where this one starts, NULL in the first block */
    struct avl_best_fit_block *child[2];      /* [0]: keys below this one's, [1]: keys above; NULL: none */
};

/* What the allocator knows apart from the heap. All zero before avl_best_fit_init: then every malloc returns NULL. */
struct avl_best_fit_control {
    struct avl_best_fit_block head;      /* no block: child[0] is the root, NULL if no block is free */
    struct avl_best_fit_block *first;    /* first block: the start of the arena */
    struct avl_best_fit_block *sentinel; /* header behind the last block: size 0, never free */
};

extern struct avl_best_fit_control avl_best_fit_control;

/* ------------------------------------------------------------------------------------------------------- operations */

/*
 * Makes the arena the heap: one free block. Blocks of an earlier heap are forgotten.
 *
 * Returns 0, or nonzero iff arena is NULL or not a multiple of the granule, or bytes is not a multiple of the
 * alignment, below AVL_BEST_FIT_MIN_HEAP or above AVL_BEST_FIT_MAX_HEAP; then nothing has changed.
 * Time: O(1).
 */
int avl_best_fit_init(void *arena, size_t bytes);

/*
 * Returns a block of at least `bytes` bytes: the start of the smallest free block that is large enough, of several
 * the one at the lowest address. What is left of it becomes a free block, unless it is below the split threshold.
 *
 * Returns NULL iff bytes is 0 or no free block is large enough; then nothing has changed.
 * Time: O(log n) with n free blocks: one removal from the tree and one insertion at most.
 */
void *avl_best_fit_malloc(size_t bytes);

/*
 * Gives a block back and merges it with its free neighbours at once. avl_best_fit_free(NULL) does nothing. The
 * behaviour is undefined if the argument is not a block of the current heap that is in use.
 * Time: O(log n) with n free blocks: two removals from the tree at most, and one insertion.
 */
void avl_best_fit_free(void *payload);

/* The invariants, in the order in which they are looked at. */
enum avl_best_fit_violation {
    AVL_BEST_FIT_HEAP_SOUND = 0,
    AVL_BEST_FIT_NO_HEAP,            /* avl_best_fit_init has not succeeded yet */
    AVL_BEST_FIT_BAD_PREV_PHYSICAL,  /* prev_physical is not the block before (the sentinel's included) */
    AVL_BEST_FIT_BAD_SIZE_ALIGNMENT, /* a size is not a multiple of the granule */
    AVL_BEST_FIT_BAD_SIZE_MINIMUM,   /* a size is below the minimum */
    AVL_BEST_FIT_BAD_CHAIN_END,      /* a block reaches beyond the sentinel */
    AVL_BEST_FIT_BAD_ADJACENT_FREE,  /* two neighbours are free */
    AVL_BEST_FIT_BAD_SENTINEL,       /* the sentinel is marked free or has a size */
    AVL_BEST_FIT_BAD_HEIGHT,         /* a path is longer than any balanced tree allows: includes cycles */
    AVL_BEST_FIT_BAD_NODE_ADDRESS,   /* the tree leads to an address where no block can be */
    AVL_BEST_FIT_BAD_NODE_STATE,     /* a node of the tree is marked used */
    AVL_BEST_FIT_BAD_ORDER,          /* keys do not grow from left to right */
    AVL_BEST_FIT_BAD_BALANCE,        /* a node's state is not what the heights of its subtrees make it */
    AVL_BEST_FIT_BAD_FREE_COUNT,     /* the tree holds more or fewer blocks than the chain has free ones */
    AVL_BEST_FIT_BAD_FREE_MEMBERS    /* as many, but not the same: the sums of the addresses differ */
};

/*
 * Returns AVL_BEST_FIT_HEAP_SOUND or the first violated invariant. Changes nothing. For tests.
 * Time: linear in the number of blocks; ends on every heap, however broken, whose control.first and control.sentinel
 * are intact.
 */
int avl_best_fit_check(void);

#endif
