/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "claims.h"

#include <stddef.h>
#include <string.h>

static void break_claim(struct wp_claims *claims, enum wp_claim_kind kind, uint32_t index, uint64_t value)
{
    if (claims->broken.kind == WP_HOLDS)
        claims->broken = (struct wp_broken_claim){
            .value = value, .kind = kind, .entry = (uint32_t)(claims->active - claims->setup.entries), .index = index};
}

void wp_claims_begin(struct wp_claims *claims, const struct wp_loops *loops, uint32_t row, uint32_t stack_pointer,
                     uint64_t instructions, uint64_t cycles)
{
    claims->in_call = true;
    claims->active = NULL;
    for (uint32_t i = 0; i < claims->setup.entry_count; i++)
        if (claims->setup.entries[i].entry_row == row)
            claims->active = &claims->setup.entries[i];
    struct wp_entry_claims *const entry = claims->active;
    if (!entry)
        return;
    claims->call++;
    claims->stack_pointer = stack_pointer;
    claims->instructions = instructions;
    claims->cycles = cycles;
    claims->has_line_before = false;
    if (claims->setup.saved)
        memset(claims->setup.saved, 0, claims->setup.stack_words);
    claims->lowest_saved = claims->saving_pc = UINT32_MAX;
    for (uint32_t i = 0; i < entry->change_count; i++)
        entry->changes[i].count = 0;
    for (uint32_t i = 0; i < entry->line_count; i++)
        entry->lines[i].count = 0;
    for (uint32_t i = 0; i < entry->flow_count; i++)
        entry->flows[i].sum = 0;
    for (uint32_t i = 0; i < entry->entry_count; i++)
        entry->entries[i].before = loops->setup.counts[entry->entries[i].loop].entries;
    wp_paths_begin(&entry->paths, row);
}

void wp_claims_block(struct wp_claims *claims, uint32_t first, uint32_t behind)
{
    struct wp_entry_claims *const entry = claims->active;
    if (!entry)
        return;
    if (!wp_paths_block(&entry->paths, first, behind))
        break_claim(claims, WP_WAY, entry->paths.row, 0);
    if (!entry->events_before)
        return;
    for (uint32_t i = entry->events_before[first]; i < entry->events_before[behind]; i++)
        entry->flows[entry->events[i].flow].sum += entry->events[i].weight;
}

/* What lies below the stack pointer is saved no more. */
void wp_claims_release(struct wp_claims *claims, uint32_t stack_pointer)
{
    const struct wp_claim_setup *const setup = &claims->setup;
    for (; claims->lowest_saved < stack_pointer; claims->lowest_saved += 4) {
        const uint32_t word = (claims->lowest_saved - setup->stack_base) / 4;
        if (word >= setup->stack_words) {
            claims->lowest_saved = UINT32_MAX;
            return;
        }
        setup->saved[word] = 0;
    }
}

/* A store to words of the stack: it saves a register, or must leave those that are saved. */
static void check_saved(struct wp_claims *claims, const struct wp_access_claim *claim, uint32_t pc, uint32_t address,
                        uint32_t bytes)
{
    const struct wp_claim_setup *const setup = &claims->setup;
    /* Behind its last store that saves, the next one is of another execution: runs tell no instructions apart here. */
    const bool goes_on = pc == claims->saving_pc && address == claims->saving_next && claims->saving_number < 31 &&
                         claim->saves >> (claims->saving_number + 1);
    claims->saving_number = goes_on ? claims->saving_number + 1 : 0;
    claims->saving_pc = pc;
    claims->saving_next = address + bytes;
    const bool saves = claims->saving_number < 32 && claim->saves >> claims->saving_number & 1;
    for (uint32_t at = address & ~3u; at - (address & ~3u) < bytes + (address & 3); at += 4) {
        const uint32_t word = (at - setup->stack_base) / 4;
        if (at < setup->stack_base || word >= setup->stack_words)
            continue;
        if (setup->saved[word] && !claim->saves)
            break_claim(claims, WP_SAVED, 0, at);
        setup->saved[word] = saves;
        if (saves && at < claims->lowest_saved)
            claims->lowest_saved = at;
    }
}

static bool in_ranges(const struct wp_claims *claims, const struct wp_access_claim *claim, uint32_t address)
{
    for (uint32_t i = 0; i < claim->ranges; i++)
        if (wp_range_contains(&claims->active->ranges[claim->first_range + i], claims->stack_pointer, address))
            return true;
    return false;
}

static uint32_t word_at(const struct wp_word_claim *word)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < 4; i++)
        value |= (uint32_t)word->bytes[i] << 8 * (word->big_endian ? 3 - i : i);
    return value;
}

/* One more line of those that a fact counts. */
static void count_line(struct wp_claims *claims, uint32_t index, uint32_t place, uint32_t line)
{
    struct wp_line_claim *const lines = &claims->active->lines[index];
    if (lines->line_stamps[place] == claims->call)
        return;
    lines->line_stamps[place] = claims->call;
    if (++lines->count > lines->greatest)
        lines->greatest = lines->count;
    const uint32_t set = line & (claims->setup.sets - 1);
    if (lines->set_stamps[set] != claims->call) {
        lines->set_stamps[set] = claims->call;
        lines->set_counts[set] = 0;
    }
    if (++lines->set_counts[set] > lines->greatest_of_set)
        lines->greatest_of_set = lines->set_counts[set];
    if (lines->count > lines->most)
        break_claim(claims, WP_LINES, index, lines->count);
    if (lines->set_counts[set] > lines->most_of_set)
        break_claim(claims, WP_LINES_OF_SET, index, lines->set_counts[set]);
}

static void check_words(struct wp_claims *claims, uint32_t address)
{
    for (uint32_t i = 0; i < claims->active->word_count; i++) {
        struct wp_word_claim *const word = &claims->active->words[i];
        if (word->address != address)
            continue;
        const uint32_t value = word_at(word);
        word->loads++;
        if (value < word->low || value > word->high)
            break_claim(claims, WP_WORD, i, value);
    }
}

/* What is said of lines of the data cache, in which there is the access to `claim`, and which is told of it. */
static void check_lines(struct wp_claims *claims, const struct wp_access_claim *claim, uint32_t range, uint32_t address,
                        uint32_t bytes, bool is_store)
{
    const struct wp_claim_setup *const setup = &claims->setup;
    const uint32_t line = address / setup->line_bytes, last = (address + bytes - 1) / setup->line_bytes;
    const uint32_t place = setup->line_row[range] + line - setup->first_line[range];
    const uint32_t last_place = place + last - line;
    for (uint32_t each = line; claim->set_row && each <= last; each++)
        if (!claims->active->sets[(size_t)claim->set_row * setup->sets + (each & (setup->sets - 1))])
            break_claim(claims, WP_SET, 0, each & (setup->sets - 1));
    if (line != last && bytes <= setup->line_bytes && !(claim->flags & WP_MAY_CROSS))
        break_claim(claims, WP_CROSSES, 0, bytes);
    if (claim->flags & WP_ONLY_AGAIN && setup->visited[place] != claims->call)
        break_claim(claims, WP_VISIT, 0, line);
    if (claim->changes && (!claims->has_line_before || claims->line_before != line)) {
        struct wp_change_claim *const changes = &claims->active->changes[claim->changes - 1];
        if (++changes->count > changes->greatest)
            changes->greatest = changes->count;
        if (changes->count > changes->most)
            break_claim(claims, WP_CHANGES, claim->changes - 1, changes->count);
    }
    for (uint32_t i = 0; claim->lines && i <= last - line; i++)
        count_line(claims, claim->lines - 1, place + i, line + i);
    claims->line_before = last;
    claims->has_line_before = true;
    if (!setup->visited)
        return;
    if (is_store)
        setup->visited[place] = setup->visited[last_place] = 0;
    if (claim->flags & WP_FIRST_VISIT)
        setup->visited[place] = claims->call;
}

void wp_claims_access(struct wp_claims *claims, uint32_t row, uint32_t range, uint32_t pc, uint32_t address,
                      uint32_t bytes, bool is_store)
{
    struct wp_entry_claims *const entry = claims->active;
    const bool held = claims->broken.kind == WP_HOLDS;
    const uint32_t known = entry->claim_of_row[2 * row + is_store];
    struct wp_access_claim *const claim = known ? &entry->accesses[known - 1] : NULL;
    if (!claim || !in_ranges(claims, claim, address)) {
        break_claim(claims, WP_ADDRESS, 0, address);
    } else {
        claim->executions++;
        if (is_store && !(claim->flags & WP_MAY_BE_FRAME) && address >= claims->setup.stack_base &&
            address < claims->stack_pointer)
            break_claim(claims, WP_FRAME, 0, address);
        if (is_store && claims->setup.saved)
            check_saved(claims, claim, pc, address, bytes);
        if (claims->setup.line_bytes)
            check_lines(claims, claim, range, address, bytes, is_store);
        if (!is_store && entry->word_count)
            check_words(claims, address);
    }
    const struct wp_path_memory memory = {claims->setup.stack_base, claims->stack_pointer, claims->setup.line_bytes,
                                         claims->setup.sets};
    bool went_astray;
    if (!wp_paths_access(&entry->paths, &memory, row, address, bytes, is_store, &went_astray))
        break_claim(claims, went_astray ? WP_WAY : WP_POINT, entry->paths.row, address);
    if (held && claims->broken.kind != WP_HOLDS) {
        claims->broken.pc = pc;
        claims->broken.address = address;
        claims->broken.is_store = is_store;
    }
}

static bool exceeds(uint64_t value, uint64_t most, uint64_t *greatest)
{
    if (value > *greatest)
        *greatest = value;
    return value > most;
}

void wp_claims_end(struct wp_claims *claims, const struct wp_loops *loops, uint64_t instructions, uint64_t cycles)
{
    struct wp_entry_claims *const entry = claims->active;
    claims->in_call = false;
    if (!entry)
        return;
    entry->calls++;
    if (!wp_paths_end(&entry->paths))
        break_claim(claims, WP_WAY, entry->paths.row, 0);
    for (uint32_t i = 0; i < entry->entry_count; i++) {
        const struct wp_flow_entries *const entries = &entry->entries[i];
        const uint64_t number = loops->setup.counts[entries->loop].entries - entries->before;
        entry->flows[entries->flow].sum += entries->weight * (int64_t)number;
    }
    for (uint32_t i = 0; i < entry->flow_count; i++) {
        struct wp_flow_claim *const flow = &entry->flows[i];
        if (entry->calls == 1 || flow->sum > flow->greatest)
            flow->greatest = flow->sum;
        if (flow->sum > flow->most)
            break_claim(claims, WP_FLOW, i, (uint64_t)flow->sum);
    }
    if (exceeds(instructions - claims->instructions, entry->most_instructions, &entry->greatest_instructions))
        break_claim(claims, WP_INSTRUCTIONS, 0, instructions - claims->instructions);
    if (exceeds(cycles - claims->cycles, entry->most_cycles, &entry->greatest_cycles))
        break_claim(claims, WP_CYCLES, 0, cycles - claims->cycles);
    claims->active = NULL;
}
