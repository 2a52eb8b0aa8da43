/* SPDX-License-Identifier: 0BSD */
/*
 * What djgpp-sbrk, djgpp-carve and djgpp-quarters share: a list of free blocks for each size, last in, first out;
 * blocks that keep their size for ever; and memory from a break that is moved through the arena, as sbrk moves that of
 * a process. How sizes are numbered and what a miss takes is each allocator's own: it defines DJGPP_BUCKETS and
 * DJGPP_BLOCK_BYTES(bucket) before it includes this.
 *
 * A block starts with one word, the number of its bucket. The break starts one word behind the arena's start, so that
 * payloads are aligned on two words. An allocator whose sizes do not count this word defines DJGPP_APART_BYTES: then
 * payloads are aligned on one word. The arena starts at a multiple of the least block, a power of two, as memory from
 * sbrk starts at a page. Where all sizes are powers of two from 16 bytes on, no block then has its header in one cache
 * line and its link in the next.
 */
#ifndef DJGPP_BUCKETS_H
#define DJGPP_BUCKETS_H

#include <stddef.h>
#include <stdint.h>

#define DJGPP_HEADER_BYTES sizeof(size_t)
#ifndef DJGPP_APART_BYTES
#define DJGPP_APART_BYTES ((size_t)0) /* of the header, those that no bucket's size counts: none of them or all */
#endif
#define DJGPP_ALIGNMENT (2 * sizeof(size_t))
#define DJGPP_MAX_HEAP ((size_t)1 << 28)

/* Lengths are given for 32-bit targets. On 64-bit hosts, where every word is twice as long, so are they. */
#define DJGPP_SCALED(bytes_of_32_bit_target) ((size_t)(bytes_of_32_bit_target) / 4 * sizeof(size_t))

/* A block. The link exists in free blocks only, in their payload. */
struct djgpp_block {
    size_t bucket;
    struct djgpp_block *next; /* NULL in the last block of a list */
};

/* What an allocator knows apart from the heap. All zero before init: then every malloc returns NULL. */
struct djgpp_buckets {
    unsigned char *base;                      /* where the first block starts */
    unsigned char *brk;                       /* the first byte that is in no block */
    unsigned char *end;                       /* the end of the arena */
    struct djgpp_block *heads[DJGPP_BUCKETS]; /* by bucket; NULL: the list is empty */
};

static inline int djgpp_init(struct djgpp_buckets *heap, void *arena, size_t bytes, size_t least_block)
{
    if (arena == NULL || (uintptr_t)arena % least_block != 0 || bytes % DJGPP_ALIGNMENT != 0)
        return -1;
    if (bytes < DJGPP_HEADER_BYTES + least_block || bytes > DJGPP_MAX_HEAP)
        return -1;

    /* Written through volatile, or the compiler makes the loop a call of memset. */
    for (size_t bucket = 0; bucket < DJGPP_BUCKETS; bucket++)
        *(struct djgpp_block *volatile *)&heap->heads[bucket] = NULL;
    heap->base = (unsigned char *)arena + DJGPP_HEADER_BYTES;
    heap->brk = heap->base;
    heap->end = (unsigned char *)arena + bytes;
    return 0;
}

/* Whether a request can be mapped to a bucket at all; 0 wraps around to SIZE_MAX. */
static inline int djgpp_may_fit(const struct djgpp_buckets *heap, size_t bytes)
{
    return bytes - 1 < (size_t)(heap->end - heap->base);
}

/* floor(log2(value)) of a value from 1 to 2^32 - 1, by binary search: five steps. */
static inline size_t djgpp_log2(size_t value)
{
    size_t log = 0;

    for (size_t step = 16; step != 0; step >>= 1) {
        if (value >> step != 0) {
            value >>= step;
            log += step;
        }
    }
    return log;
}

/* The break before it was moved up by `bytes`; NULL if the arena has not so many left. */
static inline void *djgpp_sbrk_up(struct djgpp_buckets *heap, size_t bytes)
{
    unsigned char *old = heap->brk;

    if (bytes > (size_t)(heap->end - old))
        return NULL;
    heap->brk = old + bytes;
    return old;
}

/* The head of a list, which is not empty; its header names the bucket already. */
static inline void *djgpp_pop(struct djgpp_buckets *heap, size_t bucket)
{
    struct djgpp_block *block = heap->heads[bucket];

    heap->heads[bucket] = block->next;
    return &block->next;
}

static inline void djgpp_push(struct djgpp_buckets *heap, struct djgpp_block *block)
{
    block->next = heap->heads[block->bucket];
    heap->heads[block->bucket] = block;
}

static inline struct djgpp_block *djgpp_block_of(void *payload)
{
    return (void *)((unsigned char *)payload - DJGPP_HEADER_BYTES);
}

#endif
