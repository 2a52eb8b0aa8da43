/* The length of a string and its copy, which pragmas bound, and a fill of clamped length; worst: the longest. */
#define COPY_MOST 40
char copy_source[COPY_MOST + 1], copy_target[COPY_MOST + 1];

uint32_t memory_copy(uint32_t filled)
{
    uint32_t length = 0;
    _Pragma("loopbound min 0 max 40")
    while (copy_source[length])
        length++;
    _Pragma("loopbound min 0 max 40")
    for (uint32_t i = 0; i < length; i++)
        copy_target[i] = copy_source[i];
    char *end = copy_target + (filled & 31);
    for (char *p = copy_target; p < end; p++)
        *p = ' ';
    return length;
}

void memory_copy_worst(void)
{
    for (int i = 0; i < COPY_MOST; i++)
        copy_source[i] = 'x';
    copy_source[COPY_MOST] = 0;
}

void memory_copy_random(uint32_t seed)
{
    uint32_t end = next_random(&seed) % (COPY_MOST + 1);
    for (uint32_t i = 0; i <= COPY_MOST; i++)
        copy_source[i] = i < end ? 'x' : 0;
}
