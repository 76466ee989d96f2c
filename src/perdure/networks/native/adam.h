/* Adam and AdamW over flat vectors in one pass (Kingma and Ba 2015, Loshchilov and Hutter 2019). */
#ifndef PERDURE_ADAM_H
#define PERDURE_ADAM_H

#include "vectors.h"

#include <math.h>

#ifdef PERDURE_DOUBLE
#define ROOT sqrt
#else
#define ROOT sqrtf
#endif
#define PARTS 8

/* Sum of squares in double precision; part by part, so that the order does not depend on the instructions. */
static double sum_of_squares(int64_t count, const real *values) {
    double parts[PARTS] = {0};
    int64_t i = 0;
    for (; i + PARTS <= count; i += PARTS)
        for (int part = 0; part < PARTS; part++) {
            const double value = (double)values[i + part];
            parts[part] += value * value;
        }
    for (int part = 0; i < count; i++, part++) parts[part] += (double)values[i] * (double)values[i];
    return ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
}

/* m <- m + (1 - beta1)(g - m), v <- beta2 v + (1 - beta2) g^2, psi <- psi - rate m / (sqrt(v) / root + epsilon).
 * `rate` and `root` hold the corrections of m and v; the gradient is multiplied by `factor`, which clips it; `decay` psi is
 * added to it (L2), `shrink` is the factor of psi before the step (AdamW). */
typedef struct {
    real rate, beta1, beta2, epsilon, decay, shrink, root, factor;
} adam_settings;

#define ADAM_STEP(weight, gradient, mean, square)                                                        \
    const real slope = (gradient) * s.factor + s.decay * (weight);                                       \
    const real new_mean = (mean) + ((real)1 - s.beta1) * (slope - (mean));                               \
    const real new_square = s.beta2 * (square) + ((real)1 - s.beta2) * (slope * slope);                  \
    const real moved = (weight) * s.shrink - s.rate * new_mean / (ROOT(new_square) / s.root + s.epsilon);

static void adam_step(int64_t count, adam_settings s, real *restrict weights, const real *restrict gradients,
                      real *restrict means, real *restrict squares) {
    for (int64_t i = 0; i < count; i++) {
        ADAM_STEP(weights[i], gradients[i], means[i], squares[i])
        weights[i] = moved;
        means[i] = new_mean;
        squares[i] = new_square;
    }
}

/* The step that would be taken, and nothing is changed. */
static void adam_move(int64_t count, adam_settings s, const real *restrict weights, const real *restrict gradients,
                      const real *restrict means, const real *restrict squares, real *restrict moves) {
    for (int64_t i = 0; i < count; i++) {
        ADAM_STEP(weights[i], gradients[i], means[i], squares[i])
        moves[i] = moved - weights[i];
    }
}

#endif
