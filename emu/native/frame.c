/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The side of the core of what translated code does: see frame.h.
 */
#include "frame.h"
#include "observer.h"

#include <stddef.h>
#include <string.h>

enum { WP_SLACK = 1 << 17 }; /* more than is executed between two looks at the limit */

static const struct wp_range *range_of(const struct wp_observer *observer, uint32_t address, uint32_t bytes, bool is_write)
{
    const uint32_t known = wp_range_at(observer, address);
    if (!known)
        return NULL;
    const struct wp_range *const range = &observer->setup.ranges[known - 1];
    const uint32_t offset = address - range->base;
    return offset < range->bytes && bytes <= range->bytes - offset && (range->writable || !is_write) ? range : NULL;
}

static uint8_t *frame_access(struct wp_frame *frame, uint32_t pc, uint32_t address, uint32_t bytes_and_kind)
{
    struct wp_observer *const observer = frame->observer;
    const uint32_t bytes = bytes_and_kind & 0xFF;
    const bool is_write = bytes_and_kind & WP_MAY_STORE;
    const struct wp_range *const range = range_of(observer, address, bytes, is_write);
    if (!range)
        return NULL;
    if (frame->observes == WP_OBSERVES_DATA && !(bytes_and_kind & WP_UNNOTED))
        wp_observer_access(observer, NULL, pc, address, bytes, is_write);
    return frame->range_memory[range - observer->setup.ranges] + (address - range->base);
}

/* All of several accesses, or none of them: 0 where the guest may not make each. */
static uint32_t frame_accesses(struct wp_frame *frame, uint32_t pc, uint32_t address, uint32_t count,
                               uint32_t bytes_and_kind)
{
    const uint32_t bytes = bytes_and_kind & 0xFF;
    for (uint32_t i = 0; i < count; i++)
        if (!range_of(frame->observer, address + i * bytes, bytes, bytes_and_kind & WP_MAY_STORE))
            return 0;
    for (uint32_t i = 0; i < count; i++) {
        if (bytes_and_kind & WP_MAY_LOAD)
            wp_observer_access(frame->observer, NULL, pc, address + i * bytes, bytes, false);
        if (bytes_and_kind & WP_MAY_STORE)
            wp_observer_access(frame->observer, NULL, pc, address + i * bytes, bytes, true);
    }
    return 1;
}

/* The loops learn that a block runs after another one; what waits for the end of the block before is counted. */
static void loops_at(struct wp_frame *frame, uint32_t block, uint32_t before)
{
    struct wp_loops *const loops = &frame->observer->loops;
    const struct wp_block *const rows = &frame->blocks[block];
    wp_loops_block(loops, rows->first_row, rows->behind_row);
    if (loops->setup.events_before)
        loops->before = before == WP_NO_BLOCK ? UINT32_MAX : frame->blocks[before].behind_row - 1;
}

/* Of which blocks the core is told from now on; how often each has run stays as it is. */
static void tell_of(struct wp_frame *frame, const uint8_t *events)
{
    frame->events = events;
    for (uint32_t i = 0; i < frame->block_count; i++)
        frame->runs[i] = (frame->runs[i] & INT64_MAX) | (events[i] ? WP_TOLD : 0);
}

/* Of the path that is kept: its next block; where there is no more room, blocks are only counted. */
static void keep_path(struct wp_frame *frame, uint32_t block)
{
    if (frame->path_length < frame->path_capacity) {
        frame->path[2 * frame->path_length] = frame->blocks[block].first_row;
        frame->path[2 * frame->path_length + 1] = frame->blocks[block].behind_row;
        frame->path_length++;
    }
    if (frame->path_length >= frame->path_capacity)
        tell_of(frame, frame->events_of_core);
}

static void frame_event(struct wp_frame *frame, uint32_t block, uint32_t before)
{
    if (frame->events == frame->every_event) {
        keep_path(frame, block);
        if (!frame->events_of_core[block])
            return;
    }
    wp_claims_block(&frame->observer->claims, frame->blocks[block].first_row, frame->blocks[block].behind_row);
    loops_at(frame, block, before);
}

static void flush(struct wp_frame *frame)
{
    struct wp_observer *const observer = frame->observer;
    if (frame->observes) {
        observer->counts.instructions += (uint64_t)frame->instructions;
        observer->counts.cycles += (uint64_t)frame->cycles;
        const uint64_t loads = (uint64_t)(frame->loads - frame->counted_loads);
        const uint64_t stores = (uint64_t)(frame->stores - frame->counted_stores);
        const uint64_t region_loads = (uint64_t)frame->region_loads, region_stores = (uint64_t)frame->region_stores;
        observer->counts.loads += loads + region_loads;
        observer->counts.stores += stores + region_stores;
        observer->counts.region_accesses += region_loads + region_stores;
        observer->counts.region_cycles +=
            region_loads * frame->region_read_cycles + region_stores * frame->region_write_cycles;
        if (observer->has_dcache) {
            observer->dcache.counts.read_hits += loads;
            observer->dcache.counts.write_hits += stores;
            observer->dcache.counts.memory_writes += observer->dcache.config.write_back ? 0 : stores;
        }
    }
    frame->limit -= frame->instructions;
    frame->spent += frame->instructions;
    frame->instructions = frame->cycles = frame->loads = frame->stores = 0;
    frame->counted_loads = frame->counted_stores = frame->region_loads = frame->region_stores = 0;
}

static int read_of_frame(uc_engine *engine, int id, void *value)
{
    const struct wp_frame *const frame = (const void *)engine;
    const bool is_stack_pointer = id == frame->observer->setup.stack_pointer;
    memcpy(value, is_stack_pointer ? &frame->stack_pointer : &frame->first_register, sizeof(uint32_t));
    return 0;
}

static void frame_cross(struct wp_frame *frame, uint32_t address)
{
    struct wp_observer *const observer = frame->observer;
    const struct wp_setup *const setup = &observer->setup;
    const bool in_harness = address - setup->harness_base < setup->harness_bytes;
    uc_engine *const engine = (void *)frame;
    const wp_register_read read_register = setup->read_register;
    flush(frame);
    observer->setup.read_register = read_of_frame;
    if (observer->operation_capacity)
        wp_observer_operation(observer, engine, address);
    if (observer->claims.setup.entries)
        wp_observer_call(observer, engine, (address - setup->code_base) / 2, in_harness);
    observer->setup.read_register = read_register;
    frame->watches = observer->claims.active || observer->sets.operation;
    frame->lines = frame->watches ? frame->no_lines : frame->lines_kept;
}

/* The caches may have changed since translated code ran. */
static void forget_lines(struct wp_frame *frame)
{
    for (uint32_t i = 0; i < frame->known_lines; i++)
        frame->lines_kept[i].load_key = frame->lines_kept[i].store_key = WP_NO_LINE;
    for (uint32_t i = 0; i < frame->known_fetches; i++)
        frame->fetched[i] = WP_NO_LINE;
}

/* What an access to the stack costs where no cache serves it. */
static void charge_stack(struct wp_frame *frame)
{
    const struct wp_setup *const setup = &frame->observer->setup;
    const uint32_t known = frame->fast_range[WP_STACK];
    const struct wp_uncached *const uncached = known ? wp_uncached_at(setup, setup->ranges[known - 1].base) : NULL;
    frame->region_read_cycles = uncached ? uncached->read_cycles : 0;
    frame->region_write_cycles = uncached ? uncached->write_cycles : 0;
}

/* Translated code is to run: from the start of a call, or from where it paused. False: the budget does not allow it, the
 * engine is to count. */
WP_EXPORT bool wp_frame_enter(struct wp_observer *observer, struct wp_frame *frame, uint64_t quantum, bool is_start)
{
    frame->observer = observer;
    frame->limit = (int64_t)quantum;
    if (observer->budget) {
        if (observer->spent + WP_SLACK >= observer->budget)
            return false;
        const uint64_t left = observer->budget - observer->spent - WP_SLACK;
        frame->limit = left < quantum ? (int64_t)left : (int64_t)quantum;
    }
    frame->access = frame_access;
    frame->accesses = frame_accesses;
    frame->event = frame_event;
    frame->cross = frame_cross;
    frame->instructions = frame->cycles = frame->loads = frame->stores = frame->spent = 0;
    frame->counted_loads = frame->counted_stores = frame->region_loads = frame->region_stores = 0;
    frame->fetched_slowly = 0;
    charge_stack(frame);
    frame->lowest_stack_pointer = UINT32_MAX;
    frame->path = observer->setup.path;
    frame->path_capacity = observer->setup.path_capacity;
    frame->path_length = observer->counts.path_length;
    const bool keeps_path = frame->observes == WP_OBSERVES_DATA && frame->path_length < frame->path_capacity;
    tell_of(frame, keeps_path ? frame->every_event : frame->events_of_core);
    frame->data_cache = &observer->dcache;
    frame->fetch_cache = observer->setup.unified_cache ? &observer->dcache : &observer->icache;
    frame->fetch_counts = &observer->icache.counts;
    forget_lines(frame);
    frame->follows = frame->observes && (observer->operation_capacity || observer->claims.setup.entries);
    frame->watches = frame->observes == WP_OBSERVES_DATA && (observer->claims.active || observer->sets.operation);
    frame->lines = frame->watches ? frame->no_lines : frame->lines_kept;
    if (is_start)
        frame->block = WP_NO_BLOCK;
    if (is_start && frame->follows)
        frame_cross(frame, frame->pc);
    observer->fetched_row = UINT32_MAX; /* translated code fetches by itself */
    return true;
}

static void merge_marks(struct wp_frame *frame)
{
    const struct wp_setup *const setup = &frame->observer->setup;
    for (uint32_t fast = 0; fast < WP_FAST_RANGES; fast++) {
        if (!frame->fast_range[fast])
            continue;
        const struct wp_range *const range = &setup->ranges[frame->fast_range[fast] - 1];
        if (range->base % 4) /* its accesses are the core's */
            continue;
        uint8_t *const marks = frame->marks + range->base / 4;
        const uint32_t words = (range->bytes + 3) / 4;
        for (uint32_t word = 0; word < words; word += 8) {
            const uint32_t several = words - word < 8 ? words - word : 8; /* behind them may be those of another range */
            uint64_t eight = 0;
            memcpy(&eight, marks + word, several);
            if (!eight)
                continue;
            for (uint32_t i = word; i < word + several; i++)
                if (marks[i])
                    setup->touched[range->touched_word + i / 32] |= 1u << (i % 32);
            memset(marks + word, 0, several);
        }
    }
}

/* Translated code was left: all that it counted is the observer's now, as if the engine had run as far. */
WP_EXPORT void wp_frame_leave(struct wp_frame *frame)
{
    struct wp_observer *const observer = frame->observer;
    const struct wp_setup *const setup = &observer->setup;
    flush(frame);
    uint64_t fetches = 0, blocks = 0;
    for (uint32_t i = 0; frame->observes && i < frame->block_count; i++) {
        const uint64_t runs = (uint64_t)(frame->runs[i] & INT64_MAX);
        if (!runs)
            continue;
        setup->entered[frame->blocks[i].first_row] += (uint32_t)runs;
        setup->left[frame->blocks[i].behind_row] += (uint32_t)runs;
        fetches += runs * frame->blocks[i].fetches;
        blocks += runs;
        frame->runs[i] = 0;
    }
    if (frame->observes && (observer->has_icache || (setup->unified_cache && observer->has_dcache)))
        observer->icache.counts.read_hits += fetches - frame->fetched_slowly;
    frame->fetched_slowly = 0;
    if (frame->observes == WP_OBSERVES_DATA)
        observer->counts.path_length += blocks;
    else if (frame->observes)
        observer->counts.path_length = WP_NO_PATH;
    if (frame->observes == WP_OBSERVES_DATA && frame->lowest_stack_pointer < observer->counts.lowest_stack_pointer)
        observer->counts.lowest_stack_pointer = frame->lowest_stack_pointer;
    if (observer->budget)
        observer->spent += (uint64_t)frame->spent;
    frame->spent = 0;
    observer->fetched_row = observer->block_row = observer->block_behind = 0;
    if (frame->why == WP_LEFT_PAUSED)
        return;
    if (frame->observes == WP_OBSERVES_DATA)
        merge_marks(frame);
    if (frame->block == WP_NO_BLOCK)
        return;
    const struct wp_block *const rows = &frame->blocks[frame->block];
    struct wp_loops *const loops = &observer->loops;
    if (loops->first != rows->first_row || loops->behind != rows->behind_row)
        wp_loops_block(loops, rows->first_row, rows->behind_row);
    if (frame->why != WP_LEFT_INSIDE)
        return;
    const struct wp_instruction *const table = setup->instructions;
    const uint32_t row = (frame->pc - setup->code_base) / 2;
    const uint32_t undone = table[rows->behind_row].instructions_before - table[row].instructions_before;
    if (observer->budget)
        observer->spent -= undone;
    if (frame->observes) {
        observer->block_row = rows->first_row;
        observer->block_behind = observer->fetched_row = rows->behind_row;
        if (setup->unified_cache && observer->has_dcache && frame->observes == WP_OBSERVES_DATA)
            observer->icache.counts.read_hits -= wp_observer_fetches(observer, row, rows->behind_row); /* anew */
        else
            observer->left_row = row, observer->left_behind = rows->behind_row;
    }
    wp_observer_settle(observer, frame->pc);
}

/* Native loop of a search: put the memory back, call, keep what the call took. */
struct wp_restored {
    uint8_t *memory;
    const uint8_t *content;
    uint64_t bytes;
};

/* Call `count` times from the same state, at `entry` with the frame's registers but for arguments; of each call, from its
 * first to its last instruction, the number of instructions and the result are kept. Returns how many calls returned: all,
 * or those before the first that translated code could not finish. */
WP_EXPORT uint64_t wp_frame_calls(struct wp_observer *observer, struct wp_frame *frame, wp_translated run, uint32_t entry,
                                  const struct wp_restored *restored, uint32_t restored_count, uint32_t argument_count,
                                  const uint32_t *argument_registers, uint32_t result_register, const uint32_t *arguments,
                                  uint64_t count, uint64_t most_instructions, uint32_t *instructions, uint32_t *results)
{
    uint32_t registers[WP_FRAME_REGISTERS];
    memcpy(registers, frame->registers, sizeof registers);
    if (!wp_frame_enter(observer, frame, most_instructions, true))
        return 0;
    uint64_t done = 0;
    for (; done < count; done++) {
        for (uint32_t i = 0; i < restored_count; i++)
            memcpy(restored[i].memory, restored[i].content, restored[i].bytes);
        memcpy(frame->registers, registers, sizeof registers);
        for (uint32_t i = 0; i < argument_count; i++)
            frame->registers[argument_registers[i]] = arguments[done * argument_count + i];
        frame->pc = entry;
        frame->block = WP_NO_BLOCK;
        frame->instructions = 0;
        run(frame);
        if (frame->why != WP_LEFT_RETURNED || (uint64_t)frame->instructions > most_instructions)
            break;
        instructions[done] = (uint32_t)frame->instructions;
        results[done] = frame->registers[result_register];
    }
    memcpy(frame->registers, registers, sizeof registers);
    observer->fetched_row = 0;
    return done;
}
