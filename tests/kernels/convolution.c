/* Convolution of a picture with a kernel of three by three, in three nested loops, then clamped; worst: all above 255. */
#define PICTURE_N 8
uint8_t convolution_input[PICTURE_N][PICTURE_N], convolution_output[PICTURE_N][PICTURE_N];
int8_t convolution_kernel[3][3];

void convolution(void)
{
    for (int y = 1; y < PICTURE_N - 1; y++)
        for (int x = 1; x < PICTURE_N - 1; x++) {
            int sum = 0;
            for (int dy = -1; dy <= 1; dy++) {
                const uint8_t *row = &convolution_input[y + dy][x - 1];
                const int8_t *weights = convolution_kernel[dy + 1];
                sum += row[0] * weights[0] + row[1] * weights[1] + row[2] * weights[2];
            }
            convolution_output[y][x] = (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
        }
}

void convolution_random(uint32_t seed)
{
    for (int i = 0; i < PICTURE_N; i++)
        for (int j = 0; j < PICTURE_N; j++)
            convolution_input[i][j] = (uint8_t)next_random(&seed);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            convolution_kernel[i][j] = (int8_t)next_random(&seed);
}

void convolution_worst(void)
{
    for (int i = 0; i < PICTURE_N; i++)
        for (int j = 0; j < PICTURE_N; j++)
            convolution_input[i][j] = 255;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            convolution_kernel[i][j] = 1;
}
