/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ways.h"

#include <stddef.h>

bool wp_range_contains(const struct wp_claim_range *range, uint32_t stack_pointer, uint32_t address)
{
    const uint32_t offset = address - range->low - (range->from_stack ? stack_pointer : 0);
    if (!range->stride)
        return offset == 0;
    return offset % range->stride == 0 && offset / range->stride <= range->steps;
}

void wp_ways_begin(struct wp_ways *ways, uint32_t row)
{
    if (!ways->point_count || ways->is_lost)
        return;
    ways->here[0] = 0;
    ways->here_count = 1;
    ways->row = ways->behind = row;
}

static bool take(struct wp_ways *ways, uint32_t count)
{
    if (!count) {
        ways->is_lost = true;
        return false;
    }
    uint32_t *const here = ways->here;
    ways->here = ways->there;
    ways->there = here;
    ways->here_count = count;
    return true;
}

/* Control comes to a row, on from the one before or from elsewhere. */
static bool come_to(struct wp_ways *ways, uint32_t row, bool is_behind)
{
    uint32_t count = 0;
    ways->step++;
    for (uint32_t i = 0; i < ways->here_count; i++) {
        struct wp_way_point *const point = &ways->points[ways->here[i]];
        if (is_behind && row > point->first && row < point->behind) {
            if (point->stamp != ways->step) {
                point->stamp = ways->step;
                ways->there[count++] = ways->here[i];
            }
            continue;
        }
        for (uint32_t n = point->first_next; n < point->first_next + point->next_count; n++) {
            struct wp_way_point *const next = &ways->points[ways->next[n]];
            if (next->first == row && next->stamp != ways->step) {
                next->stamp = ways->step;
                ways->there[count++] = ways->next[n];
            }
        }
    }
    return take(ways, count);
}

/* Control has gone on in a straight line to a row. */
static bool go_on(struct wp_ways *ways, uint32_t row)
{
    while (ways->row < row) {
        ways->row++;
        if (ways->ends[ways->row] && !come_to(ways, ways->row, true))
            return false;
    }
    return true;
}

bool wp_ways_block(struct wp_ways *ways, uint32_t first, uint32_t behind)
{
    if (!ways->point_count || ways->is_lost)
        return true;
    const uint32_t before = ways->behind;
    if (before == ways->row) { /* the call begins */
        ways->behind = behind;
        return true;
    }
    if (!go_on(ways, before - 1) || !come_to(ways, first, first >= before))
        return false;
    ways->row = first;
    ways->behind = behind;
    return true;
}

static bool holds(const struct wp_ways *ways, const struct wp_way_access *claim, const struct wp_way_memory *memory,
                  uint32_t address, uint32_t bytes)
{
    if (!wp_range_contains(&claim->range, memory->stack_pointer, address))
        return false;
    if (claim->flags & WP_NO_FRAME && address >= memory->stack_base && address < memory->stack_pointer)
        return false;
    if (!memory->line_bytes)
        return true;
    const uint32_t line = address / memory->line_bytes, last = (address + bytes - 1) / memory->line_bytes;
    for (uint32_t each = line; claim->set_row && each <= last; each++)
        if (!ways->sets[(size_t)claim->set_row * memory->sets + (each & (memory->sets - 1))])
            return false;
    return line == last || bytes > memory->line_bytes || !(claim->flags & WP_ONE_LINE);
}

bool wp_ways_access(struct wp_ways *ways, const struct wp_way_memory *memory, uint32_t row, uint32_t address,
                    uint32_t bytes, bool is_store, bool *went_astray)
{
    *went_astray = false;
    if (!ways->point_count || ways->is_lost)
        return true;
    if (!go_on(ways, row)) {
        *went_astray = true;
        return false;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < ways->here_count; i++) {
        const struct wp_way_point *const point = &ways->points[ways->here[i]];
        for (uint32_t n = point->first_access; n < point->first_access + point->access_count; n++) {
            const struct wp_way_access *const claim = &ways->accesses[n];
            if (claim->row == row && (claim->flags & WP_STORES) == (is_store ? WP_STORES : 0u) &&
                holds(ways, claim, memory, address, bytes)) {
                ways->there[count++] = ways->here[i];
                break;
            }
        }
    }
    return take(ways, count);
}

bool wp_ways_end(struct wp_ways *ways)
{
    if (!ways->point_count || ways->is_lost)
        return true;
    if (!go_on(ways, ways->behind - 1))
        return false;
    for (uint32_t i = 0; i < ways->here_count; i++)
        if (ways->points[ways->here[i]].returns)
            return true;
    ways->is_lost = true;
    return false;
}
