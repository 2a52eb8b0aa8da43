/* Square root by iteration over the bits of the result; worst: each bit is taken. */
uint32_t square_root(uint32_t number)
{
    uint32_t root = 0;
    for (uint32_t bit = 1u << 30; bit; bit >>= 2)
        if (number >= root + bit) {
            number -= root + bit;
            root = (root >> 1) + bit;
        } else {
            root >>= 1;
        }
    return root;
}
