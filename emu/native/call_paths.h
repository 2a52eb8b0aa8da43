/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A call followed through the points of its proof: blocks of the code, contexts and copies of each apart.
 *
 * The tables of claims.h put the points of an instruction together, so that what is false at one of them goes unseen where
 * another allows it. Here each access is held against what is said of it at the points where control may be. Where these
 * are several, each is followed; one must be left of which all is true.
 */
#ifndef WP_CALL_PATHS_H
#define WP_CALL_PATHS_H

#include <stdbool.h>
#include <stdint.h>

/* Addresses low + k * stride for k up to steps, above the stack pointer at entry if from_stack. */
struct wp_claim_range {
    uint32_t low, stride, steps, from_stack;
};

enum { WP_STORES = 1, WP_ONE_LINE = 2, WP_NO_FRAME = 4 };

/* Of an access at a point. */
struct wp_path_access {
    struct wp_claim_range range;
    uint32_t row, flags;
    uint32_t set_row; /* of the entry's table of sets; 0: any set */
};

struct wp_path_point {
    uint32_t first, behind;              /* rows of the block */
    uint32_t first_next, next_count;     /* in the table of points that control may go to */
    uint32_t first_access, access_count; /* in the table of accesses */
    uint64_t stamp;                      /* of the step that found control there last */
    uint32_t returns, unused;            /* whether the call may end behind the block */
};

/* Of all calls of one function; no points: nothing is followed. A block here is one of the engine, which may be a part of
 * the proof's, or several in a straight line. */
struct wp_paths {
    struct wp_path_point *points; /* the first is the entry */
    const uint32_t *next;
    const struct wp_path_access *accesses;
    const uint8_t *sets;
    const uint8_t *ends; /* a row each: 1 where a point's block begins, or has ended */
    uint32_t *here, *there; /* points where control may be, and room for as many */
    uint64_t step;
    uint32_t point_count, here_count;
    uint32_t row, behind; /* control has come to this row, and the block under way runs to that one */
    uint32_t is_lost, unused;
};

/* What the accesses are of: the stack at entry and below, and lines of the data cache; line_bytes 0: there is none. */
struct wp_path_memory {
    uint32_t stack_base, stack_pointer, line_bytes, sets;
};

bool wp_range_contains(const struct wp_claim_range *range, uint32_t stack_pointer, uint32_t address);

void wp_paths_begin(struct wp_paths *paths, uint32_t row);

/* These three are false where no point is left; from then on nothing is followed, and `here` stays as it was. */
bool wp_paths_block(struct wp_paths *paths, uint32_t first, uint32_t behind);
bool wp_paths_access(struct wp_paths *paths, const struct wp_path_memory *memory, uint32_t row, uint32_t address,
                    uint32_t bytes, bool is_store, bool *went_astray);
bool wp_paths_end(struct wp_paths *paths);

#endif
