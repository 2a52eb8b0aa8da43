/* Binary search, whose halving a pragma tells; worst: a key above all. */
#define SEARCH_N 255
int search_keys[SEARCH_N];

int binary_search(int key)
{
    int low = 0, high = SEARCH_N - 1;
    _Pragma("loopbound min 1 max 8")
    while (low <= high) {
        int middle = (low + high) / 2;
        if (search_keys[middle] == key)
            return middle;
        if (search_keys[middle] < key)
            low = middle + 1;
        else
            high = middle - 1;
    }
    return -1;
}

void binary_search_worst(void)
{
    for (int i = 0; i < SEARCH_N; i++)
        search_keys[i] = 2 * i;
}

void binary_search_random(uint32_t seed)
{
    int key = -(int)(next_random(&seed) & 255);
    for (int i = 0; i < SEARCH_N; i++)
        search_keys[i] = key += 1 + (int)(next_random(&seed) & 3);
}
