/* The sieve of Eratosthenes; its strides vary, so a flow fact tells the total of its inner loop. */
#define SIEVE_N 64
uint8_t sieve_composite[SIEVE_N];

int prime_sieve(void)
{
    int primes = 0;
    for (int i = 0; i < SIEVE_N; i++)
        sieve_composite[i] = 0;
    /* loop: candidates */
    for (int i = 2; i < SIEVE_N; i++) {
        if (sieve_composite[i])
            continue;
        /* point: prime */
        primes++;
        /* loop: multiples */
        for (int multiple = 2 * i; multiple < SIEVE_N; multiple += i)
            sieve_composite[multiple] = 1;
    }
    return primes;
}
