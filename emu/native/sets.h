/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Which sets of the data cache each operation of a replay accesses, held against those that it is expected to access.
 *
 * An access is to a range of memory and to a set: a table says of both whether it is expected. Of each operation the
 * unexpected sets are counted, and the first access to each of the first few is kept: whoever reads them knows which are
 * those of the operation's own block.
 */
#ifndef WP_SETS_H
#define WP_SETS_H

#include <stdint.h>

enum { WP_UNEXPECTED_KEPT = 4 };

struct wp_set_access {
    uint32_t pc, address;
};

struct wp_operation_sets {
    uint32_t argument, result; /* the first register at entry and at return */
    uint32_t accesses;         /* each line of an access counts */
    uint32_t most_in_set;      /* of these, in the set that has the most */
    uint32_t unexpected;       /* unexpected sets */
    struct wp_set_access first[WP_UNEXPECTED_KEPT]; /* the first access to each of the first of them */
};

struct wp_set_setup {
    struct wp_operation_sets *operations; /* NULL: nothing is watched */
    const uint8_t *kinds;    /* of each operation, from 0 on */
    const uint8_t *expected; /* a row for each range, a byte for each set */
    uint8_t *touched;        /* for each kind a table like expected: 1 where there was an access */
    uint32_t *counts;        /* a set each, all 0: of the operation under way */
    uint8_t *is_counted;     /* a set each, all 0: whether it is among the unexpected ones */
    uint32_t capacity, range_count, sets;
    int32_t first_register; /* the engine's id of the register of the first argument and the result */
};

struct wp_sets {
    struct wp_set_setup setup;
    struct wp_operation_sets *operation; /* under way; NULL: none */
    uint8_t *touched;                    /* the table of its kind */
};

void wp_sets_begin(struct wp_sets *sets, uint64_t number, uint32_t argument);
void wp_sets_access(struct wp_sets *sets, uint32_t range, uint32_t line, uint32_t pc, uint32_t address);
void wp_sets_end(struct wp_sets *sets, uint32_t result);

#endif
