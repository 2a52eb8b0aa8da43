volatile int port;
int buffer[32];
const unsigned char sizes[8] = {3, 9, 1, 30, 2, 7, 5, 40};
struct item { struct item *next; int key; };
__attribute__((noinline)) static int worker(int n) { int s = 0; for (int i = 0; i < (n & 15); i++) s += port; return s; }
int nested(int n) { int s = 0; for (int i = 0; i < 10; i++) for (int j = 0; j < 12; j += 3) s += port * n; return s; }
int calling(int n) { int s = worker(n); for (int i = 0; i < 5; i++) s += worker(s); return s; }
int down(unsigned n) { int s = 0; n &= 63; while (n) { s += port; n--; } return s; }
int stepping(int n) { int s = 0; for (int i = n & 3; i <= 40; i += 4) s += port; return s; }
int either(int n) { int most = n < 0 ? 20 : n > 100 ? 6 : 11; int s = 0; for (int i = 0; i < most; i++) s += port; return s; }
int bytes(unsigned n) { int s = 0; for (unsigned i = 0; i < sizes[n & 7]; i++) s += port; return s; }
int choose(int n) { switch (n) { case 0: return port; case 1: return port + port; case 2: port = 1; port = 2; return port / n; case 3: return worker(9); case 4: return 7; case 5: return worker(2) + worker(3); default: return -1; } }
int aliased(int n) { volatile int k = 3, *p = n & 1 ? &k : (volatile int *)&port; *p = 40; int s = 0; for (int i = 0; i < 40 && i < k; i++) s += port; return s; }
int filled(int n) { int a[8]; for (int i = 0; i < 8; i++) a[i] = 4; a[n & 7] = 25; int m = a[2] & 31, s = 0; for (int i = 0; i < m; i++) s += port; return s; }
int shifting(unsigned n) { int s = 0; n |= 1; while (n > 1) { n >>= 2; s += port; } return s; }
int exclusive(int n) { int s = 0; if (n > 10) s += worker(15); if (n < 5) s += worker(15); if (n == 7) s++; return s; }
int related(int n) { int s = 0; if (n > 10) s = port + port + port; n = port; if (n < 5) s += port / 3 + port; return s; }
int early(const int *a, int n) { for (int i = 0; i < 32; i++) if (buffer[i] == n) return i * port; return -1; }
int signs(signed char c) { int m = c, s = 0; if (m < 30) { unsigned k = m; if (m < 0) { port = 1; k = 33; __asm__ volatile("" : "+r"(k)); } for (unsigned i = 0; i < k; i++) s += port; } return s; }
int kept;
int stored(int n) { kept = 2; buffer[n & 31] = 9; int *q = buffer + (n & 31); q[0] = 30; kept += n & 7; int s = 0; for (int i = 0; i < kept && i < 9; i++) s += port; return s; }
int *volatile where;
const signed char starts[4] = {-30, 5, 2, 9};
int pointed(int n) { volatile int k = 3, *p = &port; if (n > 5) { port = port / 3 + n; port = 2; p = &k; } *p = 40; int s = 0; for (int i = 0; i < 40 && i < k; i++) s += port; return s; }
int restored(int n) { volatile int k = 3; k = 30; int s = 0; for (int i = 0; i < 40 && i < k; i++) s += port; return s * n; }
int indexed(int n) { volatile int *b = buffer; b[3] = 2; b[n & 31] = 45; int m = b[3], s = 0; for (int i = 0; i < 40 && i < m; i++) s += port; return s; }
int last(int n) { volatile int *b = buffer; b[31] = 2; b[n & 31] = 45; int m = b[31], s = 0; for (int i = 0; i < 40 && i < m; i++) s += port; return s; }
int escaping(int n) { int k; volatile int *q = &k; *q = 3; where = &k; *where = 40 + n; int s = 0; for (int i = 0; i < 40 && i < *q; i++) s += port; return s; }
int below(int n) { int s = 0; for (int i = starts[n & 3]; i < 10; i++) s += port; return s; }
int upto(unsigned n) { unsigned m = n & 31; int s = 0; for (unsigned i = 0; i <= m; i += 3) s += port; return s; }
int entered(int n) { int i, s = 0; if (n > 0) { port = 1; i = 2; } else { port = 2; i = 25; } do s += port; while (++i < 40); return s; }
int entered_late(int n) { int i, s = 0; if (n > 0) { port = 1; i = 25; } else { port = 2; i = 2; } do s += port; while (++i < 40); return s; }
int wrapping(unsigned n) { unsigned m = 0xFFFFFFF8u | (n & 7); int s = 0; for (unsigned i = 0xFFFFFFF0u, j = 0; i < m && j < 100; i += 7, j++) s += port; return s; }
int passing(unsigned n) { int s = 0; for (unsigned i = 3 * (n & 1), j = 0; i != 10 && j < 50; i += 3, j++) s += port; return s; }
int *volatile slots[8];
volatile signed char level;
int pointing(int n) { volatile int k = 3, *p; switch (n) { case 1: port = n / 3; p = &port; break; case 2: port = 2; p = &k; break; default: kept = 3; port = 1; p = &kept; } __asm__("" : "+r"(p)); *p = 40; int s = 0; for (int i = 0; i < 40 && i < k; i++) s += port; return s; }
int spread(int n, int m) { int k; volatile int *q = &k; *q = 3; slots[n & 7] = &k; *slots[m & 7] = 40 + n; int s = 0; for (int i = 0; i < 40 && i < *q; i++) s += port; return s; }
int negative(void) { int m = level, s = 0; unsigned k = m & 15; if (m < 0) { port = 1; k = 33; __asm__ volatile("" : "+r"(k)); } for (unsigned i = 0; i < k; i++) s += port; return s; }
int meeting(int n) { int s = n; for (int i = 0; i < 50; i++) { int m = port & 7; if (i == m) break; s += n; port = i; } return s; }
int upto_end(int n) { int s = 0, i = 0, m = 7 + (n & 31); do { s += port; i += 7; __asm__ volatile("" : "+r"(i), "+r"(m)); } while (i <= m); return s; }
int entries(unsigned n) { int s = 0; unsigned i = 0; n = (n & 31) + 1; __asm__ volatile("" : "+r"(n), "+r"(i), "+r"(s)); if (n < 6) goto in; port = 1; s = port / 7; in: do { s += port; i++; __asm__ volatile("" : "+r"(i)); } while (i < n); return s; }
extern int brought_back(int a, int b, int c, const int *d) __attribute__((naked));
int brought_back(int a, int b, int c, const int *d) { __asm__ volatile("cmp r1, #7\n bhs 0f\n adds r2, r2, #0\n0: ldr r0, [r3]\n cmp r0, #3\n bne 1f\n cmp r1, #7\n bhs 9f\n b 2f\n1: movs r0, #9\n cmp r1, #7\n blo 9f\n2: movs r3, #0\n cmp r2, #1\n beq 3f\n adds r3, r3, #1\n adds r3, r3, #1\n adds r3, r3, #1\n b 9f\n3: adds r3, r3, #1\n adds r3, r3, #1\n adds r3, r3, #1\n adds r3, r3, #1\n9: bx lr"); }
int predicated(int n) { int s = n; if (n > 10) s = port; return s; }
int divided(int n, int m) { int s = n; if (n > 10) s = n / m; return s; }
