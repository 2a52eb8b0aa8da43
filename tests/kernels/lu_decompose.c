/* LU decomposition in place with fixed-point reciprocals, then solving with the lower triangle; one path only. */
#define LU_N 6
int lu_matrix[LU_N][LU_N], lu_reciprocal[LU_N], lu_vector[LU_N];

void lu_decompose(void)
{
    for (int i = 0; i < LU_N; i++)
        for (int j = i + 1; j < LU_N; j++) {
            int factor = lu_matrix[j][i] * lu_reciprocal[i] >> 8;
            lu_matrix[j][i] = factor;
            for (int k = i + 1; k < LU_N; k++)
                lu_matrix[j][k] -= factor * lu_matrix[i][k] >> 8;
        }
    for (int i = 1; i < LU_N; i++) {
        int sum = lu_vector[i];
        for (int j = 0; j < i; j++)
            sum -= lu_matrix[i][j] * lu_vector[j] >> 8;
        lu_vector[i] = sum;
    }
}

void lu_decompose_random(uint32_t seed)
{
    for (int i = 0; i < LU_N; i++) {
        lu_reciprocal[i] = (int)next_random(&seed);
        lu_vector[i] = (int)next_random(&seed);
        for (int j = 0; j < LU_N; j++)
            lu_matrix[i][j] = (int)next_random(&seed);
    }
}

void lu_decompose_worst(void)
{
    lu_decompose_random(1);
}
