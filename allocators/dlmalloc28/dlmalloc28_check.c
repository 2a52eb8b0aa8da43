/* SPDX-License-Identifier: 0BSD */
/* The invariants of the heap. Shares the layout with dlmalloc28.c and no code: intervals here, not bits of sizes. */
#include "dlmalloc28.h"

typedef struct dlmalloc28_chunk chunk;

/* The free chunks, as seen in the arena or from bins, tries and dv. Unsigned sums wrap around, which does no harm. */
struct census {
    size_t count;
    uintptr_t address_sum;
};

/* Sizes, both ends included. */
struct interval {
    size_t least;
    size_t most;
};

static void count_chunk(struct census *census, const chunk *c)
{
    census->count++;
    census->address_sum += (uintptr_t)c;
}

static size_t size_of(const chunk *c)
{
    return c->head & ~DLMALLOC28_FLAGS;
}

static int is_used(const chunk *c)
{
    return (c->head & DLMALLOC28_USED) != 0;
}

static const chunk *chunk_of_ring(const struct dlist *ring)
{
    return (const void *)((const unsigned char *)ring - DLMALLOC28_HEADER_BYTES);
}

static int holds(struct interval sizes, size_t size)
{
    return sizes.least <= size && size <= sizes.most;
}

/* ------------------------------------------------------------------------------------------------------------ arena */

/* What a chunk says of the one before it. */
static int check_before(const chunk *c, const chunk *before)
{
    const int prev_used = (c->head & DLMALLOC28_PREV_USED) != 0;

    if (before == NULL)
        return prev_used ? DLMALLOC28_HEAP_SOUND : DLMALLOC28_BAD_FLAGS;
    if (prev_used != is_used(before))
        return DLMALLOC28_BAD_PREV_USED;
    if (!prev_used && c->prev_foot != size_of(before))
        return DLMALLOC28_BAD_PREV_FOOT;
    if (!prev_used && !is_used(c))
        return DLMALLOC28_BAD_ADJACENT_FREE;
    return DLMALLOC28_HEAP_SOUND;
}

/* Ends because the address grows with every step. */
static int check_arena(struct census *census)
{
    const chunk *const top = dlmalloc28_control.top;
    const chunk *before = NULL;
    const chunk *c = dlmalloc28_control.first;

    while (c != top) {
        const size_t size = size_of(c);
        if ((c->head & DLMALLOC28_FLAGS & ~(DLMALLOC28_USED | DLMALLOC28_PREV_USED)) != 0)
            return DLMALLOC28_BAD_FLAGS;
        if (size < DLMALLOC28_MIN_CHUNK || size > (uintptr_t)top - (uintptr_t)c)
            return DLMALLOC28_BAD_SIZE;
        const int violation = check_before(c, before);
        if (violation != DLMALLOC28_HEAP_SOUND)
            return violation;
        if (!is_used(c))
            count_chunk(census, c);
        before = c;
        c = (const void *)((const unsigned char *)c + size);
    }
    if (top->head != (dlmalloc28_control.top_size | DLMALLOC28_PREV_USED) || (before != NULL && !is_used(before)))
        return DLMALLOC28_BAD_TOP;
    return DLMALLOC28_HEAP_SOUND;
}

/* ------------------------------------------------------------------------------------------------------------ rings */

static int may_be_chunk(const chunk *c)
{
    const uintptr_t address = (uintptr_t)c;

    return address % DLMALLOC28_ALIGNMENT == 0 && address >= (uintptr_t)dlmalloc28_control.first
           && address < (uintptr_t)dlmalloc28_control.top;
}

static int check_free_chunk(const chunk *c, struct interval sizes, struct census *census)
{
    if (!may_be_chunk(c))
        return DLMALLOC28_BAD_ADDRESS;
    if (is_used(c))
        return DLMALLOC28_BAD_FREE;
    if (!holds(sizes, size_of(c)))
        return DLMALLOC28_BAD_BIN;
    count_chunk(census, c);
    return DLMALLOC28_HEAP_SOUND;
}

/* Looks at all of a ring but its head. Ends because each link back is the inverse of the link forward: no chunk comes
 * twice. */
static int check_ring(const struct dlist *head, struct interval sizes, struct census *census)
{
    const struct dlist *prev = head;
    const struct dlist *ring = head->next;

    while (ring != head) {
        const int violation = check_free_chunk(chunk_of_ring(ring), sizes, census);
        if (violation != DLMALLOC28_HEAP_SOUND)
            return violation;
        if (ring->prev != prev)
            return DLMALLOC28_BAD_RING;
        prev = ring;
        ring = ring->next;
    }
    return ring->prev == prev ? DLMALLOC28_HEAP_SOUND : DLMALLOC28_BAD_RING;
}

static int check_small_bins(struct census *census)
{
    for (uint32_t i = 0; i < DLMALLOC28_SMALL_BINS; i++) {
        const struct dlist *const bin = &dlmalloc28_control.small_bins[i];
        const size_t size = i * DLMALLOC28_ALIGNMENT;
        const int violation = check_ring(bin, (struct interval){size, size}, census);
        if (violation != DLMALLOC28_HEAP_SOUND)
            return violation;
        if ((bin->next != bin) != (dlmalloc28_control.small_map >> i & 1))
            return DLMALLOC28_BAD_MAP;
    }
    return DLMALLOC28_HEAP_SOUND;
}

/* ------------------------------------------------------------------------------------------------------------ tries */

/* The least size in trie i. */
static size_t least_in_trie(uint32_t i)
{
    const size_t power = DLMALLOC28_SMALL_LIMIT << i / 2;

    return power + i % 2 * (power / 2);
}

/* The sizes that trie i branches over: the last one over all there are. */
static struct interval sizes_of_trie(uint32_t i)
{
    if (i == DLMALLOC28_TREE_BINS - 1)
        return (struct interval){0, UINT32_MAX};
    return (struct interval){least_in_trie(i), least_in_trie(i + 1) - 1};
}

/* Where a walk through a trie is, and the sizes that may stand there. */
struct place {
    const chunk *node;
    struct interval sizes;
};

/* Down to a child, into half of the interval. Below the last bit that sizes can differ in there is none. */
static int descend(struct place *place, unsigned bit)
{
    const chunk *const child = place->node->child[bit];
    const size_t middle = place->sizes.least + (place->sizes.most - place->sizes.least) / 2;

    if (!may_be_chunk(child))
        return DLMALLOC28_BAD_ADDRESS;
    if (child->parent != place->node || place->sizes.most - place->sizes.least < DLMALLOC28_ALIGNMENT)
        return DLMALLOC28_BAD_TREE;
    place->node = child;
    if (bit == 0)
        place->sizes.most = middle;
    else
        place->sizes.least = middle + 1;
    return DLMALLOC28_HEAP_SOUND;
}

/* Up to the parent. Returns which child the walk comes from. */
static unsigned ascend(struct place *place)
{
    const size_t width = place->sizes.most - place->sizes.least + 1;
    const unsigned bit = place->node->parent->child[1] == place->node;

    place->node = place->node->parent;
    if (bit == 0)
        place->sizes.most += width;
    else
        place->sizes.least -= width;
    return bit;
}

static int has_equal_above(const chunk *node)
{
    for (const chunk *above = node->parent; above != NULL; above = above->parent)
        if (size_of(above) == size_of(node))
            return 1;
    return 0;
}

/* A node and all chunks of its size. */
static int check_node(const struct place *place, uint32_t i, struct census *census)
{
    const chunk *const node = place->node;
    int violation = check_free_chunk(node, place->sizes, census);

    if (violation != DLMALLOC28_HEAP_SOUND)
        return violation;
    const size_t size = size_of(node);
    if (node->bin != i || size < least_in_trie(i))
        return DLMALLOC28_BAD_BIN;
    if (has_equal_above(node))
        return DLMALLOC28_BAD_TREE;
    violation = check_ring(&node->ring, (struct interval){size, size}, census);
    if (violation != DLMALLOC28_HEAP_SOUND)
        return violation;
    for (const struct dlist *ring = node->ring.next; ring != &node->ring; ring = ring->next)
        if (chunk_of_ring(ring)->parent != NULL || chunk_of_ring(ring)->bin != i)
            return DLMALLOC28_BAD_TREE;
    return DLMALLOC28_HEAP_SOUND;
}

/* To the next node, a node coming before those below it; to NULL after the last one. */
static int advance(struct place *place)
{
    if (place->node->child[0] != NULL)
        return descend(place, 0);
    if (place->node->child[1] != NULL)
        return descend(place, 1);
    while (place->node->parent != NULL)
        if (ascend(place) == 0 && place->node->child[1] != NULL)
            return descend(place, 1);
    place->node = NULL;
    return DLMALLOC28_HEAP_SOUND;
}

/* Ends because the parent of every node was compared with the node above, and because the depth is bounded. */
static int check_trie(uint32_t i, struct census *census)
{
    struct place place = {dlmalloc28_control.tree_bins[i], sizes_of_trie(i)};

    if (!may_be_chunk(place.node))
        return place.node == NULL ? DLMALLOC28_BAD_MAP : DLMALLOC28_BAD_ADDRESS;
    if (place.node->parent != NULL)
        return DLMALLOC28_BAD_TREE;
    while (place.node != NULL) {
        int violation = check_node(&place, i, census);
        if (violation == DLMALLOC28_HEAP_SOUND)
            violation = advance(&place);
        if (violation != DLMALLOC28_HEAP_SOUND)
            return violation;
    }
    return DLMALLOC28_HEAP_SOUND;
}

static int check_tries(struct census *census)
{
    for (uint32_t i = 0; i < DLMALLOC28_TREE_BINS; i++) {
        if ((dlmalloc28_control.tree_map >> i & 1) == 0)
            continue;
        const int violation = check_trie(i, census);
        if (violation != DLMALLOC28_HEAP_SOUND)
            return violation;
    }
    return DLMALLOC28_HEAP_SOUND;
}

/* ------------------------------------------------------------------------------------------------------- everything */

static int check_dv(struct census *census)
{
    const chunk *const dv = dlmalloc28_control.dv;

    if (dv == NULL)
        return dlmalloc28_control.dv_size == 0 ? DLMALLOC28_HEAP_SOUND : DLMALLOC28_BAD_DV;
    if (!may_be_chunk(dv) || is_used(dv) || size_of(dv) != dlmalloc28_control.dv_size)
        return DLMALLOC28_BAD_DV;
    count_chunk(census, dv);
    return DLMALLOC28_HEAP_SOUND;
}

int dlmalloc28_check(void)
{
    struct census arena = {0, 0};
    struct census bins = {0, 0};

    if (dlmalloc28_control.first == NULL)
        return DLMALLOC28_NO_HEAP;
    int violation = check_arena(&arena);
    if (violation == DLMALLOC28_HEAP_SOUND)
        violation = check_dv(&bins);
    if (violation == DLMALLOC28_HEAP_SOUND)
        violation = check_small_bins(&bins);
    if (violation == DLMALLOC28_HEAP_SOUND)
        violation = check_tries(&bins);
    if (violation != DLMALLOC28_HEAP_SOUND)
        return violation;
    if (bins.count != arena.count)
        return DLMALLOC28_BAD_FREE_COUNT;
    return bins.address_sum == arena.address_sum ? DLMALLOC28_HEAP_SOUND : DLMALLOC28_BAD_FREE_MEMBERS;
}
