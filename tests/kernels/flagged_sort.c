/* Bubble sort that stops after a pass without exchange; worst: falling order. */
#define FLAGGED_N 16
int flagged_data[FLAGGED_N];

void flagged_sort(void)
{
    for (int last = FLAGGED_N - 1; last > 0; last--) {
        int exchanged = 0;
        _Pragma("loopbound min 1 max 15")
        for (int i = 0; i < last; i++)
            if (flagged_data[i] > flagged_data[i + 1]) {
                int kept = flagged_data[i];
                flagged_data[i] = flagged_data[i + 1];
                flagged_data[i + 1] = kept;
                exchanged = 1;
            }
        if (!exchanged)
            break;
    }
}

void flagged_sort_worst(void)
{
    for (int i = 0; i < FLAGGED_N; i++)
        flagged_data[i] = FLAGGED_N - i;
}

void flagged_sort_random(uint32_t seed)
{
    for (int i = 0; i < FLAGGED_N; i++)
        flagged_data[i] = (int)next_random(&seed) - 32768;
}
