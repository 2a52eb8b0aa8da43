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
    uint32_t *tree;       /* PLRU: a set's tree, bit n for node n, root 1; words of 32 nodes */
    uint32_t tree_words;
};

bool wp_cache_open(struct wp_cache *cache, const struct wp_cache_config *config);
void wp_cache_close(struct wp_cache *cache);
void wp_cache_fill(struct wp_cache *cache, enum wp_initial content);

/* A stored line is its number below 2^30, marks above: this one, and those in cache.c. */
#define WP_LINE_DIRTY 0x80000000u

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
