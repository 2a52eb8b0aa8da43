/* Bits that are set, by taking off the lowest, and by shifting; worst: all of them, and the highest alone. */
int bit_count(uint32_t word, uint32_t other)
{
    int count = 0;
    while (word) {
        word &= word - 1;
        count++;
    }
    while (other) {
        count += other & 1 ? 3 : 1;
        other >>= 1;
    }
    return count;
}
