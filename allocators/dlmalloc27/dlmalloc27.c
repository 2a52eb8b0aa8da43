/* SPDX-License-Identifier: 0BSD */
/* The design of dlmalloc 2.7 as C06, M06 and Lea's description have it (see README.md). The manual is dlmalloc27.h. */
#include "dlmalloc27.h"

#include "bit_search.h"

#define ALIGNMENT DLMALLOC27_ALIGNMENT
#define GRANULE DLMALLOC27_GRANULE_BYTES
#define MIN_CHUNK DLMALLOC27_MIN_CHUNK
#define MIN_LARGE DLMALLOC27_MIN_LARGE
#define PREV_IN_USE DLMALLOC27_PREV_IN_USE
#define FREE DLMALLOC27_FREE
#define FLAGS (PREV_IN_USE | FREE)
#define SIZE (~(GRANULE - 1))

_Static_assert(DLMALLOC27_GRANULE == 8 || DLMALLOC27_GRANULE == 16, "DLMALLOC27_GRANULE is 8 or 16");
_Static_assert(DLMALLOC27_FAST_REQUEST >= 5 && DLMALLOC27_FAST_REQUEST <= 80, "DLMALLOC27_FAST_REQUEST is 5 to 80");
_Static_assert(DLMALLOC27_MAX_FAST < MIN_LARGE, "fast bins are for small chunks");
_Static_assert(DLMALLOC27_CONSOLIDATION_THRESHOLD > 0, "DLMALLOC27_CONSOLIDATION_THRESHOLD is positive");
_Static_assert(sizeof(struct dlmalloc27_chunk) == MIN_CHUNK, "the least chunk holds the links");
_Static_assert(offsetof(struct dlmalloc27_chunk, links) == ALIGNMENT, "the payload keeps its alignment");

typedef struct dlmalloc27_chunk chunk_t;

struct dlmalloc27_control dlmalloc27_control;

#define control dlmalloc27_control
#define UNSORTED (&control.bins[DLMALLOC27_UNSORTED])

/* ----------------------------------------------------------------------------------------------------------- chunks */

static inline size_t size_of(const chunk_t *chunk)
{
    return chunk->tag & SIZE;
}

/* Of a chunk whose payload or links are known, not the chunk itself. */
static inline size_t linked_size_of(const chunk_t *chunk)
{
    return chunk->tag & SIZE;
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

/* The tag of the chunk before, if that is free. Volatile: the compiler loads where it is told to. */
static inline size_t tag_of_previous(const chunk_t *chunk)
{
    return *(const volatile size_t *)&chunk->prev_tag;
}

/* The tag of a chunk that lies behind one that was accessed just before. Volatile as above. */
static inline size_t tag_of_next(const chunk_t *chunk)
{
    return *(const volatile size_t *)&chunk->tag;
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

/*
 * Where a chunk goes in a large bin: behind all larger ones. This is the walk that makes malloc quadratic. What is not
 * larger than the smallest is spared it. Tags compare as sizes: all free chunks have the same flags.
 */
static inline struct dlist *sorted_place(struct dlist *bin, size_t tag)
{
    if (dlist_is_empty(bin))
        return bin;
    /* point: ordered */
    if (tag <= chunk_of(bin->prev)->tag)
        return bin;
    struct dlist *node = bin->next;
    if (tag >= chunk_of(node)->tag)
        return node;
    /* loop: larger */
    do {
        node = node->next;
    } while (tag < chunk_of(node)->tag);
    return node;
}

/* Notes that a bin is not empty any more. Not inlined: it is seldom called. */
static __attribute__((noinline)) void mark(unsigned number)
{
    /* point: marked */
    control.bitmap[number / 32] |= (uint32_t)1 << number % 32;
}

static inline void put_in_bin(chunk_t *chunk, size_t size)
{
    unsigned number = bin_of(size);
    struct dlist *bin = &control.bins[number];

    if (dlist_is_empty(bin))
        mark(number);
    dlist_insert_before(size < MIN_LARGE ? bin->next : sorted_place(bin, chunk->tag), &chunk->links);
}

/* The first bin from `bin` on that may hold a chunk, or 0. At most four steps. */
static inline unsigned marked_bin_from(unsigned bin)
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

/* The first bin from `bin` on that is not empty, or NULL. The marks of empty ones are found and taken away here only. */
static inline struct dlist *filled_bin_from(unsigned bin)
{
    /* loop: marked */
    while ((bin = marked_bin_from(bin)) != 0) {
        if (!dlist_is_empty(&control.bins[bin]))
            return &control.bins[bin];
        control.bitmap[bin / 32] &= ~((uint32_t)1 << bin % 32);
    }
    return NULL;
}

/* ----------------------------------------------------------------------------------------------------- merge, split */

/* Makes `size` bytes a free chunk between used ones, the first unsorted one. */
static inline void put_unsorted(chunk_t *chunk, size_t size)
{
    chunk->tag = size | FLAGS;
    at(chunk, size)->prev_tag = size | FLAGS;
    dlist_insert_after(UNSORTED, &chunk->links);
}

static inline struct dlist *next_fast(const struct dlist *node)
{
    return node->next;
}

/* Ends a free chunk before one that is used. */
static inline void end_before(chunk_t *behind, size_t tag_behind, size_t tag)
{
    behind->tag = tag_behind & ~PREV_IN_USE;
    behind->prev_tag = tag;
}

/* Marks the first of the unsorted chunks as such. Volatile: so its line is in a cache from there on. */
static inline void mark_first(struct dlist *node)
{
    *(struct dlist *volatile *)&node->prev = UNSORTED;
}

/* Makes the free chunk that has `links` and ends at `end` a part of the one before it, which gets `tag`. */
static inline void absorb(chunk_t *chunk, chunk_t *end, struct dlist links, size_t tag)
{
    end->prev_tag = tag;
    chunk->tag = tag;
    dlist_join(links.prev, links.next);
}

/* The links of a node of a bin. Volatile: they are loaded together, and where it is written. */
static inline struct dlist links_of(struct dlist *node)
{
    struct dlist *prev = *(struct dlist *volatile *)&node->prev;
    struct dlist *next = *(struct dlist *volatile *)&node->next;

    return (struct dlist){next, prev};
}

/* Puts a chunk that is in no bin before the first of the unsorted chunks. */
static inline void put_first(struct dlist *node, struct dlist *first)
{
    node->next = first;
    first->prev = node;
}

/* Puts a chunk that is between two nodes of a bin before the first of the unsorted chunks, if that is another one. */
static inline void move_first(struct dlist *node, struct dlist between, struct dlist *first)
{
    if (node == first)
        return;
    put_first(node, first);
    dlist_join(between.prev, between.next);
}

/* What the links of `node`, which are `links`, will be when the chunk between two nodes was put before the first one. */
static inline struct dlist links_behind_move(
    struct dlist *node, struct dlist links, struct dlist *moved, struct dlist between, struct dlist *first)
{
    if (moved == first)
        return links;
    if (links.prev == moved)
        links.prev = between.prev;
    if (links.next == moved)
        links.next = between.next;
    if (node == first)
        links.prev = moved;
    return links;
}

/*
 * Merges a chunk with its free neighbours into what is the first unsorted chunk then; `first` is the first one before.
 * Returns the new first one, which the caller writes to the head. Top counts as used. The order is one for caches: what
 * the call before wrote last, which is `first`, comes early, and few others come between two accesses to a chunk.
 */
static inline struct dlist *release(chunk_t *chunk, struct dlist *first)
{
    size_t tag = chunk->tag;
    size_t before = tag_of_previous(chunk) & SIZE;
    size_t size = tag & SIZE;
    chunk_t *behind = at(chunk, size);
    size_t tag_behind = tag_of_next(behind);
    chunk_t *end = at(behind, tag_behind & SIZE);

    if ((tag_behind & FREE) == 0 && (tag & PREV_IN_USE) != 0) {
        end_before(behind, tag_behind, size | FLAGS);
        put_first(&chunk->links, first);
        chunk->tag = size | FLAGS;
    } else if ((tag_behind & FREE) == 0) {
        end_before(behind, tag_behind, (size + before) | FLAGS);
        chunk = (void *)((unsigned char *)chunk - before);
        struct dlist between = links_of(&chunk->links);
        mark_first(&chunk->links);
        move_first(&chunk->links, between, first);
        /* point: before */
        chunk->tag = (size + before) | FLAGS;
    } else if ((tag & PREV_IN_USE) != 0) {
        struct dlist links = links_of(&behind->links);
        if (first == &behind->links)
            links.prev = &chunk->links;
        put_first(&chunk->links, first);
        /* point: behind */
        chunk->links.prev = UNSORTED;
        absorb(chunk, end, links, (size + (tag_behind & SIZE)) | FLAGS);
    } else {
        struct dlist links = links_of(&behind->links);
        chunk = (void *)((unsigned char *)chunk - before);
        struct dlist between = links_of(&chunk->links);
        mark_first(&chunk->links);
        move_first(&chunk->links, between, first);
        links = links_behind_move(&behind->links, links, &chunk->links, between, first);
        /* point: both */
        chunk->links.prev = UNSORTED;
        absorb(chunk, end, links, (before + size + (tag_behind & SIZE)) | FLAGS);
    }
    chunk->links.prev = UNSORTED;
    return &chunk->links;
}

/* Makes the chunk before top a part of it if that is free. */
static inline void grow_top(void)
{
    chunk_t *top = control.top;

    if ((top->tag & PREV_IN_USE) != 0)
        return;
    size_t before = top->prev_tag & SIZE;
    chunk_t *chunk = (void *)((unsigned char *)top - before);
    dlist_unlink(&chunk->links);
    chunk->tag = (size_of(top) + before) | PREV_IN_USE;
    control.top = chunk;
}

/*
 * Empties `count` singly-linked lists of chunks, each from its first one on. Returns what the last one has become a part
 * of, top or the first unsorted chunk. Not inlined: one copy can be counted.
 */
static __attribute__((noinline)) chunk_t *release_all(struct dlist **lists, unsigned count)
{
    struct dlist *first = UNSORTED->next;

    /* loop: lists */
    for (unsigned list = 0; list < count; list++) {
        struct dlist *node = lists[list];
        lists[list] = NULL;
        mark_first(first);
        /* loop: chunks */
        while (node != NULL) {
            struct dlist *next = next_fast(node);
            first = release(chunk_of(node), first);
            node = next;
        }
    }
    UNSORTED->next = first;
    grow_top();
    return chunk_of(first);
}

/* Empties the fast bins, smallest sizes first, and each from its latest chunk on. */
static __attribute__((noinline)) void consolidate(void)
{
    control.has_fast = 0;
    release_all(control.fast, DLMALLOC27_FAST_COUNT);
}

/* Marks a chunk of `size` bytes, which is in no bin, as used up to `need`; what is left becomes unsorted if it can. */
static inline chunk_t *cut(chunk_t *chunk, size_t size, size_t need)
{
    size_t spare = size - need;

    if (spare < MIN_CHUNK) {
        chunk->tag = size | PREV_IN_USE;
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
    struct dlist *unsorted = UNSORTED;

    /* loop: unsorted */
    while (!dlist_is_empty(unsorted)) {
        chunk_t *chunk = chunk_of(unsorted->prev);
        size_t size = linked_size_of(chunk);
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

    if (dlist_is_empty(bin) || linked_size_of(chunk_of(bin->next)) < need)
        return NULL;
    struct dlist *node = bin->prev;
    /* loop: smaller */
    while (linked_size_of(chunk_of(node)) < need)
        node = node->prev;
    chunk_t *chunk = chunk_of(node);
    dlist_unlink(&chunk->links);
    return cut(chunk, linked_size_of(chunk), need);
}

/* The smallest chunk of the next larger bin that is not empty. */
static inline chunk_t *from_larger_bin(size_t need)
{
    struct dlist *bin = filled_bin_from(bin_of(need) + 1);

    if (bin == NULL)
        return NULL;
    chunk_t *chunk = chunk_of(bin->prev);
    dlist_unlink(&chunk->links);
    return cut(chunk, linked_size_of(chunk), need);
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
    if (arena == NULL || (uintptr_t)arena % GRANULE != 0 || bytes % ALIGNMENT != 0)
        return -1;
    if (bytes < DLMALLOC27_MIN_HEAP || bytes > DLMALLOC27_MAX_HEAP)
        return -1;

    bytes -= bytes % GRANULE;
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
        dlist_unlink(&chunk->links);
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
    if (linked_size_of(chunk) <= DLMALLOC27_MAX_FAST) {
        struct dlist **fast = fast_bin(linked_size_of(chunk));
        chunk->links.next = *fast;
        *fast = &chunk->links;
        control.has_fast = 1;
        return;
    }
    struct dlist *alone = &chunk->links;
    alone->next = NULL;
    chunk = release_all(&alone, 1);
    if (linked_size_of(chunk) >= DLMALLOC27_CONSOLIDATION_THRESHOLD && control.has_fast)
        /* point: consolidation */
        consolidate();
}
