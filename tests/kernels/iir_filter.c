/* Two second-order sections in fixed point with saturation; worst: each output beyond the upper limit. */
#define IIR_SAMPLES 12
#define IIR_SECTIONS 2
int iir_samples[IIR_SAMPLES];
int iir_coefficients[IIR_SECTIONS][5], iir_state[IIR_SECTIONS][2];

static int iir_saturated(int value)
{
    if (value > 32767)
        return 32767;
    if (value < -32768)
        return -32768;
    return value;
}

void iir_filter(void)
{
    for (int i = 0; i < IIR_SAMPLES; i++) {
        int value = iir_samples[i];
        for (int s = 0; s < IIR_SECTIONS; s++) {
            const int *c = iir_coefficients[s];
            int *state = iir_state[s];
            int middle = iir_saturated(value - (c[3] * state[0] >> 14) - (c[4] * state[1] >> 14));
            value = iir_saturated((c[0] * middle + c[1] * state[0] + c[2] * state[1]) >> 14);
            state[1] = state[0];
            state[0] = middle;
        }
        iir_samples[i] = value;
    }
}

void iir_filter_random(uint32_t seed)
{
    for (int s = 0; s < IIR_SECTIONS; s++)
        for (int i = 0; i < 5; i++)
            iir_coefficients[s][i] = (int)next_random(&seed) - 32768;
    for (int i = 0; i < IIR_SAMPLES; i++)
        iir_samples[i] = ((int)next_random(&seed) - 32768) * 4;
}

void iir_filter_worst(void)
{
    for (int s = 0; s < IIR_SECTIONS; s++) {
        iir_coefficients[s][0] = 32767;
        for (int i = 1; i < 5; i++)
            iir_coefficients[s][i] = 0;
        iir_state[s][0] = iir_state[s][1] = 0;
    }
    for (int i = 0; i < IIR_SAMPLES; i++)
        iir_samples[i] = -100000;
}
