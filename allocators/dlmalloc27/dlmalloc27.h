/* SPDX-License-Identifier: 0BSD */
/*
 * A memory allocator that does what Doug Lea's malloc 2.7.2 does: small blocks that are given back are kept as they are
 * and merged later, all at once; the others merge at once and are sorted into bins later, all at once.
 *
 * What is put off is paid by one call: neither malloc nor free has a bound that is independent of the heap (README.md).
 * There is one heap, no recursion, no division, no 64-bit arithmetic on a 32-bit target, no call of a library function.
 * Nothing is thread-safe: the caller locks, or calls from one thread only.
 *
 * Layout of the heap: chunks lie side by side from the start of the arena, the last one is `top`. The arena is never
 * extended. Each chunk is two words and what follows; `size` always means the bytes of the whole chunk.
 *
 *     chunk       | size_before | tag | payload ...                                |
 *     next chunk                                                     | size_before | tag | ...
 *
 * The payload of a used chunk reaches into the next chunk's size_before: that word is written only if the chunk is free,
 * and holds its size then. So a used chunk costs one word. Whether a chunk is in use stands in the tag of the chunk
 * behind it.
 *
 * Where chunks are that are not used by the client:
 *
 *     fast bins   a singly-linked list for each size up to that of the largest fast request, last in, first out. Their
 *                 chunks count as in use: nothing merges with them until all fast bins are emptied, which is called
 *                 consolidation.
 *     unsorted    what was merged or split off since the last malloc that searched: bin 1, oldest last.
 *     small bins  one list for each size below DLMALLOC27_MIN_LARGE, first in, first out: bin size / 8.
 *     large bins  lists of ranges of sizes, largest first; of equal sizes the latest first, except those that came as
 *                 the smallest of their bin: these stand in order of arrival.
 *     top         the last chunk: in no list, always there, at least DLMALLOC27_MIN_CHUNK bytes.
 */
#ifndef DLMALLOC27_H
#define DLMALLOC27_H

#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------------------------------ parameters of the build */

/* The largest request that the fast bins serve, in bytes, 1 to 80. */
#ifndef DLMALLOC27_FAST_REQUEST
#define DLMALLOC27_FAST_REQUEST 64
#endif

/* A free that makes a chunk of this many bytes or more consolidates all fast bins. */
#ifndef DLMALLOC27_CONSOLIDATION_THRESHOLD
#define DLMALLOC27_CONSOLIDATION_THRESHOLD 131072
#endif

/* ----------------------------------------------------------------------------------------------------- what follows */

/* Of payloads, and what sizes are multiples of: two words, 8 on 32-bit targets. */
#define DLMALLOC27_ALIGNMENT (2 * sizeof(size_t))
#define DLMALLOC27_OVERHEAD sizeof(size_t)

/* Size of the least chunk, 16 on 32-bit targets. */
#define DLMALLOC27_MIN_CHUNK sizeof(struct dlmalloc27_chunk)

/* Size of the chunk that serves a request. */
#define DLMALLOC27_CHUNK_SIZE(request) \
    ((request) + DLMALLOC27_OVERHEAD + DLMALLOC27_ALIGNMENT - 1 < DLMALLOC27_MIN_CHUNK \
         ? DLMALLOC27_MIN_CHUNK \
         : ((request) + DLMALLOC27_OVERHEAD + DLMALLOC27_ALIGNMENT - 1) & ~(DLMALLOC27_ALIGNMENT - 1))

/* The largest chunk of the fast bins, 72 for requests up to 64 bytes, and the number of lists for them. */
#define DLMALLOC27_MAX_FAST DLMALLOC27_CHUNK_SIZE((size_t)DLMALLOC27_FAST_REQUEST)
#define DLMALLOC27_FAST_COUNT ((DLMALLOC27_CHUNK_SIZE((size_t)80) >> 3) - 1)

/*
 * Bins by size, whatever the size of a word. Bin 0 is unused, bin 1 the unsorted one. A small bin has one size. From 256
 * bytes on there are four bins to each power of two, and the last one has all from 14 MiB on:
 *
 *     bins  2 to 31, width   8: sizes from  16            bins 40 to 43, width 256: sizes from 1024
 *     bins 32 to 35, width  64: sizes from 256            ...
 *     bins 36 to 39, width 128: sizes from 512            bins 92 to 94, width 2 MiB: sizes from 8 MiB; 95: the rest
 */
#define DLMALLOC27_BIN_COUNT 96u
#define DLMALLOC27_UNSORTED 1u
#define DLMALLOC27_MIN_LARGE 256u

/* One chunk of the least size and top. 32 on 32-bit targets. */
#define DLMALLOC27_MIN_HEAP (2 * DLMALLOC27_MIN_CHUNK)
#define DLMALLOC27_MAX_HEAP ((size_t)1 << 28)

/* -------------------------------------------------------------------------------------------------- data structures */

#define DLMALLOC27_PREV_IN_USE ((size_t)1) /* in a tag: the chunk before is in use, or in a fast bin */
#define DLMALLOC27_FLAGS ((size_t)3)       /* no part of the size; the other one is never set here */

/* A chunk. Used chunks end before the links; chunks of the fast bins use `next` only, NULL in the last of a list. */
struct dlmalloc27_chunk {
    size_t size_before;            /* size of the chunk before if that one is free, else bytes of its payload */
    size_t tag;                    /* size of this chunk, plus the flag */
    struct dlmalloc27_chunk *next; /* in its bin */
    struct dlmalloc27_chunk *prev;
};

#define DLMALLOC27_ANY_CHUNKS ((size_t)1)  /* in max_fast: a chunk was freed since init */
#define DLMALLOC27_FAST_CHUNKS ((size_t)2) /* in max_fast: the fast bins may hold chunks */

/*
 * What the allocator knows apart from the heap. All zero before dlmalloc27_init: then every malloc returns NULL. The head
 * of a bin is what the links of a chunk are: a pointer to such a chunk stands for it, which starts two words before it.
 */
struct dlmalloc27_control {
    size_t max_fast;                                         /* size of the largest chunk in fast bins, plus flags */
    struct dlmalloc27_chunk *fast[DLMALLOC27_FAST_COUNT];    /* first of each, by size / 8 - 2, or NULL */
    struct dlmalloc27_chunk *top;                            /* the last chunk */
    struct dlmalloc27_chunk *last_remainder;                 /* what a small request split off last; compared with only */
    struct dlmalloc27_chunk *heads[2 * DLMALLOC27_BIN_COUNT]; /* next and prev of each bin's head: circular lists */
    uint32_t bitmap[DLMALLOC27_BIN_COUNT / 32 + 1]; /* bit i % 32 of word i / 32 marks bin i: 0 only if it is empty */
    struct dlmalloc27_chunk *first;                          /* the start of the arena */
    size_t arena_bytes;                                      /* all of it, top included */
};

extern struct dlmalloc27_control dlmalloc27_control;

/* ------------------------------------------------------------------------------------------------------- operations */

/*
 * Makes the arena the heap: top. Blocks of an earlier heap are forgotten.
 *
 * Returns 0, or nonzero iff arena is NULL or not a multiple of DLMALLOC27_ALIGNMENT, or bytes is not a multiple of it,
 * below DLMALLOC27_MIN_HEAP or above DLMALLOC27_MAX_HEAP; then nothing has changed.
 * Time: linear in the number of bins, whatever the size of the arena.
 */
int dlmalloc27_init(void *arena, size_t bytes);

/*
 * Returns a block of at least `bytes` bytes, of the least chunk if bytes is 0, aligned on DLMALLOC27_ALIGNMENT. If no
 * chunk was freed since init it is the start of top. Else, in this order:
 *   1. the latest chunk of the request's fast bin, then the oldest of its small bin;
 *   2. a request for a chunk of DLMALLOC27_MIN_LARGE bytes or more consolidates the fast bins;
 *   3. the unsorted chunks are put into their bins, oldest first, until one fits exactly; a small request is cut from
 *      the last remainder if that is the only one;
 *   4. the smallest chunk that is large enough, of the request's large bin or else of the next bin that is not empty;
 *      what is left of it becomes an unsorted chunk if it can be one;
 *   5. the start of top;
 *   6. if there are chunks in fast bins: these are consolidated, then once more from the start.
 *
 * Returns NULL iff none of these serves it, or bytes is within two least chunks of SIZE_MAX, or there is no heap yet.
 * Blocks in use have not changed then, but the others may have been merged and sorted.
 * Time: quadratic in the number of chunks at worst (README.md).
 */
void *dlmalloc27_malloc(size_t bytes);

/*
 * Gives a block back. Up to the size of the largest fast request it goes to a fast bin as it is; a larger one merges with
 * its free neighbours, and consolidates the fast bins if DLMALLOC27_CONSOLIDATION_THRESHOLD bytes or more are one chunk
 * then, top included. dlmalloc27_free(NULL) does nothing. The behaviour is undefined if the argument is not a block in
 * use.
 * Time: linear in the number of chunks in fast bins at worst, not constant.
 */
void dlmalloc27_free(void *payload);

/* The invariants, in the order in which they are looked at. */
enum dlmalloc27_violation {
    DLMALLOC27_HEAP_SOUND = 0,
    DLMALLOC27_NO_HEAP,            /* dlmalloc27_init has not succeeded yet */
    DLMALLOC27_BAD_SIZE_ALIGNMENT, /* a size is not a multiple of DLMALLOC27_ALIGNMENT */
    DLMALLOC27_BAD_SIZE_MINIMUM,   /* a size is below DLMALLOC27_MIN_CHUNK */
    DLMALLOC27_BAD_CHAIN_END,      /* a chunk reaches beyond top */
    DLMALLOC27_BAD_ADJACENT_FREE,  /* two neighbours are free: the first chunk and top count the one before as used */
    DLMALLOC27_BAD_SIZE_BEFORE,    /* the size_before behind a free chunk is not its size */
    DLMALLOC27_BAD_TOP,            /* top does not end where the arena ends */
    DLMALLOC27_BAD_LIST_ADDRESS,   /* a list leads to an address where no chunk can be */
    DLMALLOC27_BAD_LIST_SIZE,      /* a listed chunk reaches beyond top, or its size is not of its bin */
    DLMALLOC27_BAD_LIST_IN_USE,    /* a chunk in a bin is marked used, or one in a fast bin free */
    DLMALLOC27_BAD_LIST_LINK,      /* prev is not the node before it in the list: includes every cycle */
    DLMALLOC27_BAD_LIST_ORDER,     /* a larger chunk follows a smaller one in a large bin */
    DLMALLOC27_BAD_BITMAP,         /* a bin that is not empty has no mark, or a bin has one that never holds any */
    DLMALLOC27_BAD_FAST_LENGTH,    /* fast bins hold more chunks than the heap has used ones: includes every cycle */
    DLMALLOC27_BAD_FLAGS,          /* max_fast denies chunks that there are, or is not of the build */
    DLMALLOC27_BAD_FREE_COUNT,     /* the bins hold more or fewer chunks than the chain has free ones */
    DLMALLOC27_BAD_FREE_MEMBERS    /* as many, but not the same: the sums of the addresses differ */
};

/*
 * Returns DLMALLOC27_HEAP_SOUND or the first violated invariant. Changes nothing. For tests.
 * Time: linear in the number of chunks and bins; ends on every heap, however broken, whose control.first,
 * control.arena_bytes and control.top are intact.
 */
int dlmalloc27_check(void);

#endif
