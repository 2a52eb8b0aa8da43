/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What the observer keeps, and the parts of it that translated code shares with the engine's callbacks.
 */
#ifndef WP_OBSERVER_H
#define WP_OBSERVER_H

#include "cache.h"
#include "claims.h"
#include "loops.h"
#include "sets.h"

#if defined(_WIN32)
#define WP_EXPORT __declspec(dllexport)
#else
#define WP_EXPORT __attribute__((visibility("default")))
#endif

typedef struct uc_struct uc_engine;
typedef int (*wp_register_read)(uc_engine *engine, int id, void *value);
typedef int (*wp_engine_stop)(uc_engine *engine);

enum { WP_CONDITIONAL_BRANCH = 1, WP_IN_IT_BLOCK = 2, WP_WRITES_STACK_POINTER = 4, WP_PROBLEM = 8,
       WP_CLEARS_STACK_POINTER = 16, /* its lowest two bits, as Thumb does and the engine does not */
       WP_JUMPS_TO_ITSELF = 32 /* always: without interrupts nothing else is ever executed */ };
enum { WP_LOAD = 1, WP_STORE = 2 };
enum { WP_LSL, WP_LSR, WP_ASR, WP_ROR, WP_RRX };
enum { WP_ALWAYS = 14 };
enum { WP_PAGE_SHIFT = 12, WP_PAGES = 1 << 20, WP_SEVERAL = 0xFF };
enum wp_stop { WP_RUNNING, WP_STRAY_ACCESS, WP_PROBLEM_EXECUTED, WP_OUTSIDE_CODE, WP_BUDGET_SPENT,
               WP_UNALIGNED_STACK, WP_ENDLESS_LOOP };

struct wp_access {
    uint32_t displacement, align_mask;
    int32_t base, index; /* the engine's register ids; 0: none */
    uint16_t count;
    uint8_t kind, bytes_each, subtract_index, shift, shift_bits;
    uint8_t unaligned_cycles[3]; /* that it takes longer where 1, 2 or 4 is all that divides its address */
};

/* Row i of the instruction table speaks of the halfword at code_base + 2 i. */
struct wp_instruction {
    uint32_t instructions_before, cycles_before; /* of all rows below: a block's sum is a difference */
    uint32_t executed_cycles, skipped_cycles, taken_cycles;
    uint32_t first_access;
    uint8_t size_bytes; /* 0: no instruction starts here */
    uint8_t flags, condition, access_count;
    uint8_t previous_bytes; /* size of the instruction that ends here, 0 if none does */
    uint8_t unused[3];
};

struct wp_range {
    uint32_t base, bytes, writable;
    uint32_t touched_word; /* where the range's bits start in the touched bitmap, in 32-bit words of it */
};

/* Data memory that no cache serves. */
struct wp_uncached {
    uint32_t base, bytes, read_cycles, write_cycles;
};

struct wp_setup {
    wp_register_read read_register;
    wp_engine_stop stop_engine;
    const struct wp_instruction *instructions;
    const uint8_t *quiet; /* a row each: 1 where all that an instruction costs is in the sums */
    const struct wp_access *accesses;
    const struct wp_range *ranges;
    uint32_t *touched;         /* one bit a word of each range: 32-bit word i, bit j: word 32 i + j */
    uint32_t *entered, *left;  /* a row each of the instruction table, and one more: blocks that start, end there */
    uint32_t *path;            /* pairs: first row, row behind the last */
    const struct wp_uncached *uncached;
    struct wp_loop_setup loops;
    uint32_t code_base, code_bytes, range_count, path_capacity, harness_base, harness_bytes;
    int32_t stack_pointer, flags_register; /* the engine's register ids; flags 0: none */
    uint32_t uncached_count;
    uint32_t unified_cache; /* fetches go to the data cache, too; there is no other */
    uint32_t single_cycles; /* that an access waits where no cache and no region serves it */
};

struct wp_counts {
    uint64_t instructions, cycles, loads, stores, path_length, operations, region_accesses, region_cycles;
    uint32_t lowest_stack_pointer;
    uint32_t stop, stop_pc, stop_address; /* why the observer stopped the engine, and where */
};

/* What one replayed operation, or all up to a moment, counted. */
struct wp_operation_counts {
    uint64_t instructions, cycles, accesses, region_accesses, region_cycles;
    uint64_t fetch_misses, fetch_writebacks, read_misses, write_misses, writebacks, memory_writes;
    uint64_t result; /* the first register at its end */
};

struct wp_observer {
    struct wp_setup setup;
    struct wp_counts counts;
    struct wp_cache icache, dcache;
    struct wp_loops loops;
    struct wp_claims claims;
    struct wp_sets sets;
    bool has_icache, has_dcache;
    uint8_t stack_pointer_pending; /* flags of the instruction before, of those that speak of it */
    uint32_t branch_behind, branch_cycles; /* a conditional branch that has just run: taken unless control goes on here */
    uint32_t block_row, block_behind;      /* rows of the block under way, equal: there is none */
    uint32_t fetched_row;                  /* unified cache: rows of the block below it are fetched */
    uint32_t left_row, left_behind; /* translated code was left there, with the rows to left_behind fetched */
    struct wp_operation_counts *operations; /* replay: what each operation counted */
    uint32_t operation_capacity;
    int32_t result_register; /* the engine's id */
    struct wp_operation_counts operation_start;
    bool in_operation;
    uint64_t budget, spent; /* instructions that all runs together may take, and took; budget 0: no limit */
    uint8_t *range_of_page; /* 1 + index of the range that has bytes in a 4 KiB page, 0: none, or WP_SEVERAL ranges */
};

/* As by the callbacks of observer.c; `engine` is what the setup's functions are given. */
void wp_observer_operation(struct wp_observer *observer, uc_engine *engine, uint32_t address);
void wp_observer_call(struct wp_observer *observer, uc_engine *engine, uint32_t row, bool in_harness);
void wp_observer_access(struct wp_observer *observer, uc_engine *engine, uint32_t pc, uint32_t address, uint32_t bytes,
                        bool is_write);
WP_EXPORT void wp_observer_settle(struct wp_observer *observer, uint32_t pc);
/* The region that no cache serves and that holds an address; NULL: none does. */
const struct wp_uncached *wp_uncached_at(const struct wp_setup *setup, uint32_t address);
uint64_t wp_observer_fetches(const struct wp_observer *observer, uint32_t first, uint32_t behind);

static inline uint32_t wp_page_of(uint32_t address) { return address >> WP_PAGE_SHIFT; }

/* 1 + index of the range that has the byte at `address`, or may have it; 0: none. */
static inline uint32_t wp_range_at(const struct wp_observer *observer, uint32_t address)
{
    const uint32_t known = observer->range_of_page[wp_page_of(address)];
    if (known != WP_SEVERAL)
        return known;
    for (uint32_t i = 0; i < observer->setup.range_count; i++)
        if (address - observer->setup.ranges[i].base < observer->setup.ranges[i].bytes)
            return i + 1;
    return 0;
}

#endif
