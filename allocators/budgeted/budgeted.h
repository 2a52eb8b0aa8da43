/* SPDX-License-Identifier: 0BSD */
/*
 * The budgeted allocator of L11: stacks of buckets of exact sizes in front of another allocator, X.
 *
 *     arena                                                          arena + bytes
 *     | shared region: the heap of X | buckets of O_0 | ... | buckets of O_n-1 |
 *
 * An object O_i is a size S_i that the program asks for often; N_i buckets are set apart for it when the heap is made.
 * malloc pops a bucket of the exact size, or lets X serve the request if the stack is empty or the size no object's.
 * free pushes a bucket of the dedicated region, and leaves all else to X. No bucket ever serves another size: the
 * dedicated region does not fragment. What X does with locks, recursion and alignment holds for the whole.
 *
 * The build names X: budgeted_shared.h, which is made for it, defines BUDGETED_X_INIT, BUDGETED_X_MALLOC,
 * BUDGETED_X_FREE and BUDGETED_X_CHECK as X's entry points and declares them.
 */
#ifndef BUDGETED_H
#define BUDGETED_H

#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------------------------------ parameters of the build */

/* n, the number of objects: 1 to 8. */
#ifndef BUDGETED_OBJECTS
#define BUDGETED_OBJECTS 4
#endif

/* Which configuration of table 1 of L11 the sizes are from: the n smallest of its eight. 0: oc_2l, 1: oc_2s, 2: oc_l,
 * 3: oc_s, 4: oc_mix. 5: BUDGETED_SIZE_1 to BUDGETED_SIZE_n, which must rise. */
#ifndef BUDGETED_CONFIGURATION
#define BUDGETED_CONFIGURATION 1
#endif

/* N, the number of buckets of every object that has no number of its own. */
#ifndef BUDGETED_BUCKETS
#define BUDGETED_BUCKETS 2
#endif

/* S_i in bytes, of configuration 5, and N_i, the number of buckets of object i: from 0 on; below 0: N. */
#ifndef BUDGETED_SIZE_1
#define BUDGETED_SIZE_1 8
#endif
#ifndef BUDGETED_BUCKETS_1
#define BUDGETED_BUCKETS_1 -1
#endif
#ifndef BUDGETED_SIZE_2
#define BUDGETED_SIZE_2 16
#endif
#ifndef BUDGETED_BUCKETS_2
#define BUDGETED_BUCKETS_2 -1
#endif
#ifndef BUDGETED_SIZE_3
#define BUDGETED_SIZE_3 24
#endif
#ifndef BUDGETED_BUCKETS_3
#define BUDGETED_BUCKETS_3 -1
#endif
#ifndef BUDGETED_SIZE_4
#define BUDGETED_SIZE_4 32
#endif
#ifndef BUDGETED_BUCKETS_4
#define BUDGETED_BUCKETS_4 -1
#endif
#ifndef BUDGETED_SIZE_5
#define BUDGETED_SIZE_5 40
#endif
#ifndef BUDGETED_BUCKETS_5
#define BUDGETED_BUCKETS_5 -1
#endif
#ifndef BUDGETED_SIZE_6
#define BUDGETED_SIZE_6 48
#endif
#ifndef BUDGETED_BUCKETS_6
#define BUDGETED_BUCKETS_6 -1
#endif
#ifndef BUDGETED_SIZE_7
#define BUDGETED_SIZE_7 56
#endif
#ifndef BUDGETED_BUCKETS_7
#define BUDGETED_BUCKETS_7 -1
#endif
#ifndef BUDGETED_SIZE_8
#define BUDGETED_SIZE_8 64
#endif
#ifndef BUDGETED_BUCKETS_8
#define BUDGETED_BUCKETS_8 -1
#endif

/* ----------------------------------------------------------------------------------------------------- what follows */

/* On which buckets are aligned: as much as any X aligns on. */
#define BUDGETED_ALIGNMENT (2 * sizeof(size_t))

/* -------------------------------------------------------------------------------------------------- data structures */

/* A bucket; the link exists in free ones only. */
struct budgeted_bucket {
    struct budgeted_bucket *next; /* NULL in the last one of a stack */
};

/* What is known of an object. Of the last one, which stands for all other sizes, only the size is used: that of the
 * request, so that a search always ends. Its stack is always empty. */
struct budgeted_object {
    size_t size;                 /* S_i */
    struct budgeted_bucket *top; /* of the stack; NULL: the stack is empty */
    unsigned char *end;          /* the first byte behind its buckets */
};

/* Offsets on 32-bit targets: base 0, dedicated 4, objects 8 (12 bytes each). All zero before budgeted_init: then all
 * that malloc does is X's. */
struct budgeted_control {
    unsigned char *base;      /* of the arena, and of the shared region */
    unsigned char *dedicated; /* start of the dedicated region, and end of the shared one */
    struct budgeted_object objects[BUDGETED_OBJECTS + 1];
};

extern struct budgeted_control budgeted_control;

/* ------------------------------------------------------------------------------------------------------- operations */

/*
 * Makes the arena the heap. Blocks of an earlier heap are forgotten.
 *
 * Returns 0, or nonzero iff bytes are less than the buckets take, or X refuses what they leave; then nothing has
 * changed.
 */
int budgeted_init(void *arena, size_t bytes);

/*
 * Returns a bucket of `bytes` bytes if there is a free one of exactly this size, else what X returns. NULL iff X does.
 * Time: O(n) and X's.
 */
void *budgeted_malloc(size_t bytes);

/*
 * Gives a bucket back to its stack and any other block back to X. The behaviour is undefined if the argument is neither
 * NULL nor a block of the current heap that is in use.
 * Time: O(n), or O(1) and X's.
 */
void budgeted_free(void *payload);

/* The invariants. What X's check returns, if it is not 0, is added to BUDGETED_BAD_SHARED. */
enum budgeted_violation {
    BUDGETED_HEAP_SOUND = 0,
    BUDGETED_NO_HEAP,           /* budgeted_init has not succeeded yet */
    BUDGETED_BAD_OBJECT,        /* an object has a wrong size, or its buckets end elsewhere */
    BUDGETED_BAD_STACK_ADDRESS, /* a stack leads to an address where no bucket of its object starts */
    BUDGETED_BAD_STACK_LENGTH,  /* a stack holds more than N buckets: includes every cycle */
    BUDGETED_BAD_OTHERS,        /* the stack of all other sizes is not empty */
    BUDGETED_BAD_SHARED         /* and greater: X's violation */
};

/*
 * Returns BUDGETED_HEAP_SOUND or the first violated invariant. Changes nothing. For tests.
 * Time: linear in the number of buckets, and X's.
 */
int budgeted_check(void);

#endif
