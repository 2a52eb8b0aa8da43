/* Three levels of calls; each call has its own loop bound. One path only. */
int nested_cells[32];

static SEPARATE int nested_row(const int *row, int width)
{
    int sum = 0;
    for (int i = 0; i < width; i++)
        sum += row[i] ^ sum >> 1;
    return sum;
}

static SEPARATE int nested_block(const int *block, int rows, int width)
{
    int sum = 0;
    for (int i = 0; i < rows; i++)
        sum += nested_row(block + i * width, width);
    return sum;
}

int nested_calls(void)
{
    return nested_block(nested_cells, 8, 4) - nested_block(nested_cells + 8, 3, 8) + nested_row(nested_cells, 16);
}

void nested_calls_random(uint32_t seed)
{
    for (int i = 0; i < 32; i++)
        nested_cells[i] = (int)next_random(&seed);
}

void nested_calls_worst(void)
{
    nested_calls_random(1);
}
