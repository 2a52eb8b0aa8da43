/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What a proof says of every call of a function, held against each call that is observed.
 *
 * A call begins where control enters one of the entries from the harness, or where a run begins at one, and ends where
 * control is back. Of each data access the address, the cache set and what flow facts count are held against tables; of
 * each call the sums of flow facts, instructions and cycles, and the way through the points of the proof. The first violation is kept and the guest runs on: whoever
 * asked for the run is to look. The tables are the caller's, and so are the counts in them.
 */
#ifndef WP_CLAIMS_H
#define WP_CLAIMS_H

#include "loops.h"
#include "call_paths.h"

#include <stdbool.h>
#include <stdint.h>

enum wp_claim_kind {
    WP_HOLDS,
    WP_ADDRESS,
    WP_SET,
    WP_FRAME,
    WP_CROSSES,
    WP_VISIT,
    WP_CHANGES,
    WP_LINES,
    WP_LINES_OF_SET,
    WP_WORD,
    WP_FLOW,
    WP_INSTRUCTIONS,
    WP_CYCLES,
    WP_POINT,
    WP_WAY,
    WP_SAVED
};
enum { WP_MAY_BE_FRAME = 1, WP_FIRST_VISIT = 2, WP_ONLY_AGAIN = 4, WP_MAY_CROSS = 8 };

/* Of all loads, or all stores, of an instruction. */
struct wp_access_claim {
    uint64_t executions;
    uint32_t first_range, ranges;
    uint32_t set_row;        /* of the table of sets; 0: any set */
    uint32_t changes, lines; /* 1 + index of what counts it; 0: nothing */
    uint32_t flags;
    uint32_t saves, unused; /* a bit for each store, in the order of addresses: it saves a register */
};

/* Accesses to another line than the access before. */
struct wp_change_claim {
    uint64_t most, greatest, count;
};

/* Different lines, and how many of them are in one set: stamps are the number of the call that was there last. */
struct wp_line_claim {
    uint32_t *line_stamps, *set_stamps, *set_counts;
    uint32_t most, most_of_set, greatest, greatest_of_set, count, unused;
};

struct wp_word_claim {
    const uint8_t *bytes;
    uint64_t loads;
    uint32_t address, low, high, big_endian;
};

struct wp_flow_claim {
    int64_t most, greatest, sum;
};

struct wp_flow_event {
    int64_t weight;
    uint32_t row, flow;
};

struct wp_flow_entries { /* entries of a watched loop */
    int64_t weight;
    uint64_t before;
    uint32_t loop, flow;
};

/* Of all calls of one function. */
struct wp_entry_claims {
    const uint32_t *claim_of_row; /* two a row: 1 + index of the claim of its loads, and of its stores; 0: none may be */
    struct wp_access_claim *accesses;
    const struct wp_claim_range *ranges;
    const uint8_t *sets; /* rows of a byte for each set of the cache: 1 where it may be accessed; row 0 is not used */
    struct wp_change_claim *changes;
    struct wp_line_claim *lines;
    struct wp_word_claim *words;
    const uint32_t *events_before; /* a row each, and one more: events of all rows below */
    const struct wp_flow_event *events;
    struct wp_flow_claim *flows;
    struct wp_flow_entries *entries;
    uint64_t most_instructions, most_cycles, greatest_instructions, greatest_cycles, calls;
    uint32_t entry_row, change_count, line_count, word_count, flow_count, entry_count;
    struct wp_paths paths;
};

struct wp_claim_setup {
    struct wp_entry_claims *entries; /* NULL: nothing is claimed */
    const uint32_t *first_line; /* a range of memory each: number of its first line */
    const uint32_t *line_row;   /* a range of memory each: where its lines start in tables of lines */
    uint32_t *visited;          /* a line each: the call that visited it and has not stored to it since */
    uint8_t *saved;             /* a word of the stack each: a register is saved there; NULL: nobody asks */
    uint32_t entry_count, line_bytes, sets; /* of the data cache; line_bytes 0: there is none */
    uint32_t stack_base, stack_words, unused;
    uint32_t fetch_line_cycles, data_line_cycles, single_cycles, write_allocate;
};

struct wp_broken_claim {
    uint64_t value;
    uint32_t kind, entry, index, pc, address, is_store;
};

struct wp_claims {
    struct wp_claim_setup setup;
    struct wp_entry_claims *active; /* of the call under way; NULL: none, or of no entry */
    struct wp_broken_claim broken;
    uint64_t instructions, cycles; /* when the call began */
    uint32_t call, stack_pointer, line_before;
    uint32_t lowest_saved, saving_pc, saving_next, saving_number; /* no word below is saved; the store before */
    bool in_call, has_line_before;
};

void wp_claims_begin(struct wp_claims *claims, const struct wp_loops *loops, uint32_t row, uint32_t stack_pointer,
                     uint64_t instructions, uint64_t cycles);
void wp_claims_block(struct wp_claims *claims, uint32_t first, uint32_t behind);
void wp_claims_release(struct wp_claims *claims, uint32_t stack_pointer);
void wp_claims_access(struct wp_claims *claims, uint32_t row, uint32_t range, uint32_t pc, uint32_t address,
                      uint32_t bytes, bool is_store);
void wp_claims_end(struct wp_claims *claims, const struct wp_loops *loops, uint64_t instructions, uint64_t cycles);

#endif
