/* SPDX-License-Identifier: 0BSD */
/* The Fibonacci buddy system of P02 section 2.5 (see README.md). The manual is buddy_fibonacci.h. */
#include "buddy_fibonacci.h"

_Static_assert(BUDDY_FIBONACCI_ALIGN == 4 || BUDDY_FIBONACCI_ALIGN == 8, "BUDDY_FIBONACCI_ALIGN is 4 or 8");
_Static_assert(BUDDY_FIBONACCI_MINIMUM == 16 || BUDDY_FIBONACCI_MINIMUM == 32 || BUDDY_FIBONACCI_MINIMUM == 64,
               "BUDDY_FIBONACCI_MINIMUM is 16, 32 or 64");
_Static_assert(BUDDY_FIBONACCI_FOLLOW == BUDDY_FIBONACCI_SMALLER || BUDDY_FIBONACCI_FOLLOW == BUDDY_FIBONACCI_LARGER,
               "BUDDY_FIBONACCI_FOLLOW is 0 or 1");
_Static_assert(sizeof(struct buddy_fibonacci_block) <= BUDDY_FIBONACCI_MINIMUM_BLOCK,
               "the minimum block holds the links");

struct buddy_fibonacci_control buddy_fibonacci_control;

/* ---------------------------------------------------------------------------------------------------------- classes */

#define M BUDDY_FIBONACCI_MINIMUM_BLOCK

static const size_t bytes_of[BUDDY_FIBONACCI_CLASSES] = {
    M, M, 2 * M, 3 * M, 5 * M, 8 * M,
    13 * M, 21 * M, 34 * M, 55 * M, 89 * M, 144 * M,
    233 * M, 377 * M, 610 * M, 987 * M, 1597 * M, 2584 * M,
    4181 * M, 6765 * M, 10946 * M, 17711 * M, 28657 * M, 46368 * M,
    75025 * M, 121393 * M, 196418 * M, 317811 * M, 514229 * M, 832040 * M,
    1346269 * M, 2178309 * M, 3524578 * M, 5702887 * M, 9227465 * M, 14930352 * M,
};

#undef M

/* ----------------------------------------------------------------------------------------------------------- blocks */

#define RIGHT BUDDY_FIBONACCI_RIGHT_BIT
#define INHERITED BUDDY_FIBONACCI_INHERITED_BIT

static inline struct buddy_fibonacci_block *behind(struct buddy_fibonacci_block *block, size_t bytes)
{
    return (void *)((unsigned char *)block + bytes);
}

static inline struct buddy_fibonacci_block *before(struct buddy_fibonacci_block *block, size_t bytes)
{
    return (void *)((unsigned char *)block - bytes);
}

static inline struct buddy_fibonacci_block *block_of(void *payload)
{
    return before(payload, BUDDY_FIBONACCI_HEADER_BYTES);
}

static inline size_t tag_at(void *payload)
{
    return block_of(payload)->tag;
}

static inline size_t class_of(size_t tag)
{
    return tag >> BUDDY_FIBONACCI_CLASS_SHIFT;
}

/* The tag of a used block: the class, and those of the two bits that are set in `bits`. */
static inline size_t tag_of(size_t class, size_t bits)
{
    return class << BUDDY_FIBONACCI_CLASS_SHIFT | bits;
}

static inline size_t left_tag(size_t parent_tag)
{
    return tag_of(class_of(parent_tag) - 1, (parent_tag & RIGHT) << 1);
}

static inline size_t right_tag(size_t parent_tag)
{
    return tag_of(class_of(parent_tag) - 2, RIGHT | (parent_tag & INHERITED));
}

static inline size_t parent_tag(size_t left_tag, size_t right_tag)
{
    return tag_of(class_of(left_tag) + 1, (left_tag & INHERITED) >> 1 | (right_tag & INHERITED));
}

static inline int is_free_of_class(const struct buddy_fibonacci_block *block, size_t class)
{
    return (block->tag & ~(RIGHT | INHERITED)) == tag_of(class, BUDDY_FIBONACCI_FREE_BIT);
}

/* ------------------------------------------------------------------------------------------------------------ lists */

/* Makes the memory at `block` a free block; the tag is a used one's. */
static inline void push(struct buddy_fibonacci_block *block, size_t tag)
{
    size_t class = class_of(tag);
    struct buddy_fibonacci_block *head = buddy_fibonacci_control.heads[class];

    block->tag = tag | BUDDY_FIBONACCI_FREE_BIT;
    block->next = head;
    block->prev = NULL;
    /* point: tested */
    if (head != NULL)
        /* point: joined */
        head->prev = block;
    /* point: pushed */
    buddy_fibonacci_control.heads[class] = block;
}

static inline struct buddy_fibonacci_block *pop(size_t class)
{
    struct buddy_fibonacci_block *head = buddy_fibonacci_control.heads[class];
    struct buddy_fibonacci_block *next = head->next;

    if (next != NULL)
        /* point: joined */
        next->prev = NULL;
    buddy_fibonacci_control.heads[class] = next;
    return head;
}

/* Takes a block out of its list, wherever it stands there. */
static inline void detach(struct buddy_fibonacci_block *block, size_t class)
{
    struct buddy_fibonacci_block *next = block->next;
    struct buddy_fibonacci_block *prev = block->prev;

    if (prev != NULL)
        /* point: follows */
        prev->next = next;
    else
        /* point: first */
        buddy_fibonacci_control.heads[class] = next;
    if (next != NULL)
        /* point: joined */
        next->prev = prev;
}

/* ----------------------------------------------------------------------------------------------------- split, merge */

/* Splits `block` until it is of `class`, or of class 1 for class 0, and marks what is kept as used. */
static inline struct buddy_fibonacci_block *cut(struct buddy_fibonacci_block *block, size_t class)
{
    /* point: found */
    size_t tag = block->tag & ~BUDDY_FIBONACCI_FREE_BIT;

    while (class_of(tag) > class && class_of(tag) > 1) { /* loop: split */
        /* point: split */
        struct buddy_fibonacci_block *right = behind(block, bytes_of[class_of(tag) - 1]);
#if BUDDY_FIBONACCI_FOLLOW == BUDDY_FIBONACCI_SMALLER
        if (class_of(tag) - class >= 2) {
            push(block, left_tag(tag));
            block = right;
            tag = right_tag(tag);
            continue;
        }
#endif
        push(right, right_tag(tag));
        tag = left_tag(tag);
    }
    block->tag = tag;
    return block;
}

/* Merges a right child with its buddy: both become *block. Returns 0 iff the buddy is not free. */
static inline int merge_to_the_left(struct buddy_fibonacci_block **block, size_t *tag)
{
    size_t class = class_of(*tag) + 1;
    struct buddy_fibonacci_block *left = before(*block, bytes_of[class]);

    /* point: tested */
    if (!is_free_of_class(left, class))
        return 0;
    detach(left, class);
    *tag = parent_tag(left->tag, *tag);
    *block = left;
    return 1;
}

/* Merges a left child with its buddy. Returns 0 iff the buddy is not free. */
static inline int merge_to_the_right(struct buddy_fibonacci_block *block, size_t *tag)
{
    size_t class = class_of(*tag) - 1;
    struct buddy_fibonacci_block *right = behind(block, bytes_of[class + 1]);

    if ((unsigned char *)right == buddy_fibonacci_control.base + buddy_fibonacci_control.bytes) /* the last root */
        return 0;
    /* point: tested */
    if (!is_free_of_class(right, class))
        return 0;
    detach(right, class);
    *tag = parent_tag(*tag, right->tag);
    return 1;
}

/* ------------------------------------------------------------------------------------------------------- operations */

/* Written through volatile, or the compiler makes the loop a call of memset. */
static void forget_all_lists(void)
{
    for (size_t class = 0; class < BUDDY_FIBONACCI_CLASSES; class++)
        *(struct buddy_fibonacci_block *volatile *)&buddy_fibonacci_control.heads[class] = NULL;
}

/* Cuts the heap into its roots, largest first; a root of the minimum block is of class 1, as every left child. */
static void make_roots(size_t bytes)
{
    size_t class = BUDDY_FIBONACCI_CLASSES - 1;
    size_t offset = 0;

    while (bytes_of[class] > bytes)
        class--;
    buddy_fibonacci_control.classes = class + 1;
    buddy_fibonacci_control.largest_request = bytes_of[class] - BUDDY_FIBONACCI_HEADER_BYTES;
    for (; class > 0; class--) {
        if (bytes_of[class] <= bytes - offset) {
            push((void *)(buddy_fibonacci_control.base + offset), tag_of(class, 0));
            offset += bytes_of[class];
        }
    }
    buddy_fibonacci_control.bytes = offset;
}

int buddy_fibonacci_init(void *arena, size_t bytes)
{
    if (arena == NULL || (uintptr_t)arena % BUDDY_FIBONACCI_MINIMUM_BLOCK != 0
        || bytes % BUDDY_FIBONACCI_ALIGNMENT != 0)
        return -1;
    if (bytes < BUDDY_FIBONACCI_MINIMUM_BLOCK || bytes > BUDDY_FIBONACCI_MAX_HEAP)
        return -1;

    buddy_fibonacci_control.base = arena;
    forget_all_lists();
    make_roots(bytes);
    return 0;
}

void *buddy_fibonacci_malloc(size_t bytes)
{
    if (bytes - 1 >= buddy_fibonacci_control.largest_request) /* 0 wraps around to SIZE_MAX */
        return NULL;

    size_t class = 0;
    while (bytes_of[class] < bytes + BUDDY_FIBONACCI_HEADER_BYTES) /* loop: round */
        class++;

    size_t found = class;
    while (buddy_fibonacci_control.heads[found] == NULL) { /* loop: search */
        found++;
        if (found == buddy_fibonacci_control.classes)
            return NULL;
    }
    return (unsigned char *)cut(pop(found), class) + BUDDY_FIBONACCI_HEADER_BYTES;
}

void buddy_fibonacci_free(void *payload)
{
    if (payload == NULL)
        return;

    struct buddy_fibonacci_block *block = block_of(payload);
    size_t tag = tag_at(payload);

    while ((tag & RIGHT) != 0 ? merge_to_the_left(&block, &tag) : merge_to_the_right(block, &tag)) { /* loop: merge */
    }
    push(block, tag);
}
