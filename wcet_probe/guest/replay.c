/* SPDX-License-Identifier: 0BSD
 *
 * Replays a table of heap operations inside the guest, so that a set-up of a million operations costs one engine start.
 * WP_MALLOC and WP_FREE are the allocator's entry points, set by the build. The function lives in a section of its own:
 * the observer attributes every instruction outside that section to the operation under way.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef WP_TAKES_CACHE_SET
void *WP_MALLOC(size_t bytes, unsigned cache_set);
#define ALLOCATE(operation) WP_MALLOC((operation)->size_bytes, (operation)->cache_set)
#else
void *WP_MALLOC(size_t bytes);
#define ALLOCATE(operation) WP_MALLOC((operation)->size_bytes)
#endif
void WP_FREE(void *block);

struct wp_operation {
    uint32_t kind; /* 0 malloc, 1 free */
    uint32_t slot;
    uint32_t size_bytes;
    uint32_t cache_set;
};

__attribute__((section(".wp_harness"), used, noinline)) uint32_t
wp_replay(const struct wp_operation *operation, uint32_t count, void **slots)
{
    uint32_t refused = 0;
    for (uint32_t i = 0; i < count; i++, operation++) {
        if (operation->kind == 0) {
            void *const block = ALLOCATE(operation);
            slots[operation->slot] = block;
            refused += block == NULL;
        } else {
            WP_FREE(slots[operation->slot]);
            slots[operation->slot] = NULL;
        }
    }
    return refused;
}
