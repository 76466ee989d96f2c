/* h_t = tanh(given_t + W h_{t-1}). */
#ifndef PERDURE_ELMAN_H
#define PERDURE_ELMAN_H

#include "activations.h"
#include "export.h"
#include "recurrence.h"
#include "schedule.h"

typedef struct {
    int64_t units;
    const real *given; /* the projected input, or dL/dh */
    real *states, *delta;
} elman;

INLINE void elman_gates(const void *cell, const int whole, place at) {
    const elman *step = cell;
    const int64_t here = at.row * step->units + at.unit;
    vector z = take(step->given + here, whole, at.which);
    if (at.linked) z = load(at.sums) + z;
    put(step->states + here, hyperbolic_tangent(z), whole, at.which);
}

INLINE void elman_gates_back(const void *cell, const int whole, place at) {
    const elman *step = cell;
    const int64_t here = at.row * step->units + at.unit;
    vector to_h = take(step->given + here, whole, at.which);
    if (at.linked) to_h = load(at.sums) + to_h;
    const vector h = take(step->states + here, whole, at.which);
    put(step->delta + here, to_h * (spread(1) - h * h), whole, at.which);
}

EXPORT(elman_forward)(WAY, const real *given,
                         const real *weight, real *states) {
    move *plan = schedule(steps, sizes, direction);
    real *sums = reserve(sums_size(1, units) + panels_size(units, 1, units)), *panels = sums + sums_size(1, units);
    const int ready = plan && sums;
    if (ready) pack_transposed(panels, weight, units, 1, units);
    for (int64_t n = 0; ready && n < steps; n++) {
        const move m = plan[n];
        const elman step = {units, given + m.first * units, states + m.first * units, NULL};
        recur(m.size, m.carried, states + m.before * units, units, 1, units, panels, sums, elman_gates, NULL, &step);
    }
    release(sums);
    free(plan);
    return ready;
}

EXPORT(elman_backward)(WAY, const real *grad,
                          const real *weight, const real *states, real *delta) {
    move *plan = schedule(steps, sizes, direction);
    real *sums = reserve(sums_size(1, units) + panels_size(units, 1, units)), *panels = sums + sums_size(1, units);
    const int ready = plan && sums;
    if (ready) pack(panels, weight, units, units);
    for (int64_t n = steps - 1; ready && n >= 0; n--) {
        const move m = plan[n];
        const elman step = {units, grad + m.first * units, (real *)states + m.first * units, delta + m.first * units};
        recur(m.size, m.taken, delta + m.after * units, units, 1, units, panels, sums, elman_gates_back, NULL, &step);
    }
    release(sums);
    free(plan);
    return ready;
}

#endif
