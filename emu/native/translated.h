/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The frame of translated code: what an access and a fetch do in the common case. The translation defines before it what
 * the image, the core and the counts are: WP_BIG_ENDIAN, WP_DATA, WP_FETCH, the ranges, the geometry of the caches.
 */
#define WP_MADE_FOR_IT static inline __attribute__((always_inline))
#define WP_EACH_WAY _Pragma("clang loop unroll(enable)")
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
    uint8_t *guest, *marks;
    struct wp_known_line *lines; /* changes with what is watched */
    const uint32_t *fetched;
    uint32_t heap_bytes;
};

WP_INLINE struct wp_fixed wp_fixed_of(const struct wp_frame *frame)
{
    return (struct wp_fixed){frame->guest, frame->marks, frame->lines, frame->fetched, frame->heap_bytes};
}

/* What changes with each block lies at fixed places, so that it takes no register: how often each block has run, negative
 * where the core is to be told of it, and the block under way. The core fills the former in when code is entered, and
 * takes it away when it is left; a process runs one machine at a time. */
#define WP_SHARED __attribute__((visibility("hidden")))
#if WP_UNIT == 0
WP_SHARED int64_t wp_runs[WP_BLOCKS];
WP_SHARED uint32_t wp_current;
WP_EXPORT int64_t *const wp_translated_runs = wp_runs;
#else
extern WP_SHARED int64_t wp_runs[WP_BLOCKS];
extern WP_SHARED uint32_t wp_current;
#endif

WP_OUT_OF_LINE void wp_slow_event(struct wp_frame *frame, uint32_t block)
{
    frame->event(frame, block, wp_current);
}

/* An access of several words, or one that may take longer because it is not aligned. */
#define WP_IS_LEFT_TO_CORE(address, bytes) ((bytes) > 4 || ((address) & ((bytes)-1)))
#define WP_HAS_LINES (WP_DATA && WP_DATA_WAYS)
/* Where an access is counted as one of a region that no cache serves. */
#define WP_IS_OF_REGION(range) (WP_STACK_IS_UNCACHED && (range) == WP_STACK)
/* Under a stable policy each line of a set may be known, for no hit changes an order; else the one that was used last. */
#define WP_DATA_KNOWN (WP_DATA_REPLACEMENT_IS_STABLE ? WP_KNOWN_LINES(WP_DATA_SETS * WP_DATA_WAYS) : WP_DATA_SETS)
#define WP_FETCH_KNOWN (WP_FETCH_REPLACEMENT_IS_STABLE ? WP_KNOWN_LINES(WP_FETCH_SETS * WP_FETCH_WAYS) : WP_FETCH_SETS)
#define WP_KNOWN_LINES(lines) (1u << (32 - __builtin_clz((lines) | 1)))
#if WP_UNIT == 0
WP_EXPORT const uint32_t wp_translated_known_lines = WP_HAS_LINES ? WP_DATA_KNOWN : 0;
WP_EXPORT const uint32_t wp_translated_known_fetches = WP_FETCH && WP_FETCH_WAYS ? WP_FETCH_KNOWN : 0;
#endif

#if WP_HAS_LINES
static const struct wp_cache_config wp_data_config = {WP_DATA_SETS, WP_DATA_WAYS, WP_DATA_LINE, WP_DATA_REPLACEMENT,
                                                      WP_DATA_WRITE_BACK, WP_DATA_WRITE_ALLOCATE, 0};

WP_INLINE struct wp_known_line *wp_slot(struct wp_known_line *lines, uint32_t line)
{
    return &lines[line & (WP_DATA_KNOWN - 1)];
}

static inline void wp_forget_line(struct wp_frame *frame, uint32_t line)
{
    struct wp_known_line *const slot = wp_slot(frame->lines_kept, line);
    if (!WP_DATA_REPLACEMENT_IS_STABLE || slot->load_key == line * WP_DATA_LINE)
        slot->load_key = slot->store_key = WP_NO_LINE;
#if WP_FETCH && WP_UNIFIED
    uint32_t *const fetched = &frame->fetched[line & (WP_FETCH_KNOWN - 1)];
    if (!WP_FETCH_REPLACEMENT_IS_STABLE || *fetched == line)
        *fetched = WP_NO_LINE;
#endif
}

/* After an access that the core has counted. */
static __attribute__((noinline)) void wp_forget(struct wp_frame *frame, uint32_t address, uint32_t bytes,
                                                uint64_t misses_before)
{
    if (!WP_DATA_REPLACEMENT_IS_STABLE) {
        for (uint32_t line = address / WP_DATA_LINE; line <= (address + bytes - 1) / WP_DATA_LINE; line++)
            wp_forget_line(frame, line);
        return;
    }
    if (frame->data_cache->counts.read_misses + frame->data_cache->counts.write_misses == misses_before)
        return;
    for (uint32_t i = 0; i < WP_DATA_KNOWN; i++)
        frame->lines_kept[i].load_key = frame->lines_kept[i].store_key = WP_NO_LINE;
#if WP_FETCH && WP_UNIFIED
    for (uint32_t i = 0; i < WP_FETCH_KNOWN; i++)
        frame->fetched[i] = WP_NO_LINE;
#endif
}
#endif

/* An access by the core. Who asked counts it once more; that is taken back. */
static __attribute__((noinline)) uint8_t *wp_core_access(struct wp_frame *frame, uint32_t pc, uint32_t address,
                                                         uint32_t bytes_and_kind)
{
#if WP_HAS_LINES
    const struct wp_cache_counts *const counts = &frame->data_cache->counts;
    const uint64_t misses = counts->read_misses + counts->write_misses;
#endif
    frame->counted_loads += !(bytes_and_kind & WP_MAY_STORE);
    frame->counted_stores += !!(bytes_and_kind & WP_MAY_STORE);
    uint8_t *const found = frame->access(frame, pc, address, bytes_and_kind);
#if WP_HAS_LINES
    if (found)
        wp_forget(frame, address, bytes_and_kind & 0xFF, misses);
#endif
    return found;
}

#if WP_HAS_LINES
/* The range that holds all of some bytes; WP_FAST_RANGES: none of those with marks. */
WP_INLINE uint32_t wp_range_of(const struct wp_frame *frame, uint32_t address, uint32_t bytes, uint32_t *base, uint32_t *size)
{
#define WP_LIES_IN(range, first, bytes_)                                                                               \
    if (WP_LIKELY(address - (first) <= (bytes_) - bytes) && bytes <= (bytes_))                                         \
    return *base = (first), *size = (bytes_), range
    WP_LIES_IN(WP_HEAP, WP_HEAP_BASE, frame->heap_bytes);
    WP_LIES_IN(WP_STACK, WP_STACK_BASE, WP_STACK_BYTES);
    WP_LIES_IN(WP_STATIC, WP_STATIC_BASE, (uint32_t)WP_STATIC_BYTES);
    WP_LIES_IN(WP_OPERATIONS, WP_OPERATIONS_BASE, WP_OPERATIONS_BYTES);
    WP_LIES_IN(WP_CODE, WP_CODE_BASE, (uint32_t)WP_CODE_BYTES);
    return WP_FAST_RANGES;
}

/* An access to a line that is not known, or not alone to one: counted here where it is an ordinary one. */
WP_INLINE uint8_t *wp_far_access(struct wp_frame *frame, uint32_t pc, uint32_t address, uint32_t bytes, bool is_store)
{
    uint32_t base, size;
    const uint32_t range = wp_range_of(frame, address, bytes, &base, &size);
    const bool is_of_region = WP_IS_OF_REGION(range);
    if (WP_UNLIKELY(frame->watches || range == WP_FAST_RANGES || (range == WP_CODE && is_store) ||
                    WP_IS_LEFT_TO_CORE(address, bytes) || (!is_of_region && WP_IS_UNCACHED(address, address))))
        return wp_core_access(frame, pc, address, bytes | (is_store ? WP_MAY_STORE : WP_MAY_LOAD));
    if (is_of_region) {
        *(is_store ? &frame->region_stores : &frame->region_loads) += 1;
        *(is_store ? &frame->counted_stores : &frame->counted_loads) += 1; /* as those of the core */
        frame->marks[address / 4] = 1;
        return frame->guest + address;
    }
    struct wp_cache *const cache = frame->data_cache;
    const uint32_t line = address / WP_DATA_LINE, first = line * WP_DATA_LINE;
    struct wp_cache_counts now = {0};
    const struct wp_cache_done done = wp_cache_access_as(cache, &wp_data_config, &now, line, is_store);
    if (is_store ? !now.write_hits : !now.read_hits) { /* who takes the short way is counted as a hit, and so was this */
        struct wp_cache_counts *const counts = &cache->counts;
        *(is_store ? &counts->write_hits : &counts->read_hits) -= 1;
        *(is_store ? &counts->write_misses : &counts->read_misses) += 1;
        counts->writebacks += now.writebacks;
        if (is_store)
            counts->memory_writes += now.memory_writes - !WP_DATA_WRITE_BACK;
        if (done.evicted != WP_LINE_INVALID)
            wp_forget_line(frame, done.evicted & ~WP_LINE_DIRTY);
    }
    if (done.stored != WP_LINE_INVALID) {
        if (!WP_DATA_REPLACEMENT_IS_STABLE)
            wp_forget_line(frame, line);
        if (size >= WP_DATA_LINE && first - base <= size - WP_DATA_LINE &&
            !WP_IS_UNCACHED(first, first + WP_DATA_LINE - 1)) {
            const bool stores_hit = range != WP_CODE && (!WP_DATA_WRITE_BACK || done.stored & WP_LINE_DIRTY);
            struct wp_known_line *const slot = wp_slot(frame->lines_kept, line);
            slot->load_key = first;
            slot->store_key = stores_hit ? first : WP_NO_LINE;
        }
    }
    frame->marks[address / 4] = 1;
    return frame->guest + address;
}

WP_OUT_OF_LINE uint8_t *wp_far_load(struct wp_frame *frame, uint32_t pc, uint32_t address, uint32_t bytes)
{
    return wp_far_access(frame, pc, address, bytes, false);
}

WP_OUT_OF_LINE uint8_t *wp_far_store(struct wp_frame *frame, uint32_t pc, uint32_t address, uint32_t bytes)
{
    return wp_far_access(frame, pc, address, bytes, true);
}
#endif

WP_OUT_OF_LINE uint8_t *wp_slow_access(struct wp_frame *frame, uint32_t pc, uint32_t address, uint32_t bytes_and_kind)
{
    return bytes_and_kind & WP_UNNOTED || !WP_DATA ? frame->access(frame, pc, address, bytes_and_kind)
                                                   : wp_core_access(frame, pc, address, bytes_and_kind);
}

/* Bytes that the guest has: whoever asks whether there are any is not to look. */
WP_INLINE uint8_t *wp_there(uint8_t *found)
{
    if (!found)
        __builtin_unreachable();
    return found;
}

#if WP_HAS_LINES
/* Lines are longer than such accesses, or the key of the last byte of all would be that of no line. */
#define WP_IS_KNOWN(key, address, bytes)                                                                               \
    ((bytes) < WP_DATA_LINE && ((address) & (~(uint32_t)(WP_DATA_LINE - 1) | ((bytes) - 1))) ==                        \
                                   wp_slot(fixed.lines, (address) / WP_DATA_LINE)->key)
#else
#define WP_IS_KNOWN(key, address, bytes) 0
#endif

#define WP_RANGE_BASE(range)                                                                                           \
    ((range) == WP_HEAP     ? WP_HEAP_BASE                                                                             \
     : (range) == WP_STACK  ? WP_STACK_BASE                                                                            \
     : (range) == WP_STATIC ? WP_STATIC_BASE                                                                           \
     : (range) == WP_CODE   ? WP_CODE_BASE                                                                             \
                            : WP_OPERATIONS_BASE)
#define WP_RANGE_BYTES(range)                                                                                          \
    ((range) == WP_HEAP     ? fixed.heap_bytes                                                                         \
     : (range) == WP_STACK  ? WP_STACK_BYTES                                                                           \
     : (range) == WP_STATIC ? (uint32_t)WP_STATIC_BYTES                                                                \
     : (range) == WP_CODE   ? (uint32_t)WP_CODE_BYTES                                                                  \
                            : WP_OPERATIONS_BYTES)
/* Whether a range holds up to eight bytes there. */
#define WP_IS_IN(range, address, bytes, is_store)                                                                      \
    (((range) == WP_HEAP || WP_RANGE_BYTES(range) >= 8) && !((is_store) && (range) == WP_CODE) &&                      \
     (address) - WP_RANGE_BASE(range) <= WP_RANGE_BYTES(range) - (bytes))
/* Where heap is likely and the compiler knows the address, it is that of static data. */
#define WP_IS_SURELY_STATIC(likely, address, bytes)                                                                    \
    ((likely) == WP_HEAP && __builtin_constant_p(address) && WP_IS_IN(WP_STATIC, address, bytes, 0))

enum { WP_LEAST_HEAP_BYTES = 16 }; /* a guest with less is left to the engine */

/* Whether an access is an ordinary one, to be made at `found`; it is counted, also where it is not. */
WP_INLINE bool wp_is_near(struct wp_frame *frame, const struct wp_fixed *fixed, uint32_t address, uint32_t bytes,
                          int is_store, int likely, int is_noted, uint32_t watches, int64_t *count,
                          int64_t *count_of_region, uint8_t **found)
{
#if WP_HAS_LINES
    if (is_noted && !WP_IS_OF_REGION(likely)) {
        const struct wp_known_line *const slot = wp_slot(fixed->lines, address / WP_DATA_LINE);
        const uint32_t key = address & (~(uint32_t)(WP_DATA_LINE - 1) | (bytes - 1));
        ++*count;
        /* Lines are longer than such accesses, or the key of the last byte of all would be that of no line. */
        if (WP_UNLIKELY(bytes > 4 || bytes >= WP_DATA_LINE || key != (is_store ? slot->store_key : slot->load_key)))
            return false;
        fixed->marks[address / 4] = 1;
        *found = fixed->guest + address;
        return true;
    }
#endif
    uint32_t range = likely;
#if WP_STATIC_BYTES >= 8
    if (likely == WP_HEAP && __builtin_constant_p(address) && bytes <= WP_STATIC_BYTES &&
        address - WP_STATIC_BASE <= WP_STATIC_BYTES - bytes)
        range = WP_STATIC;
#endif
    bool is_inside = false;
    if (range == WP_STACK)
        is_inside = bytes <= WP_STACK_BYTES && (address - WP_STACK_BASE) <= WP_STACK_BYTES - bytes;
    else if (range == WP_OPERATIONS)
        is_inside = (address - WP_OPERATIONS_BASE) <= WP_OPERATIONS_BYTES - bytes;
#if WP_CODE_BYTES >= 8
    else if (range == WP_CODE && !is_store)
        is_inside = bytes <= WP_CODE_BYTES && (address - WP_CODE_BASE) <= WP_CODE_BYTES - bytes;
#endif
    else if (range == WP_HEAP)
        is_inside = (bytes <= WP_LEAST_HEAP_BYTES || bytes <= fixed->heap_bytes) &&
                    (address - WP_HEAP_BASE) <= fixed->heap_bytes - bytes;
#if WP_STATIC_BYTES >= 8
    else if (range == WP_STATIC)
        is_inside = bytes <= WP_STATIC_BYTES && (address - WP_STATIC_BASE) <= WP_STATIC_BYTES - bytes;
#endif
#if WP_DATA
    if (is_noted) {
        is_inside = WP_LIKELY(is_inside) && !WP_UNLIKELY(watches) && !WP_IS_LEFT_TO_CORE(address, bytes) &&
                    (WP_IS_OF_REGION(range) || !WP_IS_UNCACHED(address, address));
        ++*(is_inside && WP_IS_OF_REGION(range) ? count_of_region : count);
        if (is_inside)
            fixed->marks[address / 4] = 1;
    }
#endif
    if (!WP_LIKELY(is_inside))
        return false;
    *found = fixed->guest + address;
    return true;
}

/* Whether an access, which is counted, is an ordinary one to static data where the heap was likelier. */
WP_INLINE bool wp_is_static(const struct wp_fixed *fixed, uint32_t address, uint32_t bytes, int likely, int is_noted,
                            uint32_t watches, uint8_t **found)
{
#if WP_STATIC_BYTES >= 8
    const uint32_t offset = address - WP_STATIC_BASE;
    if (likely != WP_HEAP || (is_noted && WP_HAS_LINES) || bytes > WP_STATIC_BYTES ||
        offset > WP_STATIC_BYTES - bytes)
        return false;
#if WP_DATA
    if (is_noted) {
        if (watches || WP_IS_LEFT_TO_CORE(address, bytes) || WP_IS_UNCACHED(address, address))
            return false;
        fixed->marks[address / 4] = 1;
    }
#endif
    *found = fixed->guest + address;
    return true;
#else
    return false;
#endif
}

/* Where the bytes of an access are that is not an ordinary one; NULL: the guest may not. */
WP_INLINE uint8_t *wp_far(struct wp_frame *frame, uint32_t pc, uint32_t address, uint32_t bytes, int is_store,
                          int is_noted)
{
#if WP_HAS_LINES
    if (is_noted)
        return is_store ? wp_far_store(frame, pc, address, bytes) : wp_far_load(frame, pc, address, bytes);
#endif
    return wp_slow_access(frame, pc, address,
                          bytes | (is_store ? WP_MAY_STORE : WP_MAY_LOAD) | (is_noted ? 0 : WP_UNNOTED));
}

/* Where the bytes of an access are; NULL: the guest may not. It is counted as one of the region where that is clear. */
WP_INLINE uint8_t *wp_access(struct wp_frame *frame, const struct wp_fixed *fixed, uint32_t pc, uint32_t address,
                             uint32_t bytes, int is_store, int likely, int is_noted, uint32_t watches, int64_t *count,
                             int64_t *count_of_region)
{
    uint8_t *found;
    if (WP_LIKELY(wp_is_near(frame, fixed, address, bytes, is_store, likely, is_noted, watches, count, count_of_region,
                             &found)) ||
        wp_is_static(fixed, address, bytes, likely, is_noted, watches, &found))
        return wp_there(found);
    return wp_far(frame, pc, address, bytes, is_store, is_noted);
}

#if WP_DATA
#define WP_STORE_ONES(bytes, to) __builtin_memcpy(to, &(const uint64_t){0x0101010101010101}, bytes)

/* Marks of adjacent words, a few: what overlaps is written twice. Compilers would call memset for a loop of bytes. */
WP_INLINE void wp_mark(uint8_t *marks, uint32_t count)
{
    uint8_t *const behind = marks + count;
    if (count >= 8) {
        for (; behind - marks > 8; marks += 8) {
            WP_STORE_ONES(8, marks);
            __asm__("" : "+r"(marks));
        }
        WP_STORE_ONES(8, behind - 8);
    } else if (count >= 4) {
        WP_STORE_ONES(4, marks);
        WP_STORE_ONES(4, behind - 4);
    } else if (count >= 2) {
        WP_STORE_ONES(2, marks);
        WP_STORE_ONES(2, behind - 2);
    } else if (count) {
        *marks = 1;
    }
}

/* Several words: how many are to be counted, or -1: the guest may not. */
WP_OUT_OF_LINE int wp_words_far(struct wp_frame *frame, uint32_t pc, uint32_t address, uint32_t count,
                                              int is_store, int likely, uint32_t watches)
{
    const struct wp_fixed fixed = wp_fixed_of(frame);
    const uint32_t kind = 4 | (is_store ? WP_MAY_STORE : WP_MAY_LOAD);
    const uint32_t base = likely == WP_STACK ? WP_STACK_BASE : WP_HEAP_BASE;
    const uint32_t bytes = likely == WP_STACK ? WP_STACK_BYTES : fixed.heap_bytes;
    const uint32_t offset = address - base;
    if (watches || address & 3 || offset > bytes || 4 * count > bytes - offset) {
#if WP_HAS_LINES
        const struct wp_cache_counts *const counts = &frame->data_cache->counts;
        const uint64_t misses = counts->read_misses + counts->write_misses;
#endif
        if (!frame->accesses(frame, pc, address, count, kind))
            return -1;
#if WP_HAS_LINES
        wp_forget(frame, address, 4 * count, misses);
#endif
        return 0;
    }
    if (WP_IS_OF_REGION(likely)) {
        wp_mark(fixed.marks + address / 4, count);
        return (int)count;
    }
    for (uint32_t i = 0; i < count;) {
        const uint32_t word = address + 4 * i;
#if WP_HAS_LINES
        const struct wp_known_line *const slot = wp_slot(fixed.lines, word / WP_DATA_LINE);
        const uint32_t left = (WP_DATA_LINE - word % WP_DATA_LINE) / 4; /* words of the line: each is such a hit */
        const uint32_t words = left < count - i ? left : count - i;
        if (WP_LIKELY((word & ~(uint32_t)(WP_DATA_LINE - 1)) == (is_store ? slot->store_key : slot->load_key))) {
            wp_mark(fixed.marks + word / 4, words);
            i += words;
            continue;
        }
#endif
        int64_t unused = 0;
        wp_access(frame, &fixed, pc, word, 4, is_store, likely, 1, 0, &unused, &unused);
        i++;
    }
    return (int)count;
}

/* The same; in line where all lie in a line that is known. */
WP_INLINE int wp_words(struct wp_frame *frame, const struct wp_fixed *fixed, uint32_t pc, uint32_t address,
                       uint32_t count, int is_store, int likely, uint32_t watches)
{
#if WP_HAS_LINES
    if (!WP_IS_OF_REGION(likely) && WP_DATA_LINE > 4 && 4 * count <= WP_DATA_LINE) {
        const struct wp_known_line *const slot = wp_slot(fixed->lines, address / WP_DATA_LINE);
        const uint32_t key = address & (~(uint32_t)(WP_DATA_LINE - 1) | 3);
        if (WP_LIKELY(key == (is_store ? slot->store_key : slot->load_key) &&
                      address % WP_DATA_LINE <= WP_DATA_LINE - 4 * count)) {
            wp_mark(fixed->marks + address / 4, count);
            return (int)count;
        }
    }
#endif
    return wp_words_far(frame, pc, address, count, is_store, likely, watches);
}

/* Several accesses of another kind. */
static __attribute__((noinline)) int wp_others(struct wp_frame *frame, uint32_t pc, uint32_t address, uint32_t count,
                                               uint32_t bytes_and_kind)
{
#if WP_HAS_LINES
    const struct wp_cache_counts *const counts = &frame->data_cache->counts;
    const uint64_t misses = counts->read_misses + counts->write_misses;
#endif
    if (!frame->accesses(frame, pc, address, count, bytes_and_kind))
        return 0;
#if WP_HAS_LINES
    wp_forget(frame, address, count * (bytes_and_kind & 0xFF), misses);
#endif
    return 1;
}
#endif

#if WP_FETCH
static const struct wp_cache_config wp_fetch_config = {WP_FETCH_SETS, WP_FETCH_WAYS, WP_FETCH_LINE, WP_FETCH_REPLACEMENT,
                                                       WP_FETCH_WRITE_BACK, WP_FETCH_WRITE_ALLOCATE, 0};

WP_OUT_OF_LINE void wp_far_fetch(struct wp_frame *frame, uint32_t line)
{
    frame->fetched_slowly++;
    const struct wp_cache_done done =
        wp_cache_access_as(frame->fetch_cache, &wp_fetch_config, frame->fetch_counts, line, false);
#if WP_HAS_LINES && WP_UNIFIED
    if (done.evicted != WP_LINE_INVALID)
        wp_forget_line(frame, done.evicted & ~WP_LINE_DIRTY);
    if (!WP_DATA_REPLACEMENT_IS_STABLE)
        wp_forget_line(frame, line);
#else
    uint32_t *const evicted = &frame->fetched[done.evicted & (WP_FETCH_KNOWN - 1)];
    if (WP_FETCH_REPLACEMENT_IS_STABLE && *evicted == (done.evicted & ~WP_LINE_DIRTY))
        *evicted = WP_NO_LINE;
#endif
    frame->fetched[line & (WP_FETCH_KNOWN - 1)] = line;
}

#define WP_FETCH_LINE_OF(line)                                                                                         \
    do {                                                                                                               \
        if (WP_UNLIKELY(fixed.fetched[(line) & (WP_FETCH_KNOWN - 1)] != (line)))                                       \
            wp_far_fetch(frame, line);                                                                                 \
    } while (0)
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

/* An access of its own, with the value that is loaded or stored; last, what is done where the guest may not.
 *
 * The likeliest way makes it by itself: where all met before it, each would leave a base and an offset in registers for it,
 * to be added up there. So that the compiler does not have them meet, the others end in an empty instruction. These are
 * macros, for functions that tell by a truth value and a pointer which way was taken cost the compiler a third more time. */
#define WP_MAKE_LOAD(bits, pc_, address_, likely, is_noted, value, ...)                                                \
    do {                                                                                                               \
        const uint32_t at_ = address_;                                                                                 \
        uint8_t *found_;                                                                                               \
        if (WP_HAS_LINES && is_noted && !WP_IS_OF_REGION(likely)) {                                                    \
            ++loads;                                                                                                   \
            if (WP_LIKELY(WP_IS_KNOWN(load_key, at_, bits / 8))) {                                                     \
                fixed.marks[at_ / 4] = 1;                                                                              \
                value = WP_LOAD(bits, fixed.guest + at_);                                                              \
                break;                                                                                                 \
            }                                                                                                          \
            found_ = wp_far(frame, pc_, at_, bits / 8, 0, is_noted);                                                   \
        } else if (!WP_DATA || !is_noted) {                                                                            \
            if (!WP_IS_SURELY_STATIC(likely, at_, bits / 8) && WP_LIKELY(WP_IS_IN(likely, at_, bits / 8, 0))) {        \
                value = WP_LOAD(bits, fixed.guest + at_);                                                       \
                break;                                                                                                 \
            }                                                                                                          \
            found_ = likely == WP_HEAP && WP_IS_IN(WP_STATIC, at_, bits / 8, 0)                                        \
                         ? wp_there(fixed.guest + at_)                                                       \
                         : wp_far(frame, pc_, at_, bits / 8, 0, is_noted);                                             \
        } else {                                                                                                       \
            found_ = wp_access(frame, &fixed, pc_, at_, bits / 8, 0, likely, is_noted, watches, &loads, &region_loads);\
        }                                                                                                              \
        if (WP_UNLIKELY(!found_))                                                                                      \
            __VA_ARGS__                                                                                                \
        value = WP_LOAD(bits, found_);                                                                                 \
        __asm__("" : "+r"(value));                                                                                     \
    } while (0)
#define WP_MAKE_STORE(bits, pc_, address_, likely, is_noted, value, ...)                                               \
    do {                                                                                                               \
        const uint32_t at_ = address_;                                                                                 \
        uint8_t *found_;                                                                                               \
        if (WP_HAS_LINES && is_noted && !WP_IS_OF_REGION(likely)) {                                                    \
            ++stores;                                                                                                  \
            if (WP_LIKELY(WP_IS_KNOWN(store_key, at_, bits / 8))) {                                                    \
                fixed.marks[at_ / 4] = 1;                                                                              \
                WP_STORE(bits, fixed.guest + at_, value);                                                              \
                break;                                                                                                 \
            }                                                                                                          \
            found_ = wp_far(frame, pc_, at_, bits / 8, 1, is_noted);                                                   \
        } else if (!WP_DATA || !is_noted) {                                                                            \
            if (!WP_IS_SURELY_STATIC(likely, at_, bits / 8) && WP_LIKELY(WP_IS_IN(likely, at_, bits / 8, 1))) {        \
                WP_STORE(bits, fixed.guest + at_, value);                                                       \
                break;                                                                                                 \
            }                                                                                                          \
            found_ = likely == WP_HEAP && WP_IS_IN(WP_STATIC, at_, bits / 8, 1)                                        \
                         ? wp_there(fixed.guest + at_)                                                       \
                         : wp_far(frame, pc_, at_, bits / 8, 1, is_noted);                                             \
        } else {                                                                                                       \
            found_ = wp_access(frame, &fixed, pc_, at_, bits / 8, 1, likely, is_noted, watches, &stores, &region_stores);\
        }                                                                                                              \
        if (WP_UNLIKELY(!found_))                                                                                      \
            __VA_ARGS__                                                                                                \
        WP_STORE(bits, found_, value);                                                                                 \
        __asm__ volatile("");                                                                                          \
    } while (0)

/* Of blocks. */
#define WP_PAUSE(address, without)                                                                                     \
    do {                                                                                                               \
        if (WP_UNLIKELY(instructions >= limit)) {                                                                      \
            without pc = address;                                                                                      \
            goto paused;                                                                                               \
        }                                                                                                              \
    } while (0)
#if WP_OBSERVED
#define WP_RUNS(number) ++wp_runs[number]
#define WP_COUNT(cost) cycles += (cost)
#else
#define WP_RUNS(number) wp_runs[number]
#define WP_COUNT(cost) (void)0
#endif
#if WP_TELLS
#define WP_TOLD_OF(number)                                                                                             \
    do {                                                                                                               \
        if (WP_UNLIKELY(WP_RUNS(number) < 0))                                                                          \
            wp_slow_event(frame, number);                                                                              \
        wp_current = number;                                                                                           \
    } while (0)
#define WP_WAS_IN(number) (void)0
#else /* nobody asks which block is under way, but where one is left in its middle */
#define WP_TOLD_OF(number) WP_RUNS(number)
#define WP_WAS_IN(number) wp_current = number
#endif
#define WP_BLOCK(number, count, cost)                                                                                  \
    do {                                                                                                               \
        WP_TOLD_OF(number);                                                                                            \
        instructions += count;                                                                                         \
        WP_COUNT(cost);                                                                                                \
    } while (0)
#define WP_CROSS(address, stack_pointer_, first_)                                                                      \
    do {                                                                                                               \
        frame->instructions = instructions;                                                                            \
        frame->cycles = cycles;                                                                                        \
        frame->loads = loads;                                                                                          \
        frame->stores = stores;                                                                                        \
        frame->region_loads += region_loads;                                                                           \
        frame->region_stores += region_stores;                                                                         \
        frame->stack_pointer = stack_pointer_;                                                                         \
        frame->first_register = first_;                                                                                \
        frame->cross(frame, address);                                                                                  \
        instructions = cycles = loads = stores = region_loads = region_stores = 0;                                                                    \
        limit = frame->limit;                                                                                          \
        watches = frame->watches;                                                                                      \
        fixed.lines = frame->lines;                                                                                    \
    } while (0)


/* What stands before the first block, and behind the last. */
#define WP_BEGIN \
    struct wp_fixed fixed = wp_fixed_of(frame); \
    int64_t limit = frame->limit, instructions = frame->instructions, cycles = frame->cycles; \
    int64_t loads = frame->loads, stores = frame->stores, region_loads = 0, region_stores = 0; \
    const uint32_t follows = frame->follows; \
    uint32_t pc = frame->pc, why, lowest = frame->lowest_stack_pointer; \
    uint32_t watches = frame->watches; \
    wp_current = frame->block;
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
    elsewhere: \
    why = WP_LEFT_ELSEWHERE; \
    goto left; \
    at_block: \
    why = WP_LEFT_AT_BLOCK; \
    left: \
    frame->why = why; \
    frame->pc = pc; \
    frame->block = wp_current; \
    frame->lowest_stack_pointer = lowest; \
    frame->instructions = instructions; \
    frame->cycles = cycles; \
    frame->loads = loads; \
    frame->stores = stores; \
    frame->region_loads += region_loads; \
    frame->region_stores += region_stores; \
    (void)follows, (void)watches, (void)limit;

/* Control goes from part to part of the code: to the engine, where the part that the address belongs to does not know it. */
#define WP_DRIVER \
    static uint32_t wp_unit_at(uint32_t pc) \
    { \
        uint32_t found = 0; \
        for (uint32_t i = 0; i < sizeof wp_starts / sizeof *wp_starts && wp_starts[i] <= pc; i++) \
            found = wp_owners[i]; \
        return found; \
    } \
    WP_EXPORT void wp_translated_run(struct wp_frame *const frame) \
    { \
        for (uint32_t unit = wp_unit_at(frame->pc);;) { \
            wp_units[unit](frame); \
            if (frame->why != WP_LEFT_ELSEWHERE) \
                return; \
            const uint32_t next = wp_unit_at(frame->pc); \
            if (next == unit) { \
                frame->why = WP_LEFT_AT_BLOCK; \
                return; \
            } \
            unit = next; \
        } \
    }
