/* SPDX-License-Identifier: 0BSD */
/* Version 2.7.2 of Doug Lea's allocator, for one heap that never grows (see README.md). The manual is dlmalloc27.h. */
#include "dlmalloc27.h"

#define ALIGNMENT DLMALLOC27_ALIGNMENT
#define MIN_CHUNK DLMALLOC27_MIN_CHUNK
#define MIN_LARGE DLMALLOC27_MIN_LARGE
#define PREV_IN_USE DLMALLOC27_PREV_IN_USE
#define FLAGS DLMALLOC27_FLAGS
#define ANY_CHUNKS DLMALLOC27_ANY_CHUNKS
#define FAST_CHUNKS DLMALLOC27_FAST_CHUNKS
#define BITMAP_WORDS (DLMALLOC27_BIN_COUNT / 32)

_Static_assert(DLMALLOC27_FAST_REQUEST >= 1 && DLMALLOC27_FAST_REQUEST <= 80, "DLMALLOC27_FAST_REQUEST is 1 to 80");
_Static_assert(DLMALLOC27_CONSOLIDATION_THRESHOLD > 0, "DLMALLOC27_CONSOLIDATION_THRESHOLD is positive");
_Static_assert(sizeof(struct dlmalloc27_chunk) == 2 * ALIGNMENT, "the least chunk holds the links");
_Static_assert(offsetof(struct dlmalloc27_chunk, next) == ALIGNMENT, "the payload keeps its alignment");
_Static_assert(sizeof(unsigned) == 4, "bins are found in 32 bits");

typedef struct dlmalloc27_chunk chunk_t;

struct dlmalloc27_control dlmalloc27_control;

#define control dlmalloc27_control

/* ----------------------------------------------------------------------------------------------------------- chunks */

static inline size_t size_of(const chunk_t *chunk)
{
    return chunk->tag & ~FLAGS;
}

static inline void *payload_of(chunk_t *chunk)
{
    return &chunk->next;
}

static inline chunk_t *chunk_of(void *payload)
{
    return (void *)((unsigned char *)payload - offsetof(chunk_t, next));
}

/* What starts `offset` bytes behind the start of a chunk, and before it. */
static inline chunk_t *at(chunk_t *chunk, size_t offset)
{
    return (void *)((unsigned char *)chunk + offset);
}

static inline chunk_t *before(chunk_t *chunk, size_t offset)
{
    return (void *)((unsigned char *)chunk - offset);
}

static inline int has_used_before(const chunk_t *chunk)
{
    return (chunk->tag & PREV_IN_USE) != 0;
}

/* The size of the chunk that serves a request. */
static inline size_t chunk_size(size_t bytes)
{
    return DLMALLOC27_CHUNK_SIZE(bytes);
}

/* ------------------------------------------------------------------------------------------------------------- bins */

/* The head of a bin, as if it were a chunk: only its links are there. */
static inline chunk_t *bin_at(unsigned number)
{
    return chunk_of(&control.heads[2 * number]);
}

static inline chunk_t *next_bin(chunk_t *bin)
{
    return at(bin, 2 * sizeof(chunk_t *));
}

static inline unsigned small_bin_of(size_t size)
{
    return (unsigned)size >> 3;
}

/* floor(log2(x)) of 1 to 65535 without a branch: a borrow tells that the upper bits are empty, which are shifted out. */
static inline unsigned log2_of_16_bits(unsigned x)
{
    unsigned zeros = (x - 0x100) >> 16 & 8;
    x <<= zeros;
    unsigned more = (x - 0x1000) >> 16 & 4;
    zeros += more;
    x <<= more;
    more = (x - 0x4000) >> 16 & 2;
    zeros += more;
    x = x << more >> 14;
    return 13 - zeros + (x & ~(x >> 1));
}

/* Four bins to each power of two. */
static inline unsigned large_bin_of(size_t size)
{
    size_t units = size / MIN_LARGE;

    if (units >= 0x10000)
        return DLMALLOC27_BIN_COUNT - 1;
    unsigned log2 = log2_of_16_bits((unsigned)units);
    return 32 + 4 * log2 + ((unsigned)(size >> (log2 + 6)) & 3);
}

/* Makes two chunks, or heads, neighbours in a bin: what was between them is out of it. */
static inline void join(chunk_t *prev, chunk_t *next)
{
    next->prev = prev;
    prev->next = next;
}

static inline void put_between(chunk_t *prev, chunk_t *chunk, chunk_t *next)
{
    chunk->prev = prev;
    chunk->next = next;
    next->prev = chunk;
    prev->next = chunk;
}

/*
 * The chunk before which one goes in a large bin that is not empty: behind all larger ones. This is the walk that makes
 * malloc quadratic. What is not larger than the smallest is spared it: tags of chunks in bins have their flag set.
 */
static inline chunk_t *sorted_place(chunk_t *bin, size_t size)
{
    if (size < bin->prev->tag)
        return bin;
    size_t tag = size | PREV_IN_USE;
    chunk_t *place = bin->next;
    /* loop: larger */
    while (tag < place->tag)
        place = place->next;
    return place;
}

static inline void put_in_bin(chunk_t *chunk, size_t size)
{
    unsigned number;
    chunk_t *prev;
    chunk_t *next;

    if (size < MIN_LARGE) {
        number = small_bin_of(size);
        prev = bin_at(number);
        next = prev->next;
    } else {
        number = large_bin_of(size);
        prev = bin_at(number);
        /* point: large */
        next = prev->next;
        if (next != prev) {
            next = sorted_place(prev, size);
            prev = next->prev;
        }
    }
    control.bitmap[number / 32] |= (uint32_t)1 << number % 32;
    put_between(prev, chunk, next);
}

/* ----------------------------------------------------------------------------------------------------- merge, split */

/* Makes a chunk that was merged the first unsorted one. */
static inline void put_unsorted(chunk_t *chunk, size_t size)
{
    chunk_t *bin = bin_at(DLMALLOC27_UNSORTED);

    put_between(bin, chunk, bin->next);
    chunk->tag = size | PREV_IN_USE;
    at(chunk, size)->size_before = size;
}

/*
 * Merges a chunk of `size` bytes with its free neighbours; what comes out is the first unsorted one, or top. Returns its
 * size.
 */
static inline size_t release(chunk_t *chunk, size_t size)
{
    chunk_t *behind = at(chunk, size);
    size_t size_behind = size_of(behind);

    if (!has_used_before(chunk)) {
        /* point: before */
        size_t size_before = chunk->size_before;
        size += size_before;
        chunk = before(chunk, size_before);
        join(chunk->prev, chunk->next);
    }
    if (behind == control.top) {
        size += size_behind;
        chunk->tag = size | PREV_IN_USE;
        control.top = chunk;
        return size;
    }
    int is_used = has_used_before(at(behind, size_behind));
    behind->tag = size_behind;
    if (!is_used) {
        size += size_behind;
        /* point: behind */
        join(behind->prev, behind->next);
    }
    put_unsorted(chunk, size);
    return size;
}

/* Empties the fast bins, smallest sizes first, and each from its latest chunk on. Not inlined: it has three callers. */
static __attribute__((noinline)) void consolidate(void)
{
    chunk_t **bin = &control.fast[0];
    chunk_t **last = &control.fast[small_bin_of(control.max_fast) - 2];

    control.max_fast &= ~FAST_CHUNKS;
    /* loop: lists */
    do {
        chunk_t *chunk = *bin;
        if (chunk == NULL)
            continue;
        *bin = NULL;
        /* loop: chunks */
        do {
            chunk_t *next = chunk->next;
            release(chunk, chunk->tag & ~PREV_IN_USE);
            chunk = next;
        } while (chunk != NULL);
    } while (bin++ != last);
}

/* Makes the rest of a chunk, behind its first `need` bytes, the only unsorted one. */
static inline chunk_t *split(chunk_t *chunk, size_t size, size_t need)
{
    chunk_t *rest = at(chunk, need);
    chunk_t *bin = bin_at(DLMALLOC27_UNSORTED);

    bin->next = rest;
    bin->prev = rest;
    rest->next = bin;
    rest->prev = bin;
    chunk->tag = need | PREV_IN_USE;
    rest->tag = (size - need) | PREV_IN_USE;
    at(rest, size - need)->size_before = size - need;
    return rest;
}

static inline void mark_used(chunk_t *chunk, size_t size)
{
    at(chunk, size)->tag |= PREV_IN_USE;
}

/* ----------------------------------------------------------------------------------- where a request is served from */

/* Puts the unsorted chunks into their bins, oldest first, unless one serves the request: that is returned at once. */
static inline chunk_t *sort_unsorted(size_t need)
{
    chunk_t *unsorted = bin_at(DLMALLOC27_UNSORTED);
    chunk_t *chunk;

    /* loop: unsorted */
    while ((chunk = unsorted->prev) != unsorted) {
        chunk_t *prev = chunk->prev;
        size_t size = size_of(chunk);
        /* point: last */
        if (need < MIN_LARGE && prev == unsorted && chunk == control.last_remainder && size > need + MIN_CHUNK) {
            control.last_remainder = split(chunk, size, need);
            return chunk;
        }
        join(prev, unsorted);
        if (size == need) {
            mark_used(chunk, size);
            return chunk;
        }
        put_in_bin(chunk, size);
    }
    return NULL;
}

/* The smallest chunk of the request's own large bin that is large enough. */
static inline chunk_t *from_own_bin(chunk_t *bin, size_t need)
{
    /* loop: smaller */
    for (chunk_t *chunk = bin->prev; chunk != bin; chunk = chunk->prev) {
        size_t size = size_of(chunk);
        if (size < need)
            continue;
        join(chunk->prev, chunk->next);
        if (size - need < MIN_CHUNK)
            mark_used(chunk, size);
        else
            split(chunk, size, need);
        return chunk;
    }
    return NULL;
}

/* The smallest chunk of the next bin from `number` on that is not empty. Marks of empty ones are taken away. */
static inline chunk_t *from_larger_bin(unsigned number, size_t need)
{
    chunk_t *bin = bin_at(number);
    unsigned word = number / 32;
    uint32_t marks = control.bitmap[word];
    uint32_t mark = (uint32_t)1 << number % 32;
    chunk_t *chunk;

    /* loop: marked */
    for (;;) {
        if (mark > marks || mark == 0) {
            /* loop: words */
            do {
                word++;
                if (word >= BITMAP_WORDS)
                    return NULL;
                marks = control.bitmap[word];
            } while (marks == 0);
            bin = bin_at(32 * word);
            mark = 1;
        }
        /* loop: unmarked */
        while ((mark & marks) == 0) {
            bin = next_bin(bin);
            mark <<= 1;
        }
        chunk = bin->prev;
        if (chunk != bin)
            break;
        marks &= ~mark;
        control.bitmap[word] = marks;
        bin = next_bin(bin);
        mark <<= 1;
    }
    size_t size = size_of(chunk);
    join(chunk->prev, bin);
    if (size - need < MIN_CHUNK) {
        mark_used(chunk, size);
        return chunk;
    }
    chunk_t *rest = split(chunk, size, need);
    if (need < MIN_LARGE)
        control.last_remainder = rest;
    return chunk;
}

static inline chunk_t *from_top(size_t need)
{
    chunk_t *chunk = control.top;
    size_t size = size_of(chunk);

    if (size < need + MIN_CHUNK)
        return NULL;
    chunk_t *rest = at(chunk, need);
    control.top = rest;
    chunk->tag = need | PREV_IN_USE;
    rest->tag = (size - need) | PREV_IN_USE;
    return chunk;
}

static inline chunk_t *serve(size_t need)
{
    chunk_t *chunk;
    unsigned number;

    if ((control.max_fast & ANY_CHUNKS) == 0)
        return control.max_fast == 0 ? NULL : from_top(need);
    if (need <= control.max_fast) {
        chunk_t **fast = &control.fast[small_bin_of(need) - 2];
        chunk = *fast;
        if (chunk != NULL) {
            *fast = chunk->next;
            return chunk;
        }
    }
    if (need < MIN_LARGE) {
        number = small_bin_of(need);
        chunk_t *bin = bin_at(number);
        chunk = bin->prev;
        if (chunk != bin) {
            mark_used(chunk, need);
            join(chunk->prev, bin);
            return chunk;
        }
    } else {
        number = large_bin_of(need);
        if ((control.max_fast & FAST_CHUNKS) != 0)
            consolidate();
    }
    chunk = sort_unsorted(need);
    if (chunk == NULL && need >= MIN_LARGE)
        chunk = from_own_bin(bin_at(number), need);
    if (chunk == NULL)
        chunk = from_larger_bin(number + 1, need);
    if (chunk == NULL)
        chunk = from_top(need);
    return chunk;
}

/* ------------------------------------------------------------------------------------------------------- operations */

int dlmalloc27_init(void *arena, size_t bytes)
{
    if (arena == NULL || (uintptr_t)arena % ALIGNMENT != 0 || bytes % ALIGNMENT != 0)
        return -1;
    if (bytes < DLMALLOC27_MIN_HEAP || bytes > DLMALLOC27_MAX_HEAP)
        return -1;

    control.max_fast = DLMALLOC27_MAX_FAST;
    control.first = arena;
    control.arena_bytes = bytes;
    control.top = arena;
    control.top->tag = bytes | PREV_IN_USE;
    control.last_remainder = NULL;
    /* Written through volatile, or the compiler makes the loops calls of memset. */
    for (unsigned word = 0; word <= BITMAP_WORDS; word++)
        *(volatile uint32_t *)&control.bitmap[word] = 0;
    for (unsigned bin = 0; bin < DLMALLOC27_FAST_COUNT; bin++)
        *(chunk_t *volatile *)&control.fast[bin] = NULL;
    for (unsigned number = 0; number < DLMALLOC27_BIN_COUNT; number++) {
        chunk_t *bin = bin_at(number);
        bin->next = bin;
        bin->prev = bin;
    }
    return 0;
}

void *dlmalloc27_malloc(size_t bytes)
{
    /* loop: attempts */
    for (;;) {
        if (bytes >= (size_t)0 - 2 * MIN_CHUNK)
            return NULL;
        size_t need = chunk_size(bytes);
        chunk_t *chunk = serve(need);
        if (chunk != NULL)
            return payload_of(chunk);
        if ((control.max_fast & FAST_CHUNKS) == 0)
            return NULL;
        consolidate();
        /* The least request that gets a chunk of that size. */
        bytes = need - (ALIGNMENT - 1);
    }
}

void dlmalloc27_free(void *payload)
{
    if (payload == NULL)
        return;

    chunk_t *chunk = chunk_of(payload);
    size_t size = size_of(chunk);
    if (size <= control.max_fast) {
        control.max_fast |= FAST_CHUNKS | ANY_CHUNKS;
        chunk_t **fast = &control.fast[small_bin_of(size) - 2];
        chunk->next = *fast;
        *fast = chunk;
        return;
    }
    control.max_fast |= ANY_CHUNKS;
    if (release(chunk, size) >= DLMALLOC27_CONSOLIDATION_THRESHOLD && (control.max_fast & FAST_CHUNKS) != 0)
        /* point: consolidation */
        consolidate();
}
