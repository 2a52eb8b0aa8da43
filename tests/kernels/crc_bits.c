/* CRC-32, a bit at a time, over a length that is clamped; worst: the longest. */
uint8_t crc_bits_data[64];

uint32_t crc_bits(uint32_t length)
{
    uint32_t crc = ~0u;
    if (length > 24)
        length = 24;
    for (uint32_t i = 0; i < length; i++) {
        crc ^= crc_bits_data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xEDB88320u : crc >> 1;
    }
    return ~crc;
}

void crc_bits_random(uint32_t seed)
{
    for (int i = 0; i < 64; i++)
        crc_bits_data[i] = (uint8_t)next_random(&seed);
}

void crc_bits_worst(void)
{
    crc_bits_random(1);
}
