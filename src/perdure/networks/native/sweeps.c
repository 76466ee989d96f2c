/* Every sweep, for one precision and one set of instructions; compiled once for each pair.
 *
 * -DPERDURE_LEVEL=avx2 and perhaps -DPERDURE_DOUBLE say which; names end in it: lstm_forward_avx2_f32. All functions
 * return 1, or 0 if memory ran out. They know no globals and keep nothing, so that threads and forks may call them.
 */
#include "adam.h"
#include "diagonal.h"
#include "elman.h"
#include "gru.h"
#include "linear.h"
#include "lstm.h"
#include "outer.h"

#ifdef PERDURE_DOUBLE
#define PRECISION f64
#else
#define PRECISION f32
#endif
#ifdef _WIN32
#define PUBLIC __declspec(dllexport)
#else
#define PUBLIC __attribute__((visibility("default")))
#endif
#define JOIN(a, b, c) a##_##b##_##c
#define NAMED(name, level, precision) JOIN(name, level, precision)
#define EXPORT(name) PUBLIC int NAMED(name, PERDURE_LEVEL, PRECISION)
#define WAY int64_t steps, const int64_t *sizes, const int64_t *moves, int64_t units

EXPORT(elman_forward)(WAY, const real *given, const real *weight, real *states) {
    return elman_forward(steps, sizes, moves, units, given, weight, states);
}

EXPORT(elman_backward)(WAY, const real *grad, const real *weight, const real *states, real *delta) {
    return elman_backward(steps, sizes, moves, units, grad, weight, states, delta);
}

EXPORT(lstm_forward)(WAY, const real *given, const real *weight, real *states, real *gates, real *memory,
                     real *squashed) {
    return lstm_forward(steps, sizes, moves, units, given, weight, states, gates, memory, squashed);
}

EXPORT(lstm_backward)(WAY, const real *grad, const real *weight, const real *gates, const real *memory,
                      const real *squashed, real *delta) {
    return lstm_backward(steps, sizes, moves, units, grad, weight, gates, memory, squashed, delta);
}

EXPORT(gru_forward)(WAY, const real *given, const real *bias, int64_t bias_stride, const real *weight, real *states,
                    real *gates, real *inner) {
    return gru_forward(steps, sizes, moves, units, given, bias, bias_stride, weight, states, gates, inner);
}

EXPORT(gru_backward)(WAY, const real *grad, const real *weight, const real *states, const real *gates,
                     const real *inner, real *delta, real *delta_hidden) {
    return gru_backward(steps, sizes, moves, units, grad, weight, states, gates, inner, delta, delta_hidden);
}

EXPORT(diagonal_forward)(WAY, const real *given, const real *factor, int64_t factor_stride, real *states) {
    return diagonal_forward(steps, sizes, moves, units, given, factor, factor_stride, states);
}

EXPORT(diagonal_backward)(WAY, const real *grad, const real *factor, int64_t factor_stride, real *delta) {
    return diagonal_backward(steps, sizes, moves, units, grad, factor, factor_stride, delta);
}

EXPORT(linear_map)(int64_t count, int64_t depth, int64_t units, int64_t transposed, const real *rows,
                   const real *weight, const real *bias, real *out) {
    return linear_map(count, depth, units, transposed, rows, weight, bias, out);
}

/* out [tall, wide] = sum of left right^T; the wider factor goes into the panels, which are packed faster. */
EXPORT(outer_sum)(int64_t steps, const int64_t *sizes, const int64_t *moves, int64_t tall, int64_t wide,
                  const real *left, const real *right, real *out) {
    if (wide < tall) return outer_sum(steps, sizes, moves, wide, tall, right, left, out, 1, wide, 1);
    return outer_sum(steps, sizes, moves, tall, wide, left, right, out, wide, 1, 0);
}

EXPORT(outer_squares)(int64_t steps, const int64_t *sizes, int64_t tall, int64_t wide, const real *left,
                      const real *right, double *weight_total, double *bias_total) {
    return outer_squares(steps, sizes, tall, wide, left, right, weight_total, bias_total);
}

/* settings: rate, beta1, beta2, epsilon, decay, shrink, root, in double precision. */
static adam_settings settings_of(const double *s) {
    adam_settings result = {(real)s[0], (real)s[1], (real)s[2], (real)s[3], (real)s[4], (real)s[5], (real)s[6]};
    return result;
}

EXPORT(adam_step)(int64_t count, const double *settings, real *weights, const real *gradients, real *means,
                  real *squares) {
    adam_step(count, settings_of(settings), weights, gradients, means, squares);
    return 1;
}

EXPORT(adam_move)(int64_t count, const double *settings, const real *weights, const real *gradients, const real *means,
                  const real *squares, real *moves) {
    adam_move(count, settings_of(settings), weights, gradients, means, squares, moves);
    return 1;
}

EXPORT(sum_of_squares)(int64_t count, const real *values, double *sum) {
    *sum = sum_of_squares(count, values);
    return 1;
}
