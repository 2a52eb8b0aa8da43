/* SPDX-License-Identifier: 0BSD */
/* The invariants of the heap. Shares the layout with dlmalloc27.c and no code: bins are intervals here. */
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

/* What the head of a bin is in the eyes of its neighbours. */
static const chunk_t *head_of(unsigned bin)
{
    return (const void *)((const unsigned char *)&dlmalloc27_control.heads[2 * bin] - offsetof(chunk_t, next));
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
        if (size % DLMALLOC27_ALIGNMENT != 0 || (chunk->tag & DLMALLOC27_FLAGS) > DLMALLOC27_PREV_IN_USE)
            return DLMALLOC27_BAD_SIZE_ALIGNMENT;
        if (size < DLMALLOC27_MIN_CHUNK)
            return DLMALLOC27_BAD_SIZE_MINIMUM;
        if (size > room_at(chunk))
            return DLMALLOC27_BAD_CHAIN_END;
        const int is_free = !follows_used(behind(chunk));
        if ((is_free && was_free) || (chunk == dlmalloc27_control.first && !follows_used(chunk)))
            return DLMALLOC27_BAD_ADJACENT_FREE;
        if (is_free && behind(chunk)->size_before != size)
            return DLMALLOC27_BAD_SIZE_BEFORE;
        count_chunk(census, chunk, is_free);
        was_free = is_free;
        chunk = behind(chunk);
    }
    if (!follows_used(chunk))
        return DLMALLOC27_BAD_ADJACENT_FREE;
    const size_t before = (size_t)((uintptr_t)chunk - (uintptr_t)dlmalloc27_control.first);
    const size_t rest = dlmalloc27_control.arena_bytes - before;
    return bytes_of(chunk) == rest && rest >= DLMALLOC27_MIN_CHUNK ? DLMALLOC27_HEAP_SOUND : DLMALLOC27_BAD_TOP;
}

static int may_be_chunk(const chunk_t *chunk)
{
    const uintptr_t address = (uintptr_t)chunk;

    return address % DLMALLOC27_ALIGNMENT == 0 && address >= (uintptr_t)dlmalloc27_control.first
           && address < (uintptr_t)dlmalloc27_control.top;
}

/* Beyond the small bins each power of two has four; the last bin has no end. */
static int is_of_bin(size_t size, unsigned bin)
{
    const size_t least = (size_t)DLMALLOC27_MIN_LARGE << (bin - 32) / 4 % 16;

    if (bin == DLMALLOC27_UNSORTED)
        return 1;
    if (bin < 32)
        return size / 8 == bin && size < DLMALLOC27_MIN_LARGE;
    return size >= least + bin % 4 * (least / 4)
           && (bin == DLMALLOC27_BIN_COUNT - 1 || size < least + (bin % 4 + 1) * (least / 4));
}

static int is_sound_size(const chunk_t *chunk)
{
    return bytes_of(chunk) >= DLMALLOC27_MIN_CHUNK && bytes_of(chunk) % DLMALLOC27_ALIGNMENT == 0
           && bytes_of(chunk) <= room_at(chunk);
}

/* Ends because no chunk has two before it, nor the head more than one: every step leads to another chunk. */
static int check_bin(unsigned bin, struct census *census)
{
    const chunk_t *head = head_of(bin);
    const chunk_t *prev = head;
    size_t most = SIZE_MAX;

    for (const chunk_t *chunk = head->next; chunk != head; chunk = chunk->next) {
        if (!may_be_chunk(chunk))
            return DLMALLOC27_BAD_LIST_ADDRESS;
        if (!is_sound_size(chunk) || !is_of_bin(bytes_of(chunk), bin))
            return DLMALLOC27_BAD_LIST_SIZE;
        if (follows_used(behind(chunk)))
            return DLMALLOC27_BAD_LIST_IN_USE;
        if (chunk->prev != prev)
            return DLMALLOC27_BAD_LIST_LINK;
        if (bin != DLMALLOC27_UNSORTED && bytes_of(chunk) > most)
            return DLMALLOC27_BAD_LIST_ORDER;
        most = bytes_of(chunk);
        count_chunk(census, chunk, 1);
        prev = chunk;
    }
    return head->prev == prev ? DLMALLOC27_HEAP_SOUND : DLMALLOC27_BAD_LIST_LINK;
}

static int check_bins(struct census *census)
{
    for (unsigned bin = 0; bin < DLMALLOC27_BIN_COUNT; bin++) {
        const int violation = check_bin(bin, census);
        if (violation != DLMALLOC27_HEAP_SOUND)
            return violation;
        const int is_marked = dlmalloc27_control.bitmap[bin / 32] >> bin % 32 & 1;
        if (bin <= DLMALLOC27_UNSORTED ? is_marked : !is_marked && head_of(bin)->next != head_of(bin))
            return DLMALLOC27_BAD_BITMAP;
    }
    return dlmalloc27_control.bitmap[DLMALLOC27_BIN_COUNT / 32] == 0 ? DLMALLOC27_HEAP_SOUND : DLMALLOC27_BAD_BITMAP;
}

/* Ends because it counts down; no link leads back here. */
static int check_fast(size_t used)
{
    for (unsigned bin = 0; bin < DLMALLOC27_FAST_COUNT; bin++) {
        for (const chunk_t *chunk = dlmalloc27_control.fast[bin]; chunk != NULL; chunk = chunk->next) {
            if (!may_be_chunk(chunk))
                return DLMALLOC27_BAD_LIST_ADDRESS;
            if (!is_sound_size(chunk) || bytes_of(chunk) != 8 * (size_t)(bin + 2))
                return DLMALLOC27_BAD_LIST_SIZE;
            if (!follows_used(behind(chunk)))
                return DLMALLOC27_BAD_LIST_IN_USE;
            if (used-- == 0)
                return DLMALLOC27_BAD_FAST_LENGTH;
            if ((dlmalloc27_control.max_fast & DLMALLOC27_FAST_CHUNKS) == 0 || bytes_of(chunk) > DLMALLOC27_MAX_FAST)
                return DLMALLOC27_BAD_FLAGS;
        }
    }
    return DLMALLOC27_HEAP_SOUND;
}

/* The flags of max_fast; a chunk that is not in use was freed, or is the rest of one that was. */
static int check_flags(size_t free)
{
    const size_t flags = dlmalloc27_control.max_fast & (DLMALLOC27_ANY_CHUNKS | DLMALLOC27_FAST_CHUNKS);

    if (dlmalloc27_control.max_fast - flags != DLMALLOC27_MAX_FAST)
        return DLMALLOC27_BAD_FLAGS;
    return (flags & DLMALLOC27_ANY_CHUNKS) != 0 || (flags == 0 && free == 0) ? DLMALLOC27_HEAP_SOUND
                                                                             : DLMALLOC27_BAD_FLAGS;
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
    if (violation == DLMALLOC27_HEAP_SOUND)
        violation = check_flags(chain.free);
    if (violation != DLMALLOC27_HEAP_SOUND)
        return violation;
    if (bins.free != chain.free)
        return DLMALLOC27_BAD_FREE_COUNT;
    return bins.free_address_sum == chain.free_address_sum ? DLMALLOC27_HEAP_SOUND : DLMALLOC27_BAD_FREE_MEMBERS;
}
