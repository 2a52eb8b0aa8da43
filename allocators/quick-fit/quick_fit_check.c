/* SPDX-License-Identifier: 0BSD */
/* The invariants of the heap. Shares the layout with quick_fit.c and no code. */
#include "quick_fit.h"

/* What the headers say: free runs and free fragments of each size; the lists must hold as many. */
struct census {
    size_t runs;
    uintptr_t run_sum;
    size_t fragments[QUICK_FIT_LISTS];
};

static size_t fragments_of(size_t kind)
{
    return (size_t)QUICK_FIT_PAGE_BYTES >> kind;
}

static int is_fragment_kind(size_t kind)
{
    return kind < QUICK_FIT_LISTS && (size_t)1 << kind >= QUICK_FIT_MIN_FRAGMENT
           && (size_t)1 << kind <= QUICK_FIT_MAX_FRAGMENT;
}

static int is_guard(const struct quick_fit_page *page)
{
    return page->kind == QUICK_FIT_USED && page->count == 1;
}

static int check_cut_page(const struct quick_fit_page *page, struct census *census)
{
    if (!is_fragment_kind(page->kind))
        return QUICK_FIT_BAD_KIND;
    if (page->count >= fragments_of(page->kind))
        return QUICK_FIT_BAD_FREE_COUNT;
    census->fragments[page->kind] += page->count;
    return QUICK_FIT_HEAP_SOUND;
}

/* `left` is the number of pages from this one on. */
static int check_run(const struct quick_fit_page *run, size_t left, struct census *census)
{
    if (run->count == 0 || run->count > left)
        return QUICK_FIT_BAD_RUN_LENGTH;
    if (run[run->count - 1].count != run->count || run[run->count - 1].kind != run->kind)
        return QUICK_FIT_BAD_RUN_END;
    if (run->kind == QUICK_FIT_USED)
        return QUICK_FIT_HEAP_SOUND;
    census->runs++;
    census->run_sum += (uintptr_t)run;
    return run[-1].kind == QUICK_FIT_FREE ? QUICK_FIT_BAD_ADJACENT : QUICK_FIT_HEAP_SOUND;
}

/* Ends because the page number grows with every step. */
static int check_pages(struct census *census)
{
    const struct quick_fit_page *headers = quick_fit_control.headers;
    const size_t pages = quick_fit_control.pages;

    if (!is_guard(&headers[0]) || !is_guard(&headers[pages + 1]))
        return QUICK_FIT_BAD_GUARD;
    for (size_t at = 1; at <= pages;) {
        const int is_run = headers[at].kind == QUICK_FIT_FREE || headers[at].kind == QUICK_FIT_USED;
        const int violation =
            is_run ? check_run(&headers[at], pages + 1 - at, census) : check_cut_page(&headers[at], census);
        if (violation != QUICK_FIT_HEAP_SOUND)
            return violation;
        at += is_run ? headers[at].count : 1;
    }
    return QUICK_FIT_HEAP_SOUND;
}

static int may_be_run(const struct quick_fit_page *page)
{
    const uintptr_t offset = (uintptr_t)page - (uintptr_t)&quick_fit_control.headers[1];

    return offset % sizeof *page == 0 && offset / sizeof *page < quick_fit_control.pages && page->kind == QUICK_FIT_FREE
           && page->count != 0;
}

/* Ends because a page cannot have two pages before it, nor the head another one than the last. */
static int check_run_list(const struct census *census)
{
    const struct quick_fit_page *const head = &quick_fit_control.runs;
    const struct quick_fit_page *before = head;
    size_t count = 0;
    uintptr_t sum = 0;
    int rover_seen = quick_fit_control.rover == head;

    if (head->count != 0)
        return QUICK_FIT_BAD_RUN_LIST;
    for (;;) {
        const struct quick_fit_page *run = (const void *)before->free.runs.next;
        if (run != head && !may_be_run(run))
            return QUICK_FIT_BAD_RUN_LINK;
        if (run->free.runs.prev != &before->free.runs)
            return QUICK_FIT_BAD_RUN_LINK;
        if (run == head)
            break;
        rover_seen |= run == quick_fit_control.rover;
        count++;
        sum += (uintptr_t)run;
        before = run;
    }
    if (count != census->runs || sum != census->run_sum)
        return QUICK_FIT_BAD_RUN_LIST;
    return rover_seen ? QUICK_FIT_HEAP_SOUND : QUICK_FIT_BAD_ROVER;
}

static int may_be_fragment(const struct dlist *fragment, size_t kind)
{
    const uintptr_t offset = (uintptr_t)fragment - (uintptr_t)quick_fit_control.first_page;
    const size_t page = offset / QUICK_FIT_PAGE_BYTES;

    return page < quick_fit_control.pages && offset % ((uintptr_t)1 << kind) == 0
           && quick_fit_control.headers[page + 1].kind == kind;
}

/* Header of the page that holds a fragment. */
static const struct quick_fit_page *page_of(const struct dlist *fragment)
{
    const uintptr_t offset = (uintptr_t)fragment - (uintptr_t)quick_fit_control.first_page;

    return &quick_fit_control.headers[offset / QUICK_FIT_PAGE_BYTES + 1];
}

/* Ends because every step is answered by the step back: see check_run_list. */
static int check_fragments(size_t kind, size_t expected)
{
    const struct dlist *const head = &quick_fit_control.lists[kind];
    const struct dlist *before = head;
    size_t count = 0;
    size_t left = 0; /* fragments to come of the page under way */

    for (;;) {
        const struct dlist *fragment = before->next;
        if (fragment != head && !may_be_fragment(fragment, kind))
            return QUICK_FIT_BAD_FRAGMENT;
        if (fragment->prev != before)
            return QUICK_FIT_BAD_LIST_LINK;
        if (left != 0 && (fragment == head || page_of(fragment) != page_of(before)))
            return QUICK_FIT_BAD_LIST_ROW;
        if (fragment == head)
            return count == expected ? QUICK_FIT_HEAP_SOUND : QUICK_FIT_BAD_LIST_COUNT;
        if (left == 0) {
            left = page_of(fragment)->count;
            if (left == 0 || page_of(fragment)->free.first != fragment)
                return QUICK_FIT_BAD_LIST_ROW;
        }
        left--;
        count++;
        before = fragment;
    }
}

int quick_fit_check(void)
{
    struct census census;

    if (quick_fit_control.headers == NULL)
        return QUICK_FIT_NO_HEAP;
    census.runs = 0;
    census.run_sum = 0;
    for (size_t kind = 0; kind < QUICK_FIT_LISTS; kind++)
        *(volatile size_t *)&census.fragments[kind] = 0; /* volatile, or the loop becomes a call of memset */
    int violation = check_pages(&census);
    if (violation == QUICK_FIT_HEAP_SOUND)
        violation = check_run_list(&census);
    for (size_t kind = 0; kind < QUICK_FIT_LISTS && violation == QUICK_FIT_HEAP_SOUND; kind++)
        violation = check_fragments(kind, census.fragments[kind]);
    return violation;
}
