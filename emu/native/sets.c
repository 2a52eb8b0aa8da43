/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sets.h"

#include <string.h>

void wp_sets_begin(struct wp_sets *sets, uint64_t number, uint32_t argument)
{
    const struct wp_set_setup *const setup = &sets->setup;
    if (number >= setup->capacity)
        return;
    sets->operation = &setup->operations[number];
    sets->operation->argument = argument;
    sets->touched = setup->touched + (size_t)setup->kinds[number] * setup->range_count * setup->sets;
    memset(setup->counts, 0, sizeof *setup->counts * setup->sets);
    memset(setup->is_counted, 0, setup->sets);
}

void wp_sets_access(struct wp_sets *sets, uint32_t range, uint32_t line, uint32_t pc, uint32_t address)
{
    const struct wp_set_setup *const setup = &sets->setup;
    struct wp_operation_sets *const operation = sets->operation;
    const uint32_t set = line & (setup->sets - 1);
    const size_t place = (size_t)range * setup->sets + set;
    sets->touched[place] = 1;
    operation->accesses++;
    if (++setup->counts[set] > operation->most_in_set)
        operation->most_in_set = setup->counts[set];
    if (setup->expected[place] || setup->is_counted[set])
        return;
    setup->is_counted[set] = 1;
    if (operation->unexpected < WP_UNEXPECTED_KEPT)
        operation->first[operation->unexpected] = (struct wp_set_access){pc, address};
    operation->unexpected++;
}

void wp_sets_end(struct wp_sets *sets, uint32_t result)
{
    if (sets->operation)
        sets->operation->result = result;
    sets->operation = NULL;
}
