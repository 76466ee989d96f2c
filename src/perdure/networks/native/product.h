/* Matrix products in register tiles, each sum over k from the first to the last term.
 *
 * The right factor is packed into panels of PANEL neighbouring columns, so that a panel is read from its first
 * number to its last. A tile of up to ROWS rows goes along a panel; DEPTH rows of it at a time, which stay in the
 * first cache. The order of a sum depends on nothing but k: not on the rows around it, nor on the tile it falls into.
 */
#ifndef PERDURE_PRODUCT_H
#define PERDURE_PRODUCT_H

#include <stdlib.h>

#include "vectors.h"

#define DEPTH 256
#define CHUNK 192 /* rows whose sums are held at once, a multiple of ROWS */

INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

INLINE int64_t up_to(int64_t count, int64_t multiple) { return (count + multiple - 1) / multiple * multiple; }

/* Memory for `count` numbers at the start of a cache line, to be given back by `release`. */
static real *reserve(int64_t count) {
    char *raw = malloc((size_t)count * sizeof(real) + 128);
    if (raw == NULL) return NULL;
    char *start = (char *)(((uintptr_t)raw + 127) & ~(uintptr_t)63);
    memcpy(start - sizeof raw, &raw, sizeof raw);
    return (real *)start;
}

static void release(real *reserved) {
    if (reserved == NULL) return;
    char *raw;
    memcpy(&raw, (char *)reserved - sizeof raw, sizeof raw);
    free(raw);
}

/* Whether a tile's sums begin, or go on from those that are there. */
typedef enum { BEGIN, GO_ON } manner;

/* The left factor of a tile: number (row, k) is at row * row_stride + k * k_stride. */
typedef struct {
    const real *start;
    int64_t row_stride, k_stride;
} factors;

/* sums[r, :] (+)= sum over k of left[r, k] panel[k, :] for `rows` rows and `vectors` vectors, both constants, and
 * `added`, unless it is NULL. */
INLINE void tile(const int rows, const int vectors, int64_t depth, factors left, const real *panel, real *sums,
                 int64_t sums_stride, manner how, const real *added) {
    vector sum[ROWS][PANEL_VECTORS];
#pragma GCC unroll 12
    for (int row = 0; row < rows; row++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sum[row][v] = how == GO_ON ? load(sums + row * sums_stride + v * LANES) : (vector){0};
#pragma GCC unroll 4
    for (int64_t k = 0; k < depth; k++) {
        vector right[PANEL_VECTORS];
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) right[v] = load(panel + k * PANEL + v * LANES);
#pragma GCC unroll 12
        for (int row = 0; row < rows; row++) {
            const vector factor = spread(left.start[row * left.row_stride + k * left.k_stride]);
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++) sum[row][v] = multiply_add(factor, right[v], sum[row][v]);
        }
    }
#pragma GCC unroll 12
    for (int row = 0; row < rows; row++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            const vector done = added ? sum[row][v] + load(added + v * LANES) : sum[row][v];
            store(sums + row * sums_stride + v * LANES, done);
        }
}

/* The tile with as many rows and vectors as there are. */
static __attribute__((noinline)) void tile_of(int64_t rows, int64_t columns, int64_t depth, factors left, const real *panel, real *sums,
                    int64_t sums_stride, manner how, const real *added) {
#define CASE(n) \
    case n: \
        if (columns > LANES) \
            tile(n, 2, depth, left, panel, sums, sums_stride, how, added); \
        else \
            tile(n, 1, depth, left, panel, sums, sums_stride, how, added); \
        break;
    switch (rows) {
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
#if ROWS > 6
        CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)
#endif
    }
#undef CASE
}

/* How many rows the next tile takes: the last two share what is left, since narrow tiles wait for themselves. */
INLINE int64_t next_rows(int64_t left) {
    if (left <= ROWS) return left;
    return left < 2 * ROWS ? (left + 1) / 2 : ROWS;
}

/* All rows along one panel: sums[r, 0 : PANEL] = sum over k of left[r, k] panel[k, :], and what is added at the end. */
static __attribute__((noinline)) void rows_by_panel(int64_t rows, int64_t depth, const real *left, int64_t row_stride, const real *panel,
                          int64_t columns, real *sums, int64_t sums_stride, const real *added) {
    for (int64_t k = 0; k < depth; k += DEPTH) {
        const int64_t here = least(DEPTH, depth - k);
        for (int64_t row = 0, taken; row < rows; row += taken) {
            taken = next_rows(rows - row);
            const factors from = {left + row * row_stride + k, row_stride, 1};
            const real *along = panel + k * PANEL;
            real *to = sums + row * sums_stride;
            tile_of(taken, columns, here, from, along, to, sums_stride, k ? GO_ON : BEGIN,
                    k + here == depth ? added : NULL);
        }
    }
}

/* Numbers that the packed panels of a [depth, gates * units] factor take. */
INLINE int64_t panels_size(int64_t depth, int64_t gates, int64_t units) {
    return depth * gates * up_to(units, PANEL);
}

/* The panel of a block of units and a gate; the gates of a block lie side by side. */
INLINE real *panel_of(real *panels, int64_t depth, int64_t gates, int64_t unit, int64_t gate) {
    return panels + (unit / PANEL * gates + gate) * depth * PANEL;
}

/* One panel of the transpose: its column j is row j of `rows`; further columns are zero. */
INLINE void pack_panel(real *panel, const real *rows, int64_t depth, const int64_t columns) {
    for (int64_t k = 0; k < depth; k++, panel += PANEL) {
        for (int64_t column = 0; column < columns; column++) panel[column] = rows[column * depth + k];
        for (int64_t column = columns; column < PANEL; column++) panel[column] = 0;
    }
}

/* Panels of the transpose of weight [gates * units, depth]. */
static void pack_transposed(real *panels, const real *weight, int64_t depth, int64_t gates, int64_t units) {
    for (int64_t unit = 0; unit < units; unit += PANEL)
        for (int64_t gate = 0; gate < gates; gate++) {
            real *panel = panel_of(panels, depth, gates, unit, gate);
            const real *rows = weight + (gate * units + unit) * depth;
            if (unit + PANEL <= units)
                pack_panel(panel, rows, depth, PANEL);
            else
                pack_panel(panel, rows, depth, units - unit);
        }
}

/* `width` numbers, a constant: the first `columns` of them as they are, the others zero. No calls for a few numbers. */
INLINE void copy_row(real *to, const real *from, int64_t columns, const int64_t width) {
    if (columns >= width) {
        memcpy(to, from, (size_t)width * sizeof(real));
        return;
    }
    memset(to, 0, (size_t)width * sizeof(real));
#define SOME(count) \
    if (width > count && columns & count) memcpy(to, from, count * sizeof(real)), to += count, from += count;
    SOME(16) SOME(8) SOME(4) SOME(2) SOME(1)
#undef SOME
}

/* Panels of weight [depth, units] as it is. */
static void pack(real *panels, const real *weight, int64_t depth, int64_t units) {
    for (int64_t unit = 0; unit < units; unit += PANEL) {
        real *panel = panel_of(panels, depth, 1, unit, 0);
        const int64_t columns = least(PANEL, units - unit);
        for (int64_t k = 0; k < depth; k++) copy_row(panel + k * PANEL, weight + k * units + unit, columns, PANEL);
    }
}

#endif
