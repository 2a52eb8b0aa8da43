/* A small control loop, as firmware has it: a filter, a table that is searched, handlers behind pointers, an assertion.
   What is bounded is control_step. */
#include <stdint.h>

#define TAPS 16
#define MOST_ROUTES 32

struct route {
    uint16_t id;
    uint16_t gain;
    int32_t (*handle)(int32_t value, uint32_t gain);
};

static int16_t history[TAPS];
static struct route routes[MOST_ROUTES];
static uint32_t route_count;

static _Noreturn void panic(void)
{
    for (;;) {
    }
}

static int32_t scale(int32_t value, uint32_t gain)
{
    return value * (int32_t)gain;
}

static int32_t saturate(int32_t value, uint32_t gain)
{
    int32_t limit = (int32_t)gain << 4;
    return value > limit ? limit : value < -limit ? -limit : value;
}

/* The bound of this loop follows from the code. */
static int32_t filtered(int16_t sample)
{
    int32_t sum = 0;
    for (int tap = TAPS - 1; tap > 0; tap--) {
        history[tap] = history[tap - 1];
        sum += history[tap] * (TAPS - tap);
    }
    history[0] = sample;
    return (sum + sample * TAPS) >> 8;
}

/* How often this loop runs depends on what is in memory. */
static const struct route *find(uint16_t id)
{
    for (uint32_t i = 0; i < route_count; i++) /* loop: search */
        if (routes[i].id == id)
            return &routes[i];
    return 0;
}

void add_route(uint16_t id, uint16_t gain, uint32_t is_saturating)
{
    if (route_count == MOST_ROUTES)
        panic();
    routes[route_count++] = (struct route){id, gain, is_saturating ? saturate : scale};
}

int32_t control_step(uint16_t id, int16_t sample)
{
    int32_t value = filtered(sample);
    const struct route *route = find(id);
    if (!route)
        panic();
    return route->handle(value, route->gain);
}
