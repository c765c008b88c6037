/* dispatch.h: one loop body, compiled for the baseline and for AVX2 with FMA; the machine decides at each call which one
   runs. Compilers contract nothing in either; only the elementary functions, told by the constant `fused`, multiply and
   add in one instruction where there is one. On one machine a value therefore always has the same bits.

   BODY(name) { ... }  DISPATCH(name)  make the loop `name`. */
#ifndef CN_MAP_DISPATCH_H
#define CN_MAP_DISPATCH_H

#undef CN__FUSED
#define CN__FUSED   fused
#define BODY(name)  BODY_(name)
#define BODY_(name)                                                                                            \
    static inline __attribute__((always_inline)) void name##_body(const cn_loop *l,                            \
                                                                  __attribute__((unused)) const bool fused)

#define DISPATCH(name) DISPATCH_(name)
#if defined(__x86_64__) && !defined(__AVX2__)
#define DISPATCH_(name)                                                                                        \
    __attribute__((target("avx2,fma"))) static void name##_avx2(const cn_loop *l) { name##_body(l, true); }    \
    static void name(const cn_loop *l)                                                                         \
    {                                                                                                          \
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) name##_avx2(l);                   \
        else name##_body(l, false);                                                                            \
    }
#elif defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define DISPATCH_(name) static void name(const cn_loop *l) { name##_body(l, true); }
#else
#define DISPATCH_(name) static void name(const cn_loop *l) { name##_body(l, false); }
#endif

/* The result may lie where an operand did, element on element: iterations never depend on each other. */
#if defined(__clang__) || !defined(__GNUC__)
#define INDEPENDENT
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#endif
