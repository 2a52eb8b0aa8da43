/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The hot loop: what one emulated call executes, fetches and accesses, counted in the engine's callbacks.
 *
 * Two callbacks do all of it. The block callback counts instructions, cycles and fetches from tables made by the decoder:
 * it is told of every translation block before it runs. The instruction callback computes the effective addresses of
 * loads and stores from the registers, because the engine's own memory hooks are wrong inside Thumb IT blocks and blind
 * to store-multiple on PowerPC. The engine calls it for each instruction but the skipped ones of an IT block; an A32
 * instruction whose condition fails is recognised here from the flags.
 *
 * Watched loops are counted by the block callback, or by one that does nothing else, where the rest goes unobserved.
 *
 * Fetches are simulated when their block is announced, before its data accesses: nobody else uses the cache of
 * instructions. A unified cache sees them in the order of the program, so that they wait for the next data access that
 * it serves, or for the end of their block.
 *
 * The engine is not linked: its two functions that are needed come as pointers.
 */
#include "observer.h"

#include <stdlib.h>
#include <string.h>

WP_EXPORT uint32_t wp_abi_version(void) { return 14; }

WP_EXPORT void wp_observer_close(struct wp_observer *observer)
{
    if (!observer)
        return;
    wp_cache_close(&observer->icache);
    wp_cache_close(&observer->dcache);
    free(observer->range_of_page);
    free(observer);
}

/* Caches may be NULL for a core without; where the setup calls the cache unified, dcache is that cache. Returns NULL when
 * memory runs out. */
WP_EXPORT struct wp_observer *wp_observer_open(const struct wp_setup *setup, const struct wp_cache_config *icache,
                                               const struct wp_cache_config *dcache)
{
    struct wp_observer *const observer = calloc(1, sizeof *observer);
    if (!observer)
        return NULL;
    observer->setup = *setup;
    observer->loops.setup = setup->loops;
    observer->range_of_page = calloc(WP_PAGES, 1);
    observer->has_icache = icache && wp_cache_open(&observer->icache, icache);
    observer->has_dcache = dcache && wp_cache_open(&observer->dcache, dcache);
    if (!observer->range_of_page || (icache && !observer->has_icache) || (dcache && !observer->has_dcache)) {
        wp_observer_close(observer);
        return NULL;
    }
    for (uint32_t i = 0; i < setup->range_count; i++) {
        const struct wp_range *const range = &setup->ranges[i];
        for (uint32_t page = wp_page_of(range->base); page <= wp_page_of(range->base + range->bytes - 1); page++)
            observer->range_of_page[page] = observer->range_of_page[page] ? WP_SEVERAL : (uint8_t)(i + 1);
    }
    observer->counts.lowest_stack_pointer = UINT32_MAX;
    return observer;
}

WP_EXPORT void wp_observer_fill_caches(struct wp_observer *observer, uint32_t content)
{
    if (observer->has_icache)
        wp_cache_fill(&observer->icache, (enum wp_initial)content);
    if (observer->has_dcache)
        wp_cache_fill(&observer->dcache, (enum wp_initial)content);
}

/* Seeds that the caches take when they are filled next. */
WP_EXPORT void wp_observer_seed_caches(struct wp_observer *observer, uint32_t icache_seed, uint32_t dcache_seed)
{
    observer->icache.config.seed = icache_seed;
    observer->dcache.config.seed = dcache_seed;
}

/* Forget all counts and marks; what the caches hold stays. */
WP_EXPORT void wp_observer_restart(struct wp_observer *observer)
{
    const struct wp_setup *const setup = &observer->setup;
    const uint32_t rows = setup->code_bytes / 2 + 1;
    observer->counts = (struct wp_counts){.lowest_stack_pointer = UINT32_MAX};
    observer->icache.counts = observer->dcache.counts = (struct wp_cache_counts){0};
    observer->branch_behind = observer->branch_cycles = 0;
    observer->block_row = observer->block_behind = observer->fetched_row = 0;
    observer->left_row = observer->left_behind = 0;
    observer->stack_pointer_pending = 0;
    observer->in_operation = observer->claims.in_call = false;
    observer->claims.active = NULL;
    observer->sets.operation = NULL;
    memset(setup->entered, 0, sizeof *setup->entered * rows);
    memset(setup->left, 0, sizeof *setup->left * rows);
    for (uint32_t i = 0; i < setup->range_count; i++) {
        const uint32_t bits = setup->ranges[i].bytes / 4;
        memset(setup->touched + setup->ranges[i].touched_word, 0, bits / 32 * 4 + 4);
    }
}

WP_EXPORT void wp_observer_counts(const struct wp_observer *observer, struct wp_counts *counts,
                                  struct wp_cache_counts *icache, struct wp_cache_counts *dcache)
{
    *counts = observer->counts;
    *icache = observer->icache.counts;
    *dcache = observer->dcache.counts;
}

/* From the next restart on, keep what each replayed operation counts outside the harness, and its result. */
WP_EXPORT void wp_observer_record_operations(struct wp_observer *observer, struct wp_operation_counts *operations,
                                             uint32_t capacity, int32_t result_register)
{
    observer->operations = operations;
    observer->operation_capacity = capacity;
    observer->result_register = result_register;
}

/* From the next restart on, keep what each of these operations touches as well; NULL: no more. */
WP_EXPORT void wp_observer_record_sets(struct wp_observer *observer, const struct wp_set_setup *setup)
{
    observer->sets = (struct wp_sets){0};
    if (setup && observer->has_dcache)
        observer->sets.setup = *setup;
}

/* From now on hold each observed call against these claims; NULL: no more. What is violated is forgotten. */
WP_EXPORT void wp_observer_hold_claims(struct wp_observer *observer, const struct wp_claim_setup *setup)
{
    observer->claims = (struct wp_claims){0};
    if (setup)
        observer->claims.setup = *setup;
}

/* The first claim that was violated; kind WP_HOLDS: none. */
WP_EXPORT void wp_observer_broken_claim(const struct wp_observer *observer, struct wp_broken_claim *broken)
{
    *broken = observer->claims.broken;
}

static void stop(struct wp_observer *observer, uc_engine *engine, enum wp_stop why, uint32_t pc, uint32_t address)
{
    if (observer->counts.stop != WP_RUNNING)
        return;
    observer->counts.stop = why;
    observer->counts.stop_pc = pc;
    observer->counts.stop_address = address;
    observer->setup.stop_engine(engine);
}

/* The engine does not heed a stop inside an IT block, and may run on: it is told again, and nothing more is counted. */
static bool has_stopped(const struct wp_observer *observer, uc_engine *engine)
{
    if (observer->counts.stop == WP_RUNNING)
        return false;
    observer->setup.stop_engine(engine);
    return true;
}

/* One fetch per instruction and line: an instruction that straddles a line is fetched from both. */
static void fetch_rows(struct wp_observer *observer, struct wp_cache *cache, uint32_t first, uint32_t behind)
{
    const struct wp_instruction *const table = observer->setup.instructions;
    const uint32_t base = observer->setup.code_base;
    for (uint32_t row = first; row < behind;) {
        const uint32_t line = (base + 2 * row) >> cache->line_shift;
        uint32_t next = (((line + 1) << cache->line_shift) - base) / 2;
        if (next > behind)
            next = behind;
        uint32_t fetches = table[next].instructions_before - table[row].instructions_before;
        if (row > first && !table[row].previous_bytes) /* none ends here: one straddles the boundary */
            fetches++;
        wp_cache_access(cache, line, false);
        cache->counts.read_hits += fetches - 1; /* the line is the newest now: further fetches change nothing */
        row = next;
    }
}

/* How many fetches such rows are: of instructions, and once more of each that straddles a boundary of lines. */
uint64_t wp_observer_fetches(const struct wp_observer *observer, uint32_t first, uint32_t behind)
{
    const struct wp_instruction *const table = observer->setup.instructions;
    const uint32_t shift = observer->setup.unified_cache ? observer->dcache.line_shift : observer->icache.line_shift;
    uint64_t fetches = table[behind].instructions_before - table[first].instructions_before;
    for (uint32_t row = first + 1; row < behind; row++)
        fetches += !((observer->setup.code_base + 2 * row) & ((1u << shift) - 1)) && !table[row].previous_bytes;
    return fetches;
}

/* Unified cache: fetch what the block under way still waits for below a row. The counts of fetches are kept apart. */
static void fetch_pending(struct wp_observer *observer, uint32_t behind)
{
    if (!observer->setup.unified_cache || !observer->has_dcache || observer->fetched_row >= behind)
        return;
    const struct wp_cache_counts of_data = observer->dcache.counts;
    observer->dcache.counts = observer->icache.counts;
    fetch_rows(observer, &observer->dcache, observer->fetched_row, behind);
    observer->icache.counts = observer->dcache.counts;
    observer->dcache.counts = of_data;
    observer->fetched_row = behind;
}

/* The engine left the block under way at pc, which has not run: take back what was counted of it from there. */
WP_EXPORT void wp_observer_settle(struct wp_observer *observer, uint32_t pc)
{
    const uint32_t row = (pc - observer->setup.code_base) / 2;
    wp_loops_end(&observer->loops, row);
    if (row < observer->block_row || row >= observer->block_behind)
        return;
    const struct wp_instruction *const table = observer->setup.instructions;
    const uint32_t behind = observer->block_behind;
    fetch_pending(observer, row);
    observer->counts.instructions -= table[behind].instructions_before - table[row].instructions_before;
    observer->counts.cycles -= table[behind].cycles_before - table[row].cycles_before;
    observer->setup.left[behind]--;
    observer->setup.left[row]++;
    if (observer->counts.path_length <= observer->setup.path_capacity)
        observer->setup.path[2 * observer->counts.path_length - 1] = row;
    observer->block_row = observer->block_behind = observer->fetched_row = 0;
}

/* Cycles so far: of instructions, and of all that waited for memory. */
static uint64_t cycles_so_far(const struct wp_observer *observer)
{
    const struct wp_claim_setup *const costs = &observer->claims.setup;
    const struct wp_cache_counts *const fetches = &observer->icache.counts, *const data = &observer->dcache.counts;
    const struct wp_counts *const counts = &observer->counts;
    uint64_t cycles = counts->cycles + counts->region_cycles;
    cycles += (fetches->read_misses + fetches->write_misses + fetches->writebacks) * costs->fetch_line_cycles;
    if (!observer->has_dcache)
        return cycles + (counts->loads + counts->stores - counts->region_accesses) * costs->single_cycles;
    const uint64_t fills = data->read_misses + (costs->write_allocate ? data->write_misses : 0);
    return cycles + (fills + data->writebacks) * costs->data_line_cycles + data->memory_writes * costs->single_cycles;
}

/* A block begins at a row, in the harness or not: so does a call there, or one ends, if claims are held against calls. */
void wp_observer_call(struct wp_observer *observer, uc_engine *engine, uint32_t row, bool in_harness)
{
    struct wp_claims *const claims = &observer->claims;
    if (claims->in_call == !in_harness)
        return;
    if (in_harness) {
        wp_loops_end(&observer->loops, UINT32_MAX);
        wp_claims_end(claims, &observer->loops, observer->counts.instructions, cycles_so_far(observer));
    } else {
        uint32_t stack_pointer = 0;
        observer->setup.read_register(engine, observer->setup.stack_pointer, &stack_pointer);
        wp_claims_begin(claims, &observer->loops, row, stack_pointer, observer->counts.instructions,
                        cycles_so_far(observer));
    }
}

/* The call has returned: had its last instruction been a conditional branch, that was taken. */
WP_EXPORT void wp_observer_finish(struct wp_observer *observer)
{
    wp_loops_end(&observer->loops, UINT32_MAX);
    fetch_pending(observer, observer->block_behind);
    observer->counts.cycles += observer->branch_cycles;
    observer->branch_cycles = 0;
    if (observer->claims.in_call)
        wp_claims_end(&observer->claims, &observer->loops, observer->counts.instructions, cycles_so_far(observer));
    observer->block_row = observer->block_behind = observer->fetched_row = 0;
}

static uint32_t read_register(const struct wp_observer *observer, uc_engine *engine, int32_t id)
{
    uint32_t value = 0;
    observer->setup.read_register(engine, id, &value);
    return value;
}

static struct wp_operation_counts counts_so_far(const struct wp_observer *observer)
{
    const struct wp_counts *const counts = &observer->counts;
    const struct wp_cache_counts *const fetches = &observer->icache.counts, *const data = &observer->dcache.counts;
    return (struct wp_operation_counts){
        .instructions = counts->instructions,
        .cycles = counts->cycles,
        .accesses = counts->loads + counts->stores,
        .region_accesses = counts->region_accesses,
        .region_cycles = counts->region_cycles,
        .fetch_misses = fetches->read_misses,
        .fetch_writebacks = fetches->writebacks,
        .read_misses = data->read_misses,
        .write_misses = data->write_misses,
        .writebacks = data->writebacks,
        .memory_writes = data->memory_writes,
    };
}

static void record_operation(struct wp_observer *observer, uc_engine *engine)
{
    const struct wp_operation_counts now = counts_so_far(observer), *const start = &observer->operation_start;
    observer->operations[observer->counts.operations] = (struct wp_operation_counts){
        .instructions = now.instructions - start->instructions,
        .cycles = now.cycles - start->cycles,
        .accesses = now.accesses - start->accesses,
        .region_accesses = now.region_accesses - start->region_accesses,
        .region_cycles = now.region_cycles - start->region_cycles,
        .fetch_misses = now.fetch_misses - start->fetch_misses,
        .fetch_writebacks = now.fetch_writebacks - start->fetch_writebacks,
        .read_misses = now.read_misses - start->read_misses,
        .write_misses = now.write_misses - start->write_misses,
        .writebacks = now.writebacks - start->writebacks,
        .memory_writes = now.memory_writes - start->memory_writes,
        .result = read_register(observer, engine, observer->result_register),
    };
}

void wp_observer_operation(struct wp_observer *observer, uc_engine *engine, uint32_t address)
{
    const struct wp_setup *const setup = &observer->setup;
    struct wp_counts *const counts = &observer->counts;
    const bool in_harness = address - setup->harness_base < setup->harness_bytes;
    struct wp_sets *const sets = observer->sets.setup.operations ? &observer->sets : NULL;
    if (in_harness && observer->in_operation) {
        if (sets)
            wp_sets_end(sets, read_register(observer, engine, sets->setup.first_register));
        if (counts->operations < observer->operation_capacity)
            record_operation(observer, engine);
        counts->operations++;
        observer->in_operation = false;
    } else if (!in_harness && !observer->in_operation) {
        if (sets)
            wp_sets_begin(sets, counts->operations, read_register(observer, engine, sets->setup.first_register));
        observer->operation_start = counts_so_far(observer);
        observer->in_operation = true;
    }
}

/* Take the instructions of a block off the budget; false, and the engine is stopped, if there are not so many left. */
static bool spend(struct wp_observer *observer, uc_engine *engine, uint32_t first, uint32_t behind)
{
    const struct wp_instruction *const table = observer->setup.instructions;
    if (!observer->budget)
        return true;
    observer->spent += table[behind].instructions_before - table[first].instructions_before;
    if (observer->spent <= observer->budget)
        return true;
    const uint32_t pc = observer->setup.code_base + 2 * first;
    stop(observer, engine, WP_BUDGET_SPENT, pc, pc);
    observer->setup.stop_engine(engine); /* inside an IT block it does not heed the first time */
    return false;
}

/* The first row of a block that translated code has not fetched, which was left in the middle of its own block. */
static uint32_t first_unfetched(struct wp_observer *observer, uint32_t first, uint32_t behind)
{
    if (first != observer->left_row || first >= observer->left_behind) {
        observer->left_row = observer->left_behind = 0;
        return first;
    }
    observer->left_row = behind;
    return behind < observer->left_behind ? behind : observer->left_behind;
}

/* Engine callback: a translation block is about to run. */
WP_EXPORT void wp_observer_block(uc_engine *engine, uint64_t address, uint32_t size_bytes, void *user)
{
    struct wp_observer *const observer = user;
    const struct wp_setup *const setup = &observer->setup;
    struct wp_counts *const counts = &observer->counts;
    const uint32_t offset = (uint32_t)address - setup->code_base;
    if (has_stopped(observer, engine))
        return;
    if (offset >= setup->code_bytes || size_bytes > setup->code_bytes - offset) {
        stop(observer, engine, WP_OUTSIDE_CODE, (uint32_t)address, (uint32_t)address);
        return;
    }
    const uint32_t first = offset / 2, behind = (offset + size_bytes) / 2;
    if (!spend(observer, engine, first, behind))
        return;
    const struct wp_instruction *const table = setup->instructions;
    if (observer->branch_cycles && observer->branch_behind != first)
        counts->cycles += observer->branch_cycles;
    fetch_pending(observer, observer->block_behind);
    if (observer->operation_capacity)
        wp_observer_operation(observer, engine, (uint32_t)address);
    if (observer->claims.setup.entries) {
        wp_observer_call(observer, engine, first, (uint32_t)address - setup->harness_base < setup->harness_bytes);
        if (observer->claims.active && observer->claims.setup.saved)
            wp_claims_release(&observer->claims, read_register(observer, engine, setup->stack_pointer));
        wp_claims_block(&observer->claims, first, behind);
    }
    if (table[first].flags & WP_JUMPS_TO_ITSELF) {
        stop(observer, engine, WP_ENDLESS_LOOP, (uint32_t)address, (uint32_t)address);
        return;
    }
    counts->instructions += table[behind].instructions_before - table[first].instructions_before;
    counts->cycles += table[behind].cycles_before - table[first].cycles_before;
    const struct wp_instruction *const last = &table[behind - table[behind].previous_bytes / 2];
    observer->branch_cycles = last->flags & WP_CONDITIONAL_BRANCH ? last->taken_cycles : 0;
    observer->branch_behind = behind;
    const uint32_t unfetched = first_unfetched(observer, first, behind);
    observer->block_row = first;
    observer->fetched_row = unfetched;
    observer->block_behind = behind;
    setup->entered[first]++;
    setup->left[behind]++;
    if (counts->path_length++ < setup->path_capacity) {
        setup->path[2 * counts->path_length - 2] = first;
        setup->path[2 * counts->path_length - 1] = behind;
    }
    if (observer->has_icache)
        fetch_rows(observer, &observer->icache, unfetched, behind);
    wp_loops_block(&observer->loops, first, behind);
}

/* Let the guest take no more than `instructions` from now on, in all runs together; 0: as many as it likes. */
WP_EXPORT void wp_observer_limit(struct wp_observer *observer, uint64_t instructions)
{
    observer->budget = instructions;
    observer->spent = 0;
}

/* Engine callback where nothing but loops is watched: a translation block is about to run. */
WP_EXPORT void wp_observer_watch(uc_engine *engine, uint64_t address, uint32_t size_bytes, void *user)
{
    struct wp_observer *const observer = user;
    const uint32_t offset = (uint32_t)address - observer->setup.code_base;
    const bool known = offset < observer->setup.code_bytes && size_bytes <= observer->setup.code_bytes - offset;
    if (known && !spend(observer, engine, offset / 2, (offset + size_bytes) / 2))
        return;
    wp_loops_block(&observer->loops, known ? offset / 2 : 0, known ? (offset + size_bytes) / 2 : 0);
}

/* ARM condition codes on the flags N, Z, C, V (ARM ARM DDI 0100I, A3.2). */
static bool condition_holds(uint32_t flags, uint32_t condition)
{
    const bool n = flags >> 31 & 1, z = flags >> 30 & 1, c = flags >> 29 & 1, v = flags >> 28 & 1;
    bool holds = true;
    switch (condition >> 1) {
    case 0: holds = z; break;
    case 1: holds = c; break;
    case 2: holds = n; break;
    case 3: holds = v; break;
    case 4: holds = c && !z; break;
    case 5: holds = n == v; break;
    case 6: holds = n == v && !z; break;
    default: return true;
    }
    return condition & 1 ? !holds : holds;
}

static uint32_t shifted(uint32_t value, uint32_t shift, uint32_t bits, bool carry)
{
    switch (shift) {
    case WP_LSR: return bits < 32 ? value >> bits : 0;
    case WP_ASR: return (uint32_t)((int32_t)value >> (bits < 32 ? bits : 31));
    case WP_ROR: return bits ? value >> bits | value << (32 - bits) : value;
    case WP_RRX: return value >> 1 | (uint32_t)carry << 31;
    default: return value << bits;
    }
}

static uint32_t effective_address(const struct wp_observer *observer, uc_engine *engine, const struct wp_access *access)
{
    uint32_t address = access->displacement;
    if (access->base)
        address += read_register(observer, engine, access->base);
    if (access->index) {
        const bool carry =
            access->shift == WP_RRX && read_register(observer, engine, observer->setup.flags_register) >> 29 & 1;
        const uint32_t index =
            shifted(read_register(observer, engine, access->index), access->shift, access->shift_bits, carry);
        address += access->subtract_index ? 0u - index : index;
    }
    return address & access->align_mask;
}

static bool mark_touched(struct wp_observer *observer, uint32_t address, uint32_t bytes, bool is_write)
{
    const struct wp_setup *const setup = &observer->setup;
    const uint32_t known = wp_range_at(observer, address);
    if (!known)
        return false;
    const struct wp_range *const range = &setup->ranges[known - 1];
    const uint32_t offset = address - range->base;
    if (offset >= range->bytes || bytes > range->bytes - offset || (is_write && !range->writable))
        return false;
    for (uint32_t word = offset / 4; word <= (offset + bytes - 1) / 4; word++)
        setup->touched[range->touched_word + word / 32] |= 1u << (word % 32);
    return true;
}

const struct wp_uncached *wp_uncached_at(const struct wp_setup *setup, uint32_t address)
{
    for (uint32_t i = 0; i < setup->uncached_count; i++)
        if (address - setup->uncached[i].base < setup->uncached[i].bytes)
            return &setup->uncached[i];
    return NULL;
}

/* How many bytes of an access lie in regions that no cache serves, and what the dearest of these costs. */
static uint32_t bytes_in_regions(const struct wp_setup *setup, uint32_t address, uint32_t bytes, bool is_write,
                                 uint32_t *dearest)
{
    const uint64_t behind = (uint64_t)address + bytes;
    uint32_t found = 0;
    for (uint32_t i = 0; i < setup->uncached_count; i++) {
        const struct wp_uncached *const region = &setup->uncached[i];
        const uint64_t region_behind = (uint64_t)region->base + region->bytes;
        const uint64_t first = address > region->base ? address : region->base;
        const uint64_t end = behind < region_behind ? behind : region_behind;
        if (first >= end)
            continue;
        const uint32_t cycles = is_write ? region->write_cycles : region->read_cycles;
        found += (uint32_t)(end - first);
        *dearest = cycles > *dearest ? cycles : *dearest;
    }
    return found;
}

/* An access that is not aligned takes longer: each of these cycles is one more transfer, which waits like the first. */
static void charge_unaligned(struct wp_observer *observer, uint32_t pc, uint32_t address, uint32_t bytes, uint32_t waiting)
{
    const struct wp_instruction *const instruction =
        &observer->setup.instructions[(pc - observer->setup.code_base) / 2];
    const struct wp_access *access = &observer->setup.accesses[instruction->first_access];
    for (uint32_t i = 0; i < instruction->access_count; i++, access++) {
        if (access->bytes_each == bytes) {
            const uint32_t longer = access->unaligned_cycles[address & 1 ? 0 : address & 2 ? 1 : 2];
            observer->counts.cycles += (uint64_t)longer * (1 + waiting);
            return;
        }
    }
}

void wp_observer_access(struct wp_observer *observer, uc_engine *engine, uint32_t pc, uint32_t address, uint32_t bytes,
                        bool is_write)
{
    if (observer->counts.stop != WP_RUNNING)
        return;
    if (!mark_touched(observer, address, bytes, is_write)) {
        stop(observer, engine, WP_STRAY_ACCESS, pc, address);
        return;
    }
    observer->counts.loads += !is_write;
    observer->counts.stores += is_write;
    if (observer->claims.active)
        wp_claims_access(&observer->claims, (pc - observer->setup.code_base) / 2,
                         wp_range_at(observer, address) - 1u, pc, address, bytes, is_write);
    uint32_t waiting = 0;
    const uint32_t in_regions = bytes_in_regions(&observer->setup, address, bytes, is_write, &waiting);
    if (!observer->has_dcache && in_regions < bytes && waiting < observer->setup.single_cycles)
        waiting = observer->setup.single_cycles; /* some bytes lie elsewhere: the dearer is waited for */
    if (address & (bytes - 1))
        charge_unaligned(observer, pc, address, bytes, waiting);
    if (in_regions) {
        observer->counts.region_accesses++;
        observer->counts.region_cycles += waiting;
    }
    if (!observer->has_dcache || in_regions == bytes)
        return;
    const uint32_t row = (pc - observer->setup.code_base) / 2;
    fetch_pending(observer, row + observer->setup.instructions[row].size_bytes / 2);
    const uint32_t shift = observer->dcache.line_shift;
    for (uint32_t line = address >> shift; line <= (address + bytes - 1) >> shift; line++) {
        if (in_regions && wp_uncached_at(&observer->setup, line == address >> shift ? address : line << shift))
            continue; /* a line is of a region as a whole, or not at all */
        wp_cache_access(&observer->dcache, line, is_write);
        if (observer->sets.operation)
            wp_sets_access(&observer->sets, wp_range_at(observer, address) - 1u, line, pc, address);
    }
}

/* Kept out of its only caller, which has nothing to do for most instructions and need then save no register. */
#if defined(__GNUC__)
__attribute__((noinline))
#endif
static void
observe_instruction(struct wp_observer *observer, uc_engine *engine, uint32_t pc)
{
    const struct wp_setup *const setup = &observer->setup;
    const struct wp_instruction *const instruction = &setup->instructions[(pc - setup->code_base) / 2];
    if (observer->stack_pointer_pending) {
        const uint32_t stack_pointer = read_register(observer, engine, setup->stack_pointer);
        if (stack_pointer < observer->counts.lowest_stack_pointer)
            observer->counts.lowest_stack_pointer = stack_pointer;
        if (observer->stack_pointer_pending & WP_CLEARS_STACK_POINTER && stack_pointer & 3) {
            stop(observer, engine, WP_UNALIGNED_STACK, pc, stack_pointer);
            return;
        }
    }
    observer->stack_pointer_pending = instruction->flags & (WP_WRITES_STACK_POINTER | WP_CLEARS_STACK_POINTER);
    if (instruction->flags & WP_PROBLEM || !instruction->size_bytes) {
        stop(observer, engine, WP_PROBLEM_EXECUTED, pc, pc);
        return;
    }
    if (instruction->condition != WP_ALWAYS) {
        if (!condition_holds(read_register(observer, engine, setup->flags_register), instruction->condition))
            return;
        observer->counts.cycles += (uint64_t)instruction->executed_cycles - instruction->skipped_cycles;
    } else if (instruction->flags & WP_IN_IT_BLOCK) {
        observer->counts.cycles += (uint64_t)instruction->executed_cycles - instruction->skipped_cycles;
    }
    for (uint32_t i = 0; i < instruction->access_count; i++) {
        const struct wp_access *const access = &setup->accesses[instruction->first_access + i];
        uint32_t at = effective_address(observer, engine, access);
        for (uint32_t n = 0; n < access->count; n++, at += access->bytes_each) {
            if (access->kind & WP_LOAD)
                wp_observer_access(observer, engine, pc, at, access->bytes_each, false);
            if (access->kind & WP_STORE)
                wp_observer_access(observer, engine, pc, at, access->bytes_each, true);
        }
    }
}

/* Engine callback: an instruction is about to run. */
WP_EXPORT void wp_observer_instruction(uc_engine *engine, uint64_t address, uint32_t size_bytes, void *user)
{
    struct wp_observer *const observer = user;
    const uint32_t pc = (uint32_t)address;
    (void)size_bytes;
    if (has_stopped(observer, engine))
        return;
    if (observer->stack_pointer_pending || !observer->setup.quiet[(pc - observer->setup.code_base) / 2])
        observe_instruction(observer, engine, pc);
}

struct uc_tlb_entry_layout {
    uint64_t physical_address;
    uint32_t permissions; /* 1 read, 2 write, 4 execute */
};

/* Engine callback, virtual-TLB mode: which page may be used how. Data pages without execute permission keep the engine's
 * stores on its fast path. */
WP_EXPORT bool wp_observer_tlb_fill(uc_engine *engine, uint64_t address, int kind, struct uc_tlb_entry_layout *entry,
                                    void *user)
{
    const struct wp_observer *const observer = user;
    (void)engine;
    (void)kind;
    const uint32_t known = address <= UINT32_MAX ? observer->range_of_page[wp_page_of((uint32_t)address)] : 0;
    if (!known)
        return false;
    entry->physical_address = address; /* the engine takes the page of it */
    entry->permissions = known == WP_SEVERAL ? 7 : observer->setup.ranges[known - 1].writable ? 3 : 5;
    return true;
}

/* Replay a trace of accesses on one cache: lines of `bytes` bytes at `addresses`, written where `writes` is set. */
WP_EXPORT bool wp_cache_replay(const struct wp_cache_config *config, uint32_t content, const uint32_t *addresses,
                               const uint8_t *writes, uint64_t count, uint8_t *hits, struct wp_cache_counts *counts)
{
    struct wp_cache cache;
    if (!wp_cache_open(&cache, config))
        return false;
    wp_cache_fill(&cache, (enum wp_initial)content);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t before = cache.counts.read_hits + cache.counts.write_hits;
        wp_cache_access(&cache, addresses[i] >> cache.line_shift, writes[i]);
        hits[i] = cache.counts.read_hits + cache.counts.write_hits != before;
    }
    *counts = cache.counts;
    wp_cache_close(&cache);
    return true;
}
