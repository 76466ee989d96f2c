/* Vectors of the widest registers that this file is compiled for.
 *
 * Everything is written in the compiler's vector extensions; the few operations that these lack (a fused
 * multiply-add, one number in all lanes, a load of some lanes) are intrinsics where there are such and plain
 * loops elsewhere. Lanes are always neighbouring columns, never parts of one sum, so that a result does not depend on
 * how many lanes there are.
 */
#ifndef PERDURE_VECTORS_H
#define PERDURE_VECTORS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#ifdef PERDURE_DOUBLE
typedef double real;
typedef uint64_t bits;
#define ROOT sqrt
#else
typedef float real;
typedef uint32_t bits;
#define ROOT sqrtf
#endif

/* A register tile is ROWS x PANEL_VECTORS sums; with a row of factors and one factor spread they must all fit. */
#if defined(__AVX512F__)
#define BYTES 64
#define ROWS 12
#elif defined(__AVX2__) && defined(__FMA__)
#define BYTES 32
#define ROWS 6
#elif defined(__aarch64__)
#define BYTES 16
#define ROWS 12
#else
#define BYTES 16
#define ROWS 6
#endif

#define LANES ((int64_t)(BYTES / sizeof(real)))
#define PANEL_VECTORS 2
#define PANEL (PANEL_VECTORS * LANES)
#define INLINE static inline __attribute__((always_inline))

typedef real vector __attribute__((vector_size(BYTES)));
typedef bits lanes __attribute__((vector_size(BYTES)));
typedef real unaligned __attribute__((vector_size(BYTES), aligned(sizeof(real)), may_alias));

INLINE vector load(const real *from) { return *(const unaligned *)from; }

INLINE void store(real *to, vector value) { *(unaligned *)to = value; }

/* One number in all lanes. */
INLINE vector spread(real value) {
#if defined(__AVX512F__) && defined(PERDURE_DOUBLE)
    return (vector)_mm512_set1_pd(value);
#elif defined(__AVX512F__)
    return (vector)_mm512_set1_ps(value);
#elif BYTES == 32 && defined(PERDURE_DOUBLE)
    return (vector)_mm256_set1_pd(value);
#elif BYTES == 32
    return (vector)_mm256_set1_ps(value);
#else
    vector result;
    for (int64_t lane = 0; lane < LANES; lane++) result[lane] = value;
    return result;
#endif
}

/* a b + c, rounded once wherever the processor can; contraction by the compiler is turned off, so that
 * this is the only place where it happens. */
INLINE vector multiply_add(vector a, vector b, vector c) {
#if defined(__AVX512F__) && defined(PERDURE_DOUBLE)
    return (vector)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__AVX512F__)
    return (vector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif BYTES == 32 && defined(PERDURE_DOUBLE)
    return (vector)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif BYTES == 32
    return (vector)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__) && defined(PERDURE_DOUBLE)
    return (vector)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#elif defined(__aarch64__)
    return (vector)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}

/* Where the mask is set the first, elsewhere the second. */
INLINE vector choose(lanes mask, vector first, vector second) {
    return (vector)(((lanes)first & mask) | ((lanes)second & ~mask));
}

/* The value, moved between the limits; what is not a number stays so. */
INLINE vector between(vector value, real lowest, real highest) {
#if defined(__AVX512F__) && defined(PERDURE_DOUBLE)
    return (vector)_mm512_min_pd((__m512d)spread(highest), _mm512_max_pd((__m512d)spread(lowest), (__m512d)value));
#elif defined(__AVX512F__)
    return (vector)_mm512_min_ps((__m512)spread(highest), _mm512_max_ps((__m512)spread(lowest), (__m512)value));
#elif BYTES == 32 && defined(PERDURE_DOUBLE)
    return (vector)_mm256_min_pd((__m256d)spread(highest), _mm256_max_pd((__m256d)spread(lowest), (__m256d)value));
#elif BYTES == 32
    return (vector)_mm256_min_ps((__m256)spread(highest), _mm256_max_ps((__m256)spread(lowest), (__m256)value));
#else
    value = choose((lanes)(value < spread(lowest)), spread(lowest), value);
    return choose((lanes)(value > spread(highest)), spread(highest), value);
#endif
}

/* The bit that is the sign. */
INLINE lanes sign_of(vector value) { return (lanes)value & (lanes)spread((real)-0.0); }

INLINE vector magnitude(vector value) { return (vector)((lanes)value ^ sign_of(value)); }

/* The first `count` of a row's lanes: a column block at the right edge is narrower than a vector. */
typedef struct {
    int64_t count;
#if BYTES == 32
    __m256i mask;
#endif
} part;

INLINE part part_of(int64_t count) {
    part result = {.count = count < LANES ? count : LANES};
#if BYTES == 32
    lanes mask;
    for (int64_t lane = 0; lane < LANES; lane++) mask[lane] = lane < count ? ~(bits)0 : 0;
    result.mask = (__m256i)mask;
#endif
    return result;
}

INLINE vector load_part(const real *from, part which) {
#if defined(__AVX512F__) && defined(PERDURE_DOUBLE)
    return (vector)_mm512_maskz_loadu_pd((__mmask8)((1u << which.count) - 1), from);
#elif defined(__AVX512F__)
    return (vector)_mm512_maskz_loadu_ps((__mmask16)((1u << which.count) - 1), from);
#elif BYTES == 32 && defined(PERDURE_DOUBLE)
    return (vector)_mm256_maskload_pd(from, which.mask);
#elif BYTES == 32
    return (vector)_mm256_maskload_ps(from, which.mask);
#else
    vector result = {0};
    for (int64_t lane = 0; lane < LANES; lane++)
        if (lane < which.count) result[lane] = from[lane];
    return result;
#endif
}

INLINE void store_part(real *to, vector value, part which) {
#if defined(__AVX512F__) && defined(PERDURE_DOUBLE)
    _mm512_mask_storeu_pd(to, (__mmask8)((1u << which.count) - 1), (__m512d)value);
#elif defined(__AVX512F__)
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << which.count) - 1), (__m512)value);
#else
    for (int64_t lane = 0; lane < LANES; lane++)
        if (lane < which.count) to[lane] = value[lane];
#endif
}

/* A row's lanes, all of them or a part; `whole` is a constant wherever this is called. */
INLINE vector take(const real *from, const int whole, part which) {
    return whole ? load(from) : load_part(from, which);
}

INLINE void put(real *to, vector value, const int whole, part which) {
    if (whole)
        store(to, value);
    else
        store_part(to, value, which);
}

#endif
