/* The logistic function, tanh and softplus, on vectors.
 *
 * exp(x) = 2^n exp(r) with n the nearest whole number to x / ln 2, and exp(r) - 1 = r p(r) on |r| <= ln 2 / 2 with
 * a polynomial p (by Chebyshev's nodes; error 1e-8 in single and 2e-17 in double precision). All
 * have a relative error of about two units in the last place over the whole line, also near zero and
 * far out; what is not a number stays so.
 */
#ifndef PERDURE_ACTIVATIONS_H
#define PERDURE_ACTIVATIONS_H

#include "vectors.h"

#ifdef PERDURE_DOUBLE
#define LOWEST -708.0
#define HIGHEST 709.0
#define ROUNDER 6755399441055744.0 /* 1.5 * 2^52: adding it leaves a whole number in the lowest bits */
#define MANTISSA 52
#define LN2_HIGH 0.6931471805592082091607153
#define LN2_LOW 7.37100256516779890183404e-13
#define ARTANH_TERMS 17
static const real POLYNOMIAL[] = {
    1.0, 0.5, 0.16666666666666666, 0.041666666666666666, 0.008333333333319589616,
    0.0013888888888879073994, 0.00019841269890076402829, 0.000024801587336442237861,
    2.7557240887229868596e-6, 2.7557263279088496905e-7, 2.5110049204818659793e-8, 2.0918137737642736429e-9,
};
#else
#define LOWEST -87.0f
#define HIGHEST 88.0f
#define ROUNDER 12582912.0f /* 1.5 * 2^23 */
#define MANTISSA 23
#define LN2_HIGH 0.693145751953125f
#define LN2_LOW 1.428606820309417232121458e-6f
#define ARTANH_TERMS 8
static const real POLYNOMIAL[] = {
    1.0f, 0.500000001347f, 0.166665051958f, 0.0416664649253f, 0.0083691556677f, 0.00139336499963f,
};
#endif
#define LOG2E ((real)1.4426950408889634074)

/* 2^n and exp(r) - 1, so that exp(x) = 2^n + 2^n (exp(r) - 1). */
typedef struct {
    vector scale, rest;
} power;

INLINE power exponential(vector x) {
    x = between(x, LOWEST, HIGHEST);
    const vector shifted = multiply_add(x, spread(LOG2E), spread(ROUNDER));
    const vector whole = shifted - spread(ROUNDER);
    vector r = multiply_add(whole, spread(-LN2_HIGH), x);
    r = multiply_add(whole, spread(-LN2_LOW), r);
    /* Pairs of terms first, then Horner's rule in r^2: half as long a chain of operations. */
    const int degree = sizeof(POLYNOMIAL) / sizeof(real) - 1;
    const vector square = r * r;
    vector p = multiply_add(spread(POLYNOMIAL[degree]), r, spread(POLYNOMIAL[degree - 1]));
    for (int n = degree - 2; n > 0; n -= 2)
        p = multiply_add(p, square, multiply_add(spread(POLYNOMIAL[n]), r, spread(POLYNOMIAL[n - 1])));
    return (power){(vector)(((lanes)shifted << MANTISSA) + (lanes)spread(1)), r * p};
}

/* 1 / (1 + exp(-x)). */
INLINE vector logistic(vector x) {
    const power e = exponential(x * spread(-1));
    return spread(1) / (spread(1) + multiply_add(e.scale, e.rest, e.scale));
}

/* -m / (2 + m) with m = exp(-2 |x|) - 1, and the sign of x. */
INLINE vector hyperbolic_tangent(vector x) {
    const lanes sign = sign_of(x);
    const power e = exponential(magnitude(x) * spread(-2));
    const vector m = multiply_add(e.scale, e.rest, e.scale - spread(1));
    return (vector)((lanes)(m / (spread(-2) - m)) | sign);
}

/* log(1 + exp(x)) = max(x, 0) + 2 artanh(e / (2 + e)) with e = exp(-|x|); e / (2 + e) is at most 1/3, where the series
 * converges fast. */
INLINE vector softplus(vector x) {
    const power e = exponential(magnitude(x) * spread(-1));
    const vector small = multiply_add(e.scale, e.rest, e.scale), t = small / (spread(2) + small), square = t * t;
    vector sum = spread((real)1 / (2 * ARTANH_TERMS + 1));
    for (int n = ARTANH_TERMS - 1; n >= 0; n--) sum = multiply_add(sum, square, spread((real)1 / (2 * n + 1)));
    return choose((lanes)(x < spread(0)), spread(0), x) + t * sum * spread(2);
}

#endif
