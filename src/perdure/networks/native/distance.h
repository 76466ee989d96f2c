/* The weighted squared distance of two vectors, and its gradient: each in one pass, with nothing stored in between.
 *
 * Weights are `common`, except at the places in `own`, where they are `every`; `common` is zero there.
 */
#ifndef PERDURE_DISTANCE_H
#define PERDURE_DISTANCE_H

#include "sums.h"

typedef struct {
    int64_t count;
    const real *made, *target, *common, *every;
    int64_t owned;
    const int64_t *own;
} pair;

/* sum of w (made - target)^2, in double precision. */
static double weighted_distance(pair p) {
    double sums[PARTS] = {0};
    int64_t i = 0;
    for (; i + PARTS <= p.count; i += PARTS)
        for (int part = 0; part < PARTS; part++) {
            const real apart = p.made[i + part] - p.target[i + part];
            sums[part] += (double)(apart * p.common[i + part]) * (double)apart;
        }
    for (int part = 0; i < p.count; i++, part++) {
        const real apart = p.made[i] - p.target[i];
        sums[part] += (double)(apart * p.common[i]) * (double)apart;
    }
    double own = 0;
    for (int64_t k = 0; k < p.owned; k++) {
        const real apart = p.made[p.own[k]] - p.target[p.own[k]];
        own += (double)(apart * p.every[p.own[k]]) * (double)apart;
    }
    return sum_of_parts(sums) + own;
}

/* gradient = factor w (made - target). */
static void weighted_difference(pair p, real factor, real *restrict gradient) {
    for (int64_t i = 0; i < p.count; i++) gradient[i] = (p.made[i] - p.target[i]) * p.common[i] * factor;
    for (int64_t k = 0; k < p.owned; k++) {
        const int64_t i = p.own[k];
        gradient[i] = (p.made[i] - p.target[i]) * p.every[i] * factor;
    }
}

#endif
