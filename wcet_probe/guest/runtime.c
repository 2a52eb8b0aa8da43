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

#if defined __ARM_ARCH && __ARM_ARCH == 6 && defined __thumb__ && !defined __thumb2__

/* ARMv6-M counts no leading zeros and does not divide: the functions of the run-time ABI that the compiler calls then. */

int __clzsi2(unsigned value);
unsigned __aeabi_uidiv(unsigned dividend, unsigned divisor);

int __clzsi2(unsigned value)
{
    int zeros = 0;
    if (!(value >> 16)) { zeros += 16; value <<= 16; }
    if (!(value >> 24)) { zeros += 8; value <<= 8; }
    if (!(value >> 28)) { zeros += 4; value <<= 4; }
    if (!(value >> 30)) { zeros += 2; value <<= 2; }
    return value >> 31 ? zeros : value ? zeros + 1 : 32;
}

unsigned __aeabi_uidiv(unsigned dividend, unsigned divisor)
{
    unsigned quotient = 0, rest = 0;
    for (unsigned bits = 32; bits > 0; bits--) {
        rest = rest << 1 | dividend >> 31;
        dividend <<= 1;
        quotient <<= 1;
        if (rest >= divisor) {
            rest -= divisor;
            quotient |= 1;
        }
    }
    return quotient;
}
#endif
