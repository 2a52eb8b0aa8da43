/* SPDX-License-Identifier: 0BSD */
/*
 * A memory allocator after the design of Doug Lea's version 2.7: small blocks that are given back are kept as they are
 * and merged later, all at once; the others merge at once and are sorted into bins later, all at once.
 *
 * What is put off is paid by one call: neither malloc nor free has a bound that is independent of the heap (README.md).
 * There is one heap, no recursion, no division, no 64-bit arithmetic on a 32-bit target, no call of a library function.
 * Nothing is thread-safe: the caller locks, or calls from one thread only.
 *
 * Layout of the heap: chunks lie side by side from the start of the arena, the last one is `top`. The arena is never
 * extended. Each chunk is two words and what follows; `size` always means the bytes of the whole chunk.
 *
 *     chunk       | prev_tag | tag | payload ...                             |
 *     next chunk                                                  | prev_tag | tag | ...
 *
 * The payload of a used chunk reaches into the next chunk's prev_tag: that word is written only if the chunk is free,
 * and holds a copy of its tag then. So a used chunk costs one word. The tag of a chunk tells whether the chunk before is
 * in use, and whether the chunk itself is in a bin: merging reads no third chunk.
 *
 * Where chunks are that are not used by the client:
 *
 *     fast bins   a singly-linked list for each size up to DLMALLOC27_MAX_FAST, last in, first out. Their chunks count
 *                 as in use: nothing merges with them until all fast bins are emptied, which is called consolidation.
 *     unsorted    what was merged or split off since the last malloc that searched: bin 1, oldest last.
 *     small bins  one list for each size below DLMALLOC27_MIN_LARGE, first in, first out: bin size / ALIGNMENT.
 *     large bins  lists of ranges of sizes, largest first; of equal sizes the latest first, except those that came as
 *                 the smallest of their bin: these stand in order of arrival.
 *     top         the last chunk: in no list, always there, at least DLMALLOC27_MIN_CHUNK bytes.
 */
#ifndef DLMALLOC27_H
#define DLMALLOC27_H

#include <stddef.h>
#include <stdint.h>

#include "dlist.h"

/* ------------------------------------------------------------------------------------------ parameters of the build */

/* The largest request that the fast bins serve, in bytes on a 32-bit target, 5 to 80. */
#ifndef DLMALLOC27_FAST_REQUEST
#define DLMALLOC27_FAST_REQUEST 64
#endif

/* A free that makes a chunk of this many bytes or more consolidates all fast bins. */
#ifndef DLMALLOC27_CONSOLIDATION_THRESHOLD
#define DLMALLOC27_CONSOLIDATION_THRESHOLD 131072
#endif

/* Sizes of chunks are multiples of it: 8 or 16 bytes on a 32-bit target. With 16 a header and links are in one cache line. */
#ifndef DLMALLOC27_GRANULE
#define DLMALLOC27_GRANULE 16
#endif

/* ----------------------------------------------------------------------------------------------------- what follows */

/* Two words: 8 on 32-bit targets, 16 on 64-bit hosts, where the sizes of chunks below are twice as large too. */
#if UINTPTR_MAX > 0xFFFFFFFF
#define DLMALLOC27_ALIGNMENT_BITS 4
#else
#define DLMALLOC27_ALIGNMENT_BITS 3
#endif
#define DLMALLOC27_ALIGNMENT ((size_t)1 << DLMALLOC27_ALIGNMENT_BITS)

#define DLMALLOC27_OVERHEAD sizeof(size_t)
#define DLMALLOC27_MIN_CHUNK (2 * DLMALLOC27_ALIGNMENT)
#define DLMALLOC27_GRANULE_BYTES (DLMALLOC27_GRANULE * sizeof(size_t) / 4)
#define DLMALLOC27_ROUND(bytes) (((bytes) + DLMALLOC27_GRANULE_BYTES - 1) & ~(DLMALLOC27_GRANULE_BYTES - 1))

/* The largest chunk of the fast bins: 80 for requests up to 64 bytes and the granule 16. */
#define DLMALLOC27_MAX_FAST \
    DLMALLOC27_ROUND(DLMALLOC27_FAST_REQUEST * sizeof(size_t) / 4 + DLMALLOC27_OVERHEAD)
#define DLMALLOC27_FAST_COUNT ((DLMALLOC27_MAX_FAST - DLMALLOC27_MIN_CHUNK) / DLMALLOC27_ALIGNMENT + 1)

/*
 * Bins by size on 32-bit targets, bin 0 being unused, bin 1 the unsorted one, bin 127 never needed:
 *
 *     bins  2 to  63, width      8:  sizes from     16      bins 112 to 119, width   4096:  sizes from  10752
 *     bins 64 to  95, width     64:  sizes from    512      bins 120 to 123, width  32768:  sizes from  43520
 *     bins 96 to 111, width    512:  sizes from   2560      bins 124 to 125, width 262144:  sizes from 174592
 *                                                           bin  126,        the rest:      sizes from 698880
 */
#define DLMALLOC27_BIN_COUNT 128u
#define DLMALLOC27_UNSORTED 1u
#define DLMALLOC27_SMALL_COUNT 64u
#define DLMALLOC27_MIN_LARGE (DLMALLOC27_SMALL_COUNT << DLMALLOC27_ALIGNMENT_BITS)

/* One chunk of the least size and top. 32 on 32-bit targets. */
#define DLMALLOC27_MIN_HEAP (2 * DLMALLOC27_MIN_CHUNK)
#define DLMALLOC27_MAX_HEAP ((size_t)1 << 28)

/* -------------------------------------------------------------------------------------------------- data structures */

#define DLMALLOC27_PREV_IN_USE ((size_t)1) /* in a tag: the chunk before is in use, or in a fast bin */
#define DLMALLOC27_FREE ((size_t)2)        /* in a tag: this chunk is in a bin, and in none of the fast ones; never of top */
#define DLMALLOC27_FLAGS (DLMALLOC27_PREV_IN_USE | DLMALLOC27_FREE)

/* A chunk. Used chunks end before links; chunks of the fast bins use links.next only, NULL in the last of a list. */
struct dlmalloc27_chunk {
    size_t prev_tag;    /* tag of the chunk before if that one is free, else bytes of its payload */
    size_t tag;         /* size of this chunk, plus the flags */
    struct dlist links; /* in its bin */
};

/* What the allocator knows apart from the heap. All zero before dlmalloc27_init: then every malloc returns NULL. */
struct dlmalloc27_control {
    struct dlmalloc27_chunk *first;          /* the start of the arena */
    size_t arena_bytes;                      /* all of it, top included */
    struct dlmalloc27_chunk *top;            /* the last chunk */
    struct dlmalloc27_chunk *last_remainder; /* what a small request split off last; an address to compare with only */
    size_t has_fast;                         /* 0: the fast bins are empty; 1: they may hold chunks */
    uint32_t bitmap[DLMALLOC27_BIN_COUNT / 32];  /* bit i % 32 of word i / 32 marks bin i: 0 only if it is empty */
    /* Heads of circular lists; that of the unsorted chunks is as much more than a granule's multiple as links are. */
    _Alignas(DLMALLOC27_GRANULE_BYTES) struct dlist bins[DLMALLOC27_BIN_COUNT];
    struct dlist *fast[DLMALLOC27_FAST_COUNT];   /* first of each, by (size - MIN_CHUNK) / ALIGNMENT, or NULL */
};

extern struct dlmalloc27_control dlmalloc27_control;

/* ------------------------------------------------------------------------------------------------------- operations */

/*
 * Makes the arena the heap: top. Blocks of an earlier heap are forgotten.
 *
 * Returns 0, or nonzero iff arena is NULL or not a multiple of DLMALLOC27_GRANULE_BYTES, or bytes is not a multiple of
 * DLMALLOC27_ALIGNMENT, below DLMALLOC27_MIN_HEAP or above DLMALLOC27_MAX_HEAP; then nothing has changed. What is more
 * than a multiple of DLMALLOC27_GRANULE_BYTES is left at the end.
 * Time: linear in the number of bins, whatever the size of the arena.
 */
int dlmalloc27_init(void *arena, size_t bytes);

/*
 * Returns a block of at least `bytes` bytes, aligned on DLMALLOC27_ALIGNMENT: in this order
 *   1. the latest chunk of the request's fast bin, then the oldest of its small bin;
 *   2. a request for a chunk of DLMALLOC27_MIN_LARGE bytes or more consolidates the fast bins;
 *   3. the unsorted chunks are put into their bins, oldest first, until one fits exactly; a small request is cut from
 *      the last remainder if that is the only one;
 *   4. the smallest chunk that is large enough, of the request's large bin or else of the next bin that is not empty;
 *      what is left of it becomes an unsorted chunk if it can be one;
 *   5. the start of top;
 *   6. if there are chunks in fast bins: these are consolidated, then once more from 3.
 *
 * Returns NULL iff bytes is 0 or none of these serves it. Blocks in use have not changed then, but the others may have
 * been merged and sorted.
 * Time: quadratic in the number of chunks at worst (README.md).
 */
void *dlmalloc27_malloc(size_t bytes);

/*
 * Gives a block back. Up to DLMALLOC27_MAX_FAST it goes to a fast bin as it is; a larger one merges with its free
 * neighbours, and consolidates the fast bins if DLMALLOC27_CONSOLIDATION_THRESHOLD bytes or more are free there then.
 * dlmalloc27_free(NULL) does nothing. The behaviour is undefined if the argument is not a block in use.
 * Time: linear in the number of chunks in fast bins at worst, not constant.
 */
void dlmalloc27_free(void *payload);

/* The invariants, in the order in which they are looked at. */
enum dlmalloc27_violation {
    DLMALLOC27_HEAP_SOUND = 0,
    DLMALLOC27_NO_HEAP,            /* dlmalloc27_init has not succeeded yet */
    DLMALLOC27_BAD_SIZE_ALIGNMENT, /* a size is not a multiple of DLMALLOC27_GRANULE_BYTES */
    DLMALLOC27_BAD_SIZE_MINIMUM,   /* a size is below DLMALLOC27_MIN_CHUNK */
    DLMALLOC27_BAD_CHAIN_END,      /* a chunk reaches beyond top */
    DLMALLOC27_BAD_ADJACENT_FREE,  /* two neighbours are free: the first chunk and top count the one before as used */
    DLMALLOC27_BAD_FREE_FLAG,      /* a chunk says of itself what the chunk behind it does not, or top that it is free */
    DLMALLOC27_BAD_PREV_TAG,       /* the prev_tag behind a free chunk is not its tag */
    DLMALLOC27_BAD_TOP,            /* top does not end where the arena ends */
    DLMALLOC27_BAD_LIST_ADDRESS,   /* a list leads to an address where no chunk can be */
    DLMALLOC27_BAD_LIST_SIZE,      /* a listed chunk reaches beyond top, or its size is not of its bin */
    DLMALLOC27_BAD_LIST_IN_USE,    /* a chunk in a bin is marked used, or one in a fast bin free */
    DLMALLOC27_BAD_LIST_LINK,      /* links.prev is not the node before it in the list: includes every cycle */
    DLMALLOC27_BAD_LIST_ORDER,     /* a larger chunk follows a smaller one in a large bin */
    DLMALLOC27_BAD_BITMAP,         /* a bin that is not empty has no mark, or one below the small bins has one */
    DLMALLOC27_BAD_FAST_LENGTH,    /* fast bins hold more chunks than the heap has used ones: includes every cycle */
    DLMALLOC27_BAD_HAS_FAST,       /* has_fast is 0 though a fast bin holds a chunk */
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
