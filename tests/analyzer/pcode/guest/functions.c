/* Functions of (a, b, data) for test_concrete.py; those named c_… are run. */
typedef unsigned int u32; typedef int i32; typedef unsigned long long u64; typedef long long i64;
#define F(name) u32 name(u32 a, u32 b, u32 *data)
static const unsigned char log_table[16] = {0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3};
u32 counter = 7, untouched[4];

F(c_bits) { u32 x = a | 1, y = b | 1;
    return (__builtin_clz(x) << 8 | __builtin_ctz(y)) ^ __builtin_popcount(a ^ b) ^ log_table[a & 15]
         ^ __builtin_bswap32(a) ^ (a >> (b & 31)) ^ (b << (a & 31)) ^ ((i32)a >> (b & 31)); }
F(c_compare) { u32 r = 0;
    if (a < b) r |= 1; if ((i32)a < (i32)b) r |= 2; if (a <= 1000) r |= 4; if ((i32)a > -5) r |= 8;
    if ((i32)b >= (i32)a) r += a; if (a - b > 77 && b != 3) r ^= b; return r; }
F(c_minmax) { i32 x = a, y = b, lo = x < y ? x : y, hi = x < y ? y : x; u32 ul = a < b ? a : b;
    return (u32)(lo * 3 - hi) ^ ul ^ (x < 0 ? -x : x) ^ (y > 255 ? 255 : y < 0 ? 0 : y); }
F(c_loop) { u32 h = a; for (u32 i = 0; i < (b & 31); i++) { h = (h ^ ((unsigned char *)data)[i]) * 16777619u; } return h; }
F(c_signed_bytes) { i32 r = 0; signed char *p = (signed char *)data; short *q = (short *)data;
    for (int i = 0; i < 8; i++) r += p[(a + i) & 31] - q[(b + i) & 15]; p[5] = (signed char)r; q[7] = (short)r; return r; }
struct __attribute__((packed)) odd { char c; u32 w; unsigned short h; };
F(c_packed) { struct odd *p = (struct odd *)((char *)data + (a & 7)); p->w += b; p->h ^= (unsigned short)a; return p->w + p->h; }
F(c_switch) { switch (a % 12 * (b != 9)) {
    case 0: return a + b; case 1: return a * b; case 2: return data[1]; case 3: data[2] = a; return b;
    case 4: return a ^ b >> 3; case 5: return ~a; case 6: return data[b & 7]; case 7: counter += a; return counter;
    case 8: return b - a; case 9: return a << 5 | b; case 10: return (i32)b >> 7; default: return 99; } }
F(c_wide) { u64 p = (u64)a * b; i64 s = (i64)(i32)a * (i32)b; u64 t = p + (u64)s * 3 - ((u64)data[0] << 17);
    return (u32)(t >> 32) ^ (u32)t ^ (p < (u64)s) ^ (u32)(s >> 11); }
__attribute__((noinline)) static u32 helper(u32 a, u32 b, u32 c, u32 d, u32 e, u32 *p) { p[0] = a + e; return b * c - d; }
F(c_calls) { u32 r = helper(a, b, a ^ b, 3, 4, data + 3); return r + helper(b, r, a, b, r, data + 4); }
__attribute__((noinline)) F(c_recurse) { if ((a & 7) == 0) return b; data[a & 7] = b; return c_recurse((a & 7) - 1, b * 3, data) + a; }
F(c_list) { u32 *p = data, n = 0; for (u32 i = 0; i < 15; i++) p[i * 2] = (u32)(p + i * 2 + 2), p[i * 2 + 1] = a >> i;
    p[30] = 0; p[31] = b; while (p && p[1] != (b & 1)) p = (u32 *)p[0], n++; return n; }
typedef u32 op(u32, u32, u32 *);
static op *const table[4] = {c_bits, c_compare, c_minmax, c_loop};
F(c_indirect) { return table[a & 3](b, a, data) + 1; }
#ifdef DIVISION
F(c_divide) { u32 n = b | 1; return a / n ^ a % n ^ (u32)((i32)a / (i32)(n & 0xffff)) ^ (u32)((i32)a % 10) ^ a / 7; }
#endif
