/* What the kernels share: fixed-width integers, a compiler attribute, and a generator for random inputs. */
#include <stdint.h>
#define SEPARATE __attribute__((noinline))

static SEPARATE uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}
