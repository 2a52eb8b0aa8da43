/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cache.h"

#include <stdlib.h>
#include <string.h>

#define WP_LINE_ALIEN 0x40000000u /* data of nobody: never hit */
#define WP_LINE_INVALID 0x7FFFFFFFu

static uint32_t log2_of(uint32_t power)
{
    uint32_t bits = 0;
    while (power >>= 1)
        bits++;
    return bits;
}

bool wp_cache_open(struct wp_cache *cache, const struct wp_cache_config *config)
{
    *cache = (struct wp_cache){.config = *config};
    cache->line_shift = log2_of(config->line_bytes);
    cache->set_mask = config->sets - 1;
    cache->tree_words = config->ways / 32 + 1;
    cache->lines = malloc(sizeof *cache->lines * config->sets * config->ways);
    cache->tree = malloc(sizeof *cache->tree * config->sets * cache->tree_words);
    if (!cache->lines || !cache->tree) {
        wp_cache_close(cache);
        return false;
    }
    wp_cache_fill(cache, WP_COLD);
    return true;
}

void wp_cache_close(struct wp_cache *cache)
{
    free(cache->lines);
    free(cache->tree);
    cache->lines = NULL;
    cache->tree = NULL;
}

void wp_cache_fill(struct wp_cache *cache, enum wp_initial content)
{
    const uint32_t total = cache->config.sets * cache->config.ways;
    const uint32_t dirty = cache->config.write_back ? WP_LINE_DIRTY : 0;
    for (uint32_t i = 0; i < total; i++)
        cache->lines[i] = content == WP_COLD ? WP_LINE_INVALID : WP_LINE_ALIEN | dirty;
    memset(cache->tree, 0, sizeof *cache->tree * cache->config.sets * cache->tree_words);
    cache->random_state = cache->config.seed * 2654435761u ^ 0x9E3779B9u;
    if (!cache->random_state)
        cache->random_state = 1;
    cache->next_way = cache->config.seed % cache->config.ways;
    cache->counts = (struct wp_cache_counts){0};
}

static uint32_t next_random(struct wp_cache *cache)
{
    uint32_t x = cache->random_state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return cache->random_state = x;
}

/* LRU keeps a set ordered by recency of use, FIFO by age of the fill: the newest first, the victim last. */
static void move_to_front(uint32_t *set, uint32_t from, uint32_t stored)
{
    for (; from > 0; from--) /* a handful of words: no call of memmove */
        set[from] = set[from - 1];
    set[0] = stored;
}

static void plru_touch(uint32_t *tree, uint32_t ways, uint32_t way)
{
    for (uint32_t node = ways + way; node > 1; node /= 2) { /* every node points away from the way just used */
        const uint32_t parent = node / 2, bit = 1u << (parent % 32);
        tree[parent / 32] = node % 2 ? tree[parent / 32] & ~bit : tree[parent / 32] | bit;
    }
}

static uint32_t plru_victim(const uint32_t *tree, uint32_t ways)
{
    uint32_t node = 1;
    while (node < ways)
        node = 2 * node + (tree[node / 32] >> (node % 32) & 1);
    return node - ways;
}

static void evict(struct wp_cache *cache, uint32_t stored)
{
    if (stored != WP_LINE_INVALID && stored & WP_LINE_DIRTY)
        cache->counts.writebacks++;
}

static uint32_t victim(struct wp_cache *cache, const uint32_t *tree)
{
    switch (cache->config.replacement) {
    case WP_PLRU: return plru_victim(tree, cache->config.ways);
    case WP_ROUND_ROBIN: return cache->next_way;
    default: return next_random(cache) % cache->config.ways;
    }
}

static void fill(struct wp_cache *cache, uint32_t index, uint32_t stored)
{
    const uint32_t ways = cache->config.ways;
    uint32_t *const set = cache->lines + index * ways;
    if (cache->config.replacement <= WP_FIFO) {
        evict(cache, set[ways - 1]);
        move_to_front(set, ways - 1, stored);
        return;
    }
    uint32_t *const tree = cache->tree + index * cache->tree_words;
    uint32_t way = 0;
    while (way < ways && set[way] != WP_LINE_INVALID)
        way++;
    if (way == ways)
        way = victim(cache, tree);
    evict(cache, set[way]);
    set[way] = stored;
    if (cache->config.replacement == WP_PLRU)
        plru_touch(tree, ways, way);
    cache->next_way = (cache->next_way + 1) % ways;
}

static void hit(struct wp_cache *cache, uint32_t index, uint32_t way, uint32_t stored)
{
    uint32_t *const set = cache->lines + index * cache->config.ways;
    if (cache->config.replacement == WP_LRU) {
        move_to_front(set, way, stored);
        return;
    }
    set[way] = stored;
    if (cache->config.replacement == WP_PLRU)
        plru_touch(cache->tree + index * cache->tree_words, cache->config.ways, way);
}

void wp_cache_access_any(struct wp_cache *cache, uint32_t line, bool is_write)
{
    const bool write_back = cache->config.write_back;
    const uint32_t index = line & cache->set_mask;
    const uint32_t *const set = cache->lines + index * cache->config.ways;
    const uint32_t dirty = is_write && write_back ? WP_LINE_DIRTY : 0;
    struct wp_cache_counts *const counts = &cache->counts;
    for (uint32_t way = 0; way < cache->config.ways; way++) {
        if ((set[way] & ~WP_LINE_DIRTY) == line) {
            hit(cache, index, way, set[way] | dirty);
            counts->read_hits += !is_write;
            counts->write_hits += is_write;
            counts->memory_writes += is_write && !write_back;
            return;
        }
    }
    const bool allocate = !is_write || cache->config.write_allocate;
    counts->read_misses += !is_write;
    counts->write_misses += is_write;
    counts->memory_writes += is_write && (!write_back || !allocate);
    if (allocate)
        fill(cache, index, line | dirty);
}
