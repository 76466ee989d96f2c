/* How functions are named and made public: EXPORT(lstm_forward) is lstm_forward_avx2_f32. */
#ifndef PERDURE_EXPORT_H
#define PERDURE_EXPORT_H

#ifdef _WIN32
#define PUBLIC __declspec(dllexport)
#else
#define PUBLIC __attribute__((visibility("default")))
#endif

#ifdef PERDURE_DOUBLE
#define PRECISION f64
#else
#define PRECISION f32
#endif
#define JOIN(a, b, c) a##_##b##_##c
#define NAMED(name, level, precision) JOIN(name, level, precision)
#define EXPORT(name) PUBLIC int NAMED(name, PERDURE_LEVEL, PRECISION)

/* The path of a sweep over packed rows, and the width of the states. */
#define WAY int64_t steps, const int64_t *sizes, int64_t direction, int64_t units

#endif
