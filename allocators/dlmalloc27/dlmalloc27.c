/* SPDX-License-Identifier: 0BSD */
/* The design of dlmalloc 2.7 as C06, M06 and Lea's description have it (see README.md). The manual is dlmalloc27.h. */
#include "dlmalloc27.h"

#include "bit_search.h"

#define ALIGNMENT DLMALLOC27_ALIGNMENT
#define MIN_CHUNK DLMALLOC27_MIN_CHUNK
#define MIN_LARGE DLMALLOC27_MIN_LARGE
#define PREV_IN_USE DLMALLOC27_PREV_IN_USE

_Static_assert(DLMALLOC27_FAST_REQUEST >= 4 && DLMALLOC27_FAST_REQUEST <= 80, "DLMALLOC27_FAST_REQUEST is 4 to 80");
_Static_assert(DLMALLOC27_MAX_FAST < MIN_LARGE, "fast bins are for small chunks");
_Static_assert(DLMALLOC27_CONSOLIDATION_THRESHOLD > 0, "DLMALLOC27_CONSOLIDATION_THRESHOLD is positive");
_Static_assert(sizeof(struct dlmalloc27_chunk) == MIN_CHUNK, "the least chunk holds the links");
_Static_assert(offsetof(struct dlmalloc27_chunk, links) == ALIGNMENT, "the payload keeps its alignment");

typedef struct dlmalloc27_chunk chunk_t;

struct dlmalloc27_control dlmalloc27_control;

#define control dlmalloc27_control

/* ----------------------------------------------------------------------------------------------------------- chunks */

static inline size_t size_of(const chunk_t *chunk)
{
    return chunk->tag & ~PREV_IN_USE;
}

static inline void *payload_of(chunk_t *chunk)
{
    return &chunk->links;
}

/* Of the start of a payload, and of a node in a list: both are at the links. */
static inline chunk_t *chunk_of(void *links)
{
    return (void *)((unsigned char *)links - offsetof(chunk_t, links));
}

static inline chunk_t *at(chunk_t *chunk, size_t offset)
{
    return (void *)((unsigned char *)chunk + offset);
}

static inline chunk_t *before(chunk_t *chunk)
{
    return (void *)((unsigned char *)chunk - chunk->prev_size);
}

/* Of a chunk that is not top. Those in fast bins count as used. */
static inline int is_used(chunk_t *chunk)
{
    return (at(chunk, size_of(chunk))->tag & PREV_IN_USE) != 0;
}

/* The size of the chunk that serves a request. */
static inline size_t chunk_size(size_t bytes)
{
    size_t size = DLMALLOC27_ROUND(bytes + DLMALLOC27_OVERHEAD);

    return size < MIN_CHUNK ? MIN_CHUNK : size;
}

/* ------------------------------------------------------------------------------------------------------------- bins */

/* The bin of a size. Behind the small bins each group has half as many, eight times as wide. At most five steps. */
static inline unsigned bin_of(size_t size)
{
    size_t units = size >> DLMALLOC27_ALIGNMENT_BITS;

    if (units < DLMALLOC27_SMALL_COUNT)
        return (unsigned)units;
    /* point: large */
    units -= DLMALLOC27_SMALL_COUNT;
    unsigned group = DLMALLOC27_SMALL_COUNT;
    unsigned count = DLMALLOC27_SMALL_COUNT / 2;
    /* loop: groups */
    for (unsigned width_bits = 3; count > 1; width_bits += 3) {
        if (units >> width_bits < count)
            return group + (unsigned)(units >> width_bits);
        units -= (size_t)count << width_bits;
        group += count;
        count /= 2;
    }
    return group;
}

/* Takes a chunk out of its bin, wherever it stands there, and notes if that bin is empty then. */
static inline void take_out(chunk_t *chunk)
{
    struct dlist *next = chunk->links.next;

    dlist_unlink(&chunk->links);
    if (dlist_is_empty(next) && next != &control.bins[DLMALLOC27_UNSORTED]) { /* next is the head, then */
        unsigned bin = (unsigned)(next - control.bins);
        /* point: emptied */
        control.bitmap[bin / 32] &= ~((uint32_t)1 << bin % 32);
    }
}

/*
 * Where a chunk goes in a large bin: behind all larger ones. This is the walk that makes malloc quadratic. What is not
 * larger than the smallest is spared it. Tags compare as sizes: the chunk before a free one is always in use.
 */
static inline struct dlist *sorted_place(struct dlist *bin, size_t tag)
{
    if (dlist_is_empty(bin) || tag <= chunk_of(bin->prev)->tag)
        return bin;
    struct dlist *node = bin->next;
    /* loop: larger */
    while (tag < chunk_of(node)->tag)
        node = node->next;
    return node;
}

static inline void put_in_bin(chunk_t *chunk, size_t size)
{
    unsigned number = bin_of(size);
    struct dlist *bin = &control.bins[number];

    control.bitmap[number / 32] |= (uint32_t)1 << number % 32;
    dlist_insert_before(size < MIN_LARGE ? bin->next : sorted_place(bin, chunk->tag), &chunk->links);
}

/* The first bin from `bin` on that is not empty, or 0. At most four steps. */
static inline unsigned first_bin_from(unsigned bin)
{
    unsigned word = bin / 32;
    uint32_t bits = control.bitmap[word] & (~(uint32_t)0 << bin % 32);

    /* loop: words */
    while (bits == 0) {
        if (++word == DLMALLOC27_BIN_COUNT / 32)
            return 0;
        bits = control.bitmap[word];
    }
    return word * 32 + lowest_bit(bits);
}

/* ----------------------------------------------------------------------------------------------------- merge, split */

/* Makes `size` bytes a free chunk between used ones, the last unsorted one. */
static inline void put_unsorted(chunk_t *chunk, size_t size)
{
    chunk->tag = size | PREV_IN_USE;
    at(chunk, size)->prev_size = size;
    dlist_insert_after(&control.bins[DLMALLOC27_UNSORTED], &chunk->links);
}

/* Merges a chunk with its free neighbours, into top or into an unsorted chunk; the size of what comes out. */
static inline size_t release(chunk_t *chunk)
{
    size_t size = size_of(chunk);
    chunk_t *next = at(chunk, size);

    if ((chunk->tag & PREV_IN_USE) == 0) {
        /* point: before */
        size += chunk->prev_size;
        chunk = before(chunk);
        take_out(chunk);
    }
    if (next == control.top) {
        size += size_of(next);
        chunk->tag = size | PREV_IN_USE;
        control.top = chunk;
        return size;
    }
    if (is_used(next)) {
        next->tag &= ~PREV_IN_USE;
    } else {
        /* point: after */
        size += size_of(next);
        take_out(next);
    }
    put_unsorted(chunk, size);
    return size;
}

/* Empties the fast bins, smallest sizes first, and each from its latest chunk on. */
static void consolidate(void)
{
    control.has_fast = 0;
    /* loop: bins */
    for (unsigned bin = 0; bin < DLMALLOC27_FAST_COUNT; bin++) {
        struct dlist *node = control.fast[bin];
        control.fast[bin] = NULL;
        /* loop: fast */
        while (node != NULL) {
            struct dlist *next = node->next;
            release(chunk_of(node));
            node = next;
        }
    }
}

/* Marks a chunk of `size` bytes, which is in no bin, as used up to `need`; what is left becomes unsorted if it can. */
static inline chunk_t *cut(chunk_t *chunk, size_t size, size_t need)
{
    size_t spare = size - need;

    if (spare < MIN_CHUNK) {
        at(chunk, size)->tag |= PREV_IN_USE;
        return chunk;
    }
    chunk->tag = need | PREV_IN_USE;
    chunk_t *rest = at(chunk, need);
    put_unsorted(rest, spare);
    if (need < MIN_LARGE)
        control.last_remainder = rest;
    return chunk;
}

/* ----------------------------------------------------------------------------------- where a request is served from */

static inline struct dlist **fast_bin(size_t size)
{
    return &control.fast[(size - MIN_CHUNK) >> DLMALLOC27_ALIGNMENT_BITS];
}

/* Puts the unsorted chunks into their bins, oldest first, unless one serves the request: that is returned at once. */
static inline chunk_t *sort_unsorted(size_t need)
{
    struct dlist *unsorted = &control.bins[DLMALLOC27_UNSORTED];

    /* loop: unsorted */
    while (!dlist_is_empty(unsorted)) {
        chunk_t *chunk = chunk_of(unsorted->prev);
        size_t size = size_of(chunk);
        int is_only_remainder = chunk == control.last_remainder && unsorted->next == unsorted->prev;
        dlist_unlink(&chunk->links);
        if (size == need || (is_only_remainder && need < MIN_LARGE && size >= need + MIN_CHUNK))
            return cut(chunk, size, need);
        put_in_bin(chunk, size);
    }
    return NULL;
}

/* The smallest chunk of the request's own large bin that is large enough. */
static inline chunk_t *from_own_bin(size_t need)
{
    struct dlist *bin = &control.bins[bin_of(need)];

    if (dlist_is_empty(bin) || size_of(chunk_of(bin->next)) < need)
        return NULL;
    struct dlist *node = bin->prev;
    /* loop: smaller */
    while (size_of(chunk_of(node)) < need)
        node = node->prev;
    chunk_t *chunk = chunk_of(node);
    take_out(chunk);
    return cut(chunk, size_of(chunk), need);
}

/* The smallest chunk of the next larger bin that is not empty. */
static inline chunk_t *from_larger_bin(size_t need)
{
    unsigned bin = first_bin_from(bin_of(need) + 1);

    if (bin == 0)
        return NULL;
    chunk_t *chunk = chunk_of(control.bins[bin].prev);
    take_out(chunk);
    return cut(chunk, size_of(chunk), need);
}

static inline chunk_t *from_top(size_t need)
{
    chunk_t *chunk = control.top;
    size_t size = size_of(chunk);

    if (size < need + MIN_CHUNK)
        return NULL;
    chunk->tag = need | PREV_IN_USE;
    control.top = at(chunk, need);
    control.top->tag = (size - need) | PREV_IN_USE;
    return chunk;
}

static inline chunk_t *search(size_t need)
{
    chunk_t *chunk = sort_unsorted(need);

    if (chunk == NULL && need >= MIN_LARGE)
        chunk = from_own_bin(need);
    if (chunk == NULL)
        chunk = from_larger_bin(need);
    if (chunk == NULL)
        chunk = from_top(need);
    return chunk;
}

/* ------------------------------------------------------------------------------------------------------- operations */

int dlmalloc27_init(void *arena, size_t bytes)
{
    if (arena == NULL || (((uintptr_t)arena | bytes) & (ALIGNMENT - 1)) != 0)
        return -1;
    if (bytes < DLMALLOC27_MIN_HEAP || bytes > DLMALLOC27_MAX_HEAP)
        return -1;

    control.first = arena;
    control.arena_bytes = bytes;
    control.top = arena;
    control.top->tag = bytes | PREV_IN_USE;
    control.last_remainder = NULL;
    control.has_fast = 0;
    /* Written through volatile, or the compiler makes the loops calls of memset. */
    for (unsigned word = 0; word < DLMALLOC27_BIN_COUNT / 32; word++)
        *(volatile uint32_t *)&control.bitmap[word] = 0;
    for (unsigned bin = 0; bin < DLMALLOC27_FAST_COUNT; bin++)
        *(struct dlist *volatile *)&control.fast[bin] = NULL;
    for (unsigned bin = 0; bin < DLMALLOC27_BIN_COUNT; bin++)
        dlist_init(&control.bins[bin]);
    return 0;
}

void *dlmalloc27_malloc(size_t bytes)
{
    if (bytes - 1 >= control.arena_bytes) /* 0 wraps around to SIZE_MAX */
        return NULL;

    size_t need = chunk_size(bytes);
    if (need <= DLMALLOC27_MAX_FAST) {
        struct dlist **fast = fast_bin(need);
        struct dlist *node = *fast;
        if (node != NULL) {
            *fast = node->next;
            return node;
        }
    }
    if (need >= MIN_LARGE) {
        if (control.has_fast)
            consolidate();
    } else if (!dlist_is_empty(&control.bins[bin_of(need)])) {
        chunk_t *chunk = chunk_of(control.bins[bin_of(need)].prev);
        take_out(chunk);
        return payload_of(cut(chunk, need, need));
    }

    chunk_t *chunk = search(need);
    if (chunk == NULL && control.has_fast) {
        consolidate();
        chunk = search(need);
    }
    return chunk == NULL ? NULL : payload_of(chunk);
}

void dlmalloc27_free(void *payload)
{
    if (payload == NULL)
        return;

    chunk_t *chunk = chunk_of(payload);
    if (size_of(chunk) <= DLMALLOC27_MAX_FAST) {
        struct dlist **fast = fast_bin(size_of(chunk));
        chunk->links.next = *fast;
        *fast = &chunk->links;
        control.has_fast = 1;
        return;
    }
    if (release(chunk) >= DLMALLOC27_CONSOLIDATION_THRESHOLD && control.has_fast)
        /* point: consolidation */
        consolidate();
}
