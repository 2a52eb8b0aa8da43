/* Arrays on the stack, handed on by pointer and length; one path only. */
static SEPARATE void local_fill(int *array, int count, int value)
{
    for (int i = 0; i < count; i++)
        array[i] = value += i;
}

static SEPARATE int local_dot(const int *left, const int *right, int count)
{
    int sum = 0;
    _Pragma("loopbound min 8 max 10")
    for (const int *end = left + count; left < end; left++, right++)
        sum += *left * *right;
    return sum;
}

int local_arrays(int value)
{
    int first[16], second[10];
    local_fill(first, 16, value);
    local_fill(second, 10, -value);
    return local_dot(first, second, 10) + local_dot(first, first + 8, 8);
}
