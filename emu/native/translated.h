/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The frame of translated code: what an access and a fetch do in the common case. The translation defines before it what
 * the image, the core and the counts are: WP_BIG_ENDIAN, WP_DATA, WP_FETCH, the ranges, the geometry of the caches.
 */
#include "frame.h"

#define WP_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define WP_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define WP_INLINE static inline __attribute__((always_inline))
#if defined(__has_attribute) && defined(__x86_64__)
#if __has_attribute(preserve_most)
#define WP_OUT_OF_LINE static __attribute__((noinline, preserve_most))
#endif
#endif
#ifndef WP_OUT_OF_LINE
#define WP_OUT_OF_LINE static __attribute__((noinline))
#endif

#if WP_BIG_ENDIAN == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
#define WP_ORDER16(value) (value)
#define WP_ORDER32(value) (value)
#define WP_ORDER64(value) (value)
#else
#define WP_ORDER16(value) __builtin_bswap16(value)
#define WP_ORDER32(value) __builtin_bswap32(value)
#define WP_ORDER64(value) __builtin_bswap64(value)
#endif
#define WP_ORDER8(value) (value)

/* What does not change while the code runs. */
struct wp_fixed {
    uint8_t *memory[WP_FAST_RANGES], *marks[WP_FAST_RANGES];
    uint32_t *fetch_lines, *data_lines;
    uint32_t heap_bytes;
};

enum { WP_LRU, WP_FIFO, WP_PLRU, WP_RANDOM, WP_ROUND_ROBIN };

WP_OUT_OF_LINE uint8_t *wp_slow_access(struct wp_frame *frame, uint32_t pc, uint32_t address, uint32_t bytes_and_kind)
{
    return frame->access(frame, pc, address, bytes_and_kind);
}

WP_OUT_OF_LINE void wp_slow_event(struct wp_frame *frame, uint32_t block, uint32_t before)
{
    frame->event(frame, block, before);
}

#if WP_DATA
#if WP_DATA_WAYS
#if WP_DATA_REPLACEMENT_IS_STABLE
/* No hit changes an order: whether any line of the set is it. */
WP_OUT_OF_LINE int wp_any_hits(uint32_t *set, uint32_t line, int is_store)
{
    for (int way = 1; way < WP_DATA_WAYS; way++)
        if ((set[way] & ~WP_LINE_MODIFIED) == line) {
            if (is_store)
                set[way] |= WP_LINE_MODIFIED;
            return 1;
        }
    return 0;
}
#else
#define wp_any_hits(set, line, is_store) 0
#endif
/* Whether an access to the line is a hit that changes no order; a modified line is marked. */
WP_INLINE int wp_hits(const struct wp_fixed *fixed, uint32_t line, int is_store)
{
    uint32_t *const set = fixed->data_lines + (line & (WP_DATA_SETS - 1)) * WP_DATA_WAYS;
    if (WP_DATA_REPLACEMENT == WP_PLRU || (is_store && !WP_DATA_WRITE_BACK))
        return 0;
    if (WP_UNLIKELY((*set & ~WP_LINE_MODIFIED) != line))
        return wp_any_hits(set, line, is_store);
    if (is_store)
        *set = line | WP_LINE_MODIFIED;
    return 1;
}
#else
WP_INLINE int wp_hits(const struct wp_fixed *fixed, uint32_t line, int is_store) { return 1; }
#endif

/* One access inside a range that has marks: whether it was dealt with. */
WP_INLINE int wp_noted(const struct wp_fixed *fixed, uint32_t address, uint32_t bytes, int is_store, uint8_t *marks,
                       uint32_t offset)
{
    if (bytes > 1 && (address & 3) + bytes > 4)
        return 0;
    if (WP_IS_UNCACHED(address))
        return 0;
    if (!wp_hits(fixed, address / WP_DATA_LINE, is_store))
        return 0;
    marks[offset / 4] = 1;
    return 1;
}
#endif

/* Where the bytes of an access are; NULL: the guest may not. */
WP_INLINE uint8_t *wp_access(struct wp_frame *frame, const struct wp_fixed *fixed, uint32_t pc, uint32_t address,
                             uint32_t bytes, int is_store, int likely, int is_noted, uint32_t watches, int64_t *count)
{
    const uint32_t kind = bytes | (is_store ? WP_MAY_STORE : WP_MAY_LOAD) | (is_noted ? 0 : WP_UNNOTED);
    uint32_t offset, range;
    if (likely == WP_STACK && (offset = address - WP_STACK_BASE) <= WP_STACK_BYTES - bytes)
        range = WP_STACK;
    else if (likely == WP_OPERATIONS && (offset = address - WP_OPERATIONS_BASE) <= WP_OPERATIONS_BYTES - bytes)
        range = WP_OPERATIONS;
    else if (likely == WP_HEAP && WP_LIKELY((offset = address - WP_HEAP_BASE) <= fixed->heap_bytes - bytes))
        range = WP_HEAP;
#if WP_STATIC_BYTES >= 8
    else if ((likely == WP_HEAP || likely == WP_STATIC) &&
             (offset = address - WP_STATIC_BASE) <= WP_STATIC_BYTES - bytes)
        range = WP_STATIC;
#endif
    else
        return wp_slow_access(frame, pc, address, kind);
#if WP_DATA
    if (!is_noted)
        return fixed->memory[range] + offset;
    if (WP_UNLIKELY(watches) || WP_UNLIKELY(!wp_noted(fixed, address, bytes, is_store, fixed->marks[range], offset)))
        return wp_slow_access(frame, pc, address, kind);
    ++*count;
#endif
    return fixed->memory[range] + offset;
}

#if WP_DATA
/* Several words: how many took the short way, or -1: the guest may not. */
static __attribute__((noinline)) int wp_words(struct wp_frame *frame, const struct wp_fixed *fixed, uint32_t pc,
                                              uint32_t address, uint32_t count, int is_store, int likely,
                                              uint32_t watches)
{
    const uint32_t kind = 4 | (is_store ? WP_MAY_STORE : WP_MAY_LOAD);
    const uint32_t base = likely == WP_STACK ? WP_STACK_BASE : WP_HEAP_BASE;
    const uint32_t bytes = likely == WP_STACK ? WP_STACK_BYTES : fixed->heap_bytes;
    const uint32_t offset = address - base;
    if (watches || address & 3 || offset > bytes || 4 * count > bytes - offset)
        return frame->accesses(frame, pc, address, count, kind) ? 0 : -1;
    uint8_t *const marks = fixed->marks[likely == WP_STACK ? WP_STACK : WP_HEAP];
    int noted = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (WP_LIKELY(wp_noted(fixed, address + 4 * i, 4, is_store, marks, offset + 4 * i)))
            noted++;
        else
            frame->access(frame, pc, address + 4 * i, kind);
    }
    return noted;
}
#endif

#if WP_FETCH
WP_OUT_OF_LINE void wp_fetch_further(struct wp_frame *frame, const uint32_t *set, uint32_t line)
{
#if WP_FETCH_REPLACEMENT_IS_STABLE
    for (int way = 1; way < WP_FETCH_WAYS; way++)
        if ((set[way] & ~WP_LINE_MODIFIED) == line)
            return;
#endif
    frame->fetch(frame, line);
}

WP_INLINE void wp_fetch(struct wp_frame *frame, const struct wp_fixed *fixed, uint32_t line)
{
    const uint32_t *const set = fixed->fetch_lines + (line & (WP_FETCH_SETS - 1)) * WP_FETCH_WAYS;
    if (WP_FETCH_REPLACEMENT == WP_PLRU || WP_UNLIKELY((*set & ~WP_LINE_MODIFIED) != line))
        wp_fetch_further(frame, set, line);
}
#endif

#define WP_LOAD(bits, pointer)                                                                                         \
    ({                                                                                                                 \
        uint##bits##_t value_;                                                                                         \
        __builtin_memcpy(&value_, pointer, sizeof value_);                                                             \
        (uint##bits##_t) WP_ORDER##bits(value_);                                                                       \
    })
#define WP_STORE(bits, pointer, value)                                                                                 \
    do {                                                                                                               \
        const uint##bits##_t value_ = WP_ORDER##bits((uint##bits##_t)(value));                                         \
        __builtin_memcpy(pointer, &value_, sizeof value_);                                                             \
    } while (0)

/* Of blocks. */
#define WP_PAUSE(address)                                                                                              \
    do {                                                                                                               \
        if (WP_UNLIKELY(instructions >= limit)) {                                                                      \
            pc = address;                                                                                              \
            goto paused;                                                                                               \
        }                                                                                                              \
    } while (0)
#if WP_OBSERVED
#define WP_COUNT(number, cost) (runs[number]++, cycles += (cost))
#else
#define WP_COUNT(number, cost) (void)0
#endif
#if WP_DATA
#define WP_PATH(number)                                                                                                \
    do {                                                                                                               \
        if (WP_UNLIKELY(path_length < frame->path_capacity)) {                                                         \
            frame->path[2 * path_length] = wp_translated_blocks[number].first_row;                                     \
            frame->path[2 * path_length + 1] = wp_translated_blocks[number].behind_row;                                \
        }                                                                                                              \
        path_length++;                                                                                                 \
    } while (0)
#else
#define WP_PATH(number) path_length = (uint64_t)frame->path_capacity + 1
#endif
#define WP_BLOCK(number, count, cost)                                                                                  \
    do {                                                                                                               \
        if (WP_UNLIKELY(events[number]))                                                                               \
            wp_slow_event(frame, number, current);                                                                     \
        current = number;                                                                                              \
        instructions += count;                                                                                         \
        WP_COUNT(number, cost);                                                                                        \
        WP_PATH(number);                                                                                               \
    } while (0)
#define WP_CROSS(address, stack_pointer_, first_)                                                                      \
    do {                                                                                                               \
        frame->instructions = instructions;                                                                            \
        frame->cycles = cycles;                                                                                        \
        frame->loads = loads;                                                                                          \
        frame->stores = stores;                                                                                        \
        frame->stack_pointer = stack_pointer_;                                                                         \
        frame->first_register = first_;                                                                                \
        frame->cross(frame, address);                                                                                  \
        instructions = cycles = loads = stores = 0;                                                                    \
        limit = frame->limit;                                                                                          \
        watches = frame->watches;                                                                                      \
    } while (0)


/* What stands before the first block, and behind the last. */
#define WP_BEGIN \
    struct wp_fixed fixed; \
    for (int range = 0; range < WP_FAST_RANGES; range++) { \
        fixed.memory[range] = frame->memory[range]; \
        fixed.marks[range] = frame->marks[range]; \
    } \
    fixed.fetch_lines = frame->fetch_lines; \
    fixed.data_lines = frame->data_lines; \
    fixed.heap_bytes = frame->heap_bytes; \
    int64_t limit = frame->limit, instructions = frame->instructions, cycles = frame->cycles; \
    int64_t loads = frame->loads, stores = frame->stores; \
    uint64_t path_length = frame->path_length, *const runs = frame->runs; \
    const uint8_t *const events = frame->events; \
    const uint32_t follows = frame->follows; \
    uint32_t pc = frame->pc, why, current = frame->block, lowest = frame->lowest_stack_pointer; \
    uint32_t watches = frame->watches;
#define WP_END \
    paused: \
    why = WP_LEFT_PAUSED; \
    goto left; \
    disagreed: \
    why = WP_LEFT_DISAGREED; \
    goto left; \
    inside: \
    why = WP_LEFT_INSIDE; \
    goto left; \
    at_block: \
    why = WP_LEFT_AT_BLOCK; \
    left: \
    frame->why = why; \
    frame->pc = pc; \
    frame->block = current; \
    frame->lowest_stack_pointer = lowest; \
    frame->instructions = instructions; \
    frame->cycles = cycles; \
    frame->loads = loads; \
    frame->stores = stores; \
    frame->path_length = path_length; \
    (void)runs, (void)events, (void)follows, (void)watches, (void)limit;
