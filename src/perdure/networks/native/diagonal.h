/* h_t = a h_{t-1} + given_t, unit by unit, and back: delta_t = dL/dh_t + a delta_{t+1}. */
#ifndef PERDURE_DIAGONAL_H
#define PERDURE_DIAGONAL_H

#include "schedule.h"
#include "vectors.h"

INLINE void diagonal_rows(int64_t rows, int64_t linked, int64_t units, const real *given, const real *factor,
                          const real *other, real *out) {
    const part rest = part_of(units % LANES);
    for (int64_t row = 0; row < rows; row++) {
        const int64_t here = row * units;
        int64_t unit = 0;
        for (; unit < units; unit += LANES) {
            const int whole = unit + LANES <= units;
            vector h = whole ? load(given + here + unit) : load_part(given + here + unit, rest);
            if (row < linked) {
                const vector a = whole ? load(factor + unit) : load_part(factor + unit, rest);
                const vector from = whole ? load(other + here + unit) : load_part(other + here + unit, rest);
                h = multiply_add(a, from, h);
            }
            put(out + here + unit, h, whole, rest);
        }
    }
}

static int diagonal_forward(int64_t steps, const int64_t *sizes, const int64_t *moves, int64_t units, const real *given,
                            const real *factor, real *states) {
    move *plan = schedule(steps, sizes, moves);
    for (int64_t n = 0; plan && n < steps; n++) {
        const move m = plan[n];
        diagonal_rows(m.size, m.carried, units, given + m.first * units, factor, states + m.before * units,
                      states + m.first * units);
    }
    const int ready = plan != NULL;
    free(plan);
    return ready;
}

static int diagonal_backward(int64_t steps, const int64_t *sizes, const int64_t *moves, int64_t units, const real *grad,
                             const real *factor, real *delta) {
    move *plan = schedule(steps, sizes, moves);
    for (int64_t n = steps - 1; plan && n >= 0; n--) {
        const move m = plan[n];
        diagonal_rows(m.size, m.taken, units, grad + m.first * units, factor, delta + m.after * units,
                      delta + m.first * units);
    }
    const int ready = plan != NULL;
    free(plan);
    return ready;
}

#endif
