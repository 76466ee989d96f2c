/* Sums over long vectors in double precision: part by part, so that the order does not depend on the instructions. */
#ifndef PERDURE_SUMS_H
#define PERDURE_SUMS_H

#include "vectors.h"

#define PARTS 8

INLINE double sum_of_parts(const double *parts) {
    return ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
}

static double sum_of_squares(int64_t count, const real *values) {
    double parts[PARTS] = {0};
    int64_t i = 0;
    for (; i + PARTS <= count; i += PARTS)
        for (int part = 0; part < PARTS; part++) {
            const double value = (double)values[i + part];
            parts[part] += value * value;
        }
    for (int part = 0; i < count; i++, part++) parts[part] += (double)values[i] * (double)values[i];
    return sum_of_parts(parts);
}

#endif
