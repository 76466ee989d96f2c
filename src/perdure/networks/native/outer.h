/* Sums of outer products, left_s right_s^T over rows s: gradients of weights, whole or sample by sample.
 *
 * Both factors are packed: the left into slices of ROWS columns, the right into panels of PANEL columns, each with
 * its rows s one after the other. A tile of the result is then one pass over a slice and a panel.
 */
#ifndef PERDURE_OUTER_H
#define PERDURE_OUTER_H

#include "product.h"
#include "schedule.h"

#define GROUP 16          /* samples whose packed rows are held at once, at most, */
#define GROUP_SIZE 262144 /* and numbers of those */
#define BLOCK 120         /* rows of the result that are worked on at once, so that they stay in the second cache */

/* Rows between the starts of two slices: an odd number, since the starts would else share a few lines of the cache. */
INLINE int64_t apart(int64_t depth) { return depth | 1; }

/* Row number `row` of `depth` in slices of `width` columns, the last filled up with zeros. */
INLINE void pack_row(real *to, const real *from, int64_t columns, const int64_t width, int64_t row, int64_t depth) {
    int64_t column = 0;
    to += row * width;
    for (; column + width <= columns; column += width)
        memcpy(to + column * apart(depth), from + column, (size_t)width * sizeof(real));
    if (column == columns) return;
    real *last = to + column * apart(depth);
    memset(last, 0, (size_t)width * sizeof(real));
    memcpy(last, from + column, (size_t)(columns - column) * sizeof(real));
}

/* All tiles [tall, wide] of one sum over `depth` packed rows; tiles lie one after the other in `sums`. */
static void tiles(int64_t tall, int64_t wide, int64_t depth, const real *left, const real *right, real *sums,
                  manner how) {
    for (int64_t column = 0; column < wide; column += PANEL)
        for (int64_t row = 0; row < tall; row += ROWS) {
            const factors slice = {left + row * apart(depth), 1, ROWS};
            const real *panel = right + column * apart(depth);
            tile_of(least(ROWS, tall - row), wide - column, depth, slice, panel, sums, PANEL, how);
            sums += ROWS * PANEL;
        }
}

INLINE int64_t tiles_size(int64_t tall, int64_t wide) { return up_to(tall, ROWS) * up_to(wide, PANEL); }

/* out = sum over the linked rows of a sweep of left[row] right[row before]^T, [tall, wide] at the given strides; if
 * `swapped`, of left[row before] right[row]^T. */
static int outer_sum(int64_t steps, const int64_t *sizes, const int64_t *moves, int64_t tall, int64_t wide,
                     const real *left, const real *right, real *out, int64_t row_stride, int64_t column_stride,
                     int swapped) {
    move *plan = schedule(steps, sizes, moves);
    const int64_t left_size = up_to(up_to(tall, ROWS) * apart(DEPTH), PANEL);
    real *sums = reserve(tiles_size(tall, wide) + left_size + up_to(wide, PANEL) * apart(DEPTH));
    const int ready = plan && sums;
    real *left_rows = sums + tiles_size(tall, wide), *right_rows = left_rows + left_size;
    int begun = 0;
    int64_t from = 0, left_at[DEPTH], right_at[DEPTH], rows = 0;
    for (int64_t n = 0; ready && n < steps; n++) rows += plan[n].carried;
    const int64_t rounds = (rows + DEPTH - 1) / DEPTH, deepest = rounds ? (rows + rounds - 1) / rounds : 0;
    for (int64_t n = 0; ready && n < steps;) {
        int64_t depth = 0;
        while (n < steps && (depth < deepest || plan[n].carried == 0)) {
            const move m = plan[n];
            for (; from < m.carried && depth < deepest; from++, depth++) {
                left_at[depth] = ((swapped ? m.before : m.first) + from) * tall;
                right_at[depth] = ((swapped ? m.first : m.before) + from) * wide;
            }
            if (from >= m.carried) n++, from = 0;
        }
        if (depth == 0) break;
        for (int64_t k = 0; k < depth; k++) {
            pack_row(left_rows, left + left_at[k], tall, ROWS, k, depth);
            pack_row(right_rows, right + right_at[k], wide, PANEL, k, depth);
        }
        tiles(tall, wide, depth, left_rows, right_rows, sums, begun ? GO_ON : BEGIN);
        begun = 1;
    }
    const real *sum = sums;
    for (int64_t column = 0; ready && column < wide; column += PANEL)
        for (int64_t row = 0; row < tall; row += ROWS, sum += ROWS * PANEL)
            for (int64_t r = 0; r < least(ROWS, tall - row); r++)
                for (int64_t c = 0; c < least(PANEL, wide - column); c++)
                    out[(row + r) * row_stride + (column + c) * column_stride] = begun ? sum[r * PANEL + c] : 0;
    release(sums);
    free(plan);
    return ready;
}

/* Packed samples, one after the other. */
typedef struct {
    int64_t count;
    const int64_t *lengths;
    int64_t distance;
} samples;

/* sums[r, :] += sum over samples of (sum over k of left[r, k] right[k, :])^2, for the
 * columns from `row` of the left factor. */
INLINE void tile_of_squares(const int vectors, samples these, const real *left, int64_t row, const real *right,
                            int64_t column, real *sums) {
    vector total[ROWS][PANEL_VECTORS];
#pragma GCC unroll 12
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) total[r][v] = load(sums + r * PANEL + v * LANES);
    for (int64_t n = 0; n < these.count; n++) {
        const int64_t depth = these.lengths[n];
        const real *slice = left + n * these.distance + row * apart(depth);
        const real *panel = right + n * these.distance + column * apart(depth);
        vector sum[ROWS][PANEL_VECTORS];
#pragma GCC unroll 12
        for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++) sum[r][v] = (vector){0};
        for (int64_t k = 0; k < depth; k++, slice += ROWS, panel += PANEL) {
#pragma GCC unroll 12
            for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 2
                for (int v = 0; v < vectors; v++)
                    sum[r][v] = multiply_add(spread(slice[r]), load(panel + v * LANES), sum[r][v]);
        }
#pragma GCC unroll 12
        for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++) total[r][v] = multiply_add(sum[r][v], sum[r][v], total[r][v]);
    }
#pragma GCC unroll 12
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) store(sums + r * PANEL + v * LANES, total[r][v]);
}

/* Add the squares of each sample's gradients, of a weight [tall, wide] and a bias [tall], to totals of double precision.
 *
 * A sample is one row of each step, at the same place in all of them; rows per step never grow. Rows that begin from
 * the zero state count like any other.
 */
static int outer_squares(int64_t steps, const int64_t *sizes, int64_t tall, int64_t wide, const real *left,
                         const real *right, double *weight_total, double *bias_total) {
    const int64_t left_width = up_to(up_to(tall, ROWS), PANEL), right_width = up_to(wide, PANEL);
    const int64_t per_sample = apart(steps) * (left_width + right_width), count = sizes[0];
    int64_t group = GROUP_SIZE / per_sample;
    group = least(group < 1 ? 1 : group, least(GROUP, count));
    real *sums = reserve(tiles_size(tall, wide) + group * per_sample + tall), *packed = sums + tiles_size(tall, wide);
    if (sums == NULL) return 0;
    real *bias = packed + group * per_sample;
    memset(sums, 0, (size_t)tiles_size(tall, wide) * sizeof(real));
    int64_t lengths[GROUP];
    for (int64_t first = 0; first < count; first += group) {
        const int64_t here = least(group, count - first);
        for (int64_t n = 0; n < here; n++) {
            int64_t length = steps;
            while (sizes[length - 1] <= first + n) length--;
            lengths[n] = length;
            memset(bias, 0, (size_t)tall * sizeof(real));
            for (int64_t step = 0, row = first + n; step < length; row += sizes[step++]) {
                const real *of_row = left + row * tall;
                pack_row(packed + n * per_sample, of_row, tall, ROWS, step, length);
                pack_row(packed + n * per_sample + apart(steps) * left_width, right + row * wide, wide, PANEL, step, length);
                for (int64_t unit = 0; unit < tall; unit++) bias[unit] += of_row[unit];
            }
            for (int64_t unit = 0; unit < tall; unit++) bias_total[unit] += (double)bias[unit] * (double)bias[unit];
        }
        const samples these = {here, lengths, per_sample};
        const real *panels = packed + apart(steps) * left_width;
        for (int64_t block = 0; block < tall; block += BLOCK)
            for (int64_t column = 0; column < wide; column += PANEL)
                for (int64_t row = block; row < least(block + BLOCK, tall); row += ROWS) {
                    real *sum = sums + row * right_width + column * ROWS;
                    if (wide - column > LANES)
                        tile_of_squares(2, these, packed, row, panels, column, sum);
                    else
                        tile_of_squares(1, these, packed, row, panels, column, sum);
                }
    }
    for (int64_t row = 0; row < tall; row++) {
        const real *sum = sums + row / ROWS * ROWS * right_width + row % ROWS * PANEL;
        for (int64_t column = 0; column < wide; column += PANEL, sum += ROWS * PANEL)
            for (int64_t c = 0; c < least(PANEL, wide - column); c++)
                weight_total[row * wide + column + c] += (double)sum[c];
    }
    release(sums);
    return 1;
}

#endif
