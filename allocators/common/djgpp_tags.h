/* SPDX-License-Identifier: 0BSD */
/*
 * The DJGPP variant with boundary tags: a singly-linked list of free blocks for each power of two, the rest of the last
 * split held apart and tried first, and memory from a break that is moved through the arena, chunk by chunk, as sbrk
 * moves that of a process. Tags are those of boundary_tags.h; the upper fence is at the break and moves with it.
 * What two of the variants differ in are parameters too: whether a free block keeps the number of its list, and
 * whether close fits are looked for first.
 *
 * An allocator may set the parameters below before it includes this.
 */
#ifndef DJGPP_TAGS_H
#define DJGPP_TAGS_H

#include "boundary_tags.h"

#ifndef DJGPP_TAGS_ALIGNMENT
#define DJGPP_TAGS_ALIGNMENT 8
#endif

/* Bytes of the least block, tags included. */
#ifndef DJGPP_TAGS_MINIMUM_BLOCK
#define DJGPP_TAGS_MINIMUM_BLOCK 16
#endif

/* Bytes that the break moves by if a request needs no more; less when less is left. Not scaled on 64-bit hosts. */
#ifndef DJGPP_TAGS_CHUNK
#define DJGPP_TAGS_CHUNK 65536
#endif

/* Whether a free block keeps the number of its list, or its size tells it each time. */
#ifndef DJGPP_TAGS_KEPT_BUCKET
#define DJGPP_TAGS_KEPT_BUCKET 0
#endif

/* Whether the request's own list is searched for a fit within 5/4 of the request before any fit is taken. */
#ifndef DJGPP_TAGS_CLOSE_FIT
#define DJGPP_TAGS_CLOSE_FIT 0
#endif

/* ----------------------------------------------------------------------------------------------------- what follows */

#define DJGPP_TAGS_ALIGN BT_SCALED(DJGPP_TAGS_ALIGNMENT)
#define DJGPP_TAGS_MINIMUM BT_SCALED(DJGPP_TAGS_MINIMUM_BLOCK)
#define DJGPP_TAGS_MAX_HEAP ((size_t)1 << 28)
#define DJGPP_TAGS_BUCKETS 28 /* by log2 of the block's bytes; the first ones are not used */

_Static_assert(DJGPP_TAGS_ALIGNMENT == 4 || DJGPP_TAGS_ALIGNMENT == 8, "DJGPP_TAGS_ALIGNMENT is 4 or 8");
_Static_assert(DJGPP_TAGS_MINIMUM_BLOCK % DJGPP_TAGS_ALIGNMENT == 0, "the least block keeps the alignment");
_Static_assert(DJGPP_TAGS_MINIMUM_BLOCK >= 16, "the least block holds a link and a bucket, and the tags stay aligned");

/* ---------------------------------------------------------------------------------------------------- data structure */

/* The payload of a free block. */
struct djgpp_tags_node {
    struct djgpp_tags_node *next; /* NULL in the last one of a list; undefined in the rest of the last split */
#if DJGPP_TAGS_KEPT_BUCKET
    size_t bucket; /* whose list it is in; undefined in the rest of the last split */
#endif
};

/* What an allocator knows apart from the heap. All zero before init. Offsets on 32-bit targets: first 0, brk 4, end 8,
 * rest 12, heads 16 + 4 * bucket. */
struct djgpp_tags {
    struct bt_block *first;                            /* first block, or the fence while there is none */
    struct bt_block *brk;                              /* the fence behind the last block */
    struct bt_block *end;                              /* where the fence is when nothing is left of the arena */
    struct bt_block *rest;                             /* free rest of the last split, in no list; NULL if none */
    struct djgpp_tags_node *heads[DJGPP_TAGS_BUCKETS]; /* NULL: the list is empty */
};

/* floor(log2(size)) by binary search: five steps. */
static inline size_t djgpp_tags_bucket(size_t size)
{
    size_t log = 0;

    for (size_t step = 16; step != 0; step >>= 1) {
        if (size >> step != 0) {
            size >>= step;
            log += step;
        }
    }
    return log;
}

/* ------------------------------------------------------------------------------------------------------------- lists */

static inline void djgpp_tags_push(struct djgpp_tags *heap, struct bt_block *block)
{
    size_t bucket = djgpp_tags_bucket(bt_size(block));
    struct djgpp_tags_node *node = bt_payload(block);

#if DJGPP_TAGS_KEPT_BUCKET
    node->bucket = bucket;
#endif
    node->next = heap->heads[bucket];
    heap->heads[bucket] = node;
}

/* Number of the list that a block is in. */
static inline size_t djgpp_tags_bucket_of(struct bt_block *block)
{
#if DJGPP_TAGS_KEPT_BUCKET
    struct djgpp_tags_node *node = bt_payload(block);
    return node->bucket;
#else
    return djgpp_tags_bucket(bt_size(block));
#endif
}

/* Takes a free block out of where it is. In a list it must be walked to: this makes free linear. */
static inline void djgpp_tags_remove(struct djgpp_tags *heap, struct bt_block *block)
{
    if (block == heap->rest) {
        heap->rest = NULL;
        return;
    }

    struct djgpp_tags_node *node = bt_payload(block);
    struct djgpp_tags_node **link = &heap->heads[djgpp_tags_bucket_of(block)];
    /* loop: walk */
    while (*link != node)
        link = &(*link)->next;
    *link = node->next;
}

/* Takes the first block of a list that is large enough out of it; NULL if there is none. */
static inline struct bt_block *djgpp_tags_search(struct djgpp_tags_node **link, size_t size)
{
    /* loop: walk */
    for (; *link != NULL; link = &(*link)->next) {
        struct bt_block *block = bt_block_of(*link);
        if (bt_size(block) >= size) {
            *link = (*link)->next;
            return block;
        }
    }
    return NULL;
}

#if DJGPP_TAGS_CLOSE_FIT
/* The same with a block that is large enough, and not larger than 5/4 of that. */
static inline struct bt_block *djgpp_tags_search_close(struct djgpp_tags_node **link, size_t size)
{
    /* loop: walk */
    for (; *link != NULL; link = &(*link)->next) {
        struct bt_block *block = bt_block_of(*link);
        if (bt_size(block) - size <= size / 4) { /* wraps around if it is too small */
            *link = (*link)->next;
            return block;
        }
    }
    return NULL;
}
#endif

/* ------------------------------------------------------------------------------------------------------------ blocks */

/* Makes `size` bytes a free block, one with the free block before them, and in no list. */
static inline struct bt_block *djgpp_tags_merge_before(struct djgpp_tags *heap, struct bt_block *block, size_t size)
{
    if (bt_is_free_before(block)) {
        block = bt_prev(block);
        djgpp_tags_remove(heap, block);
        size += bt_size(block);
    }
    bt_set(block, size, BT_FREE_BIT);
    return block;
}

/* Makes a used block free, one with its free neighbours, and in no list. */
static inline struct bt_block *djgpp_tags_merge(struct djgpp_tags *heap, struct bt_block *block)
{
    size_t size = bt_size(block);
    struct bt_block *next = bt_next(block);

    if (bt_is_free(next)) {
        djgpp_tags_remove(heap, next);
        size += bt_size(next);
    }
    return djgpp_tags_merge_before(heap, block, size);
}

/* Moves the break, for a block of at least `size` bytes below it; NULL, and nothing done, if too few are left. */
static inline struct bt_block *djgpp_tags_grow(struct djgpp_tags *heap, size_t size)
{
    struct bt_block *block = heap->brk;
    size_t left = (size_t)((unsigned char *)heap->end - (unsigned char *)block);
    size_t there = bt_is_free_before(block) ? bt_footer_before(block) & ~BT_FREE_BIT : 0;
    size_t more = size - there;

    if (more > left)
        return NULL;
    if (more < DJGPP_TAGS_CHUNK)
        more = left < DJGPP_TAGS_CHUNK ? left : DJGPP_TAGS_CHUNK;
    heap->brk = (void *)((unsigned char *)block + more);
    heap->brk->header = 0;
    return djgpp_tags_merge_before(heap, block, more);
}

/* The block that a request is cut from, in no list any more; NULL if nothing serves it. */
static inline struct bt_block *djgpp_tags_find(struct djgpp_tags *heap, size_t size)
{
    struct bt_block *block = heap->rest;

    if (block != NULL && bt_size(block) >= size) {
        heap->rest = NULL;
        return block;
    }
    const size_t own = djgpp_tags_bucket(size);
#if DJGPP_TAGS_CLOSE_FIT
    block = djgpp_tags_search_close(&heap->heads[own], size);
    if (block != NULL)
        return block;
#endif
    /* loop: lists */
    for (size_t bucket = own; bucket < DJGPP_TAGS_BUCKETS; bucket++) {
        block = djgpp_tags_search(&heap->heads[bucket], size);
        if (block != NULL)
            return block;
    }
    return djgpp_tags_grow(heap, size);
}

/* Makes the first `size` bytes of a block in no list a used block; its payload. The rest is held apart from now on, and
 * the one that was so far goes into its list. */
static inline void *djgpp_tags_take(struct djgpp_tags *heap, struct bt_block *block, size_t size)
{
    size_t spare = bt_size(block) - size;

    if (spare < DJGPP_TAGS_MINIMUM) {
        bt_set(block, size + spare, 0);
        return bt_payload(block);
    }
    bt_set(block, size, 0);
    if (heap->rest != NULL)
        djgpp_tags_push(heap, heap->rest);
    heap->rest = bt_next(block);
    bt_set(heap->rest, spare, BT_FREE_BIT);
    return bt_payload(block);
}

/* -------------------------------------------------------------------------------------------------------- operations */

static inline int djgpp_tags_found(struct djgpp_tags *heap, void *arena, size_t bytes)
{
    if (arena == NULL || (uintptr_t)arena % BT_OVERHEAD != 0 || bytes % DJGPP_TAGS_ALIGN != 0)
        return -1;
    if (bytes < DJGPP_TAGS_MINIMUM + BT_OVERHEAD || bytes > DJGPP_TAGS_MAX_HEAP)
        return -1;

    struct bt_block *lower = arena;
    lower[0].header = 0;
    lower[1].header = 0;
    heap->first = lower + 1;
    heap->brk = lower + 1;
    heap->end = (void *)((unsigned char *)arena + bytes - BT_WORD);
    heap->rest = NULL;
    /* Written through volatile, or the compiler makes the loop a call of memset. */
    for (size_t bucket = 0; bucket < DJGPP_TAGS_BUCKETS; bucket++)
        *(struct djgpp_tags_node *volatile *)&heap->heads[bucket] = NULL;
    return 0;
}

/* Nothing before init, whose control is all zero, and nothing that no bucket is for; 0 wraps around to SIZE_MAX. */
static inline int djgpp_tags_may_serve(const struct djgpp_tags *heap, size_t bytes)
{
    return bytes - 1 < (size_t)((uintptr_t)heap->end - (uintptr_t)heap->first);
}

/* Size of the block that a request needs, which may be served. */
static inline size_t djgpp_tags_size_for(size_t bytes)
{
    return bt_size_for(bytes, DJGPP_TAGS_ALIGN, DJGPP_TAGS_MINIMUM);
}

/* The payload of a block of at least `size` bytes, or NULL. */
static inline void *djgpp_tags_cut(struct djgpp_tags *heap, size_t size)
{
    struct bt_block *block = djgpp_tags_find(heap, size);

    if (block == NULL)
        return NULL;
    return djgpp_tags_take(heap, block, size);
}

static inline void djgpp_tags_give_back(struct djgpp_tags *heap, struct bt_block *block)
{
    djgpp_tags_push(heap, djgpp_tags_merge(heap, block));
}

#endif
