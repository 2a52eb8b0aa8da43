/* Selection sort; worst for the triangle of its loops: any order. */
#define SELECTION_N 16
int selection_data[SELECTION_N];

void selection_sort(void)
{
    for (int i = 0; i < SELECTION_N - 1; i++) {
        int least = i;
        for (int j = i + 1; j < SELECTION_N; j++)
            if (selection_data[j] < selection_data[least])
                least = j;
        int kept = selection_data[least];
        selection_data[least] = selection_data[i];
        selection_data[i] = kept;
    }
}

void selection_sort_worst(void)
{
    for (int i = 0; i < SELECTION_N; i++)
        selection_data[i] = SELECTION_N - i;
}

void selection_sort_random(uint32_t seed)
{
    for (int i = 0; i < SELECTION_N; i++)
        selection_data[i] = (int)next_random(&seed) - 32768;
}
