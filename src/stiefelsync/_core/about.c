/* What the library was made of and by, and what it finds here: the build defines FINGERPRINT, a
   digest of the sources. */
#include "kernels.h"

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "an unknown compiler"
#endif

API const char *fingerprint(void) { return FINGERPRINT; }

API const char *compiler(void) { return COMPILER; }

/* The widest registers of this processor that the kernels use. */
API const char *registers(void) {
#if CLONED
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) return "avx512";
    return __builtin_cpu_supports("avx2") ? "avx2" : "sse2";
#elif defined(__x86_64__)
    return "sse2";
#elif defined(__aarch64__)
    return "neon";
#else
    return "unknown registers";
#endif
}
