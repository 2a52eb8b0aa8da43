/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Follows the one run of a function that memory at its entry decides, block by block of p-code. It is the twin of
 * analyzer/loops/entry_run.py for runs of many millions of instructions.
 *
 * A value is a number of up to eight bytes, or something of which only this is known: that it is so far from the stack
 * pointer at entry, that it is a number less that pointer, that it is where the caller waits, which bits of a byte it
 * has. All else is not known (analyzer/values/execution/constant_arithmetic.py). What is not known decides nothing: a
 * condition, an address of a store or a target of which no number is known ends the run as not decided.
 *
 * Registers and temporaries have a slot each; who shares bytes with what is written is not known behind it. Memory is
 * bytes of two spaces, that of numbers as addresses and that of distances from the stack pointer; four bytes that hold
 * no number are a cell.
 */
#ifndef WP_RUN_H
#define WP_RUN_H

#include <stdbool.h>
#include <stdint.h>

enum { WP_RUN_ABI_VERSION = 3 };

/* Kinds of values. */
enum { WP_NUMBER, WP_STACK, WP_LESS_STACK, WP_LINK, WP_BITS, WP_UNKNOWN };

/* Operations: analyzer/loops/native_code.py has the same order. */
enum {
    WP_COPY, WP_ZEXT, WP_SEXT, WP_2COMP, WP_NEGATE, WP_BOOL_NEGATE, WP_POPCOUNT, WP_LZCOUNT, WP_ADD, WP_SUB, WP_MULT,
    WP_AND, WP_OR, WP_XOR, WP_BOOL_AND, WP_BOOL_OR, WP_BOOL_XOR, WP_LEFT, WP_RIGHT, WP_SRIGHT, WP_DIV, WP_DEFINED_DIV,
    WP_DEFINED_SDIV, WP_REM, WP_SDIV, WP_SREM, WP_EQUAL, WP_NOTEQUAL, WP_LESS, WP_LESSEQUAL, WP_SLESS, WP_SLESSEQUAL,
    WP_CARRY, WP_SCARRY, WP_SBORROW, WP_PIECE, WP_SUBPIECE, WP_SIGNED_SATURATE, WP_SIGNED_DOES_SATURATE,
    WP_UNSIGNED_SATURATE, WP_UNSIGNED_DOES_SATURATE, WP_FUNCTIONS,
    WP_FORGET = WP_FUNCTIONS, /* the result is not known */
    WP_PART,   /* the first operand, or, where it is not known, so many bytes of the second, shifted by `place` bits */
    WP_LOAD, WP_STORE,
    WP_SKIP,    /* goes on at operation `place` where the first operand is not 0 */
    WP_GO,      /* goes on at operation `place` */
    WP_JUMP, WP_CALL, WP_JUMP_IF, /* to address `place` */
    WP_JUMP_TO, WP_CALL_TO,       /* to the first operand; the second one is the state of the core, if it may change */
    WP_FALL, WP_STOP
};

enum { WP_FALLS, WP_JUMPS, WP_CALLS, WP_RETURNS, WP_EXITS }; /* how control goes from block to block */
enum { WP_ENDED, WP_NEEDS_BLOCK, WP_PAUSED, WP_UNDECIDED, WP_NO_ROOM };

struct wp_op {
    uint8_t code, from_bytes, to_bytes; /* of the first operand, of PIECE the last one, and of the result */
    int32_t out, first, second;         /* slots; -1: none */
    uint32_t place;                     /* an operation, an address, or of LOAD and STORE an access */
};

struct wp_code {
    uint32_t address, end_address;
    uint32_t instructions, operations;
    uint32_t first_line, last_line; /* that are fetched; first > last: none */
    uint8_t returns;                /* its last instruction may be a return */
    uint8_t is_told;                /* what its accesses are is told by the decoder, too */
};

struct wp_access_setup {
    uint32_t range; /* of the instruction's loads or stores */
    uint32_t row;   /* what it takes longer unaligned */
};

enum { WP_ROW = 36, WP_STACK_ROW = 32 };

/* What the accesses of an instruction have in common. */
struct wp_range {
    uint8_t state; /* 0: none yet, 1: as follows, 2: nothing */
    uint8_t on_stack;
    uint32_t size_bytes;
    int64_t low, high;
    uint64_t stride;
};

struct wp_run_cache_setup {
    uint32_t sets; /* 0: there is no such cache */
    uint32_t ways; /* of the set in which least-recently-used lines surely are */
    uint32_t line_bytes;
    uint8_t ages, write_back, write_allocate;
};

struct wp_region {
    uint32_t address, size_bytes;
    uint8_t is_data; /* it may be stored to */
};

struct wp_run_setup {
    struct wp_run_cache_setup code, data;
    const struct wp_region *regions; /* of the image */
    uint32_t region_count;
    uint32_t entry;
    uint32_t stack_pointer;
    uint8_t knows_stack_pointer, big_endian, is_thumb;
    uint8_t is_unaligned_charged;
    uint64_t single_cycles;
};

struct wp_run_counts {
    uint64_t decided; /* instructions */
    uint64_t waiting_cycles;
    uint64_t code_singles, data_singles;
    uint32_t address; /* of the block that is next */
    uint32_t ways;    /* how many there are to be read */
    uint32_t stack_reach;
    uint8_t is_told, tells_alignment, tells_stack_pointer, is_far, is_named_twice;
};

struct wp_run_way {
    uint32_t source, target, kind;
    uint64_t count;
};

#endif
