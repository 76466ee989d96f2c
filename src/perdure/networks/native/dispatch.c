/* Which of the compiled sets of instructions this processor has; itself compiled for any processor. */
#if defined(PERDURE_X86)
#include <cpuid.h>
#endif

#include "export.h"

#if defined(PERDURE_X86)
#define HAS(word, bit) (((word) >> (bit)) & 1u)

/* The registers that the operating system saves when it changes between processes. */
static unsigned saved_registers(void) {
    unsigned low, high;
    __asm__ volatile(".byte 0x0f, 0x01, 0xd0" /* xgetbv */ : "=a"(low), "=d"(high) : "c"(0));
    return low;
}
#endif

/* 2: avx512, 1: avx2, 0: baseline. */
PUBLIC int perdure_highest_level(void) {
#if defined(PERDURE_X86)
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
    const unsigned fma = HAS(c, 12), readable = HAS(c, 27), avx = HAS(c, 28);
    if (!fma || !readable || !avx || (saved_registers() & 0x06) != 0x06) return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !HAS(b, 5)) return 0;
    return HAS(b, 16) && (saved_registers() & 0xe6) == 0xe6 ? 2 : 1;
#else
    return 0;
#endif
}

/* The hash of the sources that this library was made from. */
PUBLIC const char *perdure_sources(void) { return PERDURE_SOURCES; }
