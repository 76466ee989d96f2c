/* One time step of any cell: matrix product and gates, a block of units after the other.
 *
 * The sums of a block's gates are made for a chunk of rows, and its gates follow at once, while the sums are in
 * the first cache. The cell says what happens to them in two functions that are inlined here; two, since what
 * depends on all gates of a unit would otherwise wait for them while the processor has nothing else to do.
 */
#ifndef PERDURE_RECURRENCE_H
#define PERDURE_RECURRENCE_H

#include "product.h"

/* Where a cell is at work: one row of the step and one vector of its units. */
typedef struct {
    int64_t row;  /* within the step */
    int64_t unit; /* the first of LANES units, or of those in `which` */
    real *sums;   /* of each gate at a distance of PANEL */
    int linked;   /* whether the sums hold anything: not if the row does not go on from another */
    part which;
} place;

/* What a cell does at a place; `whole` is a constant. */
typedef void (*work)(const void *cell, const int whole, place at);

/* All rows of a chunk, all vectors of a block of units. */
INLINE void everywhere(int64_t first, int64_t rows, int64_t linked, int64_t unit, int64_t columns, int64_t width,
                       real *sums, work gates, const void *cell) {
    const part rest = part_of(columns % LANES);
    for (int64_t n = 0; n < rows; n++) {
        real *sum = sums + n * width;
        int64_t column = 0;
        for (; column + LANES <= columns; column += LANES)
            gates(cell, 1, (place){first + n, unit + column, sum + column, n < linked, rest});
        if (column < columns) gates(cell, 0, (place){first + n, unit + column, sum + column, n < linked, rest});
    }
}

/* For all rows and units of a step the sums left[row, :] panels, of the first `linked` rows, then `gates`, then `then`
 * if it is not NULL. */
INLINE void recur(int64_t rows, int64_t linked, const real *left, int64_t depth, int64_t gate_count, int64_t units,
                  real *panels, real *sums, work gates, work then, const void *cell) {
    const int64_t width = gate_count == 1 ? up_to(units, PANEL) : gate_count * PANEL;
    for (int64_t row = 0; row < rows; row += CHUNK) {
        const int64_t here = least(CHUNK, rows - row);
        const int64_t linked_here = linked > row ? least(here, linked - row) : 0;
        if (gate_count == 1) { /* few enough sums to make all first; the cell then goes along whole rows of memory */
            for (int64_t unit = 0; unit < units; unit += PANEL)
                rows_by_panel(linked_here, depth, left + row * depth, depth, panel_of(panels, depth, 1, unit, 0),
                              least(PANEL, units - unit), sums + unit, width, NULL);
            everywhere(row, here, linked_here, 0, units, width, sums, gates, cell);
            continue;
        }
        for (int64_t unit = 0; unit < units; unit += PANEL) {
            const int64_t columns = least(PANEL, units - unit);
            for (int64_t gate = 0; gate < gate_count; gate++)
                rows_by_panel(linked_here, depth, left + row * depth, depth,
                              panel_of(panels, depth, gate_count, unit, gate), columns, sums + gate * PANEL, width,
                              NULL);
            everywhere(row, here, linked_here, unit, columns, width, sums, gates, cell);
            if (then) everywhere(row, here, linked_here, unit, columns, width, sums, then, cell);
        }
    }
}

/* Numbers that the sums of a chunk take. */
INLINE int64_t sums_size(int64_t gate_count, int64_t units) {
    return CHUNK * (gate_count == 1 ? up_to(units, PANEL) : gate_count * PANEL);
}

#endif
