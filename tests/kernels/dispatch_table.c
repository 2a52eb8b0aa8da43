/* Commands by a table of functions, which a flow fact names; worst: the longest command each time. */
#define DISPATCH_N 12
uint8_t dispatch_commands[DISPATCH_N];
int dispatch_state;

static void dispatch_add(int value)
{
    dispatch_state += value;
}

static void dispatch_scale(int value)
{
    dispatch_state = dispatch_state * 3 + value;
}

static void dispatch_mix(int value)
{
    for (int i = 0; i < 6; i++)
        dispatch_state = (dispatch_state << 1) ^ (dispatch_state >> 3) ^ value;
}

void (*dispatch_handlers[3])(int) = {dispatch_add, dispatch_scale, dispatch_mix};

void dispatch_table(void)
{
    for (int i = 0; i < DISPATCH_N; i++)
        dispatch_handlers[dispatch_commands[i] % 3](i);
}

void dispatch_table_worst(void)
{
    for (int i = 0; i < DISPATCH_N; i++)
        dispatch_commands[i] = 2;
}

void dispatch_table_random(uint32_t seed)
{
    for (int i = 0; i < DISPATCH_N; i++)
        dispatch_commands[i] = (uint8_t)next_random(&seed);
}
