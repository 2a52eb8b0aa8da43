/* Product of square matrices; one path only. */
#define MATRIX_N 6
int matrix_left[MATRIX_N][MATRIX_N], matrix_right[MATRIX_N][MATRIX_N], matrix_product[MATRIX_N][MATRIX_N];

void matrix_multiply(void)
{
    for (int i = 0; i < MATRIX_N; i++)
        for (int j = 0; j < MATRIX_N; j++) {
            int sum = 0;
            for (int k = 0; k < MATRIX_N; k++)
                sum += matrix_left[i][k] * matrix_right[k][j];
            matrix_product[i][j] = sum;
        }
}

void matrix_multiply_random(uint32_t seed)
{
    for (int i = 0; i < MATRIX_N; i++)
        for (int j = 0; j < MATRIX_N; j++) {
            matrix_left[i][j] = (int)next_random(&seed);
            matrix_right[i][j] = (int)next_random(&seed);
        }
}

void matrix_multiply_worst(void)
{
    matrix_multiply_random(1);
}
