/* SPDX-License-Identifier: 0BSD
 *
 * The functions that a freestanding C compiler may call on its own (C11 §4, GCC manual "Standards"): byte loops, because
 * only initialisation may reach them. Compiled without recognition of memory idioms, so that none calls itself.
 */
#include <stddef.h>

void *memcpy(void *restrict target, const void *restrict source, size_t bytes)
{
    unsigned char *t = target;
    const unsigned char *s = source;
    while (bytes--)
        *t++ = *s++;
    return target;
}

void *memmove(void *target, const void *source, size_t bytes)
{
    unsigned char *t = target;
    const unsigned char *s = source;
    if (t <= s)
        return memcpy(target, source, bytes);
    while (bytes--)
        t[bytes] = s[bytes];
    return target;
}

void *memset(void *target, int value, size_t bytes)
{
    unsigned char *t = target;
    while (bytes--)
        *t++ = (unsigned char)value;
    return target;
}
