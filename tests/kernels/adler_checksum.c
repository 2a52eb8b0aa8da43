/* Adler's checksum of half-words, over a length that is clamped; worst: the longest, greatest half-words. */
#define ADLER_MOST 48
uint16_t adler_data[ADLER_MOST];

uint32_t adler_checksum(uint32_t length)
{
    uint32_t low = 65520, high = 65520;
    uint32_t count = length < ADLER_MOST ? length : ADLER_MOST;
    for (uint32_t i = 0; i < count; i++) {
        low += adler_data[i];
        if (low >= 65521)
            low -= 65521;
        high += low;
        if (high >= 65521)
            high -= 65521;
    }
    return high << 16 | low;
}

void adler_checksum_random(uint32_t seed)
{
    for (int i = 0; i < ADLER_MOST; i++)
        adler_data[i] = (uint16_t)next_random(&seed);
}

void adler_checksum_worst(void)
{
    for (int i = 0; i < ADLER_MOST; i++)
        adler_data[i] = 65535;
}
