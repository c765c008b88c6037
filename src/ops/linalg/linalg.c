/* linalg.c: what the operators of linear algebra share. */
#include "ops/linalg/linalg.h"

#include <math.h>

#include "ops/kernels.h"

/* ---- shapes ---- */

/* LAPACK's integers have 32 bits, and its workspaces up to four times the elements of a matrix. */
enum { MOST = 16384 };

static const char *fault_of(const cn_layout *x, bool square)
{
    if (x->ndim < 2) return "A must have at least 2 axes";
    const int64_t rows = x->shape[x->ndim - 2], cols = x->shape[x->ndim - 1];
    if (square && rows != cols) return "A must have square matrices";
    return rows > MOST || cols > MOST ? "A must have at most 16384 rows and columns" : NULL;
}

static bool infer(cn_infer *i, bool square)
{
    const char *fault = fault_of(&i->in[0]->layout, square);
    char s[96];
    return !fault ||
           cn_infer_fail(i, CN_BAD_SHAPE, "%s, got %s", fault, cn__shape_text(&i->in[0]->layout, s, sizeof s));
}

bool cn__infer_matrix(cn_infer *i) { return infer(i, false); }
bool cn__infer_square(cn_infer *i) { return infer(i, true); }

static bool is(const char *who, const cn_tensor *x, bool square)
{
    const char *fault = fault_of(cn__layout(x), square);
    char s[96];
    return !fault ||
           cn__fail(x->ctx, CN_BAD_SHAPE, "%s: %s, got %s", who, fault, cn__shape_text(cn__layout(x), s, sizeof s));
}

bool cn__is_matrix(const char *who, const cn_tensor *x) { return is(who, x, false); }
bool cn__is_square(const char *who, const cn_tensor *x) { return is(who, x, true); }

bool cn__infer_right_side(cn_infer *i)
{
    const cn_layout *a = &i->in[0]->layout, *b = &i->in[1]->layout;
    bool fits = a->ndim == b->ndim && b->shape[b->ndim - 2] == a->shape[a->ndim - 2];
    for (int d = 0; d < a->ndim - 2 && fits; d++) fits = a->shape[d] == b->shape[d];
    char s[96], t[96];
    return fits ||
           cn_infer_fail(i, CN_BAD_SHAPE, "B must have as many rows as A, and the same batch, got A %s and B %s",
                         cn__shape_text(a, s, sizeof s), cn__shape_text(b, t, sizeof t));
}

bool cn__is_right_vector(const cn_layout *a, const cn_layout *b)
{
    if (b->ndim != a->ndim - 1) return false;
    for (int d = 0; d < b->ndim; d++)
        if (a->shape[d] != b->shape[d]) return false;
    return true;
}

static cn__matrices matrices(int ndim, const int64_t *shape)
{
    cn__matrices m = { shape[ndim - 2], shape[ndim - 1], 1 };
    for (int d = 0; d < ndim - 2; d++) m.count *= shape[d];
    return m;
}

cn__matrices cn__matrices_of(const cn_array *x) { return matrices(x->ndim, x->shape); }
cn__matrices cn__matrices_in(const cn_layout *x) { return matrices(x->ndim, x->shape); }

/* ---- batches on the CPU ---- */

typedef struct batch {
    cn__matrix_job job;
    cn__matrix_fn fn;
    size_t bytes;
    int64_t count;
} batch;

/* Matrices get scratch of their own where there are fewer of them than threads. */
static void some(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    const batch *b = user;
    cn__matrix_job j = b->job;
    for (int64_t m = begin; m < end; m++) {
        j.own = (char *)k->scratch + (size_t)(b->count < cn_threads(k) ? m : thread) * b->bytes;
        b->fn(&j, m);
    }
}

void cn__each_matrix(const cn_kernel *k, int64_t count, size_t bytes, cn__matrix_fn fn)
{
    const cn__lapack *lapack = &k->kernels->lapack;
    const bool is_f64 = k->in[0].dtype == CN_F64;
    batch b = { { k, &lapack->of[is_f64], is_f64 ? 8 : 4, is_f64, NULL }, fn, cn__round_up_bytes(bytes, 64), count };
    const int64_t work = k->in[0].numel / cn__larger(count, 1) + 1;
    if (lapack->alone) some(k, &b, 0, count, 0);
    else cn_parallel(k, count, 1 + 1024 / work, some, &b);
}

size_t cn__each_matrix_scratch(int64_t count, size_t bytes, int threads)
{
    return (size_t)cn__smaller(count, threads) * cn__round_up_bytes(bytes, 64);
}

void cn__transpose_matrix(const cn__matrix_job *j, void *to, const void *from, int64_t rows, int64_t cols)
{
    enum { BLOCK = 16 };
    for (int64_t r0 = 0; r0 < rows; r0 += BLOCK)
        for (int64_t c0 = 0; c0 < cols; c0 += BLOCK)
            for (int64_t r = r0; r < cn__smaller(rows, r0 + BLOCK); r++)
                for (int64_t c = c0; c < cn__smaller(cols, c0 + BLOCK); c++) {
                    if (j->is_f64) ((double *)to)[c * rows + r] = ((const double *)from)[r * cols + c];
                    else ((float *)to)[c * rows + r] = ((const float *)from)[r * cols + c];
                }
}

bool cn__all_finite(const cn__matrix_job *j, const void *p, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(cn__get(j, p, i))) return false;
    return true;
}

double cn__vector_sign(const cn__matrix_job *j, const void *p, int64_t n, int64_t step)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(cn__get(j, p, i * step)));
    for (int64_t i = 0; i < n; i++) {
        const double v = cn__get(j, p, i * step);
        if (fabs(v) >= 0.9375 * most) return v < 0 ? -1 : 1;
    }
    return 1;
}

/* ---- steps of gradients and composites ---- */

cn_tensor *cn__eye_like(cn_tensor *x, int64_t n) { return x ? cn_eye(x->ctx, cn__dtype(x), n, n) : NULL; }

cn_tensor *cn__as_diagonal(cn_tensor *v, int64_t n) { return cn_mul(cn_unsqueeze(v, -1), cn__eye_like(v, n)); }

cn_tensor *cn__with_batch(cn_tensor *x, cn_tensor *like)
{
    if (!x || !like) return NULL;
    const cn_layout *a = cn__layout(x), *b = cn__layout(like);
    if (a->ndim < 2 || b->ndim < 2) return x;
    cn_dims shape = { a->ndim > b->ndim ? a->ndim : b->ndim, { 0 } };
    for (int d = 1; d <= shape.n; d++) {
        const int64_t p = d <= a->ndim ? a->shape[a->ndim - d] : 1, q = d <= b->ndim ? b->shape[b->ndim - d] : 1;
        shape.v[shape.n - d] = d <= 2 || p != 1 ? p : q; /* sizes that do not broadcast are left to the shape rule */
    }
    return cn_expand(x, shape);
}
