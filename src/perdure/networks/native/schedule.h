/* The way through packed rows: for each move of a sweep its rows, and those that it goes on from. */
#ifndef PERDURE_SCHEDULE_H
#define PERDURE_SCHEDULE_H

#include <stdint.h>
#include <stdlib.h>

typedef struct {
    int64_t first, size;     /* rows first .. first + size */
    int64_t before, carried; /* the first `carried` of them go on from rows `before` .. */
    int64_t after, taken;    /* the first `taken` of them are gone on from by rows `after` .. */
} move;

/* From rows per step [steps] and (step, previous, carried) of each move [steps, 3]. */
static move *schedule(int64_t steps, const int64_t *sizes, const int64_t *moves) {
    move *result = malloc((size_t)steps * (sizeof(move) + sizeof(int64_t)));
    if (result == NULL) return NULL;
    int64_t *offsets = (int64_t *)(result + steps), rows = 0;
    for (int64_t step = 0; step < steps; step++) {
        offsets[step] = rows;
        rows += sizes[step];
    }
    for (int64_t n = 0; n < steps; n++) {
        const int64_t step = moves[3 * n], previous = moves[3 * n + 1], carried = moves[3 * n + 2];
        result[n] = (move){offsets[step], sizes[step], offsets[previous], carried, 0, 0};
        if (n) result[n - 1].after = result[n].first, result[n - 1].taken = carried;
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
