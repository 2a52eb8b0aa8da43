/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The table that the guest's replay loop reads, from columns of the host: four words an operation.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WP_EXPORT __attribute__((visibility("default")))
enum { WP_COLUMNS = 4 };

/* The largest of the words; 0 of none. */
WP_EXPORT uint32_t wp_largest(const uint32_t *words, uint64_t count)
{
    uint32_t largest = 0;
    for (uint64_t i = 0; i < count; i++)
        largest = words[i] > largest ? words[i] : largest;
    return largest;
}

/* Row after row, in the guest's order of bytes. */
WP_EXPORT void wp_write_operations(uint32_t *table, const uint32_t *const *columns, uint64_t count, bool is_swapped)
{
    for (uint64_t i = 0; i < count; i++) {
        for (size_t k = 0; k < WP_COLUMNS; k++)
            table[WP_COLUMNS * i + k] = is_swapped ? __builtin_bswap32(columns[k][i]) : columns[k][i];
    }
}
