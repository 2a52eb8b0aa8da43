/* Heap sort; how deep an element sinks is told by pragmas. */
#define HEAP_N 15
int heap_data[HEAP_N];

static SEPARATE void heap_sink(int root, int count)
{
    int child = 2 * root + 1;
    _Pragma("loopbound min 0 max 3")
    while (child < count) {
        if (child + 1 < count && heap_data[child + 1] > heap_data[child])
            child++;
        if (heap_data[root] >= heap_data[child])
            return;
        int kept = heap_data[root];
        heap_data[root] = heap_data[child];
        heap_data[child] = kept;
        root = child;
        child = 2 * root + 1;
    }
}

void heap_sort(void)
{
    for (int root = HEAP_N / 2 - 1; root >= 0; root--)
        heap_sink(root, HEAP_N);
    for (int last = HEAP_N - 1; last > 0; last--) {
        int kept = heap_data[0];
        heap_data[0] = heap_data[last];
        heap_data[last] = kept;
        heap_sink(0, last);
    }
}

void heap_sort_worst(void)
{
    for (int i = 0; i < HEAP_N; i++)
        heap_data[i] = i;
}

void heap_sort_random(uint32_t seed)
{
    for (int i = 0; i < HEAP_N; i++)
        heap_data[i] = (int)next_random(&seed) - 32768;
}
