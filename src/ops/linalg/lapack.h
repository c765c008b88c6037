/* linalg/lapack.h: functions of LAPACK and BLAS by their Fortran names, looked up at run time. There is no header: the
   types below are the interface of Fortran with 32-bit integers. Every argument is a pointer, matrices are
   column-major, and the lengths of texts follow at the end. */
#ifndef CN_OPS_LAPACK_H
#define CN_OPS_LAPACK_H

#include <stdbool.h>
#include <stddef.h>

#include "cairn/op.h"

/* Name without the letter of its type, and parameters. The same for f32 (s) and f64 (d). */
#define CN__LAPACK_FUNCTIONS(ROW)                                                                                    \
    ROW(potrf, (const char *uplo, const int *n, void *a, const int *lda, int *info, size_t))                         \
    ROW(trsm,                                                                                                        \
        (const char *side, const char *uplo, const char *trans, const char *diag, const int *m, const int *n,        \
         const void *alpha, const void *a, const int *lda, void *b, const int *ldb, size_t, size_t, size_t, size_t)) \
    ROW(getrf, (const int *m, const int *n, void *a, const int *lda, int *pivots, int *info))                        \
    ROW(getrs, (const char *trans, const int *n, const int *right, const void *a, const int *lda, const int *pivots, \
                void *b, const int *ldb, int *info, size_t))                                                         \
    ROW(geqrf,                                                                                                       \
        (const int *m, const int *n, void *a, const int *lda, void *tau, void *work, const int *lwork, int *info))   \
    ROW(orgqr, (const int *m, const int *n, const int *k, void *a, const int *lda, const void *tau, void *work,      \
                const int *lwork, int *info))                                                                        \
    ROW(syevd, (const char *jobz, const char *uplo, const int *n, void *a, const int *lda, void *w, void *work,      \
                const int *lwork, int *iwork, const int *liwork, int *info, size_t, size_t))                         \
    ROW(gesdd,                                                                                                       \
        (const char *jobz, const int *m, const int *n, void *a, const int *lda, void *s, void *u, const int *ldu,    \
         void *vt, const int *ldvt, void *work, const int *lwork, int *iwork, int *info, size_t))

typedef struct cn__lapack_functions {
#define CN__POINTER(name, parameters) void(*name) parameters;
    CN__LAPACK_FUNCTIONS(CN__POINTER)
#undef CN__POINTER
} cn__lapack_functions;

typedef struct cn__lapack {
    bool found;
    bool alone;                 /* one thread at a time may call it */
    cn__lapack_functions of[2]; /* f32, f64 */
} cn__lapack;

/* Shape rules call it: on the CPU it fails if there is no LAPACK. */
bool cn__lapack_ready(cn_infer *i);

#endif
