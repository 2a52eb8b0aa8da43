/* SPDX-License-Identifier: 0BSD */
/*
 * Quick fit over pages: a memory allocator that serves small requests with fragments of a page, powers of two, and
 * large ones with whole pages by next fit.
 *
 * Nothing here recurses, divides by a variable or calls a library function. There is one heap. Nothing is thread-safe:
 * the caller locks, or calls from one thread only.
 *
 * Layout of the heap: the arena starts with a table of page headers, one for each page and a guard at either end; the
 * pages follow and end with the arena, so that they are aligned like its end. Blocks have no header. The headers are
 * aligned to their size, so that none lies in two lines of a cache.
 *
 *     arena                                                                                  arena + bytes
 *     | guard | header 1 | ... | header n | guard | (unused) | page 1 | page 2 | ... | page n |
 *
 * A page is part of a run. A run is free, or it is one block of whole pages, or it is a single page cut into fragments
 * of one size. Free runs are in one circular list, whose links lie in the header of a run's first page; no two
 * neighbours are free. Free fragments are in one circular list for each size, whose links lie in the fragments
 * themselves, and those of a page stand there in a row. The header of a page that is cut counts its free fragments and
 * knows the first of them: with the last fragment that is freed the page is free again.
 */
#ifndef QUICK_FIT_H
#define QUICK_FIT_H

#include "dlist.h"

#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------------------------------ parameters of the build */

/* Bytes of a page: 256, 512, 1024, 2048 or 4096. Requests above half a page get whole pages. */
#ifndef QUICK_FIT_PAGE_BYTES
#define QUICK_FIT_PAGE_BYTES 4096
#endif

/* Bytes of the least fragment on 32-bit targets, twice as many on 64-bit hosts: 8, 16 or 32. */
#ifndef QUICK_FIT_MINIMUM_BLOCK
#define QUICK_FIT_MINIMUM_BLOCK 8
#endif

/* ----------------------------------------------------------------------------------------------------- what follows */

/* Two words, which a free fragment needs for its links: 8 on 32-bit targets, 16 on 64-bit hosts. */
#define QUICK_FIT_ALIGNMENT sizeof(struct dlist)
#define QUICK_FIT_MIN_FRAGMENT ((size_t)QUICK_FIT_MINIMUM_BLOCK / 8 * QUICK_FIT_ALIGNMENT)
#define QUICK_FIT_MAX_FRAGMENT ((size_t)QUICK_FIT_PAGE_BYTES / 2)

/* Sizes of fragments are 2^k, k from 3 to 11; the list of each is lists[k]. */
#define QUICK_FIT_LISTS 12

/* One page, its header and two guards. 4144 on 32-bit targets; 8 more where the arena is no multiple of a header. */
#define QUICK_FIT_MIN_HEAP (QUICK_FIT_PAGE_BYTES + 3 * sizeof(struct quick_fit_page))
#define QUICK_FIT_MAX_HEAP ((size_t)1 << 28)

/* -------------------------------------------------------------------------------------------------- data structures */

/* `kind` of a page header; fragments of 2^k bytes have the kind k. */
#define QUICK_FIT_FREE 0u
#define QUICK_FIT_USED 1u

/* The header of a page, 16 bytes on 32-bit targets. Of a run of pages, the first and the last header tell; those
 * between hold what they happen to hold. */
struct quick_fit_page {
    union {
        struct dlist runs;   /* first page of a free run: neighbours in the list of free runs */
        struct dlist *first; /* page that is cut: the free fragment that stands first in its list, if one is free */
    } free;
    size_t count; /* pages of the run; of a page that is cut: free fragments */
    size_t kind;  /* QUICK_FIT_FREE, QUICK_FIT_USED or the logarithm of the fragments' size */
};

/* What the allocator knows apart from the heap. Its lists are empty before quick_fit_init: then malloc returns NULL. */
struct quick_fit_control {
    _Alignas(sizeof(struct quick_fit_page))
    struct quick_fit_page runs;           /* head of the list of free runs: a run of no page */
    struct quick_fit_page *rover;         /* where next fit goes on: a free run, or the head */
    unsigned char *first_page;            /* start of page 1 */
    struct quick_fit_page *headers;       /* headers[0] is the lower guard, headers[i] the header of page i */
    size_t pages;                         /* n; headers[n + 1] is the upper guard */
    struct dlist lists[QUICK_FIT_LISTS];  /* heads of the lists of free fragments, by logarithm of the size */
};

extern struct quick_fit_control quick_fit_control;

/* ------------------------------------------------------------------------------------------------------- operations */

/*
 * Makes the arena the heap: one free run of all pages that it has room for, with a header each. Blocks of an earlier
 * heap are forgotten.
 *
 * Returns 0, or nonzero iff arena is NULL or not a multiple of QUICK_FIT_ALIGNMENT, or bytes is not a multiple of
 * QUICK_FIT_ALIGNMENT, too few for a page (QUICK_FIT_MIN_HEAP) or above QUICK_FIT_MAX_HEAP; then nothing has changed.
 * Time: O(1).
 */
int quick_fit_init(void *arena, size_t bytes);

/*
 * Returns a block of at least `bytes` bytes. Up to half a page: the first free fragment of the least size that is large
 * enough; if none of this size is free, a page is taken, cut into fragments, and the lowest returned. Above: the last pages of the first free
 * run, from the rover on, that is long enough; the rover stays there.
 *
 * Returns NULL iff bytes is 0, or no fragment of the size is free and no free run is long enough; then nothing has
 * changed, the rover neither.
 * Time: O(r) with r free runs, plus O(f) with f fragments in a page where one is cut.
 */
void *quick_fit_malloc(size_t bytes);

/*
 * Gives a block back. A run of pages merges with its free neighbours at once; so does a page of which this was the last
 * fragment, after its other fragments have left their list: they are passed one by one to find where they end. quick_fit_free(NULL) does nothing. The behaviour is
 * undefined if the argument is not a block of the current heap that is in use.
 * Time: O(1), but O(f) with f fragments in the page where the block is the last of its page.
 */
void quick_fit_free(void *payload);

/* The invariants, in the order in which they are looked at. */
enum quick_fit_violation {
    QUICK_FIT_HEAP_SOUND = 0,
    QUICK_FIT_NO_HEAP,          /* quick_fit_init has not succeeded yet */
    QUICK_FIT_BAD_GUARD,        /* a guard is not a used one */
    QUICK_FIT_BAD_KIND,         /* a page is cut into fragments of a size that is none */
    QUICK_FIT_BAD_RUN_LENGTH,   /* a run has no page or reaches beyond the last one */
    QUICK_FIT_BAD_RUN_END,      /* the headers of a run's first and last page differ */
    QUICK_FIT_BAD_ADJACENT,     /* two neighbours are free */
    QUICK_FIT_BAD_FREE_COUNT,   /* a page that is cut has all fragments free, or more than it has */
    QUICK_FIT_BAD_RUN_LINK,     /* a link of the list of free runs leads elsewhere than to a free run and back */
    QUICK_FIT_BAD_ROVER,        /* the rover is not in the list of free runs */
    QUICK_FIT_BAD_RUN_LIST,     /* the list does not hold the free runs, each once */
    QUICK_FIT_BAD_FRAGMENT,     /* a list of fragments leads to an address where none of its size can be */
    QUICK_FIT_BAD_LIST_LINK,    /* a link of a list of fragments is not answered by its counterpart */
    QUICK_FIT_BAD_LIST_ROW,     /* the free fragments of a page do not stand in a row from the one that it knows on */
    QUICK_FIT_BAD_LIST_COUNT    /* the lists of fragments hold more or fewer than the headers count */
};

/*
 * Returns QUICK_FIT_HEAP_SOUND or the first violated invariant. Changes nothing. For tests.
 * Time: linear in the number of pages and of free fragments; ends on every heap whose control.headers and control.pages
 * are intact.
 */
int quick_fit_check(void);

#endif
