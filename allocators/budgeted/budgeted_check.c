/* SPDX-License-Identifier: 0BSD */
/* The invariants of the dedicated region, then X's own. */
#include "budgeted.h"

#include "budgeted_shared.h"
#include "budgeted_sizes.h"

/* Whether `offset`, which is below `end`, is a multiple of `stride`; by long division, for not every core divides. */
static int is_multiple(size_t offset, size_t stride, size_t end)
{
    size_t step = stride;

    while (step < end)
        step *= 2;
    for (; step >= stride; step /= 2)
        if (offset >= step)
            offset -= step;
    return offset == 0;
}

/* Ends when the stack is longer than it may be. */
static int check_stack(const struct budgeted_object *object, size_t stride, size_t buckets, const unsigned char *start)
{
    size_t length = 0;

    for (const struct budgeted_bucket *bucket = object->top; bucket != NULL; bucket = bucket->next) {
        const size_t offset = (uintptr_t)bucket - (uintptr_t)start;
        if (offset >= stride * buckets || !is_multiple(offset, stride, stride * buckets))
            return BUDGETED_BAD_STACK_ADDRESS;
        if (length++ == buckets)
            return BUDGETED_BAD_STACK_LENGTH;
    }
    return BUDGETED_HEAP_SOUND;
}

static int check_objects(void)
{
    const unsigned char *start = budgeted_control.dedicated;

    for (size_t i = 0; i < BUDGETED_OBJECTS; i++) {
        const struct budgeted_object *object = &budgeted_control.objects[i];
        const size_t stride = budgeted_stride(i), buckets = budgeted_buckets(i);
        if (object->size != budgeted_size(i) || object->end != start + stride * buckets)
            return BUDGETED_BAD_OBJECT;
        const int violation = check_stack(object, stride, buckets, start);
        if (violation != BUDGETED_HEAP_SOUND)
            return violation;
        start = object->end;
    }
    return budgeted_control.objects[BUDGETED_OBJECTS].top == NULL ? BUDGETED_HEAP_SOUND : BUDGETED_BAD_OTHERS;
}

int budgeted_check(void)
{
    if (budgeted_control.base == NULL)
        return BUDGETED_NO_HEAP;
    const int violation = check_objects();
    if (violation != BUDGETED_HEAP_SOUND)
        return violation;
    const int shared = BUDGETED_X_CHECK();
    return shared == 0 ? BUDGETED_HEAP_SOUND : BUDGETED_BAD_SHARED + shared;
}
