/* SPDX-License-Identifier: 0BSD */
/*
 * CAMA, cache-aware memory allocator: malloc takes the cache set that the block shall start in, and malloc and free touch
 * a known part of the data cache only, whatever the heap looks like. Both run in constant time.
 *
 * Neither call contains a recursion, a division or 64-bit arithmetic on a 32-bit target; the one loop goes over the
 * CAMA_VECTOR_WORDS words of a bit vector. Nothing here calls a library function. There is one heap. Nothing is
 * thread-safe: the caller locks, or calls from one thread only.
 *
 * Cache sets: the set of an address is (address / CAMA_LINE_BYTES) % CAMA_SETS. A cache page is CAMA_PAGE_BYTES of memory,
 * aligned: one line of each set. CAMA_DESCRIPTOR_SETS sets from CAMA_FIRST_SET on are the reserved sets. All static
 * data and all descriptors lie in reserved sets. A call touches
 *
 *     the reserved sets,  the set of the block's first byte,  the set of the word before it,  the stack
 *
 * and nothing else. The word before a block is in the block's own line, unless the block starts a line.
 *
 * Blocks: `start` is the address of the first byte that the user gets, `size` what the block takes from the heap: the
 * user's bytes plus the word before them. A block takes [start - CAMA_HEADER_BYTES, start + size - CAMA_HEADER_BYTES).
 *
 *     large, size >= CAMA_THRESHOLD:  a descriptor, apart from the block, says all. The word before a used block points
 *                                     to it; the memory of a free block is never touched.
 *     small, size <  CAMA_THRESHOLD:  no descriptor; never split, never merged. The word before the block is a tag: its
 *                                     class and whether it is free. The first word of a free one links its list.
 *
 * Classes: a free block is in the list of its set and class. Row i holds the sizes of [2^i, 2^(i+1)), from i =
 * CAMA_ROW_MIN on, cut into CAMA_TL classes of equal width; the last class holds all that is larger, too.
 *
 *     class = (i - CAMA_ROW_MIN) * CAMA_TL + (size >> (i - log2 CAMA_TL)) - CAMA_TL,  i = floor(log2 size)
 *
 * Small blocks have the least size of their class. Lists are last in, first out.
 *
 * The heap grows towards the end of the arena: the break is the start that the next new block would have. Descriptor
 * areas lie among the blocks, one in a cache page at most.
 */
#ifndef CAMA_H
#define CAMA_H

#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------------------------------ parameters of the build */

/* The data cache. The defaults are those of the MPC603e, which H11 section V.B measures on. Powers of two. */
#ifndef CAMA_SETS
#define CAMA_SETS 128
#endif
#ifndef CAMA_LINE_BYTES
#define CAMA_LINE_BYTES 32
#endif

/* The reserved sets: the first, and how many, a power of two. */
#ifndef CAMA_FIRST_SET
#define CAMA_FIRST_SET 0
#endif
#ifndef CAMA_DESCRIPTOR_SETS
#define CAMA_DESCRIPTOR_SETS 32
#endif

/* Size classes: SL rows, one per power of two, of TL classes each, a power of two. H11 section IV.C: 11 and 4. */
#ifndef CAMA_SL
#define CAMA_SL 11
#endif
#ifndef CAMA_TL
#define CAMA_TL 4
#endif

/* ----------------------------------------------------------------------------------------------------- what follows */

#if UINTPTR_MAX > 0xFFFFFFFF
#define CAMA_WORD_BITS 3
#else
#define CAMA_WORD_BITS 2
#endif

/* One word before each block. Starts and sizes are multiples of two words, 8 bytes on 32-bit targets. */
#define CAMA_HEADER_BYTES ((size_t)1 << CAMA_WORD_BITS)
#define CAMA_ALIGNMENT (2 * CAMA_HEADER_BYTES)

/* The least size, and the first row: 16 and 4 on 32-bit targets. */
#define CAMA_ROW_MIN (CAMA_WORD_BITS + 2u)
#define CAMA_MIN_BLOCK ((size_t)1 << CAMA_ROW_MIN)

/* 32 on 32-bit targets, where it is one line of the default geometry. */
#define CAMA_DESCRIPTOR_BYTES (8 * CAMA_HEADER_BYTES)

/* H11 section IV.B, (page - descriptor bytes) / descriptors, rounded up to the next power of two: a page then never holds
 * more blocks than descriptors, and the threshold is a class boundary. 128 by default. */
#define CAMA_THRESHOLD (CAMA_SETS / CAMA_DESCRIPTOR_SETS * CAMA_DESCRIPTOR_BYTES)

#define CAMA_PAGE_BYTES ((size_t)CAMA_SETS * CAMA_LINE_BYTES)
#define CAMA_RESERVED_BYTES ((size_t)CAMA_DESCRIPTOR_SETS * CAMA_LINE_BYTES)
#define CAMA_RESERVED_OFFSET ((size_t)CAMA_FIRST_SET * CAMA_LINE_BYTES)

#define CAMA_CLASSES (CAMA_SL * CAMA_TL)
#define CAMA_VECTOR_WORDS ((CAMA_CLASSES + 31) / 32)

/* The largest arena. A request that is larger fails at once. */
#define CAMA_MAX_HEAP ((size_t)1 << 28)

/* -------------------------------------------------------------------------------------------------- data structures */

#define CAMA_FREE_BIT ((size_t)1)

/* A large block, or a gap: memory that was skipped so that the next block starts in its set. Gaps below the threshold are
 * in no list: they wait for a neighbour to be freed. Descriptors are chained in address order, through a sentinel. */
struct cama_descriptor {
    _Alignas(CAMA_DESCRIPTOR_BYTES) struct cama_descriptor *left; /* the descriptor before it in address order */
    struct cama_descriptor *right;                                /* the one behind it */
    struct cama_descriptor *prev;                                 /* before it in its free list, or NULL */
    struct cama_descriptor *next;                                 /* behind it in its free list, or NULL */
    uintptr_t start;                                              /* of the block */
    size_t size_and_free;                                         /* of the block, plus CAMA_FREE_BIT if it is free */
};

/* A descriptor area starts with this, in the place of a descriptor, and lasts to the end of the reserved sets of its
 * cache page. Areas are never given back. */
struct cama_area {
    struct cama_area *newer; /* the next area, at a higher address; NULL in the newest */
};

/* The tag of a small block, and its link while it is free. `start` points to the second member. */
struct cama_small {
    uintptr_t tag; /* bit 0: 1, which no descriptor's address has; bit 1: free; from bit 2 on: class */
    struct cama_small *next;
};
#define CAMA_SMALL_BIT ((uintptr_t)1)
#define CAMA_SMALL_FREE_BIT ((uintptr_t)2)
#define CAMA_SMALL_CLASS_SHIFT 2

/* What the allocator knows apart from the heap, at CAMA_FIRST_SET of a cache page. All zero before cama_init: then every
 * malloc returns NULL. */
struct cama_control {
#if CAMA_FIRST_SET > 0
    unsigned char before[CAMA_RESERVED_OFFSET];
#endif
    uintptr_t arena;                 /* start of the arena */
    uintptr_t end;                   /* its end, which the break never passes */
    uintptr_t top;                   /* the break */
    struct cama_descriptor *spare;   /* the next to be used: those used before, linked by left, up to fresh */
    struct cama_descriptor *fresh;   /* in the newest area, the first that never was used */
    uint32_t available;              /* how many descriptors are spare or fresh */
    struct cama_area *newest;        /* descriptor areas: the last */
    struct cama_area *oldest;        /* and the first */
    struct cama_descriptor sentinel; /* its right is the first descriptor in address order, its left the last */
};

/* A word of the tables. */
union cama_word {
    uint32_t lists; /* of a bit vector: bit c, the list of class c, or 32 + c, is not empty */
    void *first;    /* head of a list: a struct cama_small, or cama_descriptor if the class is large, or NULL */
};

/*
 * The tables: CAMA_VECTOR_WORDS bit vector words for each set, then a head for each class and set. Word number
 * plane * CAMA_SETS + set; the planes are the vector words, then the classes. The words fill the reserved sets of one
 * cache page after the other; see cama_word_at.
 */
#define CAMA_PAGE_WORDS (CAMA_RESERVED_BYTES / sizeof(union cama_word))
#define CAMA_PLANES (CAMA_VECTOR_WORDS + CAMA_CLASSES)
#define CAMA_TABLE_PAGES ((CAMA_PLANES * CAMA_SETS + CAMA_PAGE_WORDS - 1) / CAMA_PAGE_WORDS)
#define CAMA_SKIPPED_WORDS (CAMA_RESERVED_OFFSET / sizeof(union cama_word))

extern struct cama_control cama_control;
extern union cama_word cama_tables[CAMA_TABLE_PAGES][CAMA_PAGE_BYTES / sizeof(union cama_word)];

static inline union cama_word *cama_word_at(size_t plane, size_t set)
{
    const size_t number = plane * CAMA_SETS + set;
    return &cama_tables[number / CAMA_PAGE_WORDS][CAMA_SKIPPED_WORDS + number % CAMA_PAGE_WORDS];
}

/* ------------------------------------------------------------------------------------------------------- operations */

/*
 * Makes the arena the heap: one descriptor area, at the first place that the reserved sets allow, and the break behind it;
 * what lies before the area is a free block. Blocks of an earlier heap are forgotten.
 *
 * Returns 0, or nonzero iff arena is NULL or not a multiple of CAMA_ALIGNMENT, or bytes is not a multiple of
 * CAMA_ALIGNMENT, above CAMA_MAX_HEAP or too few for the area and a least block, or the arena starts less than
 * CAMA_MAX_HEAP and two cache pages before the end of the address space; then nothing has changed. An arena whose
 * reserved sets lie at its start needs 1048 bytes with the default parameters.
 * Time: linear in the size of the tables, whatever the size of the arena.
 */
int cama_init(void *arena, size_t bytes);

/*
 * Returns a block of at least `bytes` bytes whose first byte maps to cache set `set`, aligned on CAMA_ALIGNMENT.
 *
 * Looks at the first free block of the request's set and class, then for the first list of the set that holds larger ones.
 * What is found is cut where the rest can be a large block. If nothing is found the heap grows: what the break skips
 * to reach the set becomes a free block. A new descriptor area is laid out where descriptors are wanting.
 *
 * Returns NULL iff bytes is 0, or set is not below CAMA_SETS, or nothing was found and the arena's end is too
 * near; then nothing has changed.
 * Time: O(1).
 */
void *cama_malloc(size_t bytes, unsigned set);

/*
 * Gives a block back. A large one is merged with its free neighbours at once, and the break falls back if it lies
 * behind them. cama_free(NULL) does nothing. The behaviour is undefined if the argument is not a block of the current
 * heap that is in use.
 * Time: O(1).
 */
void cama_free(void *block);

/* The invariants, in the order in which they are looked at. */
enum cama_violation {
    CAMA_HEAP_SOUND = 0,
    CAMA_NO_HEAP,            /* cama_init has not succeeded yet */
    CAMA_BAD_AREA,           /* an area is out of its place, or the areas are not in address order */
    CAMA_BAD_DESCRIPTOR,     /* a descriptor lies where none can be */
    CAMA_BAD_LEFT,           /* left is not the descriptor before */
    CAMA_BAD_SIZE,           /* a size is not aligned, too small or too large for where the block lies */
    CAMA_BAD_ADJACENT_FREE,  /* two neighbours are free, or a free block ends at the break */
    CAMA_BAD_BACK_POINTER,   /* the word before a used large block does not point to its descriptor */
    CAMA_BAD_TAG,            /* there is no block, or its tag names no small class */
    CAMA_BAD_CHAIN,          /* the blocks, areas and descriptors do not end together at the break */
    CAMA_BAD_SPARE,          /* the spare list leads astray, or holds more than is available */
    CAMA_BAD_AVAILABLE,      /* a descriptor is neither used nor available, or both */
    CAMA_BAD_LIST_ADDRESS,   /* a list leads to where no block or descriptor can be */
    CAMA_BAD_LIST_FREE_BIT,  /* a block in a list is marked used */
    CAMA_BAD_LIST_CLASS,     /* a block in a list is of another set or class */
    CAMA_BAD_LIST_LINK,      /* prev is not the descriptor before it in the list, or a list never ends */
    CAMA_BAD_VECTOR,         /* a bit of a vector differs from "the list is not empty" */
    CAMA_BAD_FREE_COUNT,     /* the lists hold more or fewer blocks than the heap has free ones */
    CAMA_BAD_FREE_MEMBERS    /* as many, but not the same: the sums of their starts differ */
};

/*
 * Returns CAMA_HEAP_SOUND or the first violated invariant. Changes nothing. For tests.
 * Time: linear in the number of blocks, descriptors and lists; ends on every heap, however broken, whose arena, end and
 * top are intact.
 */
int cama_check(void);

#endif
