/* SPDX-License-Identifier: 0BSD */
/*
 * Doubly-linked circular lists. The head of a list is a node itself, so that no link is ever NULL: inserting and
 * unlinking neither test nor branch, and cost the same at the head, in the middle and at the tail.
 */
#ifndef DLIST_H
#define DLIST_H

struct dlist {
    struct dlist *next; /* of the head: the first node, or the head itself if the list is empty */
    struct dlist *prev; /* of the head: the last node, or the head itself if the list is empty */
};

static inline void dlist_init(struct dlist *head)
{
    head->next = head;
    head->prev = head;
}

static inline int dlist_is_empty(const struct dlist *head)
{
    return head->next == head;
}

/* After the head, a node becomes the first of its list. */
static inline void dlist_insert_after(struct dlist *place, struct dlist *node)
{
    node->next = place->next;
    node->prev = place;
    place->next->prev = node;
    place->next = node;
}

/* Before the head, a node becomes the last of its list. */
static inline void dlist_insert_before(struct dlist *place, struct dlist *node)
{
    node->next = place;
    node->prev = place->prev;
    place->prev->next = node;
    place->prev = node;
}

/* Makes two nodes neighbours. */
static inline void dlist_join(struct dlist *prev, struct dlist *next)
{
    prev->next = next;
    next->prev = prev;
}

static inline void dlist_unlink(struct dlist *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
}

#endif
