/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "loops.h"

static bool enters_from(const struct wp_loop_setup *setup, uint32_t loop, uint32_t row)
{
    const uint32_t first = setup->first_range[loop], behind = setup->first_range[loop + 1];
    for (uint32_t i = first; i < behind; i++)
        if (row >= setup->ranges[i].first && row < setup->ranges[i].behind)
            return false;
    return first < behind;
}

void wp_loops_count(struct wp_loops *loops)
{
    const struct wp_loop_setup *const setup = &loops->setup;
    for (uint32_t i = setup->events_before[loops->first]; i < setup->events_before[loops->behind]; i++) {
        const struct wp_loop_event *const event = &setup->events[i];
        struct wp_loop_count *const count = &setup->counts[event->loop];
        const uint32_t before = event->row == loops->first ? loops->before : event->row - 1;
        if (!event->is_header || enters_from(setup, event->loop, before))
            count->running = 0;
        if (!event->is_header)
            continue;
        count->entries += count->running == 0;
        count->header_executions++;
        if (++count->running > count->max_header_executions)
            count->max_header_executions = count->running;
    }
}

void wp_loops_end(struct wp_loops *loops, uint32_t row)
{
    if (row >= loops->first && row < loops->behind)
        loops->behind = row;
    wp_loops_block(loops, 0, 0);
}
