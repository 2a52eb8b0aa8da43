/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * How often a loop's header runs for one entry from outside, for each watched loop.
 *
 * What is counted are events at instructions: the header, and the instructions outside the loop that lead into it. A
 * block's events are found as its instructions are, by a difference of running sums, and are counted when the block has
 * run: no earlier, because the guest may be stopped in the middle of it.
 */
#ifndef WP_LOOPS_H
#define WP_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

struct wp_loop_event {
    uint32_t row, loop;
    uint32_t is_header; /* 0: an instruction that leads into the loop */
};

/* Rows of a loop's code. Only a loop without events that lead into it has any: it is entered from all other rows. */
struct wp_loop_range {
    uint32_t first, behind;
};

struct wp_loop_count {
    uint64_t running; /* header executions since the last entry */
    uint64_t max_header_executions, header_executions, entries;
};

struct wp_loop_setup {
    const uint32_t *events_before; /* a row each, and one more: events of all rows below; NULL: nothing is watched */
    const struct wp_loop_event *events; /* in order of rows */
    const struct wp_loop_range *ranges; /* in order of loops */
    const uint32_t *first_range;        /* a loop each, and one more */
    struct wp_loop_count *counts;       /* a loop each */
};

struct wp_loops {
    struct wp_loop_setup setup;
    uint32_t before;        /* last row before the block under way, UINT32_MAX: the run begins with it */
    uint32_t first, behind; /* rows of the block under way, equal: there is none */
};

void wp_loops_count(struct wp_loops *loops);

/* A block is about to run: the one before it has. */
static inline void wp_loops_block(struct wp_loops *loops, uint32_t first, uint32_t behind)
{
    const uint32_t *const events_before = loops->setup.events_before;
    if (!events_before)
        return;
    if (events_before[loops->first] != events_before[loops->behind])
        wp_loops_count(loops);
    loops->before = loops->behind - 1;
    loops->first = first;
    loops->behind = behind;
}

/* The run has ended; where it left the block under way in the middle, at `row`, which has not run. */
void wp_loops_end(struct wp_loops *loops, uint32_t row);

#endif
