/* Bubble sort; worst: falling order. */
#define BUBBLE_N 16
int bubble_data[BUBBLE_N];

void bubble_sort(void)
{
    for (int last = BUBBLE_N - 1; last > 0; last--)
        for (int i = 0; i < last; i++)
            if (bubble_data[i] > bubble_data[i + 1]) {
                int kept = bubble_data[i];
                bubble_data[i] = bubble_data[i + 1];
                bubble_data[i + 1] = kept;
            }
}

void bubble_sort_worst(void)
{
    for (int i = 0; i < BUBBLE_N; i++)
        bubble_data[i] = BUBBLE_N - i;
}

void bubble_sort_random(uint32_t seed)
{
    for (int i = 0; i < BUBBLE_N; i++)
        bubble_data[i] = (int)next_random(&seed) - 32768;
}
