/* lapack.c: looks LAPACK up. */
#include "ops/linalg/lapack.h"

#include <stdlib.h>

#include "core/library.h"
#include "cpu/kernel.h"
#include "ops/kernels.h"

#define NAME_F32(name, parameters) "s" #name "_",
#define NAME_F64(name, parameters) "d" #name "_",
static const char *const names[2][sizeof(cn__lapack_functions) / sizeof(void (*)(void))] = {
    { CN__LAPACK_FUNCTIONS(NAME_F32) },
    { CN__LAPACK_FUNCTIONS(NAME_F64) },
};
enum { FUNCTIONS = sizeof names[0] / sizeof *names[0] };

/* OpenBLAS works with threads of its own, and sums in an order that depends on their number: it gets one. It may be
   called by several threads if it was built for threads. */
static void set_threads(cn__lapack *l, const char *file)
{
    struct {
        void (*set)(int n);
        int (*get_parallel)(void);
    } open_blas;
    static const char *const functions[] = { "openblas_set_num_threads", "openblas_get_parallel" };
    if (!cn__library_find(file, functions, 2, &open_blas)) return;
    open_blas.set(1);
    l->alone = open_blas.get_parallel() != 1;
}

static bool find(cn__lapack *l, const char *file)
{
    l->found = cn__library_find(file, names[0], FUNCTIONS, &l->of[0]) &&
               cn__library_find(file, names[1], FUNCTIONS, &l->of[1]);
    if (l->found) set_threads(l, file);
    return l->found;
}

static bool find_any(cn__lapack *l)
{
    static const char *const files[] = {
        CN__LIBRARY("lapack", "3"),
        CN__LIBRARY("openblas", "0"),
        CN__LIBRARY("mkl_rt", "2"),
#if defined(__APPLE__)
        "/System/Library/Frameworks/Accelerate.framework/Accelerate",
#endif
    };
    const char *named = getenv("CAIRN_LAPACK");
    if (named && *named) return find(l, named);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (find(l, files[i])) return true;
    return false;
}

bool cn__lapack_ready(cn_infer *i)
{
    cn__kernels *kernels = cn__cpu_kernels(i->ctx);
    if (!kernels || kernels->lapack.found || find_any(&kernels->lapack)) return true;
    const char *named = getenv("CAIRN_LAPACK");
    if (named && *named)
        return cn_infer_fail(i, CN_UNSUPPORTED, "needs LAPACK, and CAIRN_LAPACK names \"%s\", which has none", named);
    return cn_infer_fail(i, CN_UNSUPPORTED, "needs LAPACK; on Debian: apt-get install liblapack3");
}
