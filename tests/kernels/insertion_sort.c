/* Insertion sort; worst: falling order, so the inner loop runs over all that is sorted. */
#define INSERTION_N 16
int insertion_data[INSERTION_N];

void insertion_sort(void)
{
    for (int i = 1; i < INSERTION_N; i++) {
        int moved = insertion_data[i];
        int j = i;
        while (j > 0 && insertion_data[j - 1] > moved) {
            insertion_data[j] = insertion_data[j - 1];
            j--;
        }
        insertion_data[j] = moved;
    }
}

void insertion_sort_worst(void)
{
    for (int i = 0; i < INSERTION_N; i++)
        insertion_data[i] = INSERTION_N - i;
}

void insertion_sort_random(uint32_t seed)
{
    for (int i = 0; i < INSERTION_N; i++)
        insertion_data[i] = (int)next_random(&seed) - 32768;
}
