/* SPDX-License-Identifier: 0BSD */
/*
 * A simplified task scheduler with two rings of tasks, after figure 10 of J. Herter et al., CAMA: a predictable
 * cache-aware memory allocator, ECRTS 2011. Where the figure has "...", each task that is passed counts it: the scheduler
 * ages its tasks.
 */
#include <stddef.h>
#include <stdint.h>

void *cama_malloc(size_t bytes, unsigned set);
int cama_init(void *arena, size_t bytes);

#define HIGH_TASKS 4
#define LOW_TASKS 16

/* The scheduler looks at the first two words. Blocks start at multiples of 8, so that these are in one cache line. */
struct task {
    struct task *next;
    uint32_t passed;
    uint32_t registers[10];
};

struct task *high_tasks, *low_tasks;

static inline struct task *next_high(struct task *task)
{
    task->passed++;
    return task->next;
}

static inline struct task *next_low(struct task *task)
{
    task->passed++;
    return task->next;
}

/* Passes all tasks of low priority, and before each of them all of high priority. */
void schedule(struct task *high_first, struct task *low)
{
    for (unsigned i = 0; i < LOW_TASKS; i++) {
        struct task *high = high_first;
        for (unsigned j = 0; j < HIGH_TASKS; j++)
            high = next_high(high);
        low = next_low(low);
    }
}

static struct task *ring(unsigned tasks, unsigned set, unsigned step)
{
    struct task *first = NULL, *last = NULL;
    for (unsigned i = 0; i < tasks; i++) {
        struct task *task = cama_malloc(sizeof *task, set + i * step);
        if (task == NULL)
            return NULL;
        task->passed = 0;
        task->next = first;
        if (last != NULL)
            last->next = task;
        else
            first = task;
        last = task;
    }
    last->next = first;
    return first;
}

/* Makes the heap and both rings: tasks of high priority in cache set 0, the others in low_set, low_set + low_step and so
 * on. Returns 0, or 1 where the heap is too small. */
int make_tasks(void *heap, size_t bytes, unsigned low_set, unsigned low_step)
{
    if (cama_init(heap, bytes) != 0)
        return 1;
    high_tasks = ring(HIGH_TASKS, 0, 0);
    low_tasks = ring(LOW_TASKS, low_set, low_step);
    return high_tasks == NULL || low_tasks == NULL;
}
