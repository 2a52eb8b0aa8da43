/* SPDX-License-Identifier: 0BSD */
/*
 * Best-fit: malloc takes the block of the free list that leaves least.
 *
 * The list is first in, first out: a block that is freed, or what a split leaves, becomes its last. Of several blocks
 * that fit equally the oldest is taken. The search ends early at a block that fits exactly, and only there.
 *
 * Blocks lie side by side between two fences, each with its size in a header and a footer (boundary_tags.h). All free
 * blocks are in one doubly-linked list, first in, first out (list_fit.h, dlist.h). No two neighbours are free.
 *
 * Nothing here calls a library function, divides or recurses. There is one heap. Nothing is thread-safe: the caller
 * locks, or calls from one thread only. Parameters of the build: list_fit.h.
 */
#ifndef BEST_FIT_H
#define BEST_FIT_H

#define LIST_FIT_INSERT dlist_insert_before /* first in, first out */
#include "list_fit.h"

/* All zero before best_fit_init: then nothing but best_fit_init and best_fit_check may be called. */
extern struct list_fit best_fit_control;

/*
 * Makes the arena the heap: one free block. Blocks of an earlier heap are forgotten.
 *
 * Returns 0, or nonzero iff arena is NULL or not a multiple of two words, or bytes is not a multiple of the alignment,
 * below LIST_FIT_MIN_HEAP or above LIST_FIT_MAX_HEAP; then nothing has changed.
 */
int best_fit_init(void *arena, size_t bytes);

/*
 * Returns a block of at least `bytes` bytes, aligned on LIST_FIT_ALIGNMENT. What is left of the free block that it is
 * cut from becomes a free block itself if it reaches the split threshold.
 *
 * Returns NULL iff bytes is 0 or no free block is large enough; then nothing has changed.
 * Time: linear in the number of free blocks, unless one fits exactly.
 */
void *best_fit_malloc(size_t bytes);

/*
 * Gives a block back and merges it with its free neighbours at once. best_fit_free(NULL) does nothing. The behaviour is
 * undefined if the argument is not a block of the current heap that is in use.
 * Time: O(1). No loop.
 */
void best_fit_free(void *payload);

/*
 * Returns 0 or the first violated invariant, of enum bt_violation or enum list_fit_violation (boundary_tags_check.h,
 * list_fit_check.h). Changes nothing. For tests.
 * Time: linear in the number of blocks; ends on every heap, however broken, whose control.first and control.upper are
 * intact.
 */
int best_fit_check(void);

#endif
