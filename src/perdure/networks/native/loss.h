/* Losses of logits and their gradients in one pass: cross-entropy with classes, with bits or with a teacher's outputs.
 *
 * Sums over classes and rows are in double precision and in order, so that they depend neither on the number of lanes
 * nor on where a row lies.
 */
#ifndef PERDURE_LOSS_H
#define PERDURE_LOSS_H

#include "activations.h"

/* chances = softmax(factor * logits) of one row; returns log sum exp(factor * logits). */
INLINE double softmax(int64_t classes, const real *logits, real factor, real *chances) {
    real highest = logits[0];
    for (int64_t c = 1; c < classes; c++)
        if (!(logits[c] <= highest)) highest = logits[c]; /* also what is not a number */
    const part rest = part_of(classes % LANES);
    const vector times = spread(factor), shift = spread(highest);
    for (int64_t c = 0; c < classes; c += LANES) {
        const int whole = c + LANES <= classes;
        const vector z = whole ? load(logits + c) : load_part(logits + c, rest);
        const power e = exponential((z - shift) * times);
        const vector value = multiply_add(e.scale, e.rest, e.scale);
        if (whole)
            store(chances + c, value);
        else
            store_part(chances + c, value, rest);
    }
    double sum = 0;
    for (int64_t c = 0; c < classes; c++) sum += (double)chances[c];
    const real share = (real)(1 / sum);
    for (int64_t c = 0; c < classes; c++) chances[c] *= share;
    return log(sum) + (double)(highest * factor);
}

/* T^2 sum of log(1 + exp(z / T)) - y z / T over the numbers that are `scored` (NULL: all); delta = T (s(z / T) - y) with
 * the logistic function s. */
static double bit_loss(int64_t count, double temperature, const real *logits, const real *targets,
                       const uint8_t *scored, real *delta) {
    const vector factor = spread((real)(1 / temperature)), times = spread((real)temperature);
    double loss = 0;
    for (int64_t i = 0; i < count; i += LANES) {
        const int64_t here = count - i < LANES ? count - i : LANES;
        const int whole = here == LANES;
        const part rest = part_of(here);
        const vector z = take(logits + i, whole, rest) * factor, y = take(targets + i, whole, rest);
        real terms[LANES];
        store(terms, softplus(z) - y * z);
        put(delta + i, (logistic(z) - y) * times, whole, rest);
        for (int64_t lane = 0; lane < here; lane++)
            if (scored == NULL || scored[i + lane])
                loss += (double)terms[lane];
            else
                delta[i + lane] = 0;
    }
    return loss * temperature * temperature;
}

/* sum of -log softmax(z)_y over rows; delta = softmax(z) - e_y. Rows whose class is negative are not scored. */
static double class_loss(int64_t rows, int64_t classes, const real *logits, const int64_t *targets, real *delta) {
    double loss = 0;
    for (int64_t row = 0; row < rows; row++, logits += classes, delta += classes) {
        const int64_t target = targets[row];
        if (target < 0) {
            memset(delta, 0, (size_t)classes * sizeof(real));
            continue;
        }
        loss += softmax(classes, logits, 1, delta) - (double)logits[target];
        delta[target] -= 1;
    }
    return loss;
}

/* T^2 sum over rows of -softmax(teacher / T) . log softmax(z / T); delta = T (softmax(z / T) - softmax(teacher / T)).
 * `scored`, if not NULL, says which rows count; `buffer` has room for a row. */
static double teacher_loss(int64_t rows, int64_t classes, double temperature, const real *logits, const real *teacher,
                           const uint8_t *scored, real *delta, real *buffer) {
    const real factor = (real)(1 / temperature);
    double loss = 0;
    for (int64_t row = 0; row < rows; row++, logits += classes, teacher += classes, delta += classes) {
        if (scored && !scored[row]) {
            memset(delta, 0, (size_t)classes * sizeof(real));
            continue;
        }
        softmax(classes, teacher, factor, buffer);
        const double base = softmax(classes, logits, factor, delta);
        for (int64_t c = 0; c < classes; c++) {
            loss += (double)buffer[c] * (base - (double)logits[c] / temperature);
            delta[c] = (real)temperature * (delta[c] - buffer[c]);
        }
    }
    return loss * temperature * temperature;
}

#endif
