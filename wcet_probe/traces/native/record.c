/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Records the heap operations of a program: loaded before the C library (LD_PRELOAD), it passes each call on and writes
 * what was asked and answered to the file named by WCET_PROBE_RECORD.
 *
 * Order: each record carries a number of one counter for all threads. A release takes its number before the block is
 * given back, an allocation after it was got, so that in order of numbers no block is given out while it is held. A
 * realloc is both, and so two records.
 *
 * Cost: an atomic increment and a store into the thread's own buffer; a full buffer is written by one call. The buffers
 * come from the kernel, never from the heap that is recorded, and stay until the process ends, when all are written and
 * a last record says so. What a forked child does is not recorded. A program that takes the place of this one, as behind a
 * shell script that ends in exec, begins the recording anew: its heap is another.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define WP_EXPORT __attribute__((visibility("default")))

enum wp_kind { WP_MALLOC = 1, WP_FREE, WP_CALLOC, WP_MEMALIGN, WP_REALLOC_OLD, WP_REALLOC_NEW, WP_END };
enum { WP_RECORDS = 4096, WP_BOOT_BYTES = 1 << 16, WP_BOOT_ALIGNMENT = 16 };

struct wp_record {
    uint64_t number, time_ns, address, size_bytes;
    uint32_t alignment_bytes, thread;
    uint32_t kind, unused;
};

struct wp_buffer {
    struct wp_buffer *next;
    uint32_t thread;
    atomic_uint count;
    struct wp_record records[WP_RECORDS];
};

static void *(*real_malloc)(size_t);
static void (*real_free)(void *);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void *(*real_memalign)(size_t, size_t);

static int file = -1;
static atomic_ullong next_number = 1;
static atomic_uint next_thread = 1;
static _Atomic(struct wp_buffer *) buffers;
static struct timespec start;
static atomic_bool failed;
static _Thread_local struct wp_buffer *mine;
static _Thread_local bool inside; /* a call from within this file, or from what it calls */

/* What the dynamic linker asks for while the real functions are looked up. */
static _Alignas(16) unsigned char boot[WP_BOOT_BYTES];
static size_t boot_used;

static bool is_boot(const void *block)
{
    const unsigned char *const at = block;
    return at >= boot && at < boot + WP_BOOT_BYTES;
}

static void *boot_malloc(size_t bytes)
{
    const size_t rounded = (bytes + WP_BOOT_ALIGNMENT - 1) & ~(size_t)(WP_BOOT_ALIGNMENT - 1);
    if (rounded < bytes || rounded > WP_BOOT_BYTES - boot_used)
        return NULL;
    boot_used += rounded;
    return boot + boot_used - rounded;
}

static void write_whole(const void *from, size_t bytes)
{
    const unsigned char *at = from;
    while (bytes && !atomic_load(&failed)) {
        const ssize_t written = write(file, at, bytes);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            atomic_store(&failed, true);
            return;
        }
        at += written;
        bytes -= (size_t)written;
    }
}

static void flush(struct wp_buffer *buffer)
{
    const unsigned count = atomic_exchange(&buffer->count, 0);
    write_whole(buffer->records, count * sizeof *buffer->records);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)(now.tv_sec - start.tv_sec) * 1000000000u + (uint64_t)now.tv_nsec - (uint64_t)start.tv_nsec;
}

static struct wp_buffer *own_buffer(void)
{
    if (mine)
        return mine;
    struct wp_buffer *const buffer =
        mmap(NULL, sizeof *buffer, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer == MAP_FAILED) {
        atomic_store(&failed, true);
        return NULL;
    }
    buffer->thread = atomic_fetch_add(&next_thread, 1);
    buffer->next = atomic_load(&buffers);
    while (!atomic_compare_exchange_weak(&buffers, &buffer->next, buffer))
        ;
    return mine = buffer;
}

static uint64_t take_number(void) { return atomic_fetch_add(&next_number, 1); }

static void record(uint64_t number, enum wp_kind kind, const void *address, size_t size_bytes, size_t alignment_bytes)
{
    if (file < 0 || atomic_load_explicit(&failed, memory_order_relaxed))
        return;
    const int error = errno; /* the caller's, whatever happens here */
    struct wp_buffer *const buffer = own_buffer();
    if (!buffer)
        return;
    unsigned count = atomic_load_explicit(&buffer->count, memory_order_relaxed);
    if (count == WP_RECORDS) {
        flush(buffer);
        count = 0;
    }
    buffer->records[count] = (struct wp_record){
        .number = number,
        .time_ns = now_ns(),
        .address = (uintptr_t)address,
        .size_bytes = size_bytes,
        .alignment_bytes = (uint32_t)alignment_bytes,
        .thread = buffer->thread,
        .kind = kind,
    };
    atomic_store_explicit(&buffer->count, count + 1, memory_order_release);
    errno = error;
}

static void forget_in_child(void)
{
    if (file >= 0)
        close(file);
    file = -1;
}

static void look_up(void)
{
    static atomic_bool done;
    if (atomic_load(&done))
        return;
    inside = true;
    real_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    real_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    real_calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
    real_realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
    real_memalign = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "memalign");
    atomic_store(&done, real_malloc && real_free && real_calloc && real_realloc && real_memalign);
    inside = false;
}

__attribute__((constructor)) static void begin(void)
{
    look_up();
    inside = true;
    const char *const name = getenv("WCET_PROBE_RECORD"), *const owner = getenv("WCET_PROBE_RECORDED_PROCESS");
    char own[24];
    snprintf(own, sizeof own, "%ld", (long)getpid());
    clock_gettime(CLOCK_MONOTONIC, &start);
    if (name && (!owner || !strcmp(owner, own))) {
        setenv("WCET_PROBE_RECORDED_PROCESS", own, 1);
        file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        pthread_atfork(NULL, NULL, forget_in_child);
    }
    inside = false;
}

__attribute__((destructor)) static void end(void)
{
    if (file < 0)
        return;
    inside = true;
    record(take_number(), WP_END, NULL, 0, 0);
    for (struct wp_buffer *buffer = atomic_load(&buffers); buffer; buffer = buffer->next)
        flush(buffer);
    file = -1;
}

WP_EXPORT void *malloc(size_t bytes)
{
    if (!real_malloc && !inside)
        look_up();
    if (!real_malloc)
        return boot_malloc(bytes);
    void *const block = real_malloc(bytes);
    if (block && !inside)
        record(take_number(), WP_MALLOC, block, bytes, 0);
    return block;
}

WP_EXPORT void free(void *block)
{
    if (!block || is_boot(block))
        return;
    if (!real_free && !inside)
        look_up();
    if (!inside)
        record(take_number(), WP_FREE, block, 0, 0);
    if (real_free)
        real_free(block);
}

WP_EXPORT void *calloc(size_t count, size_t bytes)
{
    if (!real_calloc && !inside)
        look_up();
    if (!real_calloc)
        return bytes && count > WP_BOOT_BYTES / bytes ? NULL : boot_malloc(count * bytes); /* zero from the start */
    void *const block = real_calloc(count, bytes);
    if (block && !inside)
        record(take_number(), WP_CALLOC, block, count * bytes, 0);
    return block;
}

WP_EXPORT void *realloc(void *old, size_t bytes)
{
    if (!real_realloc && !inside)
        look_up();
    if (is_boot(old)) {
        void *const moved = malloc(bytes);
        if (moved) {
            const size_t left = (size_t)(boot + WP_BOOT_BYTES - (unsigned char *)old);
            memcpy(moved, old, bytes < left ? bytes : left);
        }
        return moved;
    }
    if (!old)
        return malloc(bytes);
    const uint64_t before = inside ? 0 : take_number();
    void *const block = real_realloc(old, bytes);
    if (!inside && (block || !bytes)) { /* refused: the old block stays */
        record(before, WP_REALLOC_OLD, old, 0, 0);
        record(take_number(), WP_REALLOC_NEW, block, bytes, 0);
    }
    return block;
}

static void *aligned(size_t alignment, size_t bytes)
{
    if (!real_memalign && !inside)
        look_up();
    void *const block = real_memalign ? real_memalign(alignment, bytes) : NULL;
    if (block && !inside)
        record(take_number(), WP_MEMALIGN, block, bytes, alignment);
    return block;
}

WP_EXPORT void *memalign(size_t alignment, size_t bytes) { return aligned(alignment, bytes); }

WP_EXPORT void *aligned_alloc(size_t alignment, size_t bytes) { return aligned(alignment, bytes); }

WP_EXPORT void *valloc(size_t bytes) { return aligned((size_t)sysconf(_SC_PAGESIZE), bytes); }

WP_EXPORT int posix_memalign(void **result, size_t alignment, size_t bytes)
{
    if (!alignment || alignment % sizeof(void *) || (alignment & (alignment - 1)))
        return EINVAL;
    void *const block = aligned(alignment, bytes);
    if (!block)
        return ENOMEM;
    *result = block;
    return 0;
}
