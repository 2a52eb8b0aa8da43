/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cache.h"

#include <stdlib.h>
#include <string.h>

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
    cache->lines = malloc(sizeof *cache->lines * config->sets * config->ways);
    cache->tree = malloc(sizeof *cache->tree * config->sets * (config->ways / 32 + 1));
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
    memset(cache->tree, 0, sizeof *cache->tree * cache->config.sets * (cache->config.ways / 32 + 1));
    cache->random_state = cache->config.seed * 2654435761u ^ 0x9E3779B9u;
    if (!cache->random_state)
        cache->random_state = 1;
    cache->next_way = cache->config.seed % cache->config.ways;
    cache->counts = (struct wp_cache_counts){0};
}

void wp_cache_access_any(struct wp_cache *cache, uint32_t line, bool is_write)
{
    wp_cache_access_as(cache, &cache->config, &cache->counts, line, is_write);
}
