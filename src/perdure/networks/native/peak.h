/* The arithmetic peak: multiply-adds on registers alone, for benchmarks to measure products against. */
#ifndef PERDURE_PEAK_H
#define PERDURE_PEAK_H

#include "vectors.h"

#define CHAINS 12 /* independent sums: more than a processor has multiply-adds under way */

/* `rounds` of sum <- sum * factor + term in each chain; returns the operations that these are. */
static double multiply_adds(int64_t rounds, real *result) {
    vector sums[CHAINS];
    for (int chain = 0; chain < CHAINS; chain++) sums[chain] = spread((real)chain);
    const vector factor = spread((real)0.5), term = spread((real)1);
    for (int64_t round = 0; round < rounds; round++)
        for (int chain = 0; chain < CHAINS; chain++) sums[chain] = multiply_add(sums[chain], factor, term);
    *result = 0;
    for (int chain = 0; chain < CHAINS; chain++) *result += sums[chain][0];
    return 2.0 * (double)rounds * CHAINS * (double)LANES;
}

#endif
