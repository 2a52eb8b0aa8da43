/* SPDX-License-Identifier: 0BSD */
/* The budgeted allocator after L11 section III, figure 2. The manual is budgeted.h. */
#include "budgeted.h"

#include "budgeted_shared.h"
#include "budgeted_sizes.h"

_Static_assert(BUDGETED_OBJECTS > 0 && BUDGETED_OBJECTS <= 8, "a configuration has eight objects");
_Static_assert(BUDGETED_CONFIGURATION >= 0 && BUDGETED_CONFIGURATION < 6, "L11 has five, and the program one of its own");
_Static_assert(BUDGETED_CONFIGURATION != 5 ||
                   ((BUDGETED_OBJECTS < 2 || BUDGETED_SIZE_1 < BUDGETED_SIZE_2) &&
                    (BUDGETED_OBJECTS < 3 || BUDGETED_SIZE_2 < BUDGETED_SIZE_3) &&
                    (BUDGETED_OBJECTS < 4 || BUDGETED_SIZE_3 < BUDGETED_SIZE_4) &&
                    (BUDGETED_OBJECTS < 5 || BUDGETED_SIZE_4 < BUDGETED_SIZE_5) &&
                    (BUDGETED_OBJECTS < 6 || BUDGETED_SIZE_5 < BUDGETED_SIZE_6) &&
                    (BUDGETED_OBJECTS < 7 || BUDGETED_SIZE_6 < BUDGETED_SIZE_7) &&
                    (BUDGETED_OBJECTS < 8 || BUDGETED_SIZE_7 < BUDGETED_SIZE_8)),
               "the sizes rise");
_Static_assert(BUDGETED_BUCKETS > 0 && BUDGETED_BUCKETS <= 100, "L11 has up to 100 objects at a time");

struct budgeted_control budgeted_control;

static inline struct budgeted_bucket *top_of(const struct budgeted_object *object)
{
    return object->top;
}

static inline void set_top(struct budgeted_object *object, struct budgeted_bucket *bucket)
{
    object->top = bucket;
}

static inline void push(struct budgeted_object *object, struct budgeted_bucket *bucket)
{
    bucket->next = top_of(object);
    set_top(object, bucket);
}

/* Fills a stack with the buckets from `place` on, the one of the lowest address on top; where they end. */
static unsigned char *found(struct budgeted_object *object, size_t index, unsigned char *place)
{
    const size_t stride = budgeted_stride(index);
    unsigned char *bucket = place + stride * budgeted_buckets(index);

    object->size = budgeted_size(index);
    object->top = NULL;
    object->end = bucket;
    while (bucket != place) {
        bucket -= stride;
        push(object, (void *)bucket);
    }
    return object->end;
}

int budgeted_init(void *arena, size_t bytes)
{
    size_t dedicated = 0;

    for (size_t i = 0; i < BUDGETED_OBJECTS; i++)
        dedicated += budgeted_stride(i) * budgeted_buckets(i);
    if (bytes < dedicated || BUDGETED_X_INIT(arena, bytes - dedicated) != 0)
        return -1;

    budgeted_control.base = arena;
    budgeted_control.dedicated = budgeted_control.base + bytes - dedicated;
    unsigned char *place = budgeted_control.dedicated;
    for (size_t i = 0; i < BUDGETED_OBJECTS; i++)
        place = found(&budgeted_control.objects[i], i, place);
    budgeted_control.objects[BUDGETED_OBJECTS].top = NULL;
    return 0;
}

/* The object of this size, or the entry behind the last one, which ends the search. */
static inline struct budgeted_object *object_of_size(size_t bytes)
{
    struct budgeted_object *object = budgeted_control.objects;

    object[BUDGETED_OBJECTS].size = bytes;
    /* loop: sizes */
    while (object->size != bytes)
        object++;
    return object;
}

/* The object whose buckets lie at `place`, which is in the dedicated region. */
static inline struct budgeted_object *object_at(const unsigned char *place)
{
    struct budgeted_object *object = budgeted_control.objects;

    /* loop: regions */
    while (place >= object->end)
        object++;
    return object;
}

void *budgeted_malloc(size_t bytes)
{
    struct budgeted_object *object = object_of_size(bytes);
    struct budgeted_bucket *bucket = top_of(object);

    if (bucket == NULL)
        return BUDGETED_X_MALLOC(bytes);
    set_top(object, bucket->next);
    return bucket;
}

void budgeted_free(void *payload)
{
    unsigned char *place = payload;

    if ((uintptr_t)place < (uintptr_t)budgeted_control.dedicated) {
        BUDGETED_X_FREE(payload);
        return;
    }
    push(object_at(place), payload);
}
