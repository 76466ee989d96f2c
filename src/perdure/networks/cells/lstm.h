/* Gates i, f, g, o; c_t = f c_{t-1} + i g; h_t = o tanh(c_t). */
#ifndef PERDURE_LSTM_H
#define PERDURE_LSTM_H

#include "activations.h"
#include "export.h"
#include "recurrence.h"
#include "schedule.h"

typedef struct {
    int64_t units, carried;
    const real *given;                     /* the projected input [., 4 H], or dL/dh [., H] */
    real *gates, *memory, *squashed;       /* of this step: [., 4 H], c and tanh c [., H] */
    const real *memory_before;             /* c of the step before */
    real *states, *delta, *to_memory;      /* h; the deltas [., 4 H]; dL/dc that the step after hands back */
} lstm;

INLINE void lstm_gates(const void *cell, const int whole, place at) {
    const lstm *step = cell;
    const int64_t units = step->units, wide = at.row * 4 * units + at.unit;
#pragma GCC unroll 4
    for (int gate = 0; gate < 4; gate++) {
        vector z = take(step->given + wide + gate * units, whole, at.which);
        if (at.linked) z = load(at.sums + gate * PANEL) + z;
        z = gate == 2 ? hyperbolic_tangent(z) : logistic(z);
        put(step->gates + wide + gate * units, z, whole, at.which);
        store(at.sums + gate * PANEL, z);
    }
}

INLINE void lstm_states(const void *cell, const int whole, place at) {
    const lstm *step = cell;
    const int64_t here = at.row * step->units + at.unit;
    const vector i = load(at.sums), f = load(at.sums + PANEL), g = load(at.sums + 2 * PANEL);
    vector c = i * g;
    if (at.linked) c = multiply_add(f, take(step->memory_before + here, whole, at.which), c);
    const vector squashed = hyperbolic_tangent(c);
    put(step->memory + here, c, whole, at.which);
    put(step->squashed + here, squashed, whole, at.which);
    put(step->states + here, load(at.sums + 3 * PANEL) * squashed, whole, at.which);
}

INLINE void lstm_gates_back(const void *cell, const int whole, place at) {
    const lstm *step = cell;
    const int64_t units = step->units, here = at.row * units + at.unit, wide = at.row * 4 * units + at.unit;
    const vector one = spread(1), zero = {0};
    vector to_h = take(step->given + here, whole, at.which);
    if (at.linked) to_h = load(at.sums) + to_h;
    vector gate[4];
    for (int n = 0; n < 4; n++) gate[n] = take(step->gates + wide + n * units, whole, at.which);
    const vector i = gate[0], f = gate[1], g = gate[2], o = gate[3];
    const vector squashed = take(step->squashed + here, whole, at.which);
    vector to_c = to_h * o * (one - squashed * squashed);
    if (at.linked) to_c = to_c + take(step->to_memory + here, whole, at.which);
    vector forget = zero;
    if (at.row < step->carried) {
        forget = to_c * take(step->memory_before + here, whole, at.which) * (f * (one - f));
        put(step->to_memory + here, to_c * f, whole, at.which);
    }
    real *delta = step->delta + wide;
    put(delta, to_c * g * (i * (one - i)), whole, at.which);
    put(delta + units, forget, whole, at.which);
    put(delta + 2 * units, to_c * i * (one - g * g), whole, at.which);
    put(delta + 3 * units, to_h * squashed * (o * (one - o)), whole, at.which);
}

EXPORT(lstm_forward)(WAY, const real *given,
                        const real *weight, real *states, real *gates, real *memory, real *squashed) {
    move *plan = schedule(steps, sizes, direction);
    real *sums = reserve(sums_size(4, units) + panels_size(units, 4, units)), *panels = sums + sums_size(4, units);
    const int ready = plan && sums;
    if (ready) pack_transposed(panels, weight, units, 4, units);
    for (int64_t n = 0; ready && n < steps; n++) {
        const move m = plan[n];
        const int64_t here = m.first * units;
        const lstm step = {.units = units, .given = given + 4 * here, .gates = gates + 4 * here,
                           .memory = memory + here, .squashed = squashed + here,
                           .memory_before = memory + m.before * units, .states = states + here};
        recur(m.size, m.carried, states + m.before * units, units, 4, units, panels, sums, lstm_gates, lstm_states, &step);
    }
    release(sums);
    free(plan);
    return ready;
}

EXPORT(lstm_backward)(WAY, const real *grad,
                         const real *weight, const real *gates, const real *memory, const real *squashed,
                         real *delta) {
    move *plan = schedule(steps, sizes, direction);
    const int64_t carried_size = up_to(widest(steps, sizes) * units, LANES);
    real *sums = reserve(sums_size(1, units) + carried_size + panels_size(4 * units, 1, units));
    real *to_memory = sums + sums_size(1, units), *panels = to_memory + carried_size;
    const int ready = plan && sums;
    if (ready) pack(panels, weight, 4 * units, units);
    for (int64_t n = steps - 1; ready && n >= 0; n--) {
        const move m = plan[n];
        const int64_t here = m.first * units;
        const lstm step = {.units = units, .carried = m.carried, .given = grad + here,
                           .gates = (real *)gates + 4 * here, .squashed = (real *)squashed + here,
                           .memory_before = memory + m.before * units, .delta = delta + 4 * here,
                           .to_memory = to_memory};
        recur(m.size, m.taken, delta + m.after * 4 * units, 4 * units, 1, units, panels, sums, lstm_gates_back, NULL,
              &step);
    }
    release(sums);
    free(plan);
    return ready;
}

#endif
