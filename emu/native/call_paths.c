/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "call_paths.h"

#include <stddef.h>

bool wp_range_contains(const struct wp_claim_range *range, uint32_t stack_pointer, uint32_t address)
{
    const uint32_t offset = address - range->low - (range->from_stack ? stack_pointer : 0);
    if (!range->stride)
        return offset == 0;
    return offset % range->stride == 0 && offset / range->stride <= range->steps;
}

void wp_paths_begin(struct wp_paths *paths, uint32_t row)
{
    if (!paths->point_count || paths->is_lost)
        return;
    paths->here[0] = 0;
    paths->here_count = 1;
    paths->row = paths->behind = row;
}

static bool take(struct wp_paths *paths, uint32_t count)
{
    if (!count) {
        paths->is_lost = true;
        return false;
    }
    uint32_t *const here = paths->here;
    paths->here = paths->there;
    paths->there = here;
    paths->here_count = count;
    return true;
}

/* Control comes to a row, on from the one before or from elsewhere. */
static bool come_to(struct wp_paths *paths, uint32_t row, bool is_behind)
{
    uint32_t count = 0;
    paths->step++;
    for (uint32_t i = 0; i < paths->here_count; i++) {
        struct wp_path_point *const point = &paths->points[paths->here[i]];
        if (is_behind && row > point->first && row < point->behind) {
            if (point->stamp != paths->step) {
                point->stamp = paths->step;
                paths->there[count++] = paths->here[i];
            }
            continue;
        }
        for (uint32_t n = point->first_next; n < point->first_next + point->next_count; n++) {
            struct wp_path_point *const next = &paths->points[paths->next[n]];
            if (next->first == row && next->stamp != paths->step) {
                next->stamp = paths->step;
                paths->there[count++] = paths->next[n];
            }
        }
    }
    return take(paths, count);
}

/* Control has gone on in a straight line to a row. */
static bool go_on(struct wp_paths *paths, uint32_t row)
{
    while (paths->row < row) {
        paths->row++;
        if (paths->ends[paths->row] && !come_to(paths, paths->row, true))
            return false;
    }
    return true;
}

bool wp_paths_block(struct wp_paths *paths, uint32_t first, uint32_t behind)
{
    if (!paths->point_count || paths->is_lost)
        return true;
    const uint32_t before = paths->behind;
    if (before == paths->row) { /* the call begins */
        paths->behind = behind;
        return true;
    }
    if (!go_on(paths, before - 1) || !come_to(paths, first, first >= before))
        return false;
    paths->row = first;
    paths->behind = behind;
    return true;
}

static bool holds(const struct wp_paths *paths, const struct wp_path_access *claim, const struct wp_path_memory *memory,
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
        if (!paths->sets[(size_t)claim->set_row * memory->sets + (each & (memory->sets - 1))])
            return false;
    return line == last || bytes > memory->line_bytes || !(claim->flags & WP_ONE_LINE);
}

bool wp_paths_access(struct wp_paths *paths, const struct wp_path_memory *memory, uint32_t row, uint32_t address,
                    uint32_t bytes, bool is_store, bool *went_astray)
{
    *went_astray = false;
    if (!paths->point_count || paths->is_lost)
        return true;
    if (!go_on(paths, row)) {
        *went_astray = true;
        return false;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < paths->here_count; i++) {
        const struct wp_path_point *const point = &paths->points[paths->here[i]];
        for (uint32_t n = point->first_access; n < point->first_access + point->access_count; n++) {
            const struct wp_path_access *const claim = &paths->accesses[n];
            if (claim->row == row && (claim->flags & WP_STORES) == (is_store ? WP_STORES : 0u) &&
                holds(paths, claim, memory, address, bytes)) {
                paths->there[count++] = paths->here[i];
                break;
            }
        }
    }
    return take(paths, count);
}

bool wp_paths_end(struct wp_paths *paths)
{
    if (!paths->point_count || paths->is_lost)
        return true;
    if (!go_on(paths, paths->behind - 1))
        return false;
    for (uint32_t i = 0; i < paths->here_count; i++)
        if (paths->points[paths->here[i]].returns)
            return true;
    paths->is_lost = true;
    return false;
}
