/* Which of the compiled sets of instructions this processor has; itself compiled for any processor. */
#ifdef _WIN32
#define PUBLIC __declspec(dllexport)
#else
#define PUBLIC __attribute__((visibility("default")))
#endif

/* 2: avx512, 1: avx2, 0: baseline; never what the operating system does not support. */
PUBLIC int perdure_highest_level(void) {
#if defined(PERDURE_X86)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
    return __builtin_cpu_supports("avx512f") ? 2 : 1;
#else
    return 0;
#endif
}

/* The hash of the sources that this library was made from. */
PUBLIC const char *perdure_sources(void) { return PERDURE_SOURCES; }
