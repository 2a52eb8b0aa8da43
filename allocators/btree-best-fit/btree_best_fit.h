/* SPDX-License-Identifier: 0BSD */
/*
 * Best-fit in an ordered binary tree: free blocks in a binary search tree by size, one node per size.
 *
 * malloc finds the smallest free block that is large enough, free merges with free neighbours at once. Both walk paths
 * of the tree, which nothing balances: a path is at most as long as there are different sizes of free blocks, about
 * sqrt(H / 4) in a heap of H bytes with an alignment of 8. No recursion, no division, no 64-bit arithmetic on a 32-bit
 * target, no library function. There is one heap. Nothing is thread-safe: the caller locks, or calls from one thread.
 *
 * Layout of the heap: blocks with boundary tags side by side, see boundary_tags.h. `size` always means that of a whole
 * block, tags included. The links live in the payload of free blocks. No two neighbours are free.
 *
 * The tree: smaller sizes to the left, larger ones to the right. The free blocks of one size are a doubly-linked list:
 * its first block is the node of the tree, the others are its members. A new member goes right behind the node and is
 * the next one to be taken: last in, first out, and the tree does not change. Only the last block of a size, the node
 * itself, leaves the tree.
 */
#ifndef BTREE_BEST_FIT_H
#define BTREE_BEST_FIT_H

#include "boundary_tags.h"

/* ------------------------------------------------------------------------------------------ parameters of the build */

/* Bytes on 32-bit targets; all three are twice as much on 64-bit hosts. */

/* Of payloads, and of sizes: 4 or 8. */
#ifndef BTREE_BEST_FIT_ALIGNMENT
#define BTREE_BEST_FIT_ALIGNMENT 8
#endif

/* The least block, tags included: at least 16 and a multiple of the alignment. */
#ifndef BTREE_BEST_FIT_MINIMUM
#define BTREE_BEST_FIT_MINIMUM 16
#endif

/* A block is split if at least this much is left of it, and a least block besides. */
#ifndef BTREE_BEST_FIT_SPLIT
#define BTREE_BEST_FIT_SPLIT 16
#endif

/* ----------------------------------------------------------------------------------------------------- what follows */

#define BTREE_BEST_FIT_ALIGNMENT_BYTES BT_SCALED(BTREE_BEST_FIT_ALIGNMENT)
#define BTREE_BEST_FIT_LEAST BT_SCALED(BTREE_BEST_FIT_MINIMUM)
#define BTREE_BEST_FIT_LEAST_REST \
    BT_SCALED(BTREE_BEST_FIT_SPLIT > BTREE_BEST_FIT_MINIMUM ? BTREE_BEST_FIT_SPLIT : BTREE_BEST_FIT_MINIMUM)

#define BTREE_BEST_FIT_LEAST_HEAP (BTREE_BEST_FIT_LEAST + BT_OVERHEAD)
#define BTREE_BEST_FIT_MOST_HEAP ((size_t)1 << 28)

/* -------------------------------------------------------------------------------------------------- data structures */

#define BTREE_BEST_FIT_MEMBER ((uintptr_t)1)

/*
 * A free block. In one of four words the footer lies where `left` is: such a block has no left child and needs none,
 * for no size is smaller than its own.
 */
struct btree_best_fit_block {
    struct bt_block tag;                   /* size, and BT_FREE_BIT */
    struct btree_best_fit_block *next;     /* of the same size, NULL in the last one */
    union {
        struct btree_best_fit_block *right; /* node: the larger sizes, or NULL */
        uintptr_t prev_and_member;          /* member: the one before it in the list, plus BTREE_BEST_FIT_MEMBER */
    } link;
    struct btree_best_fit_block *left;     /* node of more than four words: the smaller sizes, or NULL */
};

/* What the allocator knows apart from the heap. All zero before btree_best_fit_init: then every malloc returns NULL. */
struct btree_best_fit_control {
    struct bt_block *first;            /* first block: the start of the arena, and a word */
    struct bt_block *fence;            /* behind the last block: the last word of the arena */
    struct btree_best_fit_block *root; /* NULL: no block is free */
};

extern struct btree_best_fit_control btree_best_fit_control;

/* ------------------------------------------------------------------------------------------------------- operations */

/*
 * Makes the arena the heap: one free block. Blocks of an earlier heap are forgotten.
 *
 * Returns 0, or nonzero iff arena is NULL or not a multiple of the alignment, or bytes is not a multiple of the
 * alignment, below BTREE_BEST_FIT_LEAST_HEAP or above BTREE_BEST_FIT_MOST_HEAP; then nothing has changed.
 * Time: O(1).
 */
int btree_best_fit_init(void *arena, size_t bytes);

/*
 * Returns a block of at least `bytes` bytes, aligned: the lower part of the smallest free block that is large enough.
 * The rest becomes a free block if it is large enough for that.
 *
 * Returns NULL iff bytes is 0 or no free block is large enough; then nothing has changed.
 * Time: linear in the height of the tree: one walk to find a block, one to insert the rest.
 */
void *btree_best_fit_malloc(size_t bytes);

/*
 * Gives a block back and merges it with its free neighbours at once. btree_best_fit_free(NULL) does nothing. The
 * behaviour is undefined if the argument is not a block of the current heap that is in use.
 * Time: linear in the height of the tree: one walk for each free neighbour, one to insert the merged block.
 */
void btree_best_fit_free(void *payload);

/* The invariants, in the order in which they are looked at. */
enum btree_best_fit_violation {
    BTREE_BEST_FIT_SOUND = 0,
    BTREE_BEST_FIT_NO_HEAP,        /* btree_best_fit_init has not succeeded yet */
    BTREE_BEST_FIT_BAD_FENCE,      /* a fence is not that of a used block of size 0 */
    BTREE_BEST_FIT_BAD_SIZE,       /* a size is not a multiple of the alignment, or below the least */
    BTREE_BEST_FIT_BAD_CHAIN_END,  /* a block reaches beyond the upper fence */
    BTREE_BEST_FIT_BAD_FOOTER,     /* header and footer of a block differ */
    BTREE_BEST_FIT_BAD_NEIGHBOURS, /* two neighbours are free */
    BTREE_BEST_FIT_BAD_PATH,       /* a link of the tree leads to no node, or one of the wrong size */
    BTREE_BEST_FIT_BAD_NODE,       /* the path to a node's size does not lead to the node */
    BTREE_BEST_FIT_BAD_LIST,       /* a list leads to no free block, or to one of another size */
    BTREE_BEST_FIT_BAD_LIST_LINK,  /* a member does not lead back to the block before it: includes every cycle */
    BTREE_BEST_FIT_BAD_LINK_COUNT, /* the tree has more links than nodes */
    BTREE_BEST_FIT_BAD_FREE_COUNT  /* the lists hold more or fewer blocks than the chain has free ones */
};

/*
 * Returns BTREE_BEST_FIT_SOUND or the first violated invariant. Changes nothing. For tests.
 * Time: linear in the size of the heap, for sound heaps; ends on every heap, however broken, whose control is intact.
 */
int btree_best_fit_check(void);

#endif
