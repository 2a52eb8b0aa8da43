/* CRC-32, four bits at a time by a table; worst: the longest. */
static const uint32_t crc_table_nibbles[16] = {
    0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u, 0x4DB26158u, 0x5005713Cu,
    0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu, 0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu,
};
uint8_t crc_table_data[64];

uint32_t crc_table(uint32_t length)
{
    uint32_t crc = ~0u;
    if (length > 64)
        length = 64;
    for (const uint8_t *byte = crc_table_data; byte != crc_table_data + length; byte++) {
        crc = crc_table_nibbles[(crc ^ *byte) & 15] ^ crc >> 4;
        crc = crc_table_nibbles[(crc ^ *byte >> 4) & 15] ^ crc >> 4;
    }
    return ~crc;
}

void crc_table_random(uint32_t seed)
{
    for (int i = 0; i < 64; i++)
        crc_table_data[i] = (uint8_t)next_random(&seed);
}

void crc_table_worst(void)
{
    crc_table_random(1);
}
