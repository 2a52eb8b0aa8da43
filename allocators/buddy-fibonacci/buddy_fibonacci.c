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

/* The two bits of children, from their parent's tag or bits. */
static inline size_t left_bits(size_t parent)
{
    return (parent & RIGHT) << 1;
}

static inline size_t right_bits(size_t parent)
{
    return RIGHT | (parent & INHERITED);
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

/* `filled` is the bitmap of lists that are not empty: control's, or a copy that its owner writes back. */

static inline size_t bit(size_t class)
{
    return (size_t)1 << class;
}

/* Makes the memory at `block` the first free block of its class; its bit is the caller's to set. */
static inline void start_list(struct buddy_fibonacci_block *block, size_t class, size_t bits)
{
    struct buddy_fibonacci_block **head = &buddy_fibonacci_control.heads[class];

    block->tag = tag_of(class, bits | BUDDY_FIBONACCI_FREE_BIT);
    block->next = NULL;
    block->link = head;
    /* point: started */
    *head = block;
}

/* Makes the memory at `block` a free block; its bit is the caller's to set. */
static inline void push(struct buddy_fibonacci_block *block, size_t class, size_t bits)
{
    struct buddy_fibonacci_block **head = &buddy_fibonacci_control.heads[class];
    struct buddy_fibonacci_block *next = *head;

    block->tag = tag_of(class, bits | BUDDY_FIBONACCI_FREE_BIT);
    block->next = next;
    block->link = head;
    /* point: tested */
    if (next != NULL)
        /* point: joined */
        next->link = &block->next;
    /* point: pushed */
    *head = block;
}

/* The class of the list whose head is at `link`; no class, if that is in a block. */
static inline size_t class_of_head(struct buddy_fibonacci_block **link)
{
    return ((uintptr_t)link - (uintptr_t)buddy_fibonacci_control.heads) / sizeof *link;
}

/* A function of its own, as flow facts say less of where a link is than of where blocks are. */
static inline void redirect(struct buddy_fibonacci_block **link, struct buddy_fibonacci_block *block)
{
    /* point: redirected */
    *link = block;
}

/* Takes a block out of its list, wherever it stands there. */
static inline void detach(struct buddy_fibonacci_block *block, size_t *filled)
{
    struct buddy_fibonacci_block *next = block->next;
    struct buddy_fibonacci_block **link = block->link;

    redirect(link, next);
    /* point: tested */
    if (next != NULL)
        /* point: joined */
        next->link = link;
    else if (class_of_head(link) < BUDDY_FIBONACCI_CLASSES)
        *filled &= ~bit(class_of_head(link));
}

static inline struct buddy_fibonacci_block *pop(size_t class, size_t *filled)
{
    struct buddy_fibonacci_block **head = &buddy_fibonacci_control.heads[class];
    struct buddy_fibonacci_block *block = *head;
    struct buddy_fibonacci_block *next = block->next;

    /* point: popped */
    *head = next;
    /* point: tested */
    if (next != NULL)
        /* point: joined */
        next->link = head;
    else
        *filled &= ~bit(class);
    return block;
}

/* ----------------------------------------------------------------------------------------------------- split, merge */

/* The lists that `cut` files blocks in: every second below the block's. But where the last would be that of `class`
 * itself, it is the one below: that split leaves the class as a left child. */
static inline size_t cut_lists(size_t levels, size_t class)
{
#if BUDDY_FIBONACCI_FOLLOW == BUDDY_FIBONACCI_SMALLER
    size_t lists = 0x55555555 >> (BUDDY_FIBONACCI_CLASSES - 1 - levels); /* bit 0 is the list of `class` */
    return ((lists << 1) - (levels & 1)) << class >> 1;
#else
    return (bit(levels) - 1) << class >> 1;
#endif
}

/* Splits a block, `levels` above `class`, until it is of `class`, or of class 1 for class 0. The lists from `class` on,
 * up to that of the block, are empty; the one below may not be. */
static inline struct buddy_fibonacci_block *cut(struct buddy_fibonacci_block *block, size_t levels, size_t class,
                                                struct sizes sizes)
{
    size_t bits = block->tag & (RIGHT | INHERITED);

    while (levels >= 2) { /* loop: split */
        sizes = down(sizes);
        struct buddy_fibonacci_block *right = behind(block, sizes.own);
#if BUDDY_FIBONACCI_FOLLOW == BUDDY_FIBONACCI_SMALLER
        start_list(block, class + levels - 1, left_bits(bits));
        block = right;
        levels -= 2;
        bits = right_bits(bits);
        sizes = down(sizes);
#else
        start_list(right, class + levels - 2, right_bits(bits));
        levels--;
        bits = left_bits(bits);
#endif
    }
    if (levels > 0 && class > 0) {
        push(behind(block, down(sizes).own), class - 1, right_bits(bits));
        levels = 0;
        bits = left_bits(bits);
    }
    block->tag = tag_of(class + levels, bits);
    return block;
}

/* A block that is merged: its tag as a used one's, and its size. */
struct piece {
    struct buddy_fibonacci_block *block;
    size_t tag;
    struct sizes sizes;
};

/* Merges a right child with its buddy, which is returned and still in its list. NULL: the buddy is not free. */
static inline struct buddy_fibonacci_block *merge_to_the_left(struct piece *piece)
{
    size_t class = class_of(piece->tag) + 1;
    struct buddy_fibonacci_block *left = block_of((unsigned char *)piece->block - piece->sizes.above);

    /* point: tested */
    if (!is_free_of_class(left->tag, class))
        return NULL;
    piece->block = left;
    piece->tag = parent_tag(left->tag, piece->tag);
    piece->sizes = up(up(piece->sizes));
    return left;
}

/* Merges a left child with its buddy, as above. */
static inline struct buddy_fibonacci_block *merge_to_the_right(struct piece *piece)
{
    size_t class = class_of(piece->tag) - 1;
    struct buddy_fibonacci_block *right = block_of((unsigned char *)piece->block + piece->sizes.own);

    if ((unsigned char *)right == buddy_fibonacci_control.base + buddy_fibonacci_control.bytes) /* the last root */
        return NULL;
    /* point: tested */
    if (!is_free_of_class(right->tag, class))
        return NULL;
    piece->tag = parent_tag(piece->tag, right->tag);
    piece->sizes = up(piece->sizes);
    return right;
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
            push((void *)(buddy_fibonacci_control.base + offset), class, 0);
            buddy_fibonacci_control.filled |= bit(class);
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
        /* point: rounded */
        class++;
        sizes = up(sizes);
    }

    size_t filled = buddy_fibonacci_control.filled;
    size_t levels = 0;
    if (filled >> class == 0)
        return NULL;
    while ((filled >> class >> levels & 1) == 0) { /* loop: search */
        /* point: passed */
        levels++;
        sizes = up(sizes);
    }

    struct buddy_fibonacci_block *block = pop(class + levels, &filled);
    buddy_fibonacci_control.filled = filled | cut_lists(levels, class);
    return (unsigned char *)cut(block, levels, class, sizes) + BUDDY_FIBONACCI_HEADER_BYTES;
}

void buddy_fibonacci_free(void *payload)
{
    if (payload == NULL)
        return;

    struct buddy_fibonacci_block *block = block_of(payload);
    struct piece piece = {block, block->tag, sizes_of(class_of(block->tag))};
    size_t filled = buddy_fibonacci_control.filled;

    for (;;) { /* loop: merge */
        struct buddy_fibonacci_block *buddy =
            (piece.tag & RIGHT) != 0 ? merge_to_the_left(&piece) : merge_to_the_right(&piece);
        if (buddy == NULL)
            break;
        detach(buddy, &filled);
    }
    push(piece.block, class_of(piece.tag), piece.tag & (RIGHT | INHERITED));
    buddy_fibonacci_control.filled = filled | bit(class_of(piece.tag));
}
