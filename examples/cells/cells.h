/* SPDX-License-Identifier: 0BSD */
/* Cells of one size. Which of them are free is a bit map in static data, so that no operation touches a cell. */
#ifndef CELLS_H
#define CELLS_H

#include <stddef.h>

#define CELLS_COUNT 64u
#define CELLS_BYTES 64u

/* Takes the first CELLS_COUNT cells of `arena`, which is aligned to 8 bytes. 0, or -1 where it is too small. */
int cells_init(void *arena, size_t bytes);

/* A cell; NULL where none is free, or `bytes` is 0 or more than a cell has. */
void *cells_malloc(size_t bytes);

/* Gives back a cell, or NULL. */
void cells_free(void *cell);

/* 0 where the words of static data are as cells_init left them, the bit map apart. */
int cells_check(void);

#endif
