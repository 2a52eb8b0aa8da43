/* A ring buffer: what fits is put in, then all is taken out; worst: it was empty, and is filled. */
#define RING_N 16
struct {
    uint32_t head, tail;
    int items[RING_N];
} ring;

int ring_buffer(int first, uint32_t count)
{
    if (count > RING_N)
        count = RING_N;
    for (uint32_t i = 0; i < count; i++)
        if (ring.head - ring.tail < RING_N)
            ring.items[ring.head++ % RING_N] = first + (int)i;
    int sum = 0;
    _Pragma("loopbound min 0 max 16")
    while (ring.tail != ring.head)
        sum += ring.items[ring.tail++ % RING_N];
    return sum;
}

void ring_buffer_worst(void)
{
    ring.head = ring.tail = 12;
}

void ring_buffer_random(uint32_t seed)
{
    ring.tail = next_random(&seed);
    ring.head = ring.tail + (next_random(&seed) & 15);
}
