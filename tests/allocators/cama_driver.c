/* SPDX-License-Identifier: 0BSD */
/*
 * Replays operations on CAMA from standard input, for sanitizers and coverage. An operation is three words, code and two
 * arguments; its answer is two words, result and check(). The arena starts a cache page.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cama.h"

enum { INIT, MALLOC, FREE, INIT_AT, MAX = 1 << 16, NONE = -1, SPOILED = -2 };

static uint32_t operations[MAX][3];
static uint32_t answers[MAX][2];
static struct {
    unsigned char *block;
    size_t bytes;
} slots[MAX];
static uint32_t slot_count;
static unsigned char *arena;

static uint32_t do_init(uint32_t bytes)
{
    free(arena);
    arena = aligned_alloc(CAMA_PAGE_BYTES, bytes); /* of the exact size: a sanitizer sees every access outside it */
    slot_count = 0;
    return cama_init(arena, bytes) != 0;
}

/* A request near the largest is spelled as the largest less `bytes`. */
static uint32_t do_malloc(size_t bytes, unsigned set)
{
    unsigned char *block = cama_malloc(bytes >= 0xFFFFFF00 ? SIZE_MAX - (0xFFFFFFFF - bytes) : bytes, set);

    if (block == NULL)
        return (uint32_t)NONE;
    slots[slot_count].block = block;
    slots[slot_count].bytes = bytes;
    memset(block, (int)(slot_count % 251), bytes);
    slot_count++;
    return (uint32_t)(block - arena);
}

static uint32_t do_free(uint32_t slot)
{
    uint32_t spoiled = 0;

    if (slot == (uint32_t)NONE) {
        cama_free(NULL);
        return 0;
    }
    for (size_t i = 0; i < slots[slot].bytes; i++)
        spoiled |= slots[slot].block[i] != (unsigned char)(slot % 251);
    cama_free(slots[slot].block);
    return spoiled ? (uint32_t)SPOILED : 0;
}

static uint32_t execute(const uint32_t operation[3])
{
    void *const places[] = {arena, arena + 1, NULL, (void *)(UINTPTR_MAX - 4095), arena + CAMA_RESERVED_BYTES};

    switch (operation[0]) {
    case INIT:
        return do_init(operation[1]);
    case MALLOC:
        return do_malloc(operation[1], operation[2]);
    case FREE:
        return do_free(operation[1]);
    default:
        return cama_init(places[operation[2]], operation[1]) != 0;
    }
}

int main(void)
{
    const size_t bytes = fread(operations, 1, sizeof operations, stdin);

    for (size_t i = 0; i < bytes / sizeof *operations; i++) {
        answers[i][0] = execute(operations[i]);
        answers[i][1] = (uint32_t)cama_check();
    }
    free(arena);
    return fwrite(answers, sizeof *answers, bytes / sizeof *operations, stdout) == bytes / sizeof *operations ? 0 : 1;
}
