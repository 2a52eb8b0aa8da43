/* Naive search of a string; worst: the pattern fails at its last character everywhere. */
#define TEXT_N 32
#define PATTERN_N 4
char search_text[TEXT_N], search_pattern[PATTERN_N];

int string_search(void)
{
    for (int start = 0; start <= TEXT_N - PATTERN_N; start++) {
        int matched = 0;
        while (matched < PATTERN_N && search_text[start + matched] == search_pattern[matched])
            matched++;
        if (matched == PATTERN_N)
            return start;
    }
    return -1;
}

void string_search_worst(void)
{
    for (int i = 0; i < TEXT_N; i++)
        search_text[i] = 'a';
    for (int i = 0; i < PATTERN_N; i++)
        search_pattern[i] = i == PATTERN_N - 1 ? 'b' : 'a';
}

void string_search_random(uint32_t seed)
{
    for (int i = 0; i < TEXT_N; i++)
        search_text[i] = (char)('a' + (next_random(&seed) & 1));
    for (int i = 0; i < PATTERN_N; i++)
        search_pattern[i] = (char)('a' + (next_random(&seed) & 1));
}
