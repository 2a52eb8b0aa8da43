/* A lexer as a state machine: a switch over seven states; worst: the characters that keep it in its longest state. */
#define LEXER_N 32
char lexer_text[LEXER_N];
int lexer_tokens[7];

int state_machine(void)
{
    int state = 0, value = 0;
    for (int i = 0; i < LEXER_N; i++) {
        char c = lexer_text[i];
        switch (state) {
        case 0:
            state = c == '"' ? 1 : c == '-' ? 2 : c == '0' ? 3 : 6;
            break;
        case 1:
            if (c == '"')
                state = 4;
            break;
        case 2:
            if (c >= '0' && c <= '9')
                value = value * 10 - (c - '0');
            else
                state = 5;
            break;
        case 3:
            state = c == 'x' ? 2 : 4;
            value ^= i;
            break;
        case 4:
            lexer_tokens[value & 3]++;
            state = c & 3;
            break;
        case 5:
            value = -value;
            state = 0;
            break;
        default:
            lexer_tokens[6]++;
            state = c == ' ' ? 0 : 6;
            break;
        }
        lexer_tokens[5] += state;
    }
    return value;
}

void state_machine_random(uint32_t seed)
{
    static const char letters[17] = "0123456789-\"x b\n";
    for (int i = 0; i < LEXER_N; i++)
        lexer_text[i] = letters[next_random(&seed) & 15];
}

void state_machine_worst(void)
{
    for (int i = 0; i < LEXER_N; i++)
        lexer_text[i] = i ? '9' : '-';
}
