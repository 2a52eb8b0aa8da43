/* SPDX-License-Identifier: 0BSD */
/* The invariants of the heap. Shares the layout with dlmalloc27.c and no code: bins are intervals of a table here. */
#include "dlmalloc27.h"

typedef struct dlmalloc27_chunk chunk_t;

/* Free chunks, as seen by the chain or by the bins. Unsigned sums wrap around, which does no harm. */
struct census {
    size_t used;
    size_t free;
    uintptr_t free_address_sum;
};

static size_t bytes_of(const chunk_t *chunk)
{
    return chunk->tag & ~DLMALLOC27_FLAGS;
}

static const chunk_t *behind(const chunk_t *chunk)
{
    return (const void *)((const unsigned char *)chunk + bytes_of(chunk));
}

/* Whether the chunk before is in use. */
static int follows_used(const chunk_t *chunk)
{
    return (chunk->tag & DLMALLOC27_PREV_IN_USE) != 0;
}

/* Whether a chunk itself says that it is in a bin. */
static int says_free(const chunk_t *chunk)
{
    return (chunk->tag & DLMALLOC27_FREE) != 0;
}

static const chunk_t *chunk_of(const struct dlist *links)
{
    return (const void *)((const unsigned char *)links - offsetof(chunk_t, links));
}

static size_t room_at(const chunk_t *chunk)
{
    return (size_t)((uintptr_t)dlmalloc27_control.top - (uintptr_t)chunk);
}

static void count_chunk(struct census *census, const chunk_t *chunk, int is_free)
{
    census->used += !is_free;
    census->free += (size_t)is_free;
    census->free_address_sum += is_free ? (uintptr_t)chunk : 0;
}

/* Ends because the address grows with every step. */
static int check_chain(struct census *census)
{
    const chunk_t *chunk = dlmalloc27_control.first;
    int was_free = 0;

    while (chunk != dlmalloc27_control.top) {
        const size_t size = bytes_of(chunk);
        if (size % DLMALLOC27_GRANULE_BYTES != 0)
            return DLMALLOC27_BAD_SIZE_ALIGNMENT;
        if (size < DLMALLOC27_MIN_CHUNK)
            return DLMALLOC27_BAD_SIZE_MINIMUM;
        if (size > room_at(chunk))
            return DLMALLOC27_BAD_CHAIN_END;
        const int is_free = !follows_used(behind(chunk));
        if ((is_free && was_free) || (chunk == dlmalloc27_control.first && !follows_used(chunk)))
            return DLMALLOC27_BAD_ADJACENT_FREE;
        if (says_free(chunk) != is_free)
            return DLMALLOC27_BAD_FREE_FLAG;
        if (is_free && behind(chunk)->prev_tag != chunk->tag)
            return DLMALLOC27_BAD_PREV_TAG;
        count_chunk(census, chunk, is_free);
        was_free = is_free;
        chunk = behind(chunk);
    }
    if (!follows_used(chunk))
        return DLMALLOC27_BAD_ADJACENT_FREE;
    if (says_free(chunk))
        return DLMALLOC27_BAD_FREE_FLAG;
    const size_t before = (size_t)((uintptr_t)chunk - (uintptr_t)dlmalloc27_control.first);
    const size_t rest = dlmalloc27_control.arena_bytes - before;
    return bytes_of(chunk) == rest && rest >= DLMALLOC27_MIN_CHUNK ? DLMALLOC27_HEAP_SOUND : DLMALLOC27_BAD_TOP;
}

static int may_be_chunk(const chunk_t *chunk)
{
    const uintptr_t address = (uintptr_t)chunk;

    return address % DLMALLOC27_GRANULE_BYTES == 0 && address >= (uintptr_t)dlmalloc27_control.first
           && address < (uintptr_t)dlmalloc27_control.top;
}

/* The groups of bins: how many, how wide, from which size on. Lengths in units of DLMALLOC27_ALIGNMENT. */
static const struct group {
    unsigned bin;
    size_t start;
    size_t width;
} groups[] = {{0, 0, 1}, {64, 64, 8}, {96, 320, 64}, {112, 1344, 512}, {120, 5440, 4096}, {124, 21824, 32768}};

static const size_t rest_start = 87360;

static int is_of_bin(size_t size, unsigned bin)
{
    const size_t units = size / DLMALLOC27_ALIGNMENT;
    unsigned group = sizeof groups / sizeof groups[0] - 1;

    if (bin == DLMALLOC27_UNSORTED)
        return 1;
    if (bin >= 126)
        return bin == 126 && units >= rest_start;
    while (groups[group].bin > bin)
        group--;
    const size_t start = groups[group].start + (bin - groups[group].bin) * groups[group].width;
    return units >= start && units - start < groups[group].width;
}

static int is_sound_size(const chunk_t *chunk)
{
    return bytes_of(chunk) >= DLMALLOC27_MIN_CHUNK && bytes_of(chunk) % DLMALLOC27_GRANULE_BYTES == 0
           && bytes_of(chunk) <= room_at(chunk);
}

/* Ends because a node cannot have two nodes before it, nor the head more than one: every step leads to another node. */
static int check_bin(unsigned bin, struct census *census)
{
    const struct dlist *head = &dlmalloc27_control.bins[bin];
    const int is_sorted = bin >= DLMALLOC27_SMALL_COUNT;
    const struct dlist *prev = head;
    size_t most = SIZE_MAX;

    for (const struct dlist *node = head->next; node != head; node = node->next) {
        const chunk_t *chunk = chunk_of(node);
        if (!may_be_chunk(chunk))
            return DLMALLOC27_BAD_LIST_ADDRESS;
        if (!is_sound_size(chunk) || !is_of_bin(bytes_of(chunk), bin))
            return DLMALLOC27_BAD_LIST_SIZE;
        if (follows_used(behind(chunk)))
            return DLMALLOC27_BAD_LIST_IN_USE;
        if (node->prev != prev)
            return DLMALLOC27_BAD_LIST_LINK;
        if (is_sorted && bytes_of(chunk) > most)
            return DLMALLOC27_BAD_LIST_ORDER;
        most = bytes_of(chunk);
        count_chunk(census, chunk, 1);
        prev = node;
    }
    return head->prev == prev ? DLMALLOC27_HEAP_SOUND : DLMALLOC27_BAD_LIST_LINK;
}

static int check_bins(struct census *census)
{
    for (unsigned bin = 0; bin < DLMALLOC27_BIN_COUNT; bin++) {
        const int violation = check_bin(bin, census);
        if (violation != DLMALLOC27_HEAP_SOUND)
            return violation;
        const struct dlist *head = &dlmalloc27_control.bins[bin];
        const int is_marked = dlmalloc27_control.bitmap[bin / 32] >> bin % 32 & 1;
        if (bin <= DLMALLOC27_UNSORTED ? is_marked : !is_marked && head->next != head)
            return DLMALLOC27_BAD_BITMAP;
    }
    return DLMALLOC27_HEAP_SOUND;
}

/* Ends because it counts down; no link leads back here. */
static int check_fast(size_t used)
{
    for (unsigned bin = 0; bin < DLMALLOC27_FAST_COUNT; bin++) {
        for (const struct dlist *node = dlmalloc27_control.fast[bin]; node != NULL; node = node->next) {
            const chunk_t *chunk = chunk_of(node);
            if (!may_be_chunk(chunk))
                return DLMALLOC27_BAD_LIST_ADDRESS;
            if (!is_sound_size(chunk) || bytes_of(chunk) != DLMALLOC27_MIN_CHUNK + bin * DLMALLOC27_ALIGNMENT)
                return DLMALLOC27_BAD_LIST_SIZE;
            if (!follows_used(behind(chunk)))
                return DLMALLOC27_BAD_LIST_IN_USE;
            if (used-- == 0)
                return DLMALLOC27_BAD_FAST_LENGTH;
            if (!dlmalloc27_control.has_fast)
                return DLMALLOC27_BAD_HAS_FAST;
        }
    }
    return DLMALLOC27_HEAP_SOUND;
}

int dlmalloc27_check(void)
{
    struct census chain = {0, 0, 0};
    struct census bins = {0, 0, 0};

    if (dlmalloc27_control.first == NULL)
        return DLMALLOC27_NO_HEAP;
    int violation = check_chain(&chain);
    if (violation == DLMALLOC27_HEAP_SOUND)
        violation = check_bins(&bins);
    if (violation == DLMALLOC27_HEAP_SOUND)
        violation = check_fast(chain.used);
    if (violation != DLMALLOC27_HEAP_SOUND)
        return violation;
    if (bins.free != chain.free)
        return DLMALLOC27_BAD_FREE_COUNT;
    return bins.free_address_sum == chain.free_address_sum ? DLMALLOC27_HEAP_SOUND : DLMALLOC27_BAD_FREE_MEMBERS;
}
