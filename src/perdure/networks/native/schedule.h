/* The way through packed rows: for each move of a sweep its rows, and those that it goes on from. */
#ifndef PERDURE_SCHEDULE_H
#define PERDURE_SCHEDULE_H

#include <stdint.h>
#include <stdlib.h>

/* From the first step to the last, from each sequence's last step to the first, or each row from itself. */
enum { FORWARDS = 0, BACKWARDS = 1, ITSELF = 2 };

typedef struct {
    int64_t first, size;     /* rows first .. first + size */
    int64_t before, carried; /* the first `carried` of them go on from rows `before` .. */
    int64_t after, taken;    /* the first `taken` of them are gone on from by rows `after` .. */
} move;

/* From rows per step [steps], which never grow. */
static move *schedule(int64_t steps, const int64_t *sizes, int64_t direction) {
    move *result = malloc((size_t)steps * sizeof(move));
    if (result == NULL) return NULL;
    int64_t rows = 0;
    for (int64_t step = 0; step < steps; step++) {
        result[direction == BACKWARDS ? steps - 1 - step : step] = (move){.first = rows, .size = sizes[step]};
        rows += sizes[step];
    }
    for (int64_t n = 0; n < steps; n++) {
        if (direction == ITSELF) {
            result[n].before = result[n].first, result[n].carried = result[n].size;
        } else if (n) {
            const int64_t both = result[n].size < result[n - 1].size ? result[n].size : result[n - 1].size;
            result[n].before = result[n - 1].first, result[n].carried = both;
            result[n - 1].after = result[n].first, result[n - 1].taken = both;
        }
    }
    return result;
}

/* Sequences at the widest step. */
static int64_t widest(int64_t steps, const int64_t *sizes) {
    int64_t result = 0;
    for (int64_t step = 0; step < steps; step++)
        if (sizes[step] > result) result = sizes[step];
    return result;
}

#endif
