/* Gradients measured sample by sample: for each sample the sum of outer products over its steps, squared or without its
 * sign, and added up.
 *
 * A group of samples is packed at a time, one sample's rows after the other's, so that a tile of the totals is one walk
 * along a slice of the inputs and a panel of the deltas, from the group's first sample to its last.
 */
#ifndef PERDURE_MEASURES_H
#define PERDURE_MEASURES_H

#include "outer.h"

#define GROUP 16          /* samples whose packed rows are held at once, at most, */
#define GROUP_SIZE 262144 /* and numbers of those */
#define BLOCK 120         /* rows of the result that are worked on at once, so that they stay in the second cache */

/* A tile is RANK x PANEL. Where there are registers for both, the totals of a tile stay in them along with its
 * sums from a group's first sample to its last; elsewhere they are in memory, since the sums need all registers. */
#if defined(__AVX512F__)
#define TOTALS_HELD 1
#define RANK 4
#else
#define TOTALS_HELD 0
#define RANK ROWS
#endif

/* An affine map: its inputs are `rows` [S, width], or if `direction` is not ITSELF the rows before them in a sweep. */
typedef struct {
    const real *rows;
    int64_t width, direction;
    double *total; /* [wide, width] */
} measured_map;

/* A group of samples, by decreasing length, and their packed rows, one sample after the other. */
typedef struct {
    int64_t count, rows;
    int64_t lengths[GROUP], starts[GROUP]; /* each sample's number of rows, and the first of them */
    int64_t *steps;                        /* where the first sample's row of each step is among all rows */
} samples;

/* Steps of a sample that have inputs: the first of a sweep goes on from no other, its inputs are zero. */
INLINE int64_t linked_steps(int64_t length, int64_t direction) { return direction == ITSELF ? length : length - 1; }

/* What is added up. */
typedef enum { SQUARES, MAGNITUDES } measure;

INLINE vector with_measure(const measure how, vector sum, vector total) {
    return how == SQUARES ? multiply_add(sum, sum, total) : total + magnitude(sum);
}

/* totals[r, :] += sum over samples of the measure of (sum over k of slice[k, r] panel[k, :]); of a map that does not read the rows
 * themselves each sample has a row less in the slice, and its panel begins with a row that is skipped if it runs
 * forwards, and ends with such a row if backwards. */
INLINE void tile_of_measures(const int vectors, const measure how, const samples *these, int64_t direction, const real *slice,
                            const real *panel, real *totals) {
    vector total[RANK][PANEL_VECTORS];
#pragma GCC unroll 12
    for (int r = 0; TOTALS_HELD && r < RANK; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) total[r][v] = load(totals + r * PANEL + v * LANES);
    if (direction == FORWARDS) panel += PANEL;
    for (int64_t n = 0; n < these->count; n++) {
        const int64_t depth = linked_steps(these->lengths[n], direction);
        __asm__("" : "+r"(totals)); /* else the compiler keeps copies of the totals on the stack */
        vector sum[RANK][PANEL_VECTORS];
#pragma GCC unroll 12
        for (int r = 0; r < RANK; r++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++) sum[r][v] = (vector){0};
#pragma GCC unroll 4
        for (int64_t k = 0; k < depth; k++, slice += RANK, panel += PANEL) {
            vector factor[PANEL_VECTORS];
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++) factor[v] = load(panel + v * LANES);
#pragma GCC unroll 12
            for (int r = 0; r < RANK; r++) {
                const vector one = spread(slice[r]);
#pragma GCC unroll 2
                for (int v = 0; v < vectors; v++) sum[r][v] = multiply_add(one, factor[v], sum[r][v]);
            }
        }
        if (direction != ITSELF) panel += PANEL;
#pragma GCC unroll 12
        for (int r = 0; r < RANK; r++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++) {
                real *in_memory = totals + r * PANEL + v * LANES;
                if (TOTALS_HELD)
                    total[r][v] = with_measure(how, sum[r][v], total[r][v]);
                else
                    store(in_memory, with_measure(how, sum[r][v], load(in_memory)));
            }
    }
#pragma GCC unroll 12
    for (int r = 0; TOTALS_HELD && r < RANK; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) store(totals + r * PANEL + v * LANES, total[r][v]);
}

/* The inputs of all samples as slices. Rows are read step by step, as they lie in memory. */
static void pack_inputs(real *to, const measured_map *map, const samples *these) {
    const int64_t skipped = map->direction == ITSELF ? 0 : 1, later = map->direction == BACKWARDS ? 1 : 0;
    for (int64_t step = 0; step < these->lengths[0] - skipped; step++)
        for (int64_t n = 0; n < these->count && step < these->lengths[n] - skipped; n++) {
            const real *from = map->rows + (these->steps[step + later] + n) * map->width;
            pack_row(to, from, map->width, RANK, these->starts[n] - n * skipped + step, these->rows);
        }
}

/* The deltas of all samples as panels. */
static void pack_deltas(real *to, int64_t wide, const real *delta, const samples *these) {
    for (int64_t step = 0; step < these->lengths[0]; step++)
        for (int64_t n = 0; n < these->count && step < these->lengths[n]; n++)
            pack_row(to, delta + (these->steps[step] + n) * wide, wide, PANEL, these->starts[n] + step, these->rows);
}

/* total [wide] += the measure of each sample's sum of deltas. */
static void add_bias_measures(measure how, int64_t wide, const samples *these, const real *panels, double *total) {
    for (int64_t column = 0; column < wide; column += PANEL) {
        const real *panel = panels + column * apart(these->rows);
        for (int64_t n = 0; n < these->count; n++) {
            real sum[PANEL] = {0};
            for (int64_t k = 0; k < these->lengths[n]; k++, panel += PANEL)
                for (int64_t c = 0; c < PANEL; c++) sum[c] += panel[c];
            for (int64_t c = 0; c < least(PANEL, wide - column); c++)
                total[column + c] += how == SQUARES ? (double)sum[c] * (double)sum[c] : fabs((double)sum[c]);
        }
    }
}

/* The totals of a map's tiles from row `first` to `last`, a panel's tiles one after the other in `sums`. */
static void map_measures(measure how, int64_t first, int64_t last, int64_t tall, int64_t wide, const samples *these,
                         int64_t direction, const real *slices, const real *panels, real *sums) {
    const int64_t apart_rows = apart(these->rows);
    for (int64_t column = 0; column < wide; column += PANEL)
        for (int64_t row = first; row < last; row += RANK) {
            const real *slice = slices + row * apart_rows, *panel = panels + column * apart_rows;
            real *sum = sums + column * tall + row * PANEL;
            const int vectors = wide - column > LANES ? 2 : 1;
#define CASE(v, m) \
    if (vectors == v && how == m) tile_of_measures(v, m, these, direction, slice, panel, sum);
            CASE(1, SQUARES) CASE(2, SQUARES) CASE(1, MAGNITUDES) CASE(2, MAGNITUDES)
#undef CASE
        }
}

/* total [wide, width] += the transpose of the totals of a map's inputs, which begin at `sums`. */
static void add_transposed(int64_t width, int64_t wide, int64_t tall, const real *sums, double *total) {
    for (int64_t column = 0; column < wide; column++, total += width) {
        const real *from = sums + column / PANEL * PANEL * tall + column % PANEL;
        for (int64_t row = 0; row < width; row++) total[row] += (double)from[row * PANEL];
    }
}

/* The samples from `first` on: a sample is one row of each step, at the same place in all of them. */
static void group_samples(samples *these, int64_t first, int64_t count, int64_t steps, const int64_t *sizes) {
    these->count = count, these->rows = 0;
    for (int64_t step = 0, row = first; step < steps; row += sizes[step++]) these->steps[step] = row;
    for (int64_t n = 0; n < count; n++) {
        int64_t length = n ? these->lengths[n - 1] : steps;
        while (sizes[length - 1] <= first + n) length--;
        these->lengths[n] = length, these->starts[n] = these->rows;
        these->rows += length;
    }
}

/* Add the measure of each sample's gradients, of the weights of maps to the same outputs and of their bias [wide], to
 * totals of double precision; rows per step never grow. */
static int outer_measures(measure how, int64_t steps, const int64_t *sizes, int64_t wide, const real *delta, double *bias_total,
                          int64_t maps, const measured_map *map) {
    int64_t tall = 0;
    for (int64_t m = 0; m < maps; m++) tall += up_to(map[m].width, RANK);
    const int64_t right_width = up_to(wide, PANEL), count = sizes[0], totals = tall * right_width;
    const int64_t per_row = right_width + up_to(tall, PANEL), fitting = GROUP_SIZE / (steps * per_row);
    const int64_t group = least(fitting < 1 ? 1 : fitting, least(GROUP, count)), rows = apart(group * steps);
    real *sums = reserve(totals + rows * per_row), *panels = sums + totals, *slices = panels + rows * right_width;
    samples these = {.steps = malloc((size_t)steps * sizeof(int64_t))};
    const int ready = sums && these.steps;
    if (ready) memset(sums, 0, (size_t)totals * sizeof(real));
    for (int64_t first = 0; ready && first < count; first += group) {
        group_samples(&these, first, least(group, count - first), steps, sizes);
        pack_deltas(panels, wide, delta, &these);
        add_bias_measures(how, wide, &these, panels, bias_total);
        for (int64_t m = 0, start = 0; m < maps; start += up_to(map[m++].width, RANK)) {
            const int64_t end = start + map[m].width;
            pack_inputs(slices + start * apart(these.rows), &map[m], &these);
            for (int64_t block = start; block < end; block += BLOCK)
                map_measures(how, block, least(block + BLOCK, end), tall, wide, &these, map[m].direction, slices, panels,
                             sums);
        }
    }
    const real *sum = sums;
    for (int64_t m = 0; ready && m < maps; sum += up_to(map[m++].width, RANK) * PANEL)
        add_transposed(map[m].width, wide, tall, sum, map[m].total);
    release(sums);
    free(these.steps);
    return ready;
}

#endif
