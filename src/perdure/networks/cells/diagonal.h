/* h_t = a_t h_{t-1} + given_t, unit by unit, and back: delta_t = dL/dh_t + a_{t+1} delta_{t+1}. */
#ifndef PERDURE_DIAGONAL_H
#define PERDURE_DIAGONAL_H

#include "export.h"
#include "schedule.h"
#include "vectors.h"

/* out = given + factor * other in the first `linked` rows, out = given in the rest; a stride of 0 repeats one row of
 * factors. */
static void diagonal_rows(int64_t rows, int64_t linked, int64_t units, const real *given, const real *factor,
                          int64_t factor_stride, const real *other, real *out) {
    const part rest = part_of(units % LANES);
    for (int64_t row = 0; row < rows; row++, given += units, other += units, out += units, factor += factor_stride) {
        if (row >= linked) {
            memcpy(out, given, (size_t)units * sizeof(real));
            continue;
        }
        int64_t unit = 0;
        for (; unit + LANES <= units; unit += LANES)
            store(out + unit, multiply_add(load(factor + unit), load(other + unit), load(given + unit)));
        if (unit < units) {
            const vector a = load_part(factor + unit, rest), from = load_part(other + unit, rest);
            store_part(out + unit, multiply_add(a, from, load_part(given + unit, rest)), rest);
        }
    }
}

/* The factors are [units], with a stride of 0, or one row for each [rows, units]. */
EXPORT(diagonal_forward)(WAY, const real *given,
                            const real *factor, int64_t factor_stride, real *states) {
    move *plan = schedule(steps, sizes, direction);
    const int ready = plan != NULL;
    for (int64_t n = 0; ready && n < steps; n++) {
        const move m = plan[n];
        diagonal_rows(m.size, m.carried, units, given + m.first * units, factor + m.first * factor_stride,
                      factor_stride, states + m.before * units, states + m.first * units);
    }
    free(plan);
    return ready;
}

EXPORT(diagonal_backward)(WAY, const real *grad,
                             const real *factor, int64_t factor_stride, real *delta) {
    move *plan = schedule(steps, sizes, direction);
    const int ready = plan != NULL;
    for (int64_t n = steps - 1; ready && n >= 0; n--) {
        const move m = plan[n];
        diagonal_rows(m.size, m.taken, units, grad + m.first * units, factor + m.after * factor_stride, factor_stride,
                      delta + m.after * units, delta + m.first * units);
    }
    free(plan);
    return ready;
}

/* out_t = delta_t h_{t-1}, the gradient of each row's factors; 0 in rows that do not go on from another. */
EXPORT(diagonal_products)(WAY, const real *delta, const real *states, real *out) {
    move *plan = schedule(steps, sizes, direction);
    const int ready = plan != NULL;
    for (int64_t n = 0; ready && n < steps; n++) {
        const move m = plan[n];
        const int64_t first = m.first * units, linked = m.carried * units;
        for (int64_t k = 0; k < linked; k++) out[first + k] = delta[first + k] * states[m.before * units + k];
        memset(out + first + linked, 0, (size_t)(m.size * units - linked) * sizeof(real));
    }
    free(plan);
    return ready;
}

#endif
