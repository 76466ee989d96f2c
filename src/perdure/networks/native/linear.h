/* out = rows W^T + b, and rows W: the affine maps around a recurrence, with sums in the same order for any batch. */
#ifndef PERDURE_LINEAR_H
#define PERDURE_LINEAR_H

#include "recurrence.h"

typedef struct {
    int64_t units;
    const real *bias;
    real *out;
} affine;

INLINE void affine_gates(const void *cell, const int whole, place at) {
    const affine *map = cell;
    vector z = load(at.sums);
    if (map->bias) z = z + take(map->bias + at.unit, whole, at.which);
    put(map->out + at.row * map->units + at.unit, z, whole, at.which);
}

/* From rows [count, depth] to out [count, units]; weight is [units, depth] if `transposed`, else [depth, units]. */
static int linear_map(int64_t count, int64_t depth, int64_t units, int64_t transposed, const real *rows,
                      const real *weight, const real *bias, real *out) {
    real *sums = reserve(sums_size(1, PANEL) + panels_size(depth, 1, units)), *panels = sums + sums_size(1, PANEL);
    if (sums == NULL) return 0;
    if (transposed)
        pack_transposed(panels, weight, depth, 1, units);
    else
        pack(panels, weight, depth, units);
    const affine map = {units, bias, out};
    const int64_t straight = units / PANEL * PANEL; /* whole panels need no buffer */
    for (int64_t row = 0; row < count; row += CHUNK) {
        const int64_t here = least(CHUNK, count - row);
        for (int64_t unit = 0; unit < straight; unit += PANEL)
            rows_by_panel(here, depth, rows + row * depth, depth, panel_of(panels, depth, 1, unit, 0), PANEL,
                          out + row * units + unit, units, bias ? bias + unit : NULL);
        if (straight == units) continue;
        const int64_t columns = units - straight;
        rows_by_panel(here, depth, rows + row * depth, depth, panel_of(panels, depth, 1, straight, 0), columns, sums,
                      PANEL, NULL);
        everywhere(row, here, here, straight, columns, PANEL, sums, affine_gates, &map);
    }
    release(sums);
    return 1;
}

#endif
