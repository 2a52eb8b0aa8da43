volatile int port;
volatile int far[5 * 1024];
struct item { struct item *next; int key; };
int kept;
__attribute__((noinline)) static int worker(int n) { int s = n; for (int i = 0; i < 3; i++) s = s * 7 + (s >> 3) + i / 3; if (s & 1) s ^= n * 5; return s + kept; }
int again(int n) { int s = far[0]; s += far[1024] * n; s -= far[2048]; s ^= far[3072]; s += far[4096]; return s + far[0]; }
int turning(int n) { int s = n; for (int i = 0; i < 10; i++) { s += far[0]; s ^= far[1024]; s += far[2048]; s ^= far[3072]; s -= far[4096]; } return s; }
int returning(int n) { int s = n; for (int i = 0; i < 10; i++) { s += far[0]; s ^= far[1024]; } return s; }
int sides(int n) { int s; if (n > 3) s = far[0] / 3 + n; else { s = far[512] / 5 + n * n; s += far[520] / 7; s += far[528] / 9; } s *= port; return s + far[0]; }
int working(int n) { int s; if (n > 0) s = worker(n); else { s = far[512] / 5; s += far[520] / 7; s += far[528] / 9; s += far[536] / 9; s += far[544] / 11; s += far[560] / 13; } return s + worker(3); }
int walking(const struct item *p) { int s = 0; for (int i = 0; i < 9 && p; i++) { s += p->key; p = p->next; } return s; }
int stepping(const int *p) { int s = 0; for (int i = 0; i < 9; i++) { s += *p; p += 64; } return s; }
int scattered(int n) { int s = far[0]; for (int i = 0; i < 6; i++) { s += far[n & 4095]; n = n * 5 + s; } return s + far[0]; }
int pair(volatile int *p, volatile int *q) { int s = *p + *q; for (int i = 0; i < 6; i++) s += *p + *q; return s; }
int writing(int n) { for (int i = 0; i < 8; i++) far[i * 8] = n; return n; }
int rewriting(int n) { for (int i = 0; i < 8; i++) { far[0] = n; far[1024] = i; far[2048] = i; far[3072] = n; far[4096] = n; } return n; }
int calling(int n) { int s = 0; for (int i = 0; i < 5; i++) s += worker(i + n); return s; }
int nearby(const int *p) { int s = 0; for (int i = 0; i < 20; i++) s += p[i]; return s; }
