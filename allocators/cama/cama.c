/* SPDX-License-Identifier: 0BSD */
/* CAMA after H11 section IV (see README.md). The manual is cama.h. */
#include "cama.h"

#define IS_POWER_OF_TWO(x) ((x) > 0 && ((x) & ((x) - 1)) == 0)

_Static_assert(IS_POWER_OF_TWO(CAMA_SETS) && IS_POWER_OF_TWO(CAMA_LINE_BYTES), "the cache's geometry");
_Static_assert(IS_POWER_OF_TWO(CAMA_DESCRIPTOR_SETS) && CAMA_DESCRIPTOR_SETS < CAMA_SETS, "the reserved sets");
_Static_assert(CAMA_FIRST_SET + CAMA_DESCRIPTOR_SETS <= CAMA_SETS, "the reserved sets do not wrap around");
_Static_assert(CAMA_RESERVED_OFFSET % CAMA_DESCRIPTOR_BYTES == 0, "descriptors start at the first reserved set");
_Static_assert(CAMA_RESERVED_BYTES >= 4 * CAMA_DESCRIPTOR_BYTES, "an area serves the operation that lays it out");
_Static_assert(IS_POWER_OF_TWO(CAMA_TL) && CAMA_TL <= 4, "classes of the first row are not narrower than a word");
_Static_assert(sizeof(struct cama_descriptor) == CAMA_DESCRIPTOR_BYTES, "a power of two");
_Static_assert(sizeof(struct cama_control) <= CAMA_RESERVED_OFFSET + CAMA_RESERVED_BYTES, "control is in reserved sets");
_Static_assert(sizeof(union cama_word) == CAMA_HEADER_BYTES && sizeof(unsigned) == 4, "words and bit search");

_Alignas(CAMA_PAGE_BYTES) struct cama_control cama_control;
_Alignas(CAMA_PAGE_BYTES) union cama_word cama_tables[CAMA_TABLE_PAGES][CAMA_PAGE_BYTES / sizeof(union cama_word)];

#define TL_BITS ((unsigned)__builtin_ctz(CAMA_TL))

/* The least class of large blocks. */
#define FIRST_LARGE (((unsigned)__builtin_ctz((unsigned)CAMA_THRESHOLD) - CAMA_ROW_MIN) * CAMA_TL)
_Static_assert(FIRST_LARGE < CAMA_CLASSES, "there are large classes");

/* A growing heap needs two descriptors at most, for the gap and for the block. */
#define GROWTH_DESCRIPTORS 2

/* ---------------------------------------------------------------------------------------------------- sets, classes */

static inline unsigned set_of(uintptr_t address)
{
    return (unsigned)(address / CAMA_LINE_BYTES) & (CAMA_SETS - 1);
}

/* The least multiple of `unit`, a power of two, that is not below `value`. */
static inline uintptr_t round_up(uintptr_t value, uintptr_t unit)
{
    return (value + unit - 1) & ~(unit - 1);
}

static inline unsigned floor_log2(size_t size)
{
    return 31u - (unsigned)__builtin_clz((unsigned)size);
}

/* The class that holds blocks of this size. */
static inline unsigned class_of(size_t size)
{
    unsigned row = floor_log2(size);
    unsigned class = ((row - CAMA_ROW_MIN) << TL_BITS) + (unsigned)(size >> (row - TL_BITS)) - CAMA_TL;

    return class < CAMA_CLASSES ? class : CAMA_CLASSES - 1;
}

/* The size of a block for `bytes` bytes. A small block gets the least size of a class, which may be the threshold. */
static inline size_t block_size(size_t bytes)
{
    size_t size = round_up(bytes + CAMA_HEADER_BYTES, CAMA_ALIGNMENT);

    if (size < CAMA_MIN_BLOCK)
        return CAMA_MIN_BLOCK;
    if (size < CAMA_THRESHOLD)
        return round_up(size, (size_t)1 << (floor_log2(size) - TL_BITS));
    return size;
}

/* ------------------------------------------------------------------------------------------------------------ lists */

static inline union cama_word *vector_of(unsigned set, unsigned class)
{
    return cama_word_at(class / 32, set);
}

static inline union cama_word *head_of(unsigned set, unsigned class)
{
    return cama_word_at(CAMA_VECTOR_WORDS + class, set);
}

static inline void mark_filled(unsigned set, unsigned class)
{
    vector_of(set, class)->lists |= (uint32_t)1 << class % 32;
}

static inline void mark_empty(unsigned set, unsigned class)
{
    vector_of(set, class)->lists &= ~((uint32_t)1 << class % 32);
}

/* The first class, from `class` on, whose list in this set is not empty; CAMA_CLASSES if there is none. */
static inline unsigned find(unsigned set, unsigned class)
{
    uint32_t mask = ~(uint32_t)0 << class % 32;

    /* loop: words */
    for (unsigned word = class / 32; word < CAMA_VECTOR_WORDS; word++) {
        uint32_t lists = cama_word_at(word, set)->lists & mask;
        if (lists != 0)
            return 32 * word + (unsigned)__builtin_ctz(lists);
        mask = ~(uint32_t)0;
    }
    return CAMA_CLASSES;
}

/* ------------------------------------------------------------------------------------------------------ descriptors */

static inline size_t size_of(const struct cama_descriptor *descriptor)
{
    return descriptor->size_and_free & ~CAMA_FREE_BIT;
}

static inline int is_free(const struct cama_descriptor *descriptor)
{
    return (descriptor->size_and_free & CAMA_FREE_BIT) != 0;
}

static inline uintptr_t end_of(const struct cama_descriptor *descriptor)
{
    return descriptor->start + size_of(descriptor);
}

/* A descriptor for [start, start + size_and_free), behind `left` in address order. There is one available. */
static struct cama_descriptor *describe(struct cama_descriptor *left, uintptr_t start, size_t size_and_free)
{
    struct cama_descriptor *descriptor = cama_control.spare;

    if (descriptor != NULL)
        cama_control.spare = descriptor->next;
    else
        descriptor = cama_control.fresh++;
    cama_control.available--;
    descriptor->start = start;
    descriptor->size_and_free = size_and_free;
    descriptor->left = left;
    descriptor->right = left->right;
    left->right->left = descriptor;
    left->right = descriptor;
    return descriptor;
}

static inline void make_spare(struct cama_descriptor *descriptor)
{
    descriptor->next = cama_control.spare;
    cama_control.spare = descriptor;
}

/* Takes a descriptor, which is in no free list, out of the chain. */
static void forget(struct cama_descriptor *descriptor)
{
    descriptor->left->right = descriptor->right;
    descriptor->right->left = descriptor->left;
    make_spare(descriptor);
    cama_control.available++;
}

/* Puts a free block into its list, if it is no gap below the threshold. */
static void insert(struct cama_descriptor *descriptor)
{
    if (size_of(descriptor) < CAMA_THRESHOLD)
        return;

    unsigned set = set_of(descriptor->start);
    unsigned class = class_of(size_of(descriptor));
    union cama_word *head = head_of(set, class);

    descriptor->prev = NULL;
    descriptor->next = head->large;
    if (head->large != NULL)
        head->large->prev = descriptor;
    else
        mark_filled(set, class);
    head->large = descriptor;
}

/* Takes a free block out of its list, wherever it stands there, if it is in one. */
static void detach(struct cama_descriptor *descriptor)
{
    if (size_of(descriptor) < CAMA_THRESHOLD)
        return;
    if (descriptor->next != NULL)
        descriptor->next->prev = descriptor->prev;
    if (descriptor->prev != NULL) {
        descriptor->prev->next = descriptor->next;
        return;
    }

    unsigned set = set_of(descriptor->start);
    unsigned class = class_of(size_of(descriptor));

    head_of(set, class)->large = descriptor->next;
    if (descriptor->next == NULL)
        mark_empty(set, class);
}

/* ------------------------------------------------------------------------------------------------------------ break */

/* Where an area would be laid out that begins at `from` or as soon as there is room for four descriptors. */
static inline uintptr_t area_from(uintptr_t from)
{
    uintptr_t begin = round_up(from, CAMA_DESCRIPTOR_BYTES);
    uintptr_t offset = (begin - CAMA_RESERVED_OFFSET) & (CAMA_PAGE_BYTES - 1);

    return offset <= CAMA_RESERVED_BYTES - 4 * CAMA_DESCRIPTOR_BYTES ? begin : begin + (CAMA_PAGE_BYTES - offset);
}

/* The end of the reserved sets of the page in which an area begins. */
static inline uintptr_t area_end(uintptr_t begin)
{
    return begin - ((begin - CAMA_RESERVED_OFFSET) & (CAMA_PAGE_BYTES - 1)) + CAMA_RESERVED_BYTES;
}

/* The break behind the area that begins at `begin`: the word before the next block is behind the area, too. */
static inline uintptr_t top_behind(uintptr_t begin)
{
    return area_end(begin) + CAMA_ALIGNMENT;
}

/* The break-like provider: moves the break up to `to`. What it skips becomes a free block. One descriptor is available
 * if anything is skipped. */
static void skip_to(uintptr_t to)
{
    if (to > cama_control.top)
        insert(describe(cama_control.sentinel.left, cama_control.top, (to - cama_control.top) | CAMA_FREE_BIT));
    cama_control.top = to;
}

/* Lays out an area at `begin`. At most one descriptor is available, and then it is spare or fresh. */
static void add_area(uintptr_t begin)
{
    struct cama_area *area = (void *)begin;

    if (cama_control.available != 0 && cama_control.spare == NULL)
        make_spare(cama_control.fresh);
    cama_control.fresh = (void *)(begin + CAMA_DESCRIPTOR_BYTES);
    cama_control.available += (uint32_t)((area_end(begin) - begin) / CAMA_DESCRIPTOR_BYTES) - 1;
    cama_control.newest->newer = area;
    cama_control.newest = area;
    area->newer = NULL;
    skip_to(begin);
    cama_control.top = top_behind(begin);
}

/* The first start from `from` on that is in this set. */
static inline uintptr_t start_in_set(uintptr_t from, unsigned set)
{
    unsigned sets = (set - set_of(from)) & (CAMA_SETS - 1);

    return sets == 0 ? from : (from & ~(uintptr_t)(CAMA_LINE_BYTES - 1)) + (uintptr_t)sets * CAMA_LINE_BYTES;
}

/* Moves the break behind a new block of this set and size, its start at the result; 0 iff the arena is at its end. */
static uintptr_t grow(size_t size, unsigned set)
{
    int descriptors_want = cama_control.available < GROWTH_DESCRIPTORS;
    uintptr_t area = area_from(cama_control.top);
    uintptr_t start = start_in_set(descriptors_want ? top_behind(area) : cama_control.top, set);

    if (start > cama_control.end || size > cama_control.end - start)
        return 0;
    if (descriptors_want)
        add_area(area);
    skip_to(start);
    cama_control.top = start + size;
    return start;
}

/* ----------------------------------------------------------------------------------------------------- small blocks */

static inline struct cama_small *small_at(uintptr_t start)
{
    return (void *)(start - CAMA_HEADER_BYTES);
}

static inline void *small_start(struct cama_small *small)
{
    return &small->next;
}

static void *pop_small(unsigned set, unsigned class)
{
    union cama_word *head = head_of(set, class);
    struct cama_small *small = head->small;

    head->small = small->next;
    if (small->next == NULL)
        mark_empty(set, class);
    small->tag &= ~CAMA_SMALL_FREE_BIT;
    return small_start(small);
}

static void free_small(struct cama_small *small)
{
    unsigned set = set_of((uintptr_t)small_start(small));
    unsigned class = (unsigned)(small->tag >> CAMA_SMALL_CLASS_SHIFT);
    union cama_word *head = head_of(set, class);

    small->tag |= CAMA_SMALL_FREE_BIT;
    small->next = head->small;
    head->small = small;
    mark_filled(set, class);
}

/* Cuts `size` bytes off the front of a free large block; the rest keeps the descriptor. */
static uintptr_t carve(struct cama_descriptor *descriptor, size_t size)
{
    uintptr_t start = descriptor->start;

    detach(descriptor);
    descriptor->start += size;
    descriptor->size_and_free -= size;
    insert(descriptor);
    return start;
}

static void *malloc_small(size_t size, unsigned set)
{
    unsigned class = class_of(size);
    unsigned found = find(set, class);
    uintptr_t start;

    if (found < FIRST_LARGE)
        return pop_small(set, found);
    if (found < CAMA_CLASSES)
        start = carve(head_of(set, found)->large, size);
    else
        start = grow(size, set);
    if (start == 0)
        return NULL;
    small_at(start)->tag = ((uintptr_t)class << CAMA_SMALL_CLASS_SHIFT) | CAMA_SMALL_BIT;
    return (void *)start;
}

/* ----------------------------------------------------------------------------------------------------- large blocks */

/* The word before a used large block. */
static inline struct cama_descriptor **back_pointer(uintptr_t start)
{
    return (void *)(start - CAMA_HEADER_BYTES);
}

/* The used block at `start`, after its descriptor is known to it. */
static inline void *as_used(struct cama_descriptor *descriptor, uintptr_t start)
{
    *back_pointer(start) = descriptor;
    return (void *)start;
}

/* A free block of this set that holds `size` bytes, or NULL: the first of the size's own class, where blocks may be too
 * small, or any of the larger classes. */
static inline struct cama_descriptor *find_large(size_t size, unsigned set)
{
    unsigned class = class_of(size);
    struct cama_descriptor *first = head_of(set, class)->large;

    if (first != NULL && size_of(first) >= size)
        return first;
    class = find(set, class + 1);
    return class < CAMA_CLASSES ? head_of(set, class)->large : NULL;
}

/* Whether a descriptor is available, if need be from a new area. */
static inline int descriptor_available(void)
{
    if (cama_control.available != 0)
        return 1;

    uintptr_t area = area_from(cama_control.top);
    if (top_behind(area) > cama_control.end)
        return 0;
    add_area(area);
    return 1;
}

/* Makes a free block a used one of `size` bytes and frees the rest, if that can be a large block and be described. */
static void cut(struct cama_descriptor *descriptor, size_t size)
{
    size_t rest = size_of(descriptor) - size;

    detach(descriptor);
    if (rest >= CAMA_THRESHOLD && descriptor_available()) {
        descriptor->size_and_free = size;
        insert(describe(descriptor, descriptor->start + size, rest | CAMA_FREE_BIT));
    } else {
        descriptor->size_and_free &= ~CAMA_FREE_BIT;
    }
}

static void *malloc_large(size_t size, unsigned set)
{
    struct cama_descriptor *descriptor = find_large(size, set);

    if (descriptor != NULL) {
        cut(descriptor, size);
    } else {
        uintptr_t start = grow(size, set);
        if (start == 0)
            return NULL;
        descriptor = describe(cama_control.sentinel.left, start, size);
    }
    return as_used(descriptor, descriptor->start);
}

/* Appends the free block `right` to the block `left` before it. Neither is in a list. */
static inline void merge(struct cama_descriptor *left, struct cama_descriptor *right)
{
    left->size_and_free += size_of(right);
    forget(right);
}

static void free_large(struct cama_descriptor *descriptor)
{
    struct cama_descriptor *left = descriptor->left;
    struct cama_descriptor *right = descriptor->right;

    descriptor->size_and_free |= CAMA_FREE_BIT;
    if (is_free(right) && right->start == end_of(descriptor)) {
        detach(right);
        merge(descriptor, right);
    }
    if (is_free(left) && end_of(left) == descriptor->start) {
        detach(left);
        merge(left, descriptor);
        descriptor = left;
    }
    if (end_of(descriptor) == cama_control.top) {
        cama_control.top = descriptor->start;
        forget(descriptor);
    } else {
        insert(descriptor);
    }
}

/* ------------------------------------------------------------------------------------------------------- operations */

static void forget_all_lists(void)
{
    for (size_t plane = 0; plane < CAMA_PLANES; plane++) {
        for (size_t set = 0; set < CAMA_SETS; set++)
            *cama_word_at(plane, set) = (union cama_word){.large = NULL};
    }
}

int cama_init(void *arena, size_t bytes)
{
    uintptr_t begin = (uintptr_t)arena;

    if (begin == 0 || ((begin | bytes) & (CAMA_ALIGNMENT - 1)) != 0 || bytes > CAMA_MAX_HEAP)
        return -1;
    if (begin > UINTPTR_MAX - (CAMA_MAX_HEAP + 2 * CAMA_PAGE_BYTES)) /* where the break would be next must not wrap */
        return -1;
    uintptr_t area = area_from(begin);
    if (top_behind(area) + CAMA_MIN_BLOCK > begin + bytes)
        return -1;

    forget_all_lists();
    cama_control.arena = begin;
    cama_control.end = begin + bytes;
    cama_control.top = begin + CAMA_ALIGNMENT;
    cama_control.spare = NULL;
    cama_control.available = 0;
    cama_control.sentinel.left = &cama_control.sentinel;
    cama_control.sentinel.right = &cama_control.sentinel;
    cama_control.oldest = cama_control.newest = (void *)area;
    add_area(area);
    return 0;
}

void *cama_malloc(size_t bytes, unsigned set)
{
    if (bytes - 1 >= CAMA_MAX_HEAP || set >= CAMA_SETS) /* 0 wraps around to SIZE_MAX */
        return NULL;

    size_t size = block_size(bytes);
    return size < CAMA_THRESHOLD ? malloc_small(size, set) : malloc_large(size, set);
}

void cama_free(void *block)
{
    if (block == NULL)
        return;

    struct cama_small *small = small_at((uintptr_t)block);
    if ((small->tag & CAMA_SMALL_BIT) != 0)
        free_small(small);
    else
        free_large(*back_pointer((uintptr_t)block));
}
