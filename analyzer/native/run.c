/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "run.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { PAGE_BYTES = 4096, PAGES = 1 << 20, MOST_PAGES = 1 << 15, MOST_CALLS = 1 << 20, ALIGNMENT = 8 };
enum { IS_UNKNOWN, IS_NUMBER, IS_REST, IS_CELL = 16 }; /* what a byte of memory is; a cell has its kind besides */
#define NO_LINE UINT32_MAX

struct value {
    uint64_t number; /* of a byte of known bits: which are known, and behind these 8 bits what they are */
    uint32_t kind;
};

struct page {
    uint8_t bytes[PAGE_BYTES], is[PAGE_BYTES];
    uint8_t names[PAGE_BYTES / 4]; /* by which a word is accessed: 1 a number, 2 the stack pointer */
    struct page *next;             /* of all */
};

struct way {
    uint32_t source, target, kind;
    uint64_t count;
    struct way *next; /* of the same source */
};

struct block {
    struct wp_code code;
    struct wp_op *ops;
    struct way *ways, *last; /* all, and that by which it was left last */
};

struct cache {
    struct wp_run_cache_setup of;
    uint32_t line_bits;
    uint32_t *held, *count; /* of each set, the youngest line first */
    uint64_t *fills, *stored, *may_store, singles;
    uint8_t *modified; /* a bit for each line */
};

struct wp_run {
    struct wp_run_setup of;
    struct wp_region *regions;
    struct value *slots;
    int32_t **overlaps; /* of each slot the others, -1 behind them; NULL: none */
    uint32_t slot_count, slot_room;
    struct block **blocks; /* by address, a table with open addressing */
    uint32_t block_count, block_room;
    struct way **ways; /* of all blocks, a table with open addressing */
    uint32_t way_count, way_room;
    struct wp_access_setup *accesses;
    uint32_t access_count;
    struct wp_range *ranges;
    uint32_t range_count;
    uint32_t *rows;
    uint32_t row_count;
    struct page **memory, **stack, *pages;
    uint32_t page_count;
    uint32_t *calls; /* where those that were called return to */
    uint32_t call_count, call_room;
    struct cache code, data;
    struct wp_run_counts counts;
    bool failed;
};

/* ------------------------------------------------------------------------------------------------------ arithmetic */

static uint64_t mask_of(uint32_t bytes) { return bytes >= 8 ? UINT64_MAX : (UINT64_C(1) << 8 * bytes) - 1; }

static int64_t extended(uint32_t bits, uint64_t number)
{
    return bits >= 64 ? (int64_t)number : (int64_t)(number << (64 - bits)) >> (64 - bits);
}

static uint64_t quotient(int64_t a, int64_t b)
{
    return b == 0 ? 0 : b == -1 ? 0 - (uint64_t)a : (uint64_t)(a / b);
}

static int64_t clamped(int64_t a, int64_t least, int64_t most) { return a < least ? least : a > most ? most : a; }

/* What analyzer/pcode/semantics.py makes of numbers; whether there is a result. */
static bool function(const struct wp_op *op, uint64_t a, uint64_t b, uint64_t *result)
{
    const uint32_t n = 8 * op->from_bytes;
    const int64_t sa = extended(n, a), sb = extended(n, b);
    uint64_t found = 0;
    switch (op->code) {
    case WP_COPY: case WP_ZEXT: found = a; break;
    case WP_SEXT: found = (uint64_t)sa; break;
    case WP_2COMP: found = 0 - a; break;
    case WP_NEGATE: found = ~a; break;
    case WP_BOOL_NEGATE: found = a ^ 1; break;
    case WP_POPCOUNT: found = (uint64_t)__builtin_popcountll(a); break;
    case WP_LZCOUNT: found = n - (a ? 64 - (uint64_t)__builtin_clzll(a) : 0); break;
    case WP_ADD: found = a + b; break;
    case WP_SUB: found = a - b; break;
    case WP_MULT: found = a * b; break;
    case WP_AND: case WP_BOOL_AND: found = a & b; break;
    case WP_OR: case WP_BOOL_OR: found = a | b; break;
    case WP_XOR: case WP_BOOL_XOR: found = a ^ b; break;
    case WP_LEFT: found = b < n ? a << b : 0; break;
    case WP_RIGHT: found = b < 64 ? a >> b : 0; break;
    case WP_SRIGHT: found = (uint64_t)(sa >> (b < 63 ? b : 63)); break;
    case WP_DEFINED_DIV: if (b == 0) return false; /* fall through */
    case WP_DIV: found = b ? a / b : 0; break;
    case WP_DEFINED_SDIV: if (b == 0 || (sb == -1 && a == UINT64_C(1) << (n - 1))) return false; /* fall through */
    case WP_SDIV: found = quotient(sa, sb); break;
    case WP_REM: found = b ? a % b : 0; break;
    case WP_SREM: found = sb == 0 || sb == -1 ? 0 : (uint64_t)(sa % sb); break;
    case WP_EQUAL: found = a == b; break;
    case WP_NOTEQUAL: found = a != b; break;
    case WP_LESS: found = a < b; break;
    case WP_LESSEQUAL: found = a <= b; break;
    case WP_SLESS: found = sa < sb; break;
    case WP_SLESSEQUAL: found = sa <= sb; break;
    case WP_CARRY: found = n >= 64 ? a + b < a : (a + b) >> n; break;
    case WP_SCARRY: found = ((a ^ (a + b)) & (b ^ (a + b))) >> (n - 1) & 1; break;
    case WP_SBORROW: found = ((a ^ b) & (a ^ (a - b))) >> (n - 1) & 1; break;
    case WP_PIECE: found = a << n | b; break;
    case WP_SUBPIECE: found = b < 8 ? a >> 8 * b : 0; break;
    case WP_SIGNED_SATURATE: case WP_SIGNED_DOES_SATURATE:
        if (b > 62) return false;
        found = (uint64_t)clamped(sa, -((int64_t)1 << b), ((int64_t)1 << b) - 1);
        if (op->code == WP_SIGNED_DOES_SATURATE) found = found != (uint64_t)sa;
        break;
    case WP_UNSIGNED_SATURATE: case WP_UNSIGNED_DOES_SATURATE:
        if (b > 62) return false;
        found = (uint64_t)clamped(sa, 0, ((int64_t)1 << b) - 1);
        if (op->code == WP_UNSIGNED_DOES_SATURATE) found = found != (uint64_t)sa;
        break;
    default: return false;
    }
    *result = found & mask_of(op->to_bytes);
    return true;
}

static bool is_binary(uint32_t code) { return code >= WP_ADD; }

/* How often the stack pointer counts in a value; false: nobody knows. */
static bool times_of(const struct value *value, int32_t *times)
{
    *times = value->kind == WP_STACK ? 1 : value->kind == WP_LESS_STACK ? -1 : 0;
    return value->kind <= WP_LESS_STACK;
}

static bool counted(int32_t times, uint64_t number, struct value *result)
{
    if (times < -1 || times > 1)
        return false;
    *result = (struct value){(uint32_t)number, times == 0 ? WP_NUMBER : times == 1 ? WP_STACK : WP_LESS_STACK};
    return true;
}

/* What `constant_arithmetic._of_places` tells of operands of which all are numbers or places. */
static bool of_places(const struct wp_op *op, const struct value *a, const struct value *b, struct value *result)
{
    int32_t times, others;
    if (!times_of(a, &times) || !times_of(b, &others))
        return false;
    switch (op->code) {
    case WP_2COMP: return counted(-times, 0 - a->number, result);
    case WP_ADD: return counted(times + others, a->number + b->number, result);
    case WP_SUB: return counted(times - others, a->number - b->number, result);
    case WP_EQUAL: case WP_NOTEQUAL:
        if (times != others)
            return false;
        *result = (struct value){((uint32_t)a->number == (uint32_t)b->number) == (op->code == WP_EQUAL), WP_NUMBER};
        return true;
    case WP_AND: {
        const bool is_first = times != 0;
        const uint64_t number = is_first ? a->number : b->number, mask = is_first ? b->number : a->number;
        if (times != 0 && others != 0)
            return false;
        if (mask < ALIGNMENT)
            return counted(0, number & mask, result);
        const uint64_t rest = (UINT64_C(1) << 32) - mask;
        if (rest == 0 || rest > ALIGNMENT || (rest & (rest - 1)))
            return false;
        return counted(is_first ? times : others, number & ~(rest - 1), result);
    }
    case WP_LEFT:
        if (others != 0 || b->number >= 32 || UINT64_C(1) << (32 - b->number) > ALIGNMENT)
            return false;
        return counted(0, a->number << b->number, result);
    default: return false;
    }
}

static void known_bits(const struct value *value, uint32_t *known, uint32_t *bits)
{
    *known = value->kind == WP_NUMBER ? 0xFF : value->kind == WP_BITS ? value->number & 0xFF : 0;
    *bits = value->kind == WP_NUMBER ? value->number & 0xFF : value->kind == WP_BITS ? value->number >> 8 & 0xFF : 0;
}

/* As `constant_arithmetic.bits_known`. */
static bool of_bits(const struct wp_op *op, const struct value *a, const struct value *b, struct value *result)
{
    uint32_t known, bits, others, other;
    known_bits(a, &known, &bits);
    known_bits(b, &others, &other);
    switch (op->code) {
    case WP_AND: known = (known & others) | (known & ~bits) | (others & ~other); bits &= other; break;
    case WP_OR: known = (known & others) | bits | other; bits |= other; break;
    case WP_LEFT: case WP_RIGHT:
        if (others != 0xFF || other > 8 || b->number > 8)
            return false;
        known = op->code == WP_LEFT ? known << other | ((1u << other) - 1) : known >> other | ~(0xFFu >> other);
        bits = op->code == WP_LEFT ? bits << other : bits >> other;
        break;
    default: return false;
    }
    known &= 0xFF;
    bits &= 0xFF;
    *result = known == 0xFF ? (struct value){bits, WP_NUMBER} : (struct value){known | bits << 8, WP_BITS};
    return known != 0;
}

static bool is_place(const struct value *value) { return value->kind == WP_STACK || value->kind == WP_LESS_STACK; }

/* As `constant_arithmetic._low_bits`. */
static bool of_low_bits(const struct wp_op *op, const struct value *a, const struct value *b, struct value *result)
{
    const struct value *const bits = a->kind == WP_BITS ? a : b, *const mask = a->kind == WP_BITS ? b : a;
    if (op->code == WP_AND) {
        if (bits->kind != WP_BITS || mask->kind != WP_NUMBER || mask->number & ~(bits->number & 0xFF))
            return false;
        *result = (struct value){bits->number >> 8 & mask->number, WP_NUMBER};
        return true;
    }
    if ((op->code != WP_OR && op->code != WP_XOR) || !(is_place(a) || is_place(b)))
        return false;
    const struct value *const both[2] = {a, b};
    uint64_t known = ALIGNMENT - 1, found = 0;
    for (int at = 0; at < 2; at++) {
        if (both[at]->kind > WP_LESS_STACK && both[at]->kind != WP_BITS)
            return false;
        const bool is_part = both[at]->kind == WP_BITS;
        known &= is_part ? both[at]->number & 0xFF : UINT64_MAX;
        const uint64_t own = is_part ? both[at]->number >> 8 : both[at]->number;
        found = op->code == WP_OR ? found | own : found ^ own;
    }
    *result = (struct value){known | (found & known) << 8, WP_BITS};
    return known != 0;
}

static bool is_zero(const struct value *value) { return value->kind == WP_NUMBER && value->number == 0; }

/* As `constant_arithmetic.computed`, where not all operands are numbers. */
static bool of_others(const struct wp_op *op, const struct value *a, const struct value *b, struct value *result)
{
    const bool is_same = a->kind == b->kind && a->number == b->number;
    if (op->code == WP_COPY) {
        *result = *a;
        return a->kind != WP_UNKNOWN;
    }
    if ((op->code == WP_AND || op->code == WP_OR) && is_same && a->kind != WP_UNKNOWN && a->kind != WP_BITS) {
        *result = *a;
        return true;
    }
    if (op->code == WP_AND && (a->kind == WP_LINK || b->kind == WP_LINK)) {
        const struct value *const mask = a->kind == WP_LINK ? b : a;
        *result = is_zero(mask) ? *mask : (struct value){0, WP_LINK};
        return mask->kind == WP_NUMBER && (mask->number == 0 || (mask->number | 3) == UINT32_MAX);
    }
    if (of_places(op, a, b, result) || (is_binary(op->code) && of_low_bits(op, a, b, result)))
        return true;
    *result = (struct value){0, WP_NUMBER};
    return (op->code == WP_AND || op->code == WP_MULT || op->code == WP_BOOL_AND) && (is_zero(a) || is_zero(b));
}

static bool is_comparison(uint32_t code) { return code >= WP_EQUAL && code <= WP_SBORROW; }

static bool as_number(const struct wp_run *run, const struct value *value, uint64_t *number)
{
    const uint32_t pointer = run->of.stack_pointer, own = (uint32_t)value->number;
    *number = value->kind == WP_STACK ? pointer + own : value->kind == WP_LESS_STACK ? own - pointer : value->number;
    *number = value->kind == WP_NUMBER ? value->number : (uint32_t)*number;
    return value->kind <= WP_LESS_STACK;
}

enum { STACK_REACH = 1 << 20, NULL_RANK = -STACK_REACH };

/* As `constant_arithmetic.placed`: where a place stands among others, and 0 before them. */
static bool rank_of(const struct value *value, int64_t *rank)
{
    *rank = value->kind == WP_STACK ? extended(32, value->number) : NULL_RANK;
    return value->kind == WP_STACK ? *rank > -STACK_REACH && *rank < STACK_REACH : is_zero(value);
}

static bool placed(struct wp_run *run, const struct wp_op *op, const struct value *a, const struct value *b, struct value *result)
{
    int64_t one, other;
    if (run->of.knows_stack_pointer || op->code < WP_EQUAL || op->code > WP_LESSEQUAL || !rank_of(a, &one) || !rank_of(b, &other))
        return false;
    const bool is_equal = one == other, is_less = one < other;
    const bool found = op->code == WP_EQUAL ? is_equal : op->code == WP_NOTEQUAL ? !is_equal
                     : op->code == WP_LESS ? is_less : is_less || is_equal;
    const int64_t ranks[2] = {one, other};
    for (int at = 0; at < 2; at++) {
        const int64_t reach = 1 + (ranks[at] < 0 ? -ranks[at] : ranks[at]);
        if (ranks[at] != NULL_RANK && reach > run->counts.stack_reach)
            run->counts.stack_reach = (uint32_t)reach;
    }
    *result = (struct value){found, WP_NUMBER};
    return true;
}

static void computed(struct wp_run *run, const struct wp_op *op, struct value *result)
{
    const struct value *const a = &run->slots[op->first];
    const struct value *const b = is_binary(op->code) ? &run->slots[op->second] : a;
    uint64_t found, one, other;
    if (a->kind == WP_NUMBER && b->kind == WP_NUMBER) {
        const bool is_known = function(op, a->number, b->number, &found);
        *result = is_known ? (struct value){found, WP_NUMBER} : (struct value){0, WP_UNKNOWN};
        return;
    }
    const bool is_same = a->kind == b->kind && a->number == b->number;
    const bool is_asked = op->code == WP_AND || op->code == WP_LEFT || ((op->code == WP_OR || op->code == WP_XOR) && !is_same);
    struct value told;
    if (of_others(op, a, b, &told)) {
        if (is_asked && (is_place(a) || is_place(b)))
            run->counts.tells_alignment = 1;
    } else if (op->from_bytes == 1 && op->to_bytes == 1 && of_bits(op, a, b, &told)) {
    } else if (run->of.knows_stack_pointer && is_comparison(op->code) && as_number(run, a, &one)
               && as_number(run, b, &other) && function(op, one, other, &found)) {
        run->counts.tells_stack_pointer = 1;
        told = (struct value){found, WP_NUMBER};
    } else if (is_binary(op->code) && placed(run, op, a, b, &told)) {
    } else {
        told = (struct value){0, WP_UNKNOWN};
    }
    *result = told;
}

/* ---------------------------------------------------------------------------------------------------------- caches */

static bool open_cache(struct cache *cache, const struct wp_run_cache_setup *setup)
{
    cache->of = *setup;
    if (!setup->sets)
        return true;
    while (1u << cache->line_bits < setup->line_bytes)
        cache->line_bits++;
    cache->held = calloc((size_t)setup->sets * setup->ways, sizeof *cache->held);
    cache->count = calloc(setup->sets, sizeof *cache->count);
    cache->fills = calloc(3 * (size_t)setup->sets, sizeof *cache->fills);
    cache->modified = calloc((UINT64_C(1) << (32 - cache->line_bits)) / 8 + 1, 1);
    if (!cache->held || !cache->count || !cache->fills || !cache->modified)
        return false;
    cache->stored = cache->fills + setup->sets;
    cache->may_store = cache->stored + setup->sets;
    return true;
}

static void close_cache(struct cache *cache)
{
    free(cache->held);
    free(cache->count);
    free(cache->fills);
    free(cache->modified);
}

static void store_line(struct cache *cache, uint32_t line, uint32_t set, bool is_held)
{
    uint8_t *const byte = &cache->modified[line / 8], bit = (uint8_t)(1 << line % 8);
    const bool was_modified = *byte & bit;
    if (!cache->of.write_back) {
        cache->singles++;
        return;
    }
    if (!is_held && !cache->of.write_allocate) {
        cache->singles++;
        cache->may_store[set] += !was_modified;
    } else if (!is_held || !was_modified) {
        cache->stored[set]++;
    }
    *byte |= bit;
}

/* As `followed_caches.RunCache.touch`. */
static void touch(struct cache *cache, uint32_t line, bool is_store)
{
    const uint32_t set = line & (cache->of.sets - 1);
    uint32_t *const own = cache->held + (size_t)set * cache->of.ways, count = cache->count[set], at = 0;
    while (at < count && own[at] != line)
        at++;
    const bool is_held = at < count, fills = !is_held && (cache->of.write_allocate || !is_store);
    if (is_store)
        store_line(cache, line, set, is_held);
    else if (!is_held)
        cache->modified[line / 8] &= (uint8_t)~(1 << line % 8);
    cache->fills[set] += fills;
    if (!cache->of.ages) {
        if (fills) {
            own[0] = line;
            cache->count[set] = 1;
        }
        return;
    }
    if (is_held && at == 0)
        return;
    uint32_t moved = is_held ? at : count < cache->of.ways ? count : cache->of.ways - 1;
    if (!is_held && count < cache->of.ways)
        cache->count[set]++;
    for (; moved > 0; moved--)
        own[moved] = own[moved - 1];
    own[0] = is_held || fills ? line : NO_LINE;
}

/* ---------------------------------------------------------------------------------------------------------- memory */

static struct page *page_of(struct wp_run *run, struct page **space, uint32_t offset, bool is_made)
{
    struct page **const place = &space[offset / PAGE_BYTES];
    if (!*place && is_made) {
        if (run->page_count == MOST_PAGES || !(*place = calloc(1, sizeof **place))) {
            run->failed = true;
            return NULL;
        }
        (*place)->next = run->pages;
        run->pages = *place;
        run->page_count++;
    }
    return *place;
}

/* Nothing is known of a byte, nor of the cell that it is a part of. */
static void forget(struct page *page, uint32_t at)
{
    if (page->is[at] > IS_NUMBER) {
        while (page->is[at] == IS_REST)
            at--;
        memset(&page->is[at], IS_UNKNOWN, 4);
        return;
    }
    page->is[at] = IS_UNKNOWN;
}

static void store(struct wp_run *run, struct page **space, uint32_t offset, const struct value *value, uint32_t size)
{
    const uint32_t at = offset % PAGE_BYTES;
    const bool is_cell = size == 4 && at <= PAGE_BYTES - 4 && value->kind >= WP_STACK && value->kind <= WP_LINK;
    for (uint32_t i = 0; i < size; i++) {
        const uint32_t here = offset + i;
        struct page *const page = page_of(run, space, here, true);
        if (!page)
            return;
        uint8_t *const is = &page->is[here % PAGE_BYTES];
        if (*is > IS_NUMBER)
            forget(page, here % PAGE_BYTES);
        *is = value->kind == WP_NUMBER ? IS_NUMBER : IS_UNKNOWN;
        page->bytes[here % PAGE_BYTES] = (uint8_t)(value->number >> 8 * (run->of.big_endian ? size - 1 - i : i));
    }
    if (!is_cell)
        return;
    struct page *const page = page_of(run, space, offset, true);
    const uint32_t number = (uint32_t)value->number;
    memcpy(&page->bytes[at], &number, 4);
    memset(&page->is[at], IS_REST, 4);
    page->is[at] = (uint8_t)(IS_CELL + value->kind);
}

static void load(struct wp_run *run, struct page **space, uint32_t offset, uint32_t size, struct value *result)
{
    uint64_t number = 0;
    const uint32_t at = offset % PAGE_BYTES;
    struct page *page = page_of(run, space, offset, false);
    *result = (struct value){0, WP_UNKNOWN};
    if (page && page->is[at] >= IS_CELL) {
        uint32_t held;
        memcpy(&held, &page->bytes[at], 4);
        if (size == 4)
            *result = (struct value){held, page->is[at] - IS_CELL};
        return;
    }
    if (space == run->memory && offset + size - 1 < offset)
        return;
    for (uint32_t i = 0; i < size; i++) {
        const uint32_t here = offset + i;
        if (here % PAGE_BYTES == 0)
            page = page_of(run, space, here, false);
        if (!page || page->is[here % PAGE_BYTES] != IS_NUMBER)
            return;
        number |= (uint64_t)page->bytes[here % PAGE_BYTES] << 8 * (run->of.big_endian ? size - 1 - i : i);
    }
    *result = (struct value){number, WP_NUMBER};
}

/* -------------------------------------------------------------------------------------------------------- accesses */

static void note(struct wp_range *range, bool on_stack, int64_t offset, uint32_t size)
{
    if (range->state == 0) {
        *range = (struct wp_range){1, on_stack, size, offset, offset, 0};
        return;
    }
    if (range->state == 2)
        return;
    if (range->on_stack != on_stack || range->size_bytes != size) {
        range->state = 2;
        return;
    }
    uint64_t rest = offset > range->low ? (uint64_t)(offset - range->low) : (uint64_t)(range->low - offset);
    if (range->stride == 0 || rest % range->stride) {
        uint64_t stride = range->stride;
        while (rest) {
            const uint64_t left = stride % rest;
            stride = rest;
            rest = left;
        }
        range->stride = stride;
    }
    if (offset < range->low)
        range->low = offset;
    if (offset > range->high)
        range->high = offset;
}

/* Note by what name the words of an access go. */
static void name(struct wp_run *run, bool on_stack, uint32_t first, uint32_t size)
{
    const uint8_t own = on_stack ? 2 : 1;
    for (uint64_t at = first & ~UINT32_C(3); at < (uint64_t)first + size; at += 4) {
        struct page *const page = page_of(run, run->memory, (uint32_t)at, true);
        if (!page)
            return;
        uint8_t *const names = &page->names[(uint32_t)at % PAGE_BYTES / 4];
        *names |= own;
        run->counts.is_named_twice |= *names == 3;
    }
}

static uint32_t longer_of(const struct wp_run *run, const struct wp_access_setup *access, bool on_stack, uint32_t offset)
{
    const uint32_t zeros = offset ? (uint32_t)__builtin_ctz(offset) : 32;
    const uint32_t *const row = run->rows + (size_t)access->row * WP_ROW;
    return on_stack ? row[WP_STACK_ROW + (zeros < 3 ? zeros : 3)] : zeros < 32 ? row[zeros] : 0;
}

/* What an access to a known place is and costs; whether the run may still be told. */
static bool take(struct wp_run *run, uint32_t number, bool on_stack, uint32_t offset, uint32_t size, bool is_store)
{
    const struct wp_access_setup *const access = &run->accesses[number];
    const uint32_t place = on_stack ? run->of.stack_pointer + offset : offset;
    note(&run->ranges[access->range], on_stack, on_stack ? (int64_t)(int32_t)offset : (int64_t)offset, size);
    if (run->of.knows_stack_pointer)
        name(run, on_stack, place, size);
    if (run->data.of.sets) {
        const uint32_t first = place >> run->data.line_bits;
        if ((on_stack && !run->of.knows_stack_pointer) || place % size || first != (place + size - 1) >> run->data.line_bits)
            return false;
        touch(&run->data, first, is_store);
        return true;
    }
    const uint64_t longer = run->of.is_unaligned_charged ? longer_of(run, access, on_stack, offset) : 0;
    run->counts.waiting_cycles += longer + (1 + longer) * run->of.single_cycles;
    return true;
}

/* Whether a store to an address goes to data (1), to nothing of the image (0), or elsewhere (-1). */
static int store_goes_to(struct wp_run *run, uint32_t offset, uint32_t size)
{
    const uint64_t end = (uint64_t)offset + size;
    const bool is_alias = (end > 0x22000000 && offset < 0x24000000) || (end > 0x42000000 && offset < 0x44000000);
    bool is_free = true;
    if (end > UINT64_C(1) << 32)
        return -1; /* around the end of the address space, to whatever is at its beginning */
    if (is_alias && run->of.is_thumb)
        return -1; /* each word of a bit-band alias stands for a bit elsewhere (Cortex-M4 TRM, ARM DDI 0439, section 3.7) */
    for (uint32_t i = 0; i < run->of.region_count; i++) {
        const struct wp_region *const one = &run->regions[i];
        const uint64_t behind = (uint64_t)one->address + one->size_bytes;
        if (one->is_data && one->address <= offset && end <= behind)
            return 1;
        is_free = is_free && !(one->address < end && offset < behind);
    }
    return is_free ? 0 : -1;
}

/* An access; whether it is known enough to go on. */
static bool made(struct wp_run *run, const struct wp_op *op, struct value *result)
{
    const bool is_store = op->code == WP_STORE;
    const struct value *const address = &run->slots[op->first];
    const uint32_t size = is_store ? op->from_bytes : op->to_bytes, offset = (uint32_t)address->number;
    if (address->kind != WP_NUMBER && address->kind != WP_STACK) {
        *result = (struct value){0, WP_UNKNOWN};
        run->counts.is_told = 0;
        return !is_store;
    }
    const bool on_stack = address->kind == WP_STACK;
    struct page **const space = on_stack ? run->stack : run->memory;
    const bool is_placed = !on_stack || run->of.knows_stack_pointer;
    const uint32_t place = on_stack ? run->of.stack_pointer + offset : offset;
    int goes_to = is_store && is_placed ? store_goes_to(run, place, size) : 1;
    if (goes_to < 0)
        return false;
    goes_to |= on_stack; /* which is none of the image's objects */
    run->counts.is_far |= goes_to == 0;
    if (run->counts.is_told && !take(run, op->place, on_stack, offset, size, is_store))
        run->counts.is_told = 0;
    if (is_store)
        store(run, space, offset, goes_to ? &run->slots[op->second] : &(struct value){0, WP_UNKNOWN}, size);
    else
        load(run, space, offset, size, result);
    return !run->failed;
}

/* ---------------------------------------------------------------------------------------------------------- blocks */

static struct block **place_of(struct wp_run *run, uint32_t address)
{
    uint32_t at = address * UINT32_C(2654435761) & (run->block_room - 1);
    while (run->blocks[at] && run->blocks[at]->code.address != address)
        at = (at + 1) & (run->block_room - 1);
    return &run->blocks[at];
}

static struct way **place_of_way(struct wp_run *run, uint32_t source, uint32_t target, uint32_t kind)
{
    uint32_t at = (source * UINT32_C(2654435761) ^ target) * UINT32_C(2246822519) + kind;
    at = (at ^ at >> 15) & (run->way_room - 1);
    for (const struct way *one; (one = run->ways[at]); at = (at + 1) & (run->way_room - 1))
        if (one->source == source && one->target == target && one->kind == kind)
            break;
    return &run->ways[at];
}

static bool has_room_for_way(struct wp_run *run)
{
    if (2 * run->way_count < run->way_room)
        return true;
    const uint32_t room = run->way_room;
    struct way **const before = run->ways, **const more = calloc(room ? 2 * (size_t)room : 1024, sizeof *more);
    if (!more)
        return false;
    run->ways = more;
    run->way_room = room ? 2 * room : 1024;
    for (uint32_t i = 0; i < room; i++)
        if (before[i])
            *place_of_way(run, before[i]->source, before[i]->target, before[i]->kind) = before[i];
    free(before);
    return true;
}

static bool count_way(struct wp_run *run, struct block *block, uint32_t target, uint32_t kind)
{
    if (block->last && block->last->target == target && block->last->kind == kind) {
        block->last->count++;
        return true;
    }
    if (!has_room_for_way(run))
        return false;
    struct way **const place = place_of_way(run, block->code.address, target, kind);
    if (!*place) {
        struct way *const made = calloc(1, sizeof *made);
        if (!made)
            return false;
        *made = (struct way){block->code.address, target, kind, 0, block->ways};
        block->ways = *place = made;
        run->way_count++;
    }
    block->last = *place;
    block->last->count++;
    return true;
}

static void put(struct wp_run *run, int32_t out, const struct value *value)
{
    if (out < 0)
        return;
    run->slots[out] = *value;
    const int32_t *other = run->overlaps[out];
    if (other)
        for (; *other >= 0; other++)
            run->slots[*other].kind = WP_UNKNOWN;
}

/* Executes a block up to what leaves it; NULL: that is not known. */
static const struct wp_op *executed(struct wp_run *run, const struct block *block)
{
    const struct wp_op *op = block->ops;
    struct value result;
    for (;; op++) {
        if (op->code < WP_FUNCTIONS) {
            computed(run, op, &result);
            put(run, op->out, &result);
            continue;
        }
        switch (op->code) {
        case WP_FORGET:
            result = (struct value){0, WP_UNKNOWN};
            put(run, op->out, &result);
            break;
        case WP_PART: {
            const struct value *const word = &run->slots[op->second];
            result = run->slots[op->first];
            if (result.kind == WP_UNKNOWN && word->kind == WP_NUMBER)
                result = (struct value){word->number >> op->place & mask_of(op->to_bytes), WP_NUMBER};
            put(run, op->out, &result);
            break;
        }
        case WP_LOAD: case WP_STORE:
            if (!made(run, op, &result))
                return NULL;
            if (op->code == WP_LOAD)
                put(run, op->out, &result);
            break;
        case WP_SKIP: case WP_JUMP_IF: {
            const struct value *const condition = &run->slots[op->first];
            if (condition->kind != WP_NUMBER)
                return NULL;
            if (!condition->number)
                break;
            if (op->code == WP_JUMP_IF)
                return op;
            op = block->ops + op->place - 1;
            break;
        }
        case WP_GO: op = block->ops + op->place - 1; break;
        case WP_STOP: return NULL;
        default: return op;
        }
    }
}

static bool called(struct wp_run *run, uint32_t behind)
{
    if (run->call_count == run->call_room) {
        const uint32_t room = run->call_room ? 2 * run->call_room : 64;
        uint32_t *const more = room > MOST_CALLS ? NULL : realloc(run->calls, room * sizeof *more);
        if (!more)
            return false;
        run->calls = more;
        run->call_room = room;
    }
    run->calls[run->call_count++] = behind;
    return true;
}

/* Where an indirect branch goes, and how; whether that is known. */
static bool indirect(struct wp_run *run, const struct block *block, const struct wp_op *op, uint32_t *target, uint32_t *kind)
{
    const struct value *const to = &run->slots[op->first];
    if (to->kind == WP_LINK) {
        *target = 0;
        *kind = WP_EXITS;
        return !run->call_count && op->code == WP_JUMP_TO;
    }
    if (op->second >= 0) {
        const struct value *const mode = &run->slots[op->second];
        if (mode->kind != WP_NUMBER || mode->number != run->of.is_thumb)
            return false;
    }
    if (to->kind != WP_NUMBER)
        return false;
    *target = (uint32_t)to->number & ~UINT32_C(1);
    if (op->code == WP_CALL_TO) {
        *kind = WP_CALLS;
        return called(run, block->code.end_address);
    }
    const bool is_back = run->call_count && run->calls[run->call_count - 1] == *target;
    *kind = is_back || block->code.returns ? WP_RETURNS : WP_JUMPS;
    if (is_back)
        run->call_count--;
    return is_back || !block->code.returns;
}

EXPORT int wp_run_follow(struct wp_run *run, uint64_t limit)
{
    struct wp_run_counts *const counts = &run->counts;
    for (;;) {
        if (counts->decided >= limit)
            return WP_PAUSED;
        struct block *const block = *place_of(run, counts->address);
        if (!block)
            return WP_NEEDS_BLOCK;
        if (!block->code.is_told)
            counts->is_told = 0;
        const struct wp_op *const op = executed(run, block);
        if (!op)
            return run->failed ? WP_NO_ROOM : WP_UNDECIDED;
        if (run->code.of.sets && counts->is_told)
            for (uint32_t line = block->code.first_line; line <= block->code.last_line; line++)
                touch(&run->code, line, false);
        uint32_t target = op->place, kind = WP_JUMPS;
        bool is_known = true;
        if (op->code == WP_FALL) {
            target = block->code.end_address;
            kind = WP_FALLS;
        } else if (op->code == WP_CALL) {
            kind = WP_CALLS;
            is_known = called(run, block->code.end_address);
        } else if (op->code == WP_JUMP_TO || op->code == WP_CALL_TO) {
            is_known = indirect(run, block, op, &target, &kind);
        }
        if (!is_known)
            return WP_UNDECIDED;
        if (!count_way(run, block, target, kind))
            return WP_NO_ROOM;
        counts->decided += block->code.instructions;
        counts->address = target;
        if (kind == WP_EXITS)
            return WP_ENDED;
    }
}

/* --------------------------------------------------------------------------------------------------------- outside */

EXPORT uint32_t wp_run_abi_version(void) { return WP_RUN_ABI_VERSION; }

EXPORT void wp_run_close(struct wp_run *run)
{
    for (uint32_t i = 0; i < run->block_room; i++)
        if (run->blocks[i]) {
            for (struct way *one = run->blocks[i]->ways, *next; one; one = next) {
                next = one->next;
                free(one);
            }
            free(run->blocks[i]->ops);
            free(run->blocks[i]);
        }
    for (uint32_t i = 0; i < run->slot_count; i++)
        free(run->overlaps[i]);
    for (struct page *one = run->pages, *next; one; one = next) {
        next = one->next;
        free(one);
    }
    close_cache(&run->code);
    close_cache(&run->data);
    free(run->blocks);
    free(run->ways);
    free(run->overlaps);
    free(run->slots);
    free(run->accesses);
    free(run->ranges);
    free(run->rows);
    free(run->calls);
    free(run->regions);
    free(run->memory);
    free(run->stack);
    free(run);
}

/* A run that begins at the entry; NULL: there is no room for it. */
EXPORT struct wp_run *wp_run_open(const struct wp_run_setup *setup)
{
    struct wp_run *const run = calloc(1, sizeof *run);
    if (!run)
        return NULL;
    run->of = *setup;
    run->counts.address = setup->entry;
    run->counts.is_told = 1;
    run->memory = calloc(PAGES, sizeof *run->memory);
    run->stack = calloc(PAGES, sizeof *run->stack);
    run->regions = malloc((setup->region_count + 1) * sizeof *run->regions);
    run->blocks = calloc(1024, sizeof *run->blocks);
    run->block_room = run->blocks ? 1024 : 0;
    const bool has_caches = open_cache(&run->code, &setup->code) & open_cache(&run->data, &setup->data);
    if (!has_caches || !run->memory || !run->stack || !run->regions || !run->blocks) {
        wp_run_close(run);
        return NULL;
    }
    if (setup->region_count)
        memcpy(run->regions, setup->regions, setup->region_count * sizeof *run->regions);
    return run;
}

/* Memory holds these bytes at entry; whether there is room. */
EXPORT bool wp_run_content(struct wp_run *run, uint32_t address, const uint8_t *bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct page *const page = page_of(run, run->memory, (uint32_t)(address + i), true);
        if (!page)
            return false;
        page->bytes[(uint32_t)(address + i) % PAGE_BYTES] = bytes[i];
        page->is[(uint32_t)(address + i) % PAGE_BYTES] = IS_NUMBER;
    }
    return true;
}

/* A new slot that holds this value, or -1. */
EXPORT int32_t wp_run_slot(struct wp_run *run, uint32_t kind, uint64_t number)
{
    if (run->slot_count == run->slot_room) {
        const uint32_t room = run->slot_room ? 2 * run->slot_room : 256;
        struct value *const slots = realloc(run->slots, room * sizeof *slots);
        if (!slots)
            return -1;
        run->slots = slots;
        int32_t **const overlaps = realloc(run->overlaps, room * sizeof *overlaps);
        if (!overlaps)
            return -1;
        run->overlaps = overlaps;
        run->slot_room = room;
    }
    run->slots[run->slot_count] = (struct value){number, kind};
    run->overlaps[run->slot_count] = NULL;
    return (int32_t)run->slot_count++;
}

/* From now on a slot holds this value. */
EXPORT void wp_run_put(struct wp_run *run, int32_t slot, uint32_t kind, uint64_t number)
{
    put(run, slot, &(struct value){number, kind});
}

/* What a slot holds: its kind, and its number. */
EXPORT uint32_t wp_run_value(const struct wp_run *run, int32_t slot, uint64_t *number)
{
    *number = run->slots[slot].number;
    return run->slots[slot].kind;
}

/* Which slots share bytes with one, -1 behind them. */
EXPORT bool wp_run_overlaps(struct wp_run *run, int32_t slot, const int32_t *others, uint32_t count)
{
    int32_t *const own = malloc(count * sizeof *own);
    if (!own)
        return false;
    memcpy(own, others, count * sizeof *own);
    free(run->overlaps[slot]);
    run->overlaps[slot] = own;
    return true;
}

/* What unaligned accesses take longer: by the zeros at the end of a number, and of a distance from the stack pointer. */
EXPORT bool wp_run_row(struct wp_run *run, const uint32_t *row)
{
    uint32_t *const rows = realloc(run->rows, (size_t)(run->row_count + 1) * WP_ROW * sizeof *rows);
    if (!rows)
        return false;
    memcpy(rows + (size_t)run->row_count++ * WP_ROW, row, WP_ROW * sizeof *rows);
    run->rows = rows;
    return true;
}

/* An access that operations may name; the range may be a new one. */
EXPORT bool wp_run_access(struct wp_run *run, const struct wp_access_setup *access)
{
    struct wp_access_setup *const all = realloc(run->accesses, (run->access_count + 1) * sizeof *all);
    if (!all)
        return false;
    run->accesses = all;
    all[run->access_count++] = *access;
    if (access->range < run->range_count)
        return true;
    struct wp_range *const ranges = realloc(run->ranges, (access->range + 1) * sizeof *ranges);
    if (!ranges)
        return false;
    memset(ranges + run->range_count, 0, (access->range + 1 - run->range_count) * sizeof *ranges);
    run->ranges = ranges;
    run->range_count = access->range + 1;
    return true;
}

EXPORT bool wp_run_block(struct wp_run *run, const struct wp_code *code, const struct wp_op *ops)
{
    if (2 * run->block_count >= run->block_room) {
        struct block **const before = run->blocks, **const more = calloc(2 * (size_t)run->block_room, sizeof *more);
        const uint32_t room = run->block_room;
        if (!more)
            return false;
        run->blocks = more;
        run->block_room = 2 * room;
        for (uint32_t i = 0; i < room; i++)
            if (before[i])
                *place_of(run, before[i]->code.address) = before[i];
        free(before);
    }
    struct block *const block = calloc(1, sizeof *block);
    struct wp_op *const own = malloc(code->operations * sizeof *own);
    if (!block || !own) {
        free(block);
        free(own);
        return false;
    }
    memcpy(own, ops, code->operations * sizeof *own);
    *block = (struct block){*code, own, NULL, NULL};
    *place_of(run, code->address) = block;
    run->block_count++;
    return true;
}

EXPORT void wp_run_counts(const struct wp_run *run, struct wp_run_counts *counts)
{
    *counts = run->counts;
    counts->code_singles = run->code.singles;
    counts->data_singles = run->data.singles;
    counts->ways = 0;
    for (uint32_t i = 0; i < run->block_room; i++)
        if (run->blocks[i])
            for (const struct way *one = run->blocks[i]->ways; one; one = one->next)
                counts->ways++;
}

EXPORT void wp_run_ways(const struct wp_run *run, struct wp_run_way *ways)
{
    for (uint32_t i = 0; i < run->block_room; i++)
        if (run->blocks[i])
            for (const struct way *one = run->blocks[i]->ways; one; one = one->next)
                *ways++ = (struct wp_run_way){run->blocks[i]->code.address, one->target, one->kind, one->count};
}

EXPORT void wp_run_range(const struct wp_run *run, uint32_t number, struct wp_range *range)
{
    *range = run->ranges[number];
}

/* Fills, and what was stored and may have been, by set: three numbers for each set. */
EXPORT void wp_run_sets(const struct wp_run *run, bool of_data, uint64_t *counts)
{
    const struct cache *const cache = of_data ? &run->data : &run->code;
    memcpy(counts, cache->fills, 3 * (size_t)cache->of.sets * sizeof *counts);
}
