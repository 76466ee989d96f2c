/* Functions of each number of a tensor, and the gradients that go back through them. */
#ifndef PERDURE_ELEMENTWISE_H
#define PERDURE_ELEMENTWISE_H

#include "activations.h"

/* In the order of FUNCTIONS in elementwise.py. */
typedef enum { TANH, SIGMOID, EXP, SOFTPLUS, SQRT } function;

INLINE vector value_of(const function which, vector x) {
    switch (which) {
    case TANH: return hyperbolic_tangent(x);
    case SIGMOID: return logistic(x);
    case SOFTPLUS: return softplus(x);
    default: {
        const power e = exponential(x);
        const vector value = choose((lanes)(x < spread(LOWEST)), spread(0), multiply_add(e.scale, e.rest, e.scale));
        return choose((lanes)(x > spread(HIGHEST)), spread(INFINITY), value);
    }
    }
}

INLINE void map_values(const function which, int64_t count, const real *values, real *out) {
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) store(out + i, value_of(which, load(values + i)));
    if (i == count) return;
    const part rest = part_of(count - i);
    store_part(out + i, value_of(which, load_part(values + i, rest)), rest);
}

static int elementwise(int64_t which, int64_t count, const real *values, real *out) {
    switch (which) {
    case TANH: map_values(TANH, count, values, out); return 1;
    case SIGMOID: map_values(SIGMOID, count, values, out); return 1;
    case EXP: map_values(EXP, count, values, out); return 1;
    case SOFTPLUS: map_values(SOFTPLUS, count, values, out); return 1;
    case SQRT:
        for (int64_t i = 0; i < count; i++) out[i] = ROOT(values[i]);
        return 1;
    }
    return 0;
}

/* out = delta f'(x), from y = f(x); of softplus, y is the logistic function of x. */
static int elementwise_back(int64_t which, int64_t count, const real *delta, const real *y, real *out) {
    switch (which) {
    case TANH:
        for (int64_t i = 0; i < count; i++) out[i] = delta[i] * (1 - y[i] * y[i]);
        return 1;
    case SIGMOID:
        for (int64_t i = 0; i < count; i++) out[i] = delta[i] * (y[i] * (1 - y[i]));
        return 1;
    case EXP:
    case SOFTPLUS:
        for (int64_t i = 0; i < count; i++) out[i] = delta[i] * y[i];
        return 1;
    case SQRT:
        for (int64_t i = 0; i < count; i++) out[i] = delta[i] / (2 * y[i]);
        return 1;
    }
    return 0;
}

#endif
