/* Gates r, z, n; n = tanh(given_n + r (W_n h + b_n)); h_t = (1 - z) n + z h_{t-1}. */
#ifndef PERDURE_GRU_H
#define PERDURE_GRU_H

#include "activations.h"
#include "export.h"
#include "recurrence.h"
#include "schedule.h"

typedef struct {
    int64_t units, carried, bias_stride;
    const real *given, *bias;   /* the projected input [., 3 H], or dL/dh [., H]; b_hh, by row if its stride is not 0 */
    real *gates, *inner;        /* of this step: [., 3 H], and W_n h + b_n [., H] */
    const real *states_before;  /* h of the step before */
    real *states, *delta, *delta_hidden, *direct; /* direct: dL/dh that the step after hands back past its gates */
} gru;

INLINE void gru_gates(const void *cell, const int whole, place at) {
    const gru *step = cell;
    const int64_t units = step->units, wide = at.row * 3 * units + at.unit;
    const real *bias = step->bias + at.row * step->bias_stride + at.unit;
#pragma GCC unroll 3
    for (int gate = 0; gate < 3; gate++) {
        vector z = take(bias + gate * units, whole, at.which);
        if (at.linked) z = load(at.sums + gate * PANEL) + z;
        if (gate < 2) {
            z = logistic(take(step->given + wide + gate * units, whole, at.which) + z);
            put(step->gates + wide + gate * units, z, whole, at.which);
        }
        store(at.sums + gate * PANEL, z);
    }
}

INLINE void gru_states(const void *cell, const int whole, place at) {
    const gru *step = cell;
    const int64_t units = step->units, here = at.row * units + at.unit, wide = at.row * 3 * units + at.unit;
    const vector r = load(at.sums), z = load(at.sums + PANEL), inner = load(at.sums + 2 * PANEL);
    const vector given = take(step->given + wide + 2 * units, whole, at.which);
    const vector n = hyperbolic_tangent(multiply_add(r, inner, given));
    vector h = multiply_add(-z, n, n);
    if (at.linked) h = multiply_add(z, take(step->states_before + here, whole, at.which), h);
    put(step->gates + wide + 2 * units, n, whole, at.which);
    put(step->inner + here, inner, whole, at.which);
    put(step->states + here, h, whole, at.which);
}

INLINE void gru_gates_back(const void *cell, const int whole, place at) {
    const gru *step = cell;
    const int64_t units = step->units, here = at.row * units + at.unit, wide = at.row * 3 * units + at.unit;
    const vector one = spread(1);
    vector to_h = take(step->given + here, whole, at.which);
    if (at.linked) to_h = load(at.sums) + to_h;
    if (at.linked) to_h = to_h + take(step->direct + here, whole, at.which);
    const vector r = take(step->gates + wide, whole, at.which);
    const vector z = take(step->gates + wide + units, whole, at.which);
    const vector n = take(step->gates + wide + 2 * units, whole, at.which);
    vector difference = -n;
    if (at.row < step->carried) {
        difference = take(step->states_before + here, whole, at.which) - n;
        put(step->direct + here, to_h * z, whole, at.which);
    }
    const vector of_z = to_h * difference * (z * (one - z));
    const vector of_n = to_h * (one - z) * (one - n * n);
    const vector of_r = of_n * take(step->inner + here, whole, at.which) * (r * (one - r));
    for (int part_of_layer = 0; part_of_layer < 2; part_of_layer++) {
        real *delta = (part_of_layer ? step->delta_hidden : step->delta) + wide;
        put(delta, of_r, whole, at.which);
        put(delta + units, of_z, whole, at.which);
        put(delta + 2 * units, part_of_layer ? of_n * r : of_n, whole, at.which);
    }
}

EXPORT(gru_forward)(WAY, const real *given,
                       const real *bias, int64_t bias_stride, const real *weight, real *states, real *gates,
                       real *inner) {
    move *plan = schedule(steps, sizes, direction);
    real *sums = reserve(sums_size(3, units) + panels_size(units, 3, units)), *panels = sums + sums_size(3, units);
    const int ready = plan && sums;
    if (ready) pack_transposed(panels, weight, units, 3, units);
    for (int64_t n = 0; ready && n < steps; n++) {
        const move m = plan[n];
        const int64_t here = m.first * units;
        const gru step = {.units = units, .bias_stride = bias_stride, .given = given + 3 * here,
                          .bias = bias + m.first * bias_stride, .gates = gates + 3 * here, .inner = inner + here,
                          .states_before = states + m.before * units, .states = states + here};
        recur(m.size, m.carried, states + m.before * units, units, 3, units, panels, sums, gru_gates, gru_states, &step);
    }
    release(sums);
    free(plan);
    return ready;
}

EXPORT(gru_backward)(WAY, const real *grad,
                        const real *weight, const real *states, const real *gates, const real *inner, real *delta,
                        real *delta_hidden) {
    move *plan = schedule(steps, sizes, direction);
    const int64_t carried_size = up_to(widest(steps, sizes) * units, LANES);
    real *sums = reserve(sums_size(1, units) + carried_size + panels_size(3 * units, 1, units));
    real *direct = sums + sums_size(1, units), *panels = direct + carried_size;
    const int ready = plan && sums;
    if (ready) pack(panels, weight, 3 * units, units);
    for (int64_t n = steps - 1; ready && n >= 0; n--) {
        const move m = plan[n];
        const int64_t here = m.first * units;
        const gru step = {.units = units, .carried = m.carried, .given = grad + here,
                          .gates = (real *)gates + 3 * here, .inner = (real *)inner + here,
                          .states_before = states + m.before * units, .delta = delta + 3 * here,
                          .delta_hidden = delta_hidden + 3 * here, .direct = direct};
        recur(m.size, m.taken, delta_hidden + m.after * 3 * units, 3 * units, 1, units, panels, sums, gru_gates_back,
              NULL, &step);
    }
    release(sums);
    free(plan);
    return ready;
}

#endif
