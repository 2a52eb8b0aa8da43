/* Fibonacci numbers by addition; worst: the greatest index that is not clamped. */
uint32_t fibonacci(int index)
{
    uint32_t first = 0, second = 1;
    if (index > 46)
        index = 46;
    for (int i = 0; i < index; i++) {
        uint32_t sum = first + second;
        first = second;
        second = sum;
    }
    return first;
}
