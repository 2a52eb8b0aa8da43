/* Finite impulse response: a delay line that is shifted, and a sum of products, for each sample. */
#define FIR_TAPS 12
#define FIR_SAMPLES 10
int fir_coefficients[FIR_TAPS], fir_delayed[FIR_TAPS];
int16_t fir_samples[FIR_SAMPLES];

static SEPARATE int fir_step(int sample)
{
    for (int i = FIR_TAPS - 1; i > 0; i--)
        fir_delayed[i] = fir_delayed[i - 1];
    fir_delayed[0] = sample;
    int sum = 0;
    for (int i = 0; i < FIR_TAPS; i++)
        sum += fir_coefficients[i] * fir_delayed[i];
    return sum >> 12;
}

void fir_filter(void)
{
    for (int i = 0; i < FIR_SAMPLES; i++)
        fir_samples[i] = (int16_t)fir_step(fir_samples[i]);
}

void fir_filter_random(uint32_t seed)
{
    for (int i = 0; i < FIR_TAPS; i++)
        fir_coefficients[i] = (int)next_random(&seed) & 4095;
    for (int i = 0; i < FIR_SAMPLES; i++)
        fir_samples[i] = (int16_t)next_random(&seed);
}

void fir_filter_worst(void)
{
    fir_filter_random(1);
}
