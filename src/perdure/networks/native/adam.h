/* Adam and AdamW over flat vectors in one pass (Kingma and Ba 2015, Loshchilov and Hutter 2019). */
#ifndef PERDURE_ADAM_H
#define PERDURE_ADAM_H

#include "vectors.h"

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
