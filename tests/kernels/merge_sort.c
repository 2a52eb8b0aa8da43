/* Merge sort by recursion, whose depth is a flow fact; no order takes every path of its merges. */
#define MERGE_N 8
int merge_data[MERGE_N], merge_spare[MERGE_N];

static SEPARATE void merge_part(int first, int end)
{
    if (end - first < 2)
        return;
    int middle = (first + end) / 2;
    merge_part(first, middle);
    merge_part(middle, end);
    int left = first, right = middle;
    for (int i = first; i < end; i++)
        merge_spare[i] = right >= end || (left < middle && merge_data[left] <= merge_data[right])
                             ? merge_data[left++] : merge_data[right++];
    for (int i = first; i < end; i++)
        merge_data[i] = merge_spare[i];
}

void merge_sort(void)
{
    merge_part(0, MERGE_N);
}

void merge_sort_worst(void)
{
    static const int order[MERGE_N] = {0, 4, 2, 6, 1, 5, 3, 7};
    for (int i = 0; i < MERGE_N; i++)
        merge_data[i] = order[i];
}

void merge_sort_random(uint32_t seed)
{
    for (int i = 0; i < MERGE_N; i++)
        merge_data[i] = (int)next_random(&seed) - 32768;
}
