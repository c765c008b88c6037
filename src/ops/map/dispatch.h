/* dispatch.h: one loop body, compiled for the baseline and for AVX2; the machine decides at each call which one runs.
   Nothing is contracted in either, so both give the same bits.

   BODY(name) { ... }  DISPATCH(name)  make the loop `name`. */
#ifndef CN_MAP_DISPATCH_H
#define CN_MAP_DISPATCH_H

#define BODY(name)  BODY_(name)
#define BODY_(name) static inline __attribute__((always_inline)) void name##_body(const cn_loop *l)

#define DISPATCH(name) DISPATCH_(name)
#if defined(__x86_64__) && !defined(__AVX2__)
#define DISPATCH_(name)                                                                                        \
    __attribute__((target("avx2"))) static void name##_avx2(const cn_loop *l) { name##_body(l); }              \
    static void name(const cn_loop *l)                                                                         \
    {                                                                                                          \
        if (__builtin_cpu_supports("avx2")) name##_avx2(l);                                                    \
        else name##_body(l);                                                                                   \
    }
#else
#define DISPATCH_(name) static void name(const cn_loop *l) { name##_body(l); }
#endif

/* The result may lie where an operand did, element on element: iterations never depend on each other. */
#if defined(__clang__) || !defined(__GNUC__)
#define INDEPENDENT
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#endif
