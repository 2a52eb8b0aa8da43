/* SPDX-License-Identifier: 0BSD */
/*
 * Replays operations on any allocator from standard input: for builds that cannot be loaded into Python (sanitizers,
 * coverage, 32 bits). An operation is two words, code and argument; its answer is two words, result and check(). With
 * DRIVER_FREESTANDING the program needs no library and runs on 32-bit x86 Linux. The macros WP_INIT, WP_MALLOC,
 * WP_FREE and WP_CHECK name the entry points.
 */
#include <stddef.h>
#include <stdint.h>

int WP_INIT(void *arena, size_t bytes);
void *WP_MALLOC(size_t bytes);
void WP_FREE(void *payload);
int WP_CHECK(void);

enum { INIT, MALLOC, FREE, FREE_NULL, MALLOC_HUGE, INIT_AT_1, INIT_NULL, MAX_WORDS = 1 << 16, MAX_ARENA = 1 << 17 };
enum { NONE = -1, SPOILED = -2 };

struct words {
    uint32_t first;
    uint32_t second;
};

static struct words operations[MAX_WORDS];
static struct words answers[MAX_WORDS];

static struct {
    unsigned char *payload;
    uint32_t bytes;
} slots[MAX_WORDS];
static uint32_t slot_count;

#define ARENA_ALIGNMENT 128 /* of the largest minimum block: the buddy systems want their arena aligned on it */

#ifdef DRIVER_FREESTANDING
static _Alignas(ARENA_ALIGNMENT) unsigned char arena_memory[MAX_ARENA];

static int system_call(int number, int a, void *b, size_t c)
{
    int result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
    return result;
}
#define read(file, data, bytes) system_call(3, file, data, bytes)
#define write(file, data, bytes) system_call(4, file, data, bytes)
#define new_arena(bytes) ((bytes) <= MAX_ARENA ? arena_memory : NULL)
#else
#include <stdlib.h>
#include <unistd.h>

/* Of the exact size, so that a sanitizer sees every access outside it. */
static void *new_arena(size_t bytes)
{
    void *memory;

    return posix_memalign(&memory, ARENA_ALIGNMENT, bytes) == 0 ? memory : NULL;
}
#endif

static unsigned char *arena;

static uint32_t do_init(uint32_t bytes)
{
#ifndef DRIVER_FREESTANDING
    free(arena);
#endif
    arena = new_arena(bytes);
    slot_count = 0;
    return (uint32_t)(WP_INIT(arena, bytes) != 0);
}

static uint32_t do_malloc(size_t bytes)
{
    unsigned char *payload = WP_MALLOC(bytes);

    if (payload == NULL)
        return (uint32_t)NONE;
    slots[slot_count].payload = payload;
    slots[slot_count].bytes = (uint32_t)bytes;
    for (size_t i = 0; i < bytes; i++)
        payload[i] = (unsigned char)(slot_count * 7 + i);
    slot_count++;
    return (uint32_t)(payload - arena);
}

static uint32_t do_free(uint32_t slot)
{
    uint32_t spoiled = 0;

    for (size_t i = 0; i < slots[slot].bytes; i++)
        spoiled |= slots[slot].payload[i] != (unsigned char)(slot * 7 + i);
    WP_FREE(slots[slot].payload);
    return spoiled ? (uint32_t)SPOILED : 0;
}

static uint32_t execute(struct words operation)
{
    switch (operation.first) {
    case INIT:
        return do_init(operation.second);
    case MALLOC:
        return do_malloc(operation.second);
    case FREE:
        return do_free(operation.second);
    case MALLOC_HUGE:
        return do_malloc(SIZE_MAX - operation.second);
    case INIT_AT_1:
        return (uint32_t)(WP_INIT(arena + 1, operation.second) != 0);
    case INIT_NULL:
        return (uint32_t)(WP_INIT(NULL, operation.second) != 0);
    default:
        WP_FREE(NULL);
        return 0;
    }
}

static int run(void)
{
    size_t bytes = 0;
    int got;

    while ((got = (int)read(0, (char *)operations + bytes, sizeof operations - bytes)) > 0)
        bytes += (size_t)got;
    for (size_t i = 0; i < bytes / sizeof *operations; i++) {
        answers[i].first = execute(operations[i]);
        answers[i].second = (uint32_t)WP_CHECK();
    }
    return (size_t)write(1, answers, bytes) == bytes ? 0 : 1;
}

#ifdef DRIVER_FREESTANDING
void _start(void);
__attribute__((force_align_arg_pointer)) void _start(void)
{
    system_call(1, run(), NULL, 0);
}
#else
int main(void)
{
    int status = run();

    free(arena);
    return status;
}
#endif
