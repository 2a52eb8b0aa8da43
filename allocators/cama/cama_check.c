/* SPDX-License-Identifier: 0BSD */
/* The invariants of the heap. Shares the layout with cama.c and no code: classes are intervals here, not logarithms. */
#include "cama.h"

/* Blocks or descriptors, counted twice in different ways. Unsigned sums wrap around, which does no harm. */
struct census {
    size_t count;
    uintptr_t sum;
};

/* What the heap holds, as seen by the walk over its memory. */
struct heap_census {
    struct census places;      /* of descriptors, in areas */
    struct census descriptors; /* in the chain */
    struct census small;       /* free small blocks, by start */
    struct census large;       /* free blocks that belong into a list, by start */
};

static void count(struct census *census, uintptr_t address)
{
    census->count++;
    census->sum += address;
}

static int is_marked_free(const struct cama_descriptor *descriptor)
{
    return (descriptor->size_and_free & CAMA_FREE_BIT) != 0;
}

static size_t size_in(const struct cama_descriptor *descriptor)
{
    return descriptor->size_and_free & ~CAMA_FREE_BIT;
}

/* ---------------------------------------------------------------------------------------------------- where things lie */

static size_t bytes_into_reserved(uintptr_t address)
{
    return (address - CAMA_RESERVED_OFFSET) % CAMA_PAGE_BYTES;
}

static uintptr_t end_of_area(uintptr_t begin)
{
    return begin - bytes_into_reserved(begin) + CAMA_RESERVED_BYTES;
}

static int may_be_area(const struct cama_area *area, uintptr_t least)
{
    const uintptr_t begin = (uintptr_t)area;

    return begin >= least && begin < cama_control.end && begin % CAMA_DESCRIPTOR_BYTES == 0
           && bytes_into_reserved(begin) + 4 * CAMA_DESCRIPTOR_BYTES <= CAMA_RESERVED_BYTES
           && end_of_area(begin) + CAMA_ALIGNMENT <= cama_control.top;
}

static int may_be_descriptor(const struct cama_descriptor *descriptor)
{
    const uintptr_t address = (uintptr_t)descriptor;

    return address > cama_control.arena && address < cama_control.top && address % CAMA_DESCRIPTOR_BYTES == 0
           && bytes_into_reserved(address) < CAMA_RESERVED_BYTES;
}

static int may_be_start(uintptr_t start)
{
    return start % CAMA_ALIGNMENT == 0 && start > cama_control.arena && start < cama_control.top;
}

static int is_class(size_t class, size_t size)
{
    const size_t row_start = (size_t)1 << (CAMA_ROW_MIN + class / CAMA_TL);
    const size_t lower = row_start / CAMA_TL * (CAMA_TL + class % CAMA_TL);

    return lower <= size && (class == CAMA_CLASSES - 1 || size < lower + row_start / CAMA_TL);
}

/* The size of the blocks of a class: it is the least of the class; 0 if they are not small. */
static size_t small_size(size_t class)
{
    if (class >= CAMA_CLASSES)
        return 0;
    const size_t size = ((size_t)1 << (CAMA_ROW_MIN + class / CAMA_TL)) / CAMA_TL * (CAMA_TL + class % CAMA_TL);
    return size < CAMA_THRESHOLD ? size : 0;
}

/* --------------------------------------------------------------------------------------------------------- the memory */

/* Where the walk stands. */
struct walk {
    uintptr_t start;                        /* of the next block */
    const struct cama_area *area;           /* the next area, or NULL */
    const struct cama_descriptor *last;     /* the descriptor before, or the sentinel */
    const struct cama_descriptor *next;     /* the next descriptor, or the sentinel */
    uintptr_t free_end;                     /* the end of the last free block that may merge */
};

static int step_over_area(struct walk *walk, struct heap_census *census)
{
    const uintptr_t begin = (uintptr_t)walk->area;
    const uintptr_t end = end_of_area(begin);

    for (uintptr_t place = begin + CAMA_DESCRIPTOR_BYTES; place < end; place += CAMA_DESCRIPTOR_BYTES)
        count(&census->places, place);
    walk->start = end + CAMA_ALIGNMENT;
    if (walk->area->newer == NULL && walk->area != cama_control.newest)
        return CAMA_BAD_AREA;
    walk->area = walk->area->newer;
    return walk->area == NULL || may_be_area(walk->area, walk->start) ? CAMA_HEAP_SOUND : CAMA_BAD_AREA;
}

static int step_over_large(struct walk *walk, size_t room, struct heap_census *census)
{
    const struct cama_descriptor *descriptor = walk->next;
    const size_t size = size_in(descriptor);
    const int is_free = is_marked_free(descriptor);

    if (descriptor->left != walk->last)
        return CAMA_BAD_LEFT;
    if (size % CAMA_ALIGNMENT != 0 || size == 0 || size > room || (!is_free && size < CAMA_THRESHOLD))
        return CAMA_BAD_SIZE;
    if (is_free && (walk->free_end == walk->start || walk->start + size == cama_control.top))
        return CAMA_BAD_ADJACENT_FREE;
    if (!is_free && *(struct cama_descriptor **)(walk->start - CAMA_HEADER_BYTES) != descriptor)
        return CAMA_BAD_BACK_POINTER;
    count(&census->descriptors, (uintptr_t)descriptor);
    if (is_free && size >= CAMA_THRESHOLD)
        count(&census->large, walk->start);
    walk->start += size;
    walk->free_end = is_free ? walk->start : 0;
    walk->last = descriptor;
    walk->next = descriptor->right;
    return walk->next == &cama_control.sentinel || may_be_descriptor(walk->next) ? CAMA_HEAP_SOUND
                                                                                 : CAMA_BAD_DESCRIPTOR;
}

static int step_over_small(struct walk *walk, size_t room, struct heap_census *census)
{
    const uintptr_t tag = *(const uintptr_t *)(walk->start - CAMA_HEADER_BYTES);
    const size_t size = small_size(tag >> CAMA_SMALL_CLASS_SHIFT);

    if ((tag & CAMA_SMALL_BIT) == 0 || size == 0)
        return CAMA_BAD_TAG;
    if (size > room)
        return CAMA_BAD_SIZE;
    if ((tag & CAMA_SMALL_FREE_BIT) != 0)
        count(&census->small, walk->start);
    walk->start += size;
    return CAMA_HEAP_SOUND;
}

/* Ends because the start grows with every step. */
static int check_memory(struct heap_census *census)
{
    struct walk walk = {cama_control.arena + CAMA_ALIGNMENT, cama_control.oldest, &cama_control.sentinel,
                        cama_control.sentinel.right, 0};
    int violation = CAMA_HEAP_SOUND;

    if (!may_be_area(walk.area, cama_control.arena))
        return CAMA_BAD_AREA;
    if (walk.next != &cama_control.sentinel && !may_be_descriptor(walk.next))
        return CAMA_BAD_DESCRIPTOR;
    while (violation == CAMA_HEAP_SOUND && walk.start < cama_control.top) {
        /* An area that begins before the first start stands at the arena's start. */
        if (walk.area != NULL && (uintptr_t)walk.area <= walk.start)
            violation = step_over_area(&walk, census);
        else {
            const size_t room = (walk.area != NULL ? (uintptr_t)walk.area : cama_control.top) - walk.start;
            if (walk.next != &cama_control.sentinel && walk.next->start == walk.start)
                violation = step_over_large(&walk, room, census);
            else
                violation = step_over_small(&walk, room, census);
        }
    }
    if (violation != CAMA_HEAP_SOUND)
        return violation;
    if (walk.start != cama_control.top || walk.area != NULL || walk.next != &cama_control.sentinel)
        return CAMA_BAD_CHAIN;
    return cama_control.sentinel.left == walk.last ? CAMA_HEAP_SOUND : CAMA_BAD_LEFT;
}

/* ------------------------------------------------------------------------------------------------ unused descriptors */

static int check_available(const struct heap_census *census)
{
    struct census all = census->descriptors;
    size_t left = cama_control.available;

    for (const struct cama_descriptor *spare = cama_control.spare; spare != cama_control.fresh; spare = spare->left) {
        if (left == 0 || !may_be_descriptor(spare))
            return CAMA_BAD_SPARE;
        count(&all, (uintptr_t)spare);
        left--;
    }
    for (uintptr_t fresh = (uintptr_t)cama_control.fresh; left > 0; left--, fresh += CAMA_DESCRIPTOR_BYTES)
        count(&all, fresh);
    return all.count == census->places.count && all.sum == census->places.sum ? CAMA_HEAP_SOUND : CAMA_BAD_AVAILABLE;
}

/* ---------------------------------------------------------------------------------------------------------- the lists */

/* `limit` is how many blocks there are: a list with more of them never ends. */
static int check_small_list(size_t set, size_t class, size_t limit, struct census *census)
{
    for (const struct cama_small *small = cama_word_at(CAMA_VECTOR_WORDS + class, set)->first; small != NULL;
         small = small->next) {
        const uintptr_t start = (uintptr_t)small + CAMA_HEADER_BYTES;
        if (!may_be_start(start))
            return CAMA_BAD_LIST_ADDRESS;
        if ((small->tag & CAMA_SMALL_FREE_BIT) == 0)
            return CAMA_BAD_LIST_FREE_BIT;
        if (small->tag >> CAMA_SMALL_CLASS_SHIFT != class || start / CAMA_LINE_BYTES % CAMA_SETS != set)
            return CAMA_BAD_LIST_CLASS;
        count(census, start);
        if (census->count > limit)
            return CAMA_BAD_LIST_LINK;
    }
    return CAMA_HEAP_SOUND;
}

/* Ends because a descriptor cannot have two before it, nor the head any: every step leads to another one. */
static int check_large_list(size_t set, size_t class, struct census *census)
{
    const struct cama_descriptor *prev = NULL;
    const struct cama_descriptor *descriptor = cama_word_at(CAMA_VECTOR_WORDS + class, set)->first;

    while (descriptor != NULL) {
        if (!may_be_descriptor(descriptor))
            return CAMA_BAD_LIST_ADDRESS;
        if (!is_marked_free(descriptor))
            return CAMA_BAD_LIST_FREE_BIT;
        if (!is_class(class, size_in(descriptor)) || descriptor->start / CAMA_LINE_BYTES % CAMA_SETS != set)
            return CAMA_BAD_LIST_CLASS;
        if (descriptor->prev != prev)
            return CAMA_BAD_LIST_LINK;
        count(census, descriptor->start);
        prev = descriptor;
        descriptor = descriptor->next;
    }
    return CAMA_HEAP_SOUND;
}

static int check_set(size_t set, size_t small_limit, struct census *small, struct census *large)
{
    for (size_t word = 0; word < CAMA_VECTOR_WORDS; word++) {
        uint32_t lists = 0;

        for (size_t class = 32 * word; class < 32 * (word + 1) && class < CAMA_CLASSES; class++) {
            const int violation = small_size(class) != 0 ? check_small_list(set, class, small_limit, small)
                                                         : check_large_list(set, class, large);
            if (violation != CAMA_HEAP_SOUND)
                return violation;
            lists |= (uint32_t)(cama_word_at(CAMA_VECTOR_WORDS + class, set)->first != NULL) << class % 32;
        }
        if (cama_word_at(word, set)->lists != lists)
            return CAMA_BAD_VECTOR;
    }
    return CAMA_HEAP_SOUND;
}

static int check_lists(const struct heap_census *census)
{
    struct census small = {0, 0};
    struct census large = {0, 0};

    for (size_t set = 0; set < CAMA_SETS; set++) {
        const int violation = check_set(set, census->small.count, &small, &large);
        if (violation != CAMA_HEAP_SOUND)
            return violation;
    }
    if (small.count != census->small.count || large.count != census->large.count)
        return CAMA_BAD_FREE_COUNT;
    return small.sum == census->small.sum && large.sum == census->large.sum ? CAMA_HEAP_SOUND : CAMA_BAD_FREE_MEMBERS;
}

int cama_check(void)
{
    struct heap_census census = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};

    if (cama_control.arena == 0)
        return CAMA_NO_HEAP;
    int violation = check_memory(&census);
    if (violation == CAMA_HEAP_SOUND)
        violation = check_available(&census);
    return violation == CAMA_HEAP_SOUND ? check_lists(&census) : violation;
}
