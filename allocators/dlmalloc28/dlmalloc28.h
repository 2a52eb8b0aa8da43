/* SPDX-License-Identifier: 0BSD */
/*
 * A memory allocator after the design of Doug Lea's malloc, version 2.8: best fit, immediate merging, exact bins for
 * small chunks and bitwise tries for large ones. No fast bins, nothing deferred.
 *
 * There is one heap, the arena; it neither grows nor shrinks. No library function, no division, no recursion and, on a
 * 32-bit target, no 64-bit arithmetic. Nothing is thread-safe: the caller locks, or calls from one thread only.
 *
 * Layout of the heap: chunks lie side by side from the start of the arena to its end; the last one is the top chunk. A
 * chunk is a header of two words and what follows; its payload reaches one word into the header of the next chunk, as
 * that word, prev_foot, is used only while the chunk is free. So a chunk in use costs one word. `size` always means the
 * bytes of a whole chunk: from its header to the next one's. No two neighbours are free.
 *
 * A free chunk is in exactly one of four places:
 *
 *     top chunk           the end of the arena; always there, always at least a header; cut last
 *     designated victim   dv, the rest of the latest small request that was cut from a larger chunk; may be absent
 *     small bin           size < DLMALLOC28_SMALL_LIMIT: a ring per size
 *     trie                the others: two tries for each power of two, one node per size, with a ring of equal sizes
 *
 * The trie of [2^k, 3/2 2^k) or [3/2 2^k, 2^(k+1)) branches on the bits of the size below those that the interval
 * fixes, from bit k - 2 on downwards. Every node holds a chunk: one at depth d shares the first d of these bits with all
 * nodes below it, and its own size is otherwise anything. So a path ends after the last bit that sizes can differ in.
 */
#ifndef DLMALLOC28_H
#define DLMALLOC28_H

#include <stddef.h>
#include <stdint.h>

#include "dlist.h"

/* ------------------------------------------------------------------------------------------------------------ sizes */

/* Two words: 8 on 32-bit targets, 16 on 64-bit hosts. Alignment of payloads, granularity of sizes. */
#if UINTPTR_MAX > 0xFFFFFFFF
#define DLMALLOC28_ALIGNMENT_BITS 4
#else
#define DLMALLOC28_ALIGNMENT_BITS 3
#endif
#define DLMALLOC28_ALIGNMENT ((size_t)1 << DLMALLOC28_ALIGNMENT_BITS)

#define DLMALLOC28_HEADER_BYTES DLMALLOC28_ALIGNMENT
#define DLMALLOC28_OVERHEAD sizeof(size_t)
#define DLMALLOC28_MIN_CHUNK (2 * DLMALLOC28_ALIGNMENT)

#define DLMALLOC28_SMALL_BINS 32u
#define DLMALLOC28_TREE_BINS 32u

/* 256 on 32-bit targets. The first trie starts here. */
#define DLMALLOC28_SMALL_LIMIT (DLMALLOC28_SMALL_BINS << DLMALLOC28_ALIGNMENT_BITS)
#define DLMALLOC28_TREE_BITS (DLMALLOC28_ALIGNMENT_BITS + 5)

/* One chunk of the least size, and the header of an empty top chunk. 24 on 32-bit targets. */
#define DLMALLOC28_MIN_HEAP (DLMALLOC28_MIN_CHUNK + DLMALLOC28_HEADER_BYTES)
#define DLMALLOC28_MAX_HEAP ((size_t)1 << 28)

/* No heap holds more. */
#define DLMALLOC28_MAX_REQUEST DLMALLOC28_MAX_HEAP

/* -------------------------------------------------------------------------------------------------- data structures */

#define DLMALLOC28_PREV_USED ((size_t)1) /* in head: the chunk before is in use, or there is none */
#define DLMALLOC28_USED ((size_t)2)      /* in head: this chunk is in use */
#define DLMALLOC28_FLAGS (DLMALLOC28_ALIGNMENT - 1)

/* A chunk. The payload of one in use starts at ring. */
struct dlmalloc28_chunk {
    size_t prev_foot; /* size of the chunk before if that is free, else the last word of its payload */
    size_t head;      /* size, plus the flags */

    struct dlist ring; /* in a bin: its ring with the bin's head; in a trie: the ring of the chunks of this size */

    /* Chunks in tries only. */
    struct dlmalloc28_chunk *child[2]; /* by the next bit of the size; NULL: none */
    struct dlmalloc28_chunk *parent;   /* NULL in the root, and in a chunk that is in a node's ring only */
    size_t bin;                        /* index of the trie */
};

/* What the allocator knows apart from the heap. All zero before dlmalloc28_init: then every malloc returns NULL. */
struct dlmalloc28_control {
    struct dlmalloc28_chunk *first;                            /* first chunk: the start of the arena */
    struct dlmalloc28_chunk *top;                              /* last chunk: it reaches to the end of the arena */
    struct dlmalloc28_chunk *dv;                               /* designated victim; NULL if there is none */   
    size_t top_size;                                           /* size of the top chunk */
    size_t dv_size;                                            /* size of the designated victim, 0 if there is none */
    uint32_t small_map;                                        /* bit i: small bin i is not empty */
    uint32_t tree_map;                                         /* bit i: trie i is not empty */
    _Alignas(DLMALLOC28_ALIGNMENT)
    struct dlist small_bins[DLMALLOC28_SMALL_BINS];            /* bin i: chunks of size i * DLMALLOC28_ALIGNMENT */
    struct dlmalloc28_chunk *tree_bins[DLMALLOC28_TREE_BINS];  /* roots; undefined where the bit of tree_map is 0 */
};

extern struct dlmalloc28_control dlmalloc28_control;

/* ------------------------------------------------------------------------------------------------------- operations */

/*
 * Makes the arena the heap: all of it is the top chunk. Chunks of an earlier heap are forgotten.
 *
 * Returns 0, or nonzero iff arena is NULL or not a multiple of DLMALLOC28_ALIGNMENT, or bytes is not a multiple of
 * DLMALLOC28_ALIGNMENT, below DLMALLOC28_MIN_HEAP or above DLMALLOC28_MAX_HEAP; then nothing has changed.
 * Time: O(1), a loop over the small bins.
 */
int dlmalloc28_init(void *arena, size_t bytes);

/*
 * Returns a block of at least `bytes` bytes, aligned on DLMALLOC28_ALIGNMENT. The chunk has the request and one word,
 * rounded up to the alignment, and at least DLMALLOC28_MIN_CHUNK. It comes
 *
 *   - for a small request from the bin of its size or the next one, whole; else from the designated victim; else from
 *     the first bin above or the smallest chunk of all tries, and the rest becomes the designated victim;
 *   - for a large one from the best fit of all tries, unless the designated victim fits better or as well; the rest is
 *     put into its bin or trie;
 *   - if none of them serves it, from the designated victim or, last, from the low end of the top chunk.
 *
 * Returns NULL iff bytes is 0, or no free chunk is large enough and the top chunk has not a header more; then nothing
 * has changed.
 * Time: O(log H) for a heap of H bytes: every loop goes down a trie, one bit of a size at each step.
 */
void *dlmalloc28_malloc(size_t bytes);

/*
 * Gives a block back and merges it with its free neighbours at once. dlmalloc28_free(NULL) does nothing. The behaviour
 * is undefined if the argument is not a block of the current heap that is in use.
 * Time: O(log H), as above.
 */
void dlmalloc28_free(void *payload);

/* The invariants, in the order in which they are looked at. */
enum dlmalloc28_violation {
    DLMALLOC28_HEAP_SOUND = 0,
    DLMALLOC28_NO_HEAP,           /* dlmalloc28_init has not succeeded yet */
    DLMALLOC28_BAD_FLAGS,         /* an unknown flag is set, or the first chunk says that one before it is free */
    DLMALLOC28_BAD_SIZE,          /* a chunk is smaller than DLMALLOC28_MIN_CHUNK or reaches beyond the top chunk */
    DLMALLOC28_BAD_PREV_USED,     /* a flag says something else of the chunk before than that chunk itself */
    DLMALLOC28_BAD_PREV_FOOT,     /* prev_foot is not the size of the free chunk before */
    DLMALLOC28_BAD_ADJACENT_FREE, /* two neighbours are free */
    DLMALLOC28_BAD_TOP,           /* the top chunk is in use, after a free one, or of another size than top_size */
    DLMALLOC28_BAD_DV,            /* dv is no free chunk of dv_size bytes */
    DLMALLOC28_BAD_ADDRESS,       /* a link leads to an address where no chunk can be */
    DLMALLOC28_BAD_FREE,          /* a chunk in a bin or trie is in use */
    DLMALLOC28_BAD_RING,          /* a link back is not the inverse of a link forward: includes every endless ring */
    DLMALLOC28_BAD_BIN,           /* a chunk in a bin, trie or ring has a size that does not belong there */
    DLMALLOC28_BAD_TREE,          /* a node's parent is not the node above: includes every cycle */
    DLMALLOC28_BAD_MAP,           /* a bit differs from "the small bin is not empty", or a marked trie is empty */
    DLMALLOC28_BAD_FREE_COUNT,    /* bins, tries and dv hold more or fewer chunks than the arena has free ones */
    DLMALLOC28_BAD_FREE_MEMBERS   /* as many, but not the same: the sums of the addresses differ */
};

/*
 * Returns DLMALLOC28_HEAP_SOUND or the first violated invariant. Changes nothing. For tests.
 * Time: linear in the number of chunks, times the depth of the tries at worst; ends on every heap, however broken,
 * whose control.first, top and top_size are intact.
 */
int dlmalloc28_check(void);

#endif
