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

/* The first block of the list with this head: a small one, or the descriptor of a large one. */
static inline void *first_of(const union cama_word *head)
{
    return head->first;
}

static inline void set_first(union cama_word *head, void *first)
{
    head->first = first;
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

/* A descriptor for a block, not yet in the chain. One is available. */
static inline struct cama_descriptor *describe(uintptr_t start, size_t size_and_free)
{
    struct cama_descriptor *descriptor = cama_control.spare;

    cama_control.spare = descriptor == cama_control.fresh ? ++cama_control.fresh : descriptor->left;
    cama_control.available--;
    descriptor->start = start;
    descriptor->size_and_free = size_and_free;
    return descriptor;
}

/* Puts a descriptor between two that are neighbours in address order. */
static inline void put_between(struct cama_descriptor *left, struct cama_descriptor *descriptor,
                               struct cama_descriptor *right)
{
    descriptor->left = left;
    descriptor->right = right;
    left->right = descriptor;
    right->left = descriptor;
}

/* Of a descriptor that leaves the chain. It may be in a free list still, for which it keeps prev and next. */
static inline void make_spare(struct cama_descriptor *descriptor)
{
    descriptor->left = cama_control.spare;
    cama_control.spare = descriptor;
    cama_control.available++;
}

/* Puts a free block into its list, if it is no gap below the threshold. */
static inline void insert(struct cama_descriptor *descriptor, uintptr_t start, size_t size)
{
    if (size < CAMA_THRESHOLD)
        return;

    unsigned set = set_of(start);
    unsigned class = class_of(size);
    union cama_word *head = head_of(set, class);
    struct cama_descriptor *first = first_of(head);

    set_first(head, descriptor);
    descriptor->prev = NULL;
    descriptor->next = first;
    if (first != NULL)
        first->prev = descriptor;
    else
        mark_filled(set, class);
}

/* Takes the first block out of the list of this set and class, whose head is known. */
static inline void take_first(struct cama_descriptor *first, union cama_word *head, unsigned set, unsigned class)
{
    struct cama_descriptor *next = first->next;

    set_first(head, next);
    if (next != NULL)
        next->prev = NULL;
    else
        mark_empty(set, class);
}

/* Takes a free block out of its list, wherever it stands there, if it is in one. */
static inline void detach(struct cama_descriptor *descriptor)
{
    if (size_of(descriptor) < CAMA_THRESHOLD)
        return;

    struct cama_descriptor *prev = descriptor->prev;

    if (prev != NULL) {
        struct cama_descriptor *next = descriptor->next;

        prev->next = next;
        if (next != NULL)
            next->prev = prev;
    } else {
        unsigned set = set_of(descriptor->start);
        unsigned class = class_of(size_of(descriptor));

        take_first(descriptor, head_of(set, class), set, class);
    }
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

/* Lays out an area at `begin`, which the break shall be behind. At most one descriptor is available: the first spare. */
static inline void add_area(uintptr_t begin)
{
    struct cama_area *area = (void *)begin;
    struct cama_descriptor *fresh = (void *)(begin + CAMA_DESCRIPTOR_BYTES);

    cama_control.newest->newer = area;
    cama_control.newest = area;
    area->newer = NULL;
    if (cama_control.available != 0)
        cama_control.spare->left = fresh;
    else
        cama_control.spare = fresh;
    cama_control.fresh = fresh;
    cama_control.available += (uint32_t)((area_end(begin) - begin) / CAMA_DESCRIPTOR_BYTES) - 1;
}

/* Puts the descriptor of a block at the break behind all others. */
static inline void append(struct cama_descriptor *descriptor)
{
    put_between(cama_control.sentinel.left, descriptor, &cama_control.sentinel);
}

/* What the break skips on its way becomes a free block. One descriptor is available if anything is skipped. Inlined, as a
 * call would cost more accesses to the stack than it has others. */
__attribute__((always_inline)) static inline void skip(uintptr_t from, uintptr_t to)
{
    if (from >= to)
        return;

    struct cama_descriptor *descriptor = describe(from, (to - from) | CAMA_FREE_BIT);

    insert(descriptor, from, to - from);
    append(descriptor);
}

/* The first start from `from` on that is in this set. */
static inline uintptr_t start_in_set(uintptr_t from, unsigned set)
{
    unsigned sets = (set - set_of(from)) & (CAMA_SETS - 1);

    return sets == 0 ? from : (from & ~(uintptr_t)(CAMA_LINE_BYTES - 1)) + (uintptr_t)sets * CAMA_LINE_BYTES;
}

/* ------------------------------------------------------------------------------------------------------ used blocks */

/* The word before a block: the tag of a small one, the address of the descriptor of a used large one. */
static inline uintptr_t *word_before(uintptr_t start)
{
    return (void *)(start - CAMA_HEADER_BYTES);
}

static inline uintptr_t tag_of(unsigned class)
{
    return ((uintptr_t)class << CAMA_SMALL_CLASS_SHIFT) | CAMA_SMALL_BIT;
}

/* The used block at `start`, after what is to be known of it stands before it. */
static inline void *as_used(uintptr_t start, uintptr_t word)
{
    *word_before(start) = word;
    return (void *)start;
}

/* A new block of this size, at the first start in this set from the break on; NULL iff the arena is at its end. */
static void *grow(size_t size, unsigned set)
{
    uintptr_t top = cama_control.top;
    uintptr_t area = area_from(top);
    int descriptors_want = cama_control.available < GROWTH_DESCRIPTORS;
    uintptr_t from = descriptors_want ? top_behind(area) : top;
    uintptr_t start = start_in_set(from, set);

    if (start > cama_control.end || size > cama_control.end - start)
        return NULL;
    if (descriptors_want) {
        add_area(area);
        skip(top, area);
    }
    skip(from, start);
    cama_control.top = start + size;
    if (size < CAMA_THRESHOLD)
        return as_used(start, tag_of(class_of(size)));

    struct cama_descriptor *descriptor = describe(start, size);

    append(descriptor);
    return as_used(start, (uintptr_t)descriptor);
}

/* ----------------------------------------------------------------------------------------------------- small blocks */

static inline void *small_start(struct cama_small *small)
{
    return &small->next;
}

static void *pop_small(unsigned set, unsigned class)
{
    union cama_word *head = head_of(set, class);
    struct cama_small *small = first_of(head);

    set_first(head, small->next);
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
    small->next = first_of(head);
    set_first(head, small);
    mark_filled(set, class);
}

/* Leaves a free large block that is in no list the `rest` bytes from `start` on, and puts it into a list. */
static inline void carve(struct cama_descriptor *descriptor, uintptr_t start, size_t rest)
{
    descriptor->start = start;
    descriptor->size_and_free = rest | CAMA_FREE_BIT;
    insert(descriptor, start, rest);
}

/* ----------------------------------------------------------------------------------------------------- large blocks */

/* Makes a free block that is in no list a used one of `size` bytes, and frees the `rest` from `start` on. If the rest
 * cannot be a large block or be described, not even in a new area, it stays with the block. */
static inline void cut(struct cama_descriptor *descriptor, uintptr_t start, size_t size, size_t rest)
{
    uintptr_t top = cama_control.top;
    uintptr_t area = cama_control.available == 0 ? area_from(top) : top;

    if (rest < CAMA_THRESHOLD || (cama_control.available == 0 && top_behind(area) > cama_control.end)) {
        descriptor->size_and_free = size + rest;
        return;
    }
    if (cama_control.available == 0) {
        add_area(area);
        cama_control.top = top_behind(area);
    }
    descriptor->size_and_free = size;

    struct cama_descriptor *behind = describe(start, rest | CAMA_FREE_BIT);

    put_between(descriptor, behind, descriptor->right);
    insert(behind, start, rest);
    skip(top, area);
}

static void free_large(struct cama_descriptor *descriptor)
{
    struct cama_descriptor *left = descriptor->left;
    struct cama_descriptor *right = descriptor->right;
    uintptr_t start = descriptor->start;
    uintptr_t end = end_of(descriptor);

    if (is_free(right) && right->start == end) {
        struct cama_descriptor *merged = right;

        end = end_of(merged);
        right = merged->right;
        make_spare(merged);
        detach(merged);
    }
    if (is_free(left) && end_of(left) == start) {
        make_spare(descriptor);
        start = left->start;
        descriptor = left;
        left = left->left;
        detach(descriptor);
    }
    if (end == cama_control.top) {
        cama_control.top = start;
        make_spare(descriptor);
        left->right = right;
        right->left = left;
    } else {
        descriptor->size_and_free = (end - start) | CAMA_FREE_BIT;
        descriptor->right = right;
        right->left = descriptor;
        insert(descriptor, start, end - start);
    }
}

/* ------------------------------------------------------------------------------------------------------- operations */

static void forget_all_lists(void)
{
    for (size_t plane = 0; plane < CAMA_PLANES; plane++) {
        for (size_t set = 0; set < CAMA_SETS; set++)
            *cama_word_at(plane, set) = (union cama_word){.first = NULL};
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
    cama_control.top = top_behind(area);
    cama_control.available = 0;
    cama_control.sentinel.left = &cama_control.sentinel;
    cama_control.sentinel.right = &cama_control.sentinel;
    cama_control.oldest = cama_control.newest = (void *)area;
    add_area(area);
    skip(begin + CAMA_ALIGNMENT, area);
    return 0;
}

/* The class of the list in this set whose first block is taken for `size` bytes; CAMA_CLASSES if there is none. In the
 * own class of a large block that first block may be too small. */
static inline unsigned find_fitting(size_t size, unsigned set)
{
    unsigned class = class_of(size);

    if (size >= CAMA_THRESHOLD) {
        struct cama_descriptor *first = first_of(head_of(set, class));
        if (first == NULL || size_of(first) < size)
            class++;
    }
    return find(set, class);
}

void *cama_malloc(size_t bytes, unsigned set)
{
    if (bytes - 1 >= CAMA_MAX_HEAP || set >= CAMA_SETS) /* 0 wraps around to SIZE_MAX */
        return NULL;

    size_t size = block_size(bytes);
    unsigned class = find_fitting(size, set);
    if (class < FIRST_LARGE)
        return pop_small(set, class);
    if (class == CAMA_CLASSES)
        return grow(size, set);

    union cama_word *head = head_of(set, class);
    struct cama_descriptor *descriptor = first_of(head);
    uintptr_t start = descriptor->start;
    size_t rest = size_of(descriptor) - size;

    take_first(descriptor, head, set, class);
    if (size < CAMA_THRESHOLD) {
        carve(descriptor, start + size, rest);
        return as_used(start, tag_of(class_of(size)));
    }
    cut(descriptor, start + size, size, rest);
    return as_used(start, (uintptr_t)descriptor);
}

void cama_free(void *block)
{
    if (block == NULL)
        return;

    uintptr_t word = *word_before((uintptr_t)block);
    if ((word & CAMA_SMALL_BIT) != 0)
        free_small((void *)word_before((uintptr_t)block));
    else
        free_large((void *)word);
}
