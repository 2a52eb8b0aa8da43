/* SPDX-License-Identifier: 0BSD */
/* Quick fit over pages after P02 section 2.4 (see README.md). The manual is quick_fit.h. */
#include "quick_fit.h"

#include "bit_search.h"

typedef struct quick_fit_page page_t;

_Static_assert(QUICK_FIT_PAGE_BYTES >= 256 && QUICK_FIT_PAGE_BYTES <= 4096
                   && (QUICK_FIT_PAGE_BYTES & (QUICK_FIT_PAGE_BYTES - 1)) == 0,
               "pages are a power of two");
_Static_assert(QUICK_FIT_MINIMUM_BLOCK == 8 || QUICK_FIT_MINIMUM_BLOCK == 16 || QUICK_FIT_MINIMUM_BLOCK == 32,
               "fragments are a power of two and hold their links");
_Static_assert(QUICK_FIT_MAX_FRAGMENT < (size_t)1 << QUICK_FIT_LISTS, "every size of fragments has its list");
_Static_assert(offsetof(page_t, free) == 0, "a link of the list of runs is a page header");

#define EMPTY(list) {&quick_fit_control.list, &quick_fit_control.list}

/* Before quick_fit_init no list holds anything, so that every malloc returns NULL without asking. */
struct quick_fit_control quick_fit_control = {
    .runs = {.free = {.runs = EMPTY(runs.free.runs)}},
    .rover = &quick_fit_control.runs,
    .lists =
        {
            EMPTY(lists[0]), EMPTY(lists[1]), EMPTY(lists[2]), EMPTY(lists[3]), EMPTY(lists[4]), EMPTY(lists[5]),
            EMPTY(lists[6]), EMPTY(lists[7]), EMPTY(lists[8]), EMPTY(lists[9]), EMPTY(lists[10]), EMPTY(lists[11]),
        },
};

_Static_assert(QUICK_FIT_LISTS == 12, "each list is initialised above");

/* ------------------------------------------------------------------------------------------------------------ pages */

static inline unsigned char *address_of(const page_t *page)
{
    return quick_fit_control.first_page + (size_t)(page - quick_fit_control.headers - 1) * QUICK_FIT_PAGE_BYTES;
}

/* Header of the page that holds the first byte of a block. */
static inline page_t *page_of(const void *block)
{
    size_t offset = (size_t)((const unsigned char *)block - quick_fit_control.first_page);
    return quick_fit_control.headers + 1 + offset / QUICK_FIT_PAGE_BYTES;
}

/* Both ends of a run know it: what lies behind asks the last page, all others ask the first. */
static inline void set_run(page_t *first, size_t pages, size_t kind)
{
    page_t *last = first + (pages - 1);

    first->count = pages;
    first->kind = kind;
    last->count = pages;
    last->kind = kind;
}

/* ------------------------------------------------------------------------------------------------------------- runs */

static inline void unlink_run(page_t *run)
{
    if (quick_fit_control.rover == run)
        quick_fit_control.rover = (page_t *)run->free.runs.next;
    dlist_unlink(&run->free.runs);
}

/* The last `pages` pages of the first run, from the rover on, that has as many; NULL if none has. */
static page_t *take_pages(size_t pages)
{
    page_t *run = quick_fit_control.rover;

    /* loop: next-fit */
    while (run->count < pages) {
        run = (page_t *)run->free.runs.next;
        if (run == quick_fit_control.rover)
            return NULL;
    }
    quick_fit_control.rover = run;
    size_t rest = run->count - pages;
    if (rest == 0)
        unlink_run(run);
    else
        set_run(run, rest, QUICK_FIT_FREE);
    return run + rest;
}

/* Makes pages in use a free run, one with the free runs beside it. Next fit comes to it last. */
static void release_pages(page_t *first, size_t pages)
{
    page_t *next = first + pages;

    if (next->kind == QUICK_FIT_FREE) {
        pages += next->count;
        unlink_run(next);
    }
    if (first[-1].kind == QUICK_FIT_FREE) {
        size_t before = first[-1].count;
        first -= before;
        pages += before;
        unlink_run(first);
    }
    set_run(first, pages, QUICK_FIT_FREE);
    dlist_insert_before(&quick_fit_control.rover->free.runs, &first->free.runs);
}

/* -------------------------------------------------------------------------------------------------------- fragments */

static inline unsigned ceiling_log2(uint32_t number)
{
    return floor_log2(number - 1) + 1;
}

/* Cuts a page into fragments of 2^log2 bytes, of which no other is free. All but the first, which is returned, are put
 * into the list, each before the one below it. NULL iff there is no page. */
static struct dlist *cut_page(unsigned log2)
{
    struct dlist *list = &quick_fit_control.lists[log2];
    size_t size = (size_t)1 << log2;
    page_t *page = take_pages(1);
    if (page == NULL)
        return NULL;

    unsigned char *start = address_of(page);
    /* loop: fragments */
    for (size_t offset = size; offset < QUICK_FIT_PAGE_BYTES; offset += size)
        dlist_insert_after(list, (struct dlist *)(void *)(start + offset));
    page->kind = log2;
    page->count = ((size_t)QUICK_FIT_PAGE_BYTES >> log2) - 1;
    page->free.first = list->next;
    return (void *)start;
}

static void *take_fragment(unsigned log2)
{
    struct dlist *list = &quick_fit_control.lists[log2];
    if (dlist_is_empty(list))
        return cut_page(log2);

    struct dlist *fragment = list->next;
    page_t *page = page_of(fragment);
    dlist_unlink(fragment);
    if (--page->count != 0)
        page->free.first = list->next;
    return fragment;
}

/* The last used fragment of a page is freed: all others leave their list, where they stand in a row, and the page is
 * free. */
static void dissolve(page_t *page)
{
    struct dlist *before = page->free.first->prev;
    struct dlist *behind = page->free.first;

    /* loop: fragments */
    for (size_t left = page->count; left > 0; left--)
        behind = behind->next;
    dlist_join(before, behind);
    release_pages(page, 1);
}

/* Puts a fragment behind the page's first free one, or first into the list if the page has none. */
static inline void put_fragment(page_t *page, struct dlist *fragment)
{
    if (page->count++ != 0) {
        dlist_insert_after(page->free.first, fragment);
    } else {
        page->free.first = fragment;
        dlist_insert_after(&quick_fit_control.lists[page->kind], fragment);
    }
}

/* ------------------------------------------------------------------------------------------------------- operations */

int quick_fit_init(void *arena, size_t bytes)
{
    if (arena == NULL || (((uintptr_t)arena | bytes) & (QUICK_FIT_ALIGNMENT - 1)) != 0)
        return -1;
    size_t skipped = -(uintptr_t)arena & (sizeof(page_t) - 1); /* up to the first place for a header */
    if (bytes < QUICK_FIT_MIN_HEAP + skipped || bytes > QUICK_FIT_MAX_HEAP)
        return -1;

    page_t *headers = (void *)((unsigned char *)arena + skipped);
    /* In 32 bits and by a constant: a multiplication on every target. */
    size_t pages = (uint32_t)(bytes - skipped - 2 * sizeof(page_t)) / (uint32_t)(QUICK_FIT_PAGE_BYTES + sizeof(page_t));
    quick_fit_control.headers = headers;
    quick_fit_control.pages = pages;
    quick_fit_control.first_page = (unsigned char *)arena + bytes - pages * QUICK_FIT_PAGE_BYTES;
    for (unsigned log2 = 0; log2 < QUICK_FIT_LISTS; log2++)
        dlist_init(&quick_fit_control.lists[log2]);
    dlist_init(&quick_fit_control.runs.free.runs);
    quick_fit_control.runs.count = 0;
    quick_fit_control.rover = &quick_fit_control.runs;
    set_run(headers, 1, QUICK_FIT_USED);
    set_run(headers + pages + 1, 1, QUICK_FIT_USED);
    release_pages(headers + 1, pages);
    return 0;
}

void *quick_fit_malloc(size_t bytes)
{
    if (bytes - 1 >= QUICK_FIT_MAX_HEAP) /* 0 wraps around to SIZE_MAX */
        return NULL;
    if (bytes <= QUICK_FIT_MIN_FRAGMENT)
        return take_fragment(ceiling_log2((uint32_t)QUICK_FIT_MIN_FRAGMENT));
    if (bytes <= QUICK_FIT_MAX_FRAGMENT)
        return take_fragment(ceiling_log2((uint32_t)bytes));

    size_t pages = (bytes + QUICK_FIT_PAGE_BYTES - 1) / QUICK_FIT_PAGE_BYTES;
    page_t *run = take_pages(pages);
    if (run == NULL)
        return NULL;
    set_run(run, pages, QUICK_FIT_USED);
    return address_of(run);
}

void quick_fit_free(void *payload)
{
    if (payload == NULL)
        return;

    page_t *page = page_of(payload);
    if (page->kind == QUICK_FIT_USED) {
        release_pages(page, page->count);
    } else if (page->count + 1 == (size_t)QUICK_FIT_PAGE_BYTES >> page->kind) {
        dissolve(page);
    } else {
        put_fragment(page, payload);
    }
}
