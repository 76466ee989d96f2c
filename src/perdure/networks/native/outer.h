/* Sums of outer products, left_s right_s^T over rows s: gradients of weights, whole or sample by sample.
 *
 * Both factors are packed: the left into slices of ROWS columns, the right into panels of PANEL columns, each with
 * its rows s one after the other. A tile of the result is then one pass over a slice and a panel.
 */
#ifndef PERDURE_OUTER_H
#define PERDURE_OUTER_H

#include "product.h"
#include "schedule.h"

/* Rows between the starts of two slices: an odd number, since the starts would else share a few lines of the cache. */
INLINE int64_t apart(int64_t depth) { return depth | 1; }

/* Row number `row` of `depth` in slices of `width` columns, the last filled up with zeros. */
INLINE void pack_row(real *to, const real *from, int64_t columns, const int64_t width, int64_t row, int64_t depth) {
    to += row * width;
    for (int64_t column = 0; column < columns; column += width, to += width * apart(depth))
        copy_row(to, from + column, columns - column, width);
}

INLINE int64_t tiles_size(int64_t tall, int64_t wide) { return up_to(tall, ROWS) * up_to(wide, PANEL); }

/* All tiles [tall, wide] of one sum over `depth` packed rows without the first `skipped`; tiles lie one after the other
 * in `sums`. */
static void tiles(int64_t tall, int64_t wide, int64_t depth, int64_t skipped, const real *left, const real *right,
                  real *sums, manner how) {
    for (int64_t column = 0; column < wide; column += PANEL)
        for (int64_t row = 0; row < tall; row += ROWS) {
            const factors slice = {left + row * apart(depth) + skipped * ROWS, 1, ROWS};
            const real *panel = right + column * apart(depth) + skipped * PANEL;
            tile_of(least(ROWS, tall - row), wide - column, depth - skipped, slice, panel, sums, PANEL, how, NULL);
            sums += ROWS * PANEL;
        }
}

/* out [wide, tall] = the transpose of the tiles. */
static void transpose_tiles(int64_t tall, int64_t wide, const real *sums, real *out) {
    for (int64_t column = 0; column < wide; column += PANEL, sums += up_to(tall, ROWS) * PANEL)
        for (int64_t c = 0; c < least(PANEL, wide - column); c++, out += tall)
            for (int64_t row = 0; row < tall; row += ROWS)
                for (int64_t r = 0; r < least(ROWS, tall - row); r++) out[row + r] = sums[row * PANEL + r * PANEL + c];
}

/* total += the sum of rows of `width` numbers, which begin at the given places. */
static void add_rows(real *total, real *sum, const real *rows, const int64_t *at, int64_t count, int64_t width) {
    memcpy(sum, rows + at[0], (size_t)width * sizeof(real));
    for (int64_t k = 1; k < count; k++)
        for (int64_t column = 0; column < width; column++) sum[column] += rows[at[k] + column];
    for (int64_t column = 0; column < width; column++) total[column] += sum[column];
}

/* out = sum over the linked rows of a sweep of left[row] right[row before]^T, [tall, wide] at the given strides; if
 * `swapped`, of left[row before] right[row]^T. `bias`, if not NULL, gets the sum of left[row], or right[row]. */
static int outer_sum(int64_t steps, const int64_t *sizes, int64_t direction, int64_t tall, int64_t wide,
                     const real *left, const real *right, real *out, int64_t row_stride, int64_t column_stride,
                     int swapped, real *bias) {
    move *plan = schedule(steps, sizes, direction);
    const int64_t left_size = up_to(up_to(tall, ROWS) * apart(DEPTH), PANEL);
    const int64_t right_size = up_to(wide, PANEL) * apart(DEPTH), bias_width = swapped ? wide : tall;
    real *sums = reserve(tiles_size(tall, wide) + left_size + right_size + bias_width);
    const int ready = plan && sums;
    real *left_rows = sums + tiles_size(tall, wide), *right_rows = left_rows + left_size;
    real *bias_sum = right_rows + right_size;
    if (bias) memset(bias, 0, (size_t)bias_width * sizeof(real));
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
        if (bias) add_rows(bias, bias_sum, swapped ? right : left, swapped ? right_at : left_at, depth, bias_width);
        tiles(tall, wide, depth, 0, left_rows, right_rows, sums, begun ? GO_ON : BEGIN);
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

/* Rows of a sweep and those they go on from: first all that begin from the zero state, then the others. */
typedef struct {
    int64_t count, fresh;
    int64_t *here, *before;
} links;

static links link_rows(int64_t steps, const int64_t *sizes, int64_t direction) {
    links result = {0};
    move *plan = schedule(steps, sizes, direction);
    int64_t rows = 0;
    for (int64_t step = 0; step < steps; step++) rows += sizes[step];
    int64_t *here = malloc(2 * (size_t)rows * sizeof *here);
    if (plan && here) {
        result.here = here, result.before = here + rows;
        for (int64_t n = 0; n < steps; n++)
            for (int64_t row = plan[n].carried; row < plan[n].size; row++) here[result.count++] = plan[n].first + row;
        result.fresh = result.count;
        for (int64_t n = 0; n < steps; n++)
            for (int64_t row = 0; row < plan[n].carried; row++, result.count++) {
                here[result.count] = plan[n].first + row;
                result.before[result.count] = plan[n].before + row;
            }
    } else {
        free(here);
    }
    free(plan);
    return result;
}

/* The gradients of a layer from the deltas [S, wide] of its sweep: of_input [wide, inputs] = sum of delta_t x_t^T, of_bias
 * [wide] = sum of delta_t, of_state [wide, units] = sum of delta_t h_{t-1}^T. The deltas are packed once for all. */
static int layer_gradients(int64_t steps, const int64_t *sizes, int64_t direction, int64_t wide, int64_t inputs,
                           int64_t units, const real *delta, const real *x, const real *h, real *of_input, real *of_bias,
                           real *of_state) {
    const links rows = link_rows(steps, sizes, direction);
    if (rows.here == NULL) return 0;
    const int64_t rounds = (rows.count + DEPTH - 1) / DEPTH, deepest = (rows.count + rounds - 1) / rounds;
    const int64_t panels_of = up_to(wide, PANEL) * apart(deepest);
    const int64_t x_size = up_to(up_to(inputs, ROWS) * apart(deepest), PANEL);
    const int64_t h_size = up_to(up_to(units, ROWS) * apart(deepest), PANEL);
    const int64_t x_tiles = tiles_size(inputs, wide), h_tiles = tiles_size(units, wide);
    real *memory = reserve(x_tiles + h_tiles + panels_of + x_size + h_size + wide);
    if (memory) {
        real *x_sums = memory, *h_sums = x_sums + x_tiles, *panels = h_sums + h_tiles;
        real *x_rows = panels + panels_of, *h_rows = x_rows + x_size, *bias_sum = h_rows + h_size;
        memset(of_bias, 0, (size_t)wide * sizeof(real));
        if (rows.fresh == rows.count) memset(h_sums, 0, (size_t)h_tiles * sizeof(real));
        int64_t at[DEPTH];
        for (int64_t start = 0; start < rows.count; start += deepest) {
            const int64_t depth = least(deepest, rows.count - start), *here = rows.here + start;
            const int64_t skipped = rows.fresh > start ? least(rows.fresh - start, depth) : 0;
            for (int64_t k = 0; k < depth; k++) {
                at[k] = here[k] * wide;
                pack_row(panels, delta + at[k], wide, PANEL, k, depth);
                pack_row(x_rows, x + here[k] * inputs, inputs, ROWS, k, depth);
                if (k >= skipped) pack_row(h_rows, h + rows.before[start + k] * units, units, ROWS, k, depth);
            }
            add_rows(of_bias, bias_sum, delta, at, depth, wide);
            tiles(inputs, wide, depth, 0, x_rows, panels, x_sums, start ? GO_ON : BEGIN);
            if (skipped < depth)
                tiles(units, wide, depth, skipped, h_rows, panels, h_sums, start > rows.fresh ? GO_ON : BEGIN);
        }
        transpose_tiles(inputs, wide, x_sums, of_input);
        transpose_tiles(units, wide, h_sums, of_state);
    }
    release(memory);
    free(rows.here);
    return memory != NULL;
}

#endif
