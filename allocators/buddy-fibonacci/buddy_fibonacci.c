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

/* One more than there are classes: the size above the last. */
static const size_t bytes_of[BUDDY_FIBONACCI_CLASSES + 1] = {
    M, M, 2 * M, 3 * M, 5 * M, 8 * M,
    13 * M, 21 * M, 34 * M, 55 * M, 89 * M, 144 * M,
    233 * M, 377 * M, 610 * M, 987 * M, 1597 * M, 2584 * M,
    4181 * M, 6765 * M, 10946 * M, 17711 * M, 28657 * M, 46368 * M,
    75025 * M, 121393 * M, 196418 * M, 317811 * M, 514229 * M, 832040 * M,
    1346269 * M, 2178309 * M, 3524578 * M,
};

#undef M

/* Bytes of a class and of the next one: two neighbours in the series, from which it is walked up and down. */
struct sizes {
    size_t own;
    size_t above;
};

static inline struct sizes sizes_of(size_t class)
{
    return (struct sizes){bytes_of[class], bytes_of[class + 1]};
}

static inline struct sizes up(struct sizes sizes)
{
    return (struct sizes){sizes.above, sizes.own + sizes.above};
}

static inline struct sizes down(struct sizes sizes)
{
    return (struct sizes){sizes.above - sizes.own, sizes.own};
}

/* ----------------------------------------------------------------------------------------------------------- blocks */

#define RIGHT BUDDY_FIBONACCI_RIGHT_BIT
#define INHERITED BUDDY_FIBONACCI_INHERITED_BIT

static inline struct buddy_fibonacci_block *behind(struct buddy_fibonacci_block *block, size_t bytes)
{
    return (void *)((unsigned char *)block + bytes);
}

/* The block that starts less than a minimum block before the address, or at it: blocks start at multiples of one. */
static inline struct buddy_fibonacci_block *block_of(void *address)
{
    return (void *)((uintptr_t)address & ~(uintptr_t)(BUDDY_FIBONACCI_MINIMUM_BLOCK - 1));
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

static inline int is_free_of_class(size_t tag, size_t class)
{
    return (tag & ~(RIGHT | INHERITED)) == tag_of(class, BUDDY_FIBONACCI_FREE_BIT);
}

/* ------------------------------------------------------------------------------------------------------------ lists */

/* `filled` is the bitmap of lists that are not empty: control's, or a copy that its owner writes back. The tags that
 * blocks are pushed with are used ones. */

static inline size_t bit(size_t class)
{
    return (size_t)1 << class;
}

/* Makes the memory at `block` the first free block of its class. */
static inline void start_list(struct buddy_fibonacci_block *block, size_t tag, size_t *filled)
{
    size_t class = class_of(tag);

    block->tag = tag | BUDDY_FIBONACCI_FREE_BIT;
    block->next = NULL;
    block->prev = NULL;
    *filled |= bit(class);
    /* point: started */
    buddy_fibonacci_control.heads[class] = block;
}

/* Makes the memory at `block` a free block. */
static inline void push(struct buddy_fibonacci_block *block, size_t tag, size_t *filled)
{
    size_t class = class_of(tag);
    struct buddy_fibonacci_block *head = buddy_fibonacci_control.heads[class];

    block->tag = tag | BUDDY_FIBONACCI_FREE_BIT;
    block->next = head;
    block->prev = NULL;
    if (head != NULL)
        head->prev = block;
    *filled |= bit(class);
    /* point: pushed */
    buddy_fibonacci_control.heads[class] = block;
}

static inline struct buddy_fibonacci_block *pop(size_t class, size_t *filled)
{
    struct buddy_fibonacci_block *head = buddy_fibonacci_control.heads[class];
    struct buddy_fibonacci_block *next = head->next;

    /* point: popped */
    buddy_fibonacci_control.heads[class] = next;
    if (next != NULL)
        next->prev = NULL;
    else
        *filled &= ~bit(class);
    return head;
}

/* Takes a block out of its list, wherever it stands there. */
static inline void detach(struct buddy_fibonacci_block *block, size_t class, size_t *filled)
{
    struct buddy_fibonacci_block *next = block->next;
    struct buddy_fibonacci_block *prev = block->prev;

    *(prev != NULL ? &prev->next : &buddy_fibonacci_control.heads[class]) = next;
    if (next != NULL)
        next->prev = prev;
    else if (prev == NULL)
        *filled &= ~bit(class);
}

/* ----------------------------------------------------------------------------------------------------- split, merge */

/* A block that is split or merged: its tag as a used one's, and its size. */
struct piece {
    struct buddy_fibonacci_block *block;
    size_t tag;
    struct sizes sizes;
};

/* Splits `piece` until it is of `class`, or of class 1 for class 0. The lists from `class` on, up to that of the piece,
 * are empty; the one below may not be. */
static inline void cut(struct piece *piece, size_t class, size_t *filled)
{
    while (class_of(piece->tag) >= class + 2) { /* loop: split */
        piece->sizes = down(piece->sizes);
        struct buddy_fibonacci_block *right = behind(piece->block, piece->sizes.own);
#if BUDDY_FIBONACCI_FOLLOW == BUDDY_FIBONACCI_SMALLER
        start_list(piece->block, left_tag(piece->tag), filled);
        piece->block = right;
        piece->tag = right_tag(piece->tag);
        piece->sizes = down(piece->sizes);
#else
        start_list(right, right_tag(piece->tag), filled);
        piece->tag = left_tag(piece->tag);
#endif
    }
    if (class_of(piece->tag) > class && class_of(piece->tag) > 1) {
        push(behind(piece->block, down(piece->sizes).own), right_tag(piece->tag), filled);
        piece->tag = left_tag(piece->tag);
    }
}

/* Merges a right child with its buddy. Returns 0 iff the buddy is not free. */
static inline int merge_to_the_left(struct piece *piece, size_t *filled)
{
    size_t class = class_of(piece->tag) + 1;
    struct buddy_fibonacci_block *left = block_of((unsigned char *)piece->block - piece->sizes.above);

    /* point: tested */
    if (!is_free_of_class(left->tag, class))
        return 0;
    detach(left, class, filled);
    piece->block = left;
    piece->tag = parent_tag(left->tag, piece->tag);
    piece->sizes = up(up(piece->sizes));
    return 1;
}

/* Merges a left child with its buddy. Returns 0 iff the buddy is not free. */
static inline int merge_to_the_right(struct piece *piece, size_t *filled)
{
    size_t class = class_of(piece->tag) - 1;
    struct buddy_fibonacci_block *right = block_of((unsigned char *)piece->block + piece->sizes.own);

    if ((unsigned char *)right == buddy_fibonacci_control.base + buddy_fibonacci_control.bytes) /* the last root */
        return 0;
    /* point: tested */
    if (!is_free_of_class(right->tag, class))
        return 0;
    detach(right, class, filled);
    piece->tag = parent_tag(piece->tag, right->tag);
    piece->sizes = up(piece->sizes);
    return 1;
}

/* ------------------------------------------------------------------------------------------------------- operations */

/* Written through volatile, or the compiler makes the loop a call of memset. */
static void forget_all_lists(void)
{
    buddy_fibonacci_control.filled = 0;
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
    buddy_fibonacci_control.largest_request = bytes_of[class] - BUDDY_FIBONACCI_HEADER_BYTES;
    for (; class > 0; class--) {
        if (bytes_of[class] <= bytes - offset) {
            push((void *)(buddy_fibonacci_control.base + offset), tag_of(class, 0), &buddy_fibonacci_control.filled);
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
    struct sizes sizes = sizes_of(class);
    while (sizes.own < bytes + BUDDY_FIBONACCI_HEADER_BYTES) { /* loop: round */
        class++;
        sizes = up(sizes);
    }

    size_t filled = buddy_fibonacci_control.filled;
    size_t found = class;
    if (filled >> class == 0)
        return NULL;
    while ((filled >> found & 1) == 0) { /* loop: search */
        found++;
        sizes = up(sizes);
    }

    struct buddy_fibonacci_block *block = pop(found, &filled);
    struct piece piece = {block, block->tag & ~BUDDY_FIBONACCI_FREE_BIT, sizes};
    cut(&piece, class, &filled);
    piece.block->tag = piece.tag;
    buddy_fibonacci_control.filled = filled;
    return (unsigned char *)piece.block + BUDDY_FIBONACCI_HEADER_BYTES;
}

void buddy_fibonacci_free(void *payload)
{
    if (payload == NULL)
        return;

    struct buddy_fibonacci_block *block = block_of(payload);
    struct piece piece = {block, block->tag, sizes_of(class_of(block->tag))};
    size_t filled = buddy_fibonacci_control.filled;

    /* loop: merge */
    for (int merged = 1; merged;)
        merged = (piece.tag & RIGHT) != 0 ? merge_to_the_left(&piece, &filled) : merge_to_the_right(&piece, &filled);
    push(piece.block, piece.tag, &filled);
    buddy_fibonacci_control.filled = filled;
}
