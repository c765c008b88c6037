/* Detects the instruction sets of the processor. A context asks once, when it opens. */
#include "cpu/processor.h"

#include <stdbool.h>
#include <string.h>

#if defined(__aarch64__)
#define BASELINE "neon"
#else
#define BASELINE "baseline"
#endif
static const char *const names[CN__ISAS] = { BASELINE, "avx2", "avx512" };

const char *cn__isa_name(cn__isa isa) { return isa < CN__ISAS ? names[isa] : "unknown"; }

cn__isa cn__isa_named(const char *name)
{
    if (!strcmp(name, "baseline")) return CN__BASELINE; /* by this name too, whatever it is */
    int i = 0;
    while (i < CN__ISAS && strcmp(names[i], name)) i++;
    return (cn__isa)i;
}

cn__isa cn__isa_best(void)
{
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return CN__BASELINE;
    const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    return wide ? CN__AVX512 : CN__AVX2;
#else
    return CN__BASELINE;
#endif
}
