/* What all cells share, for one precision and one set of instructions; compiled once for each pair, together
 * with the headers of the cells.
 *
 * -DPERDURE_LEVEL=avx2 and perhaps -DPERDURE_DOUBLE say which; names end in it: lstm_forward_avx2_f32. All functions
 * return 1, or 0 if memory ran out. They know no globals and keep nothing, so that threads and forks may call them.
 */
#include "adam.h"
#include "distance.h"
#include "elementwise.h"
#include "export.h"
#include "linear.h"
#include "loss.h"
#include "measures.h"
#include "outer.h"
#include "peak.h"

EXPORT(linear_map)(int64_t count, int64_t depth, int64_t units, int64_t transposed, const real *rows,
                   const real *weight, const real *bias, real *out) {
    return linear_map(count, depth, units, transposed, rows, weight, bias, out);
}

/* out [tall, wide] = sum of left right^T and, unless it is NULL, bias [tall] = sum of left; the wider factor goes into the panels, which are packed faster. */
EXPORT(outer_sum)(int64_t steps, const int64_t *sizes, int64_t direction, int64_t tall, int64_t wide,
                  const real *left, const real *right, real *out, real *bias) {
    if (wide < tall) return outer_sum(steps, sizes, direction, wide, tall, right, left, out, 1, wide, 1, bias);
    return outer_sum(steps, sizes, direction, tall, wide, left, right, out, wide, 1, 0, bias);
}

EXPORT(layer_gradients)(int64_t steps, const int64_t *sizes, int64_t direction, int64_t wide, int64_t inputs, int64_t units,
                        const real *delta, const real *x, const real *h, real *of_input, real *of_bias, real *of_state) {
    return layer_gradients(steps, sizes, direction, wide, inputs, units, delta, x, h, of_input, of_bias, of_state);
}

EXPORT(outer_measures)(int64_t magnitudes, int64_t steps, const int64_t *sizes, int64_t wide, const real *delta,
                       double *bias_total, int64_t maps, const measured_map *map) {
    return outer_measures(magnitudes ? MAGNITUDES : SQUARES, steps, sizes, wide, delta, bias_total, maps, map);
}

EXPORT(elementwise)(int64_t which, int64_t count, const real *values, real *out) {
    return elementwise(which, count, values, out);
}

EXPORT(elementwise_back)(int64_t which, int64_t count, const real *delta, const real *y, real *out) {
    return elementwise_back(which, count, delta, y, out);
}

/* settings: rate, beta1, beta2, epsilon, decay, shrink, root, factor, in double precision. */
static adam_settings settings_of(const double *s) {
    return (adam_settings){(real)s[0], (real)s[1], (real)s[2], (real)s[3], (real)s[4], (real)s[5], (real)s[6], (real)s[7]};
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

/* Places are checked here: one that does not exist is an error, not a crash. */
static int within(pair p) {
    for (int64_t k = 0; k < p.owned; k++)
        if (p.own[k] < 0 || p.own[k] >= p.count) return 0;
    return 1;
}

EXPORT(weighted_distance)(int64_t count, const real *made, const real *target, const real *common, const real *every,
                          int64_t owned, const int64_t *own, double *sum) {
    const pair p = {count, made, target, common, every, owned, own};
    if (!within(p)) return 0;
    *sum = weighted_distance(p);
    return 1;
}

EXPORT(weighted_difference)(int64_t count, const real *made, const real *target, const real *common, const real *every,
                            int64_t owned, const int64_t *own, double factor, real *gradient) {
    const pair p = {count, made, target, common, every, owned, own};
    if (!within(p)) return 0;
    weighted_difference(p, (real)factor, gradient);
    return 1;
}

/* `targets` are checked here: a class that does not exist is an error, not a crash. */
EXPORT(class_loss)(int64_t rows, int64_t classes, const real *logits, const int64_t *targets, real *loss, real *delta) {
    for (int64_t row = 0; row < rows; row++)
        if (targets[row] >= classes) return 0;
    *loss = (real)class_loss(rows, classes, logits, targets, delta);
    return 1;
}

EXPORT(bit_loss)(int64_t count, double temperature, const real *logits, const real *targets, const uint8_t *scored,
                 real *loss, real *delta) {
    *loss = (real)bit_loss(count, temperature, logits, targets, scored, delta);
    return 1;
}

EXPORT(teacher_loss)(int64_t rows, int64_t classes, double temperature, const real *logits, const real *teacher,
                     const uint8_t *scored, real *loss, real *delta) {
    real *buffer = reserve(classes);
    if (buffer == NULL) return 0;
    *loss = (real)teacher_loss(rows, classes, temperature, logits, teacher, scored, delta, buffer);
    release(buffer);
    return 1;
}

EXPORT(multiply_adds)(int64_t rounds, real *result, double *operations) {
    *operations = multiply_adds(rounds, result);
    return 1;
}
