/* c_t = l_t c_{t-1} + given_t with complex numbers, unit by unit, and back: delta_t = dL/dc_t + conj(l_{t+1}) delta_{t+1}.
 *
 * A row holds the real parts of all units, then the imaginary ones.
 */
#ifndef PERDURE_LRU_H
#define PERDURE_LRU_H

#include "export.h"
#include "schedule.h"
#include "vectors.h"

/* One vector of units: out = given + factor * other, where `sign` -1 conjugates the factor. */
INLINE void lru_units(int64_t units, int64_t unit, const int whole, part which, real sign, const real *given,
                      const real *factor, const real *other, real *out) {
    const vector re = take(factor + unit, whole, which), im = take(factor + units + unit, whole, which) * spread(sign);
    const vector x = take(other + unit, whole, which), y = take(other + units + unit, whole, which);
    const vector to_x = multiply_add(re, x, take(given + unit, whole, which));
    const vector to_y = multiply_add(re, y, take(given + units + unit, whole, which));
    put(out + unit, multiply_add(im * spread(-1), y, to_x), whole, which);
    put(out + units + unit, multiply_add(im, x, to_y), whole, which);
}

/* out = given + factor * other in the first `linked` rows, out = given in the rest; a stride of 0 repeats one row of
 * factors. */
static void lru_rows(int64_t rows, int64_t linked, int64_t units, real sign, const real *given, const real *factor,
                     int64_t factor_stride, const real *other, real *out) {
    const part rest = part_of(units % LANES);
    const int64_t width = 2 * units;
    for (int64_t row = 0; row < rows; row++, given += width, other += width, out += width, factor += factor_stride) {
        if (row >= linked) {
            if (out != given) memcpy(out, given, (size_t)width * sizeof(real));
            continue;
        }
        int64_t unit = 0;
        for (; unit + LANES <= units; unit += LANES) lru_units(units, unit, 1, rest, sign, given, factor, other, out);
        if (unit < units) lru_units(units, unit, 0, rest, sign, given, factor, other, out);
    }
}

/* The factors are [2 units], with a stride of 0, or one row for each [rows, 2 units]. */
EXPORT(lru_forward)(WAY, const real *given, const real *factor, int64_t factor_stride, real *states) {
    move *plan = schedule(steps, sizes, direction);
    const int ready = plan != NULL;
    const int64_t width = 2 * units;
    for (int64_t n = 0; ready && n < steps; n++) {
        const move m = plan[n];
        lru_rows(m.size, m.carried, units, 1, given + m.first * width, factor + m.first * factor_stride, factor_stride,
                 states + m.before * width, states + m.first * width);
    }
    free(plan);
    return ready;
}

/* Adds delta conj(before), the gradient of one row's factors, to `sum`. */
static void lru_add_gradient(int64_t units, const real *delta, const real *before, real *sum) {
    const part rest = part_of(units % LANES);
    for (int64_t unit = 0; unit < units; unit += LANES) {
        const int whole = unit + LANES <= units;
        const vector x = take(delta + unit, whole, rest), y = take(delta + units + unit, whole, rest);
        const vector u = take(before + unit, whole, rest), v = take(before + units + unit, whole, rest);
        const vector re = multiply_add(y, v, multiply_add(x, u, take(sum + unit, whole, rest)));
        const vector im = multiply_add(x * spread(-1), v, multiply_add(y, u, take(sum + units + unit, whole, rest)));
        put(sum + unit, re, whole, rest);
        put(sum + units + unit, im, whole, rest);
    }
}

/* The gradient of the factors of one move: of each row, or the move's sum added to the only row. */
static void lru_gradient(move m, int64_t width, int64_t stride, const real *delta, const real *states, real *sum,
                         real *gradient) {
    if (stride)
        memset(gradient + m.first * width, 0, (size_t)(m.size * width) * sizeof(real));
    else
        memset(sum, 0, (size_t)width * sizeof(real));
    for (int64_t row = 0; row < m.carried; row++)
        lru_add_gradient(width / 2, delta + (m.first + row) * width, states + (m.before + row) * width,
                         stride ? gradient + (m.first + row) * width : sum);
    for (int64_t n = 0; !stride && n < width; n++) gradient[n] += sum[n];
}

/* `gradient` has the shape of the factors. */
EXPORT(lru_backward)(WAY, const real *grad, const real *factor, int64_t factor_stride, const real *states, real *delta,
                     real *gradient) {
    move *plan = schedule(steps, sizes, direction);
    const int64_t width = 2 * units;
    real *sum = malloc((size_t)width * sizeof(real));
    const int ready = plan && sum;
    if (ready && !factor_stride) memset(gradient, 0, (size_t)width * sizeof(real));
    for (int64_t n = steps - 1; ready && n >= 0; n--) {
        const move m = plan[n];
        lru_rows(m.size, m.taken, units, -1, grad + m.first * width, factor + m.after * factor_stride, factor_stride,
                 delta + m.after * width, delta + m.first * width);
        lru_gradient(m, width, factor_stride, delta, states, sum, gradient);
    }
    free(sum);
    free(plan);
    return ready;
}

#endif
