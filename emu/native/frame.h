/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What translated code and the native core share: the guest's registers and memory, and what the code counts by itself.
 *
 * Translated code executes and counts the common cases. All else it leaves to functions of the core, which are those that
 * the engine's callbacks use: an access that is watched, operations and calls that begin and end, watched loops. What it cannot do it hands to the engine, at an instruction of which nothing has been done: a stray
 * access, an instruction that was not translated, a jump to where no block begins.
 */
#ifndef WP_FRAME_H
#define WP_FRAME_H

#include "cache.h"

#include <stdint.h>

enum wp_left { WP_LEFT_RETURNED, WP_LEFT_PAUSED, WP_LEFT_AT_BLOCK, WP_LEFT_INSIDE, WP_LEFT_DISAGREED, WP_LEFT_ELSEWHERE };
enum wp_fast { WP_HEAP, WP_STACK, WP_STATIC, WP_OPERATIONS, WP_CODE, WP_FAST_RANGES }; /* code: for loads only */
#define WP_NO_BLOCK UINT32_MAX
#define WP_NO_PATH (UINT64_C(1) << 63) /* length of a path of which nothing is kept */
#define WP_TOLD INT64_MIN
enum { WP_FRAME_REGISTERS = 64, WP_MAY_STORE = 0x100, WP_MAY_LOAD = 0x200, WP_UNNOTED = 0x400 };

/* A translated block: rows of the table of instructions, and how many fetches it makes of lines. */
struct wp_block {
    uint32_t first_row, behind_row, fetches;
};

/* A line of data of which one more access is a hit that changes nothing: it lies in one range, is cached, and its set
 * holds it, as the one that was used last where that matters. */
struct wp_known_line {
    uint32_t load_key, store_key; /* its address where such a load, a store is one; WP_NO_LINE: not */
};
#define WP_NO_LINE UINT32_MAX

struct wp_frame {
    int64_t limit;    /* pause where so many instructions are counted */
    int64_t instructions, cycles, loads, stores; /* since the last flush */
    int64_t counted_loads, counted_stores; /* of these, those that the core has counted */
    int64_t region_loads, region_stores;   /* beside these, those of a stack that no cache serves */
    uint64_t fetched_slowly, path_length;
    uint32_t pc, why;
    uint32_t block; /* under way or run last */
    uint32_t lowest_stack_pointer, stack_pointer, first_register;
    uint32_t watches; /* each access takes the long way */
    uint32_t follows; /* operations or calls are told apart */
    uint32_t heap_bytes, path_capacity;
    uint8_t *guest, *marks; /* where the byte at address 0 would be, and the mark of word 0: 1 if it was accessed */
    struct wp_known_line *lines, *lines_kept; /* lines: those kept, or, where all accesses are watched, none */
    uint32_t *fetched;                        /* numbers of such lines of code, or WP_NO_LINE */
    struct wp_cache *data_cache, *fetch_cache;
    struct wp_cache_counts *fetch_counts;
    uint32_t *path;
    int64_t *runs;         /* of each block; WP_TOLD is added where the core is told of it */
    const uint8_t *events; /* of each block: 1 where the core is told of it; all, while a path is kept */
    uint8_t *(*access)(struct wp_frame *frame, uint32_t pc, uint32_t address, uint32_t bytes_and_kind);
    uint32_t (*accesses)(struct wp_frame *frame, uint32_t pc, uint32_t address, uint32_t count, uint32_t bytes_and_kind);
    void (*event)(struct wp_frame *frame, uint32_t block, uint32_t before);
    void (*cross)(struct wp_frame *frame, uint32_t address); /* control crosses the border of the harness, to there */
    uint32_t registers[WP_FRAME_REGISTERS];
    /* from here on of the core alone */
    struct wp_observer *observer;
    const struct wp_block *blocks;
    uint8_t *const *range_memory; /* of each range of the observer */
    uint32_t fast_range[WP_FAST_RANGES]; /* 1 + number of the range, 0: none */
    uint32_t block_count;
    uint32_t observes; /* whether counts are kept, and those of data accesses: WP_OBSERVES_ */
    int64_t spent;     /* instructions since the frame was entered */
    uint32_t region_read_cycles, region_write_cycles; /* of an access to such a stack */
    struct wp_known_line *no_lines;
    const uint8_t *events_of_core, *every_event;
    uint32_t known_lines, known_fetches; /* how many there is room for */
};
enum { WP_OBSERVES_NOTHING, WP_OBSERVES_FETCHES, WP_OBSERVES_DATA };

typedef void (*wp_translated)(struct wp_frame *frame);

#endif
