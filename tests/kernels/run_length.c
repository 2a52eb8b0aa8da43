/* Run-length coding; worst: no character twice in a row. */
#define RUNS_N 32
uint8_t runs_input[RUNS_N], runs_output[2 * RUNS_N];

int run_length(void)
{
    int out = 0, run = 1;
    for (int i = 1; i <= RUNS_N; i++) {
        if (i < RUNS_N && runs_input[i] == runs_input[i - 1]) {
            run++;
            continue;
        }
        runs_output[out++] = (uint8_t)run;
        runs_output[out++] = runs_input[i - 1];
        run = 1;
    }
    return out;
}

void run_length_worst(void)
{
    for (int i = 0; i < RUNS_N; i++)
        runs_input[i] = (uint8_t)i;
}

void run_length_random(uint32_t seed)
{
    for (int i = 0; i < RUNS_N; i++)
        runs_input[i] = (uint8_t)(next_random(&seed) & 1);
}
