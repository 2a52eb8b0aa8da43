/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A set-associative cache, simulated. Its plain-Python twin is emu/cache.py.
 *
 * Modelling choices: invalid lines are filled before anything is evicted, lowest way first. A write hit in a
 * write-through cache, and a write miss that does not allocate, is one single write to memory. There is no write buffer
 * and no prefetch. The random policy draws from xorshift32, one draw per eviction, one generator per cache. Round robin
 * has one counter per cache, which moves on behind every fill (as MPC5566RM, 3.3.2.3) and starts at the seed.
 */
#ifndef WP_CACHE_H
#define WP_CACHE_H

#include <stdbool.h>
#include <stdint.h>

enum wp_replacement { WP_LRU, WP_FIFO, WP_PLRU, WP_RANDOM, WP_ROUND_ROBIN };
enum wp_initial { WP_COLD, WP_DIRTY };

struct wp_cache_config {
    uint32_t sets;       /* power of two */
    uint32_t ways;       /* 1..255; power of two for PLRU */
    uint32_t line_bytes; /* power of two, at least 4: line numbers then leave two bits free */
    uint32_t replacement;
    uint32_t write_back;
    uint32_t write_allocate;
    uint32_t seed;
};

struct wp_cache_counts {
    uint64_t read_hits, read_misses, write_hits, write_misses, writebacks, memory_writes;
};

struct wp_cache {
    struct wp_cache_config config;
    struct wp_cache_counts counts;
    uint32_t line_shift, set_mask, random_state, next_way;
    uint32_t *lines;      /* sets * ways: line number, with WP_LINE_DIRTY */
    uint32_t *tree;       /* PLRU: a set's tree, bit n for node n, root 1; ways / 32 + 1 words of 32 nodes */
};

bool wp_cache_open(struct wp_cache *cache, const struct wp_cache_config *config);
void wp_cache_close(struct wp_cache *cache);
void wp_cache_fill(struct wp_cache *cache, enum wp_initial content);

/* A stored line is its number below 2^30, marks above. */
#define WP_LINE_DIRTY 0x80000000u
#define WP_LINE_ALIEN 0x40000000u /* data of nobody: never hit */
#define WP_LINE_INVALID 0x7FFFFFFFu

/* What an access left: the line as it is stored now, and what was stored where it is filled in; WP_LINE_INVALID: nothing.
 */
struct wp_cache_done {
    uint32_t stored, evicted;
};

/* The functions below take the configuration apart, so that translated code, which knows it, is made for it. */
#ifndef WP_MADE_FOR_IT
#define WP_MADE_FOR_IT static inline
#define WP_EACH_WAY
#endif

static inline uint32_t wp_next_random(struct wp_cache *cache)
{
    uint32_t x = cache->random_state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return cache->random_state = x;
}

/* LRU keeps a set ordered by recency of use, FIFO by age of the fill: the newest first, the victim last. */
WP_MADE_FOR_IT void wp_move_to_front(uint32_t *set, uint32_t from, uint32_t stored)
{
    for (; from > 0; from--) /* a handful of words: no call of memmove */
        set[from] = set[from - 1];
    set[0] = stored;
}

WP_MADE_FOR_IT void wp_plru_touch(uint32_t *tree, uint32_t ways, uint32_t way)
{
    for (uint32_t node = ways + way; node > 1; node /= 2) { /* every node points away from the way just used */
        const uint32_t parent = node / 2, bit = 1u << (parent % 32);
        tree[parent / 32] = node % 2 ? tree[parent / 32] & ~bit : tree[parent / 32] | bit;
    }
}

WP_MADE_FOR_IT uint32_t wp_plru_victim(const uint32_t *tree, uint32_t ways)
{
    uint32_t node = 1;
    while (node < ways)
        node = 2 * node + (tree[node / 32] >> (node % 32) & 1);
    return node - ways;
}

WP_MADE_FOR_IT uint32_t wp_cache_victim(struct wp_cache *cache, const struct wp_cache_config *config, const uint32_t *tree)
{
    switch (config->replacement) {
    case WP_PLRU: return wp_plru_victim(tree, config->ways);
    case WP_ROUND_ROBIN: return cache->next_way;
    default: return wp_next_random(cache) % config->ways;
    }
}

/* Store a line that its set does not hold; what it drives out. */
WP_MADE_FOR_IT uint32_t wp_cache_fill_line(struct wp_cache *cache, const struct wp_cache_config *config,
                                          struct wp_cache_counts *counts, uint32_t index, uint32_t stored)
{
    const uint32_t ways = config->ways;
    uint32_t *const set = cache->lines + index * ways;
    uint32_t evicted;
    if (config->replacement <= WP_FIFO) {
        evicted = set[ways - 1];
        wp_move_to_front(set, ways - 1, stored);
    } else {
        uint32_t *const tree = cache->tree + index * (ways / 32 + 1);
        uint32_t way = 0;
        while (way < ways && set[way] != WP_LINE_INVALID)
            way++;
        if (way == ways)
            way = wp_cache_victim(cache, config, tree);
        evicted = set[way];
        set[way] = stored;
        if (config->replacement == WP_PLRU)
            wp_plru_touch(tree, ways, way);
        cache->next_way = cache->next_way + 1 == ways ? 0 : cache->next_way + 1;
    }
    counts->writebacks += evicted != WP_LINE_INVALID && evicted & WP_LINE_DIRTY;
    return evicted;
}

/* The line comes first in a set ordered by recency of use, and what stood before it, or all, moves on by one: without a
 * branch for the way, which a host seldom foresees. What was stored for it before, or else what was driven out. */
WP_MADE_FOR_IT uint32_t wp_lru_pass(uint32_t *set, uint32_t ways, uint32_t line, uint32_t dirty, bool *is_hit)
{
    uint32_t carried = line | dirty;
    bool found = false;
    WP_EACH_WAY
    for (uint32_t way = 0; way < ways; way++) {
        const uint32_t own = set[way];
        set[way] = found ? own : carried;
        carried = found ? carried : own;
        found |= (own & ~WP_LINE_DIRTY) == line;
    }
    *is_hit = found;
    if (found)
        set[0] |= carried & WP_LINE_DIRTY;
    return carried;
}

/* One access to the line with this number, counted in `counts`. */
WP_MADE_FOR_IT struct wp_cache_done wp_cache_access_as(struct wp_cache *cache, const struct wp_cache_config *config,
                                                      struct wp_cache_counts *counts, uint32_t line, bool is_write)
{
    const uint32_t ways = config->ways, index = line & (config->sets - 1);
    uint32_t *const set = cache->lines + index * ways;
    const uint32_t dirty = is_write && config->write_back ? WP_LINE_DIRTY : 0;
    if (config->replacement == WP_LRU && (!is_write || config->write_allocate)) {
        bool is_hit;
        const uint32_t before = wp_lru_pass(set, ways, line, dirty, &is_hit);
        counts->read_hits += !is_write && is_hit;
        counts->read_misses += !is_write && !is_hit;
        counts->write_hits += is_write && is_hit;
        counts->write_misses += is_write && !is_hit;
        counts->memory_writes += is_write && !config->write_back;
        counts->writebacks += !is_hit && before != WP_LINE_INVALID && before & WP_LINE_DIRTY;
        return (struct wp_cache_done){set[0], is_hit ? WP_LINE_INVALID : before};
    }
    WP_EACH_WAY
    for (uint32_t way = 0; way < ways; way++) {
        if ((set[way] & ~WP_LINE_DIRTY) == line) {
            const uint32_t stored = set[way] | dirty;
            if (config->replacement == WP_LRU)
                wp_move_to_front(set, way, stored);
            else
                set[way] = stored;
            if (config->replacement == WP_PLRU)
                wp_plru_touch(cache->tree + index * (ways / 32 + 1), ways, way);
            counts->read_hits += !is_write;
            counts->write_hits += is_write;
            counts->memory_writes += is_write && !config->write_back;
            return (struct wp_cache_done){stored, WP_LINE_INVALID};
        }
    }
    const bool allocate = !is_write || config->write_allocate;
    counts->read_misses += !is_write;
    counts->write_misses += is_write;
    counts->memory_writes += is_write && (!config->write_back || !allocate);
    if (!allocate)
        return (struct wp_cache_done){WP_LINE_INVALID, WP_LINE_INVALID};
    return (struct wp_cache_done){line | dirty, wp_cache_fill_line(cache, config, counts, index, line | dirty)};
}

void wp_cache_access_any(struct wp_cache *cache, uint32_t line, bool is_write);

/* One access to the line with this number (address >> line_shift). A read of the line that its set holds first is a hit
 * that changes nothing, under LRU and FIFO: most accesses end here. */
static inline void wp_cache_access(struct wp_cache *cache, uint32_t line, bool is_write)
{
    const uint32_t first = cache->lines[(line & cache->set_mask) * cache->config.ways];
    if (!is_write && (first & ~WP_LINE_DIRTY) == line && cache->config.replacement <= WP_FIFO)
        cache->counts.read_hits++;
    else
        wp_cache_access_any(cache, line, is_write);
}

#endif
