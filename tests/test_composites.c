/* Functions that are composed of operators: values that PyTorch computes, gradients and gradients of gradients by finite
   differences, whole numbers, and the errors of wrong calls. */
#include <math.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"

enum { MOST = 48, ROOM = 8 };

static cn_ctx *cn;

/* ---- the table ---- */

/* The results of a function that writes a list, along a new axis; or one after the other, times 1, 2, .. */
static cn_tensor *list[ROOM], *second;
static cn_tensor *listed(int n) { return n ? cn_stack(list, n, 0) : NULL; }
static cn_tensor *joined(int n)
{
    for (int k = 0; k < n; k++) list[k] = cn_mul_s(list[k], k + 1);
    return n ? cn_cat(list, n, 0) : NULL;
}
static cn_tensor *pair(cn_tensor *first) { return cn_stack((cn_tensor *[]){ first, second }, 2, 0); }

typedef struct composite {
    const char *name;
    cn_function fn;
    int n_in;
    cn_dims in[3], shape;
    double y[MOST];
    bool smooth;
} composite;

#define CASE(name, expression, ...)                                   \
    static cn_tensor *name(void *user, cn_tensor *const *in, int n)   \
    {                                                                 \
        cn_tensor *x = in[0], *y = in[n > 1], *z = in[n > 2 ? 2 : 0]; \
        return (void)user, (void)x, (void)y, (void)z, (expression);   \
    }
#include "composites.def"
#undef CASE

#define SHAPE(n, ...)      \
    {                      \
        n, { __VA_ARGS__ } \
    }
#define COUNT(...) (int)(sizeof((cn_dims[]){ __VA_ARGS__ }) / sizeof(cn_dims))
#define OPERANDS(...) \
    COUNT(__VA_ARGS__), { __VA_ARGS__ }
#define VALUES(...) \
    {               \
        __VA_ARGS__ \
    }
#define CASE(name, expression, operands, shape, values, smooth) { #name, name, operands, shape, values, smooth },
static const composite table[] = {
#include "composites.def"
};

static cn_tensor *operand(int k, cn_dims shape)
{
    double v[MOST];
    int64_t n = 1;
    for (int d = 0; d < shape.n; d++) n *= shape.v[d];
    for (int64_t i = 0; i < n; i++) v[i] = (double)((37 * i + 11 * k + 5) % 23 - 11) / 8;
    return cn_param(cn_from(cn, CN_F64, shape, v));
}

static void check_values(const composite *c, cn_tensor *y)
{
    double got[MOST];
    cn_dims shape = y ? cn_shape(y) : CN_DIMS(0);
    bool same = y && shape.n == c->shape.n && !memcmp(shape.v, c->shape.v, sizeof *shape.v * (size_t)shape.n);
    if (!check(same && cn_read_f64(y, got, cn_numel(y)), "%s: shape: %s", c->name, cn_error(cn))) return;
    for (int64_t i = 0; i < cn_numel(y); i++)
        check(fabs(got[i] - c->y[i]) < 1e-10, "%s: element %d must be %.12g, got %.12g", c->name, (int)i, c->y[i],
              got[i]);
}

static void check_table(void)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const composite *c = &table[i];
        const cn_scope scope = cn_scope_begin(cn);
        char words[400] = "";
        cn_gradcheck_desc desc = { .words = words, .words_size = sizeof words };
        cn_tensor *in[3] = { 0 };
        check_group(c->name);
        for (int k = 0; k < c->n_in; k++) in[k] = operand(k, c->in[k]);
        check_values(c, c->fn(NULL, in, c->n_in));
        if (c->smooth && cn_numel(c->fn(NULL, in, c->n_in))) {
            check(cn_gradcheck(c->fn, NULL, in, c->n_in, &desc), "%s: gradient: %s", c->name, words);
            check(cn_gradgradcheck(c->fn, NULL, in, c->n_in, &desc), "%s: second gradient: %s", c->name, words);
        }
        for (int k = 0; k < c->n_in; k++) cn_release(in[k]);
        cn_error_clear(cn);
        cn_scope_end(cn, scope);
    }
}

/* ---- dtypes ---- */

static void check_dtype(const char *what, cn_tensor *y, cn_dtype wanted)
{
    check(y && cn_type(y) == wanted, "%s: got %s %s", what, y ? cn_dtype_name(cn_type(y)) : "nothing", cn_error(cn));
    cn_error_clear(cn);
}

static void check_dtypes(void)
{
    check_group("dtypes");
    cn_tensor *m = cn_cast(cn_arange(cn, CN_F32, 0, 9, 1), CN_I32), *mask = cn_gt_s(m, 3), *at;
    m = cn_reshape(m, CN_DIMS(3, 3));
    check_dtype("trace", cn_trace(m), CN_I64);
    check_dtype("addmm", cn_addmm(m, m, m, 2, 3), CN_I32);
    check_dtype("diff", cn_diff(mask, 1, 0, NULL, NULL), CN_BOOL);
    check_dtype("vander", cn_vander(cn_select(m, 0, 1), -1, true), CN_I64);
    check_dtype("nansum", cn_nansum(m, CN_ALL, false), CN_I64);
    check_dtype("rpow_s", cn_rpow_s(m, 2), CN_I32);
    check_dtype("rpow_s", cn_rpow_s(m, 0.5), CN_F32);
    check_dtype("rad2deg", cn_rad2deg(m), CN_F32);
    check_dtype("nan_to_num", cn_nan_to_num(m, 1, 2, 3), CN_I32);
    check_dtype("cummin", cn_cummin(m, 0, &at), CN_I32);
    check_dtype("cummin's indices", at, CN_I64);
    check_dtype("fmax", cn_fmax(mask, mask), CN_BOOL);
    check_dtype("xlogy", cn_xlogy(m, m), CN_F32);
    const cn_dtype floats[] = { CN_F16, CN_BF16, CN_F32, CN_F64 };
    const double largest[] = { 65504, 3.3895313892515355e38, 3.4028234663852886e38, 1.7976931348623157e308 };
    for (int k = 0; k < 4; k++) {
        cn_tensor *y = cn_nan_to_num(cn_scalar(cn, floats[k], -INFINITY), NAN, NAN, NAN);
        check(cn_item(y) == -largest[k], "the lowest %s is %g", cn_dtype_name(floats[k]), cn_item(y));
    }
}

static void check_allclose(void)
{
    check_group("allclose");
    cn_tensor *x = cn_from(cn, CN_F32, CN_DIMS(3), (float[]){ 1, NAN, INFINITY });
    cn_tensor *y = cn_mul_s(x, 1 + 1e-6);
    check(!cn_allclose(x, y, 1e-5, 1e-8, false), "NaN is close to NaN");
    check(cn_allclose(x, y, 1e-5, 1e-8, true), "1 and 1.000001 are apart");
    check(!cn_allclose(x, y, 1e-8, 1e-8, true), "1 and 1.000001 are close");
    check(cn_allclose(cn_zeros(cn, CN_F32, CN_DIMS(0)), cn_zeros(cn, CN_F32, CN_DIMS(0)), 0, 0, false),
          "nothing is close");
    check(!cn_failed(cn), "%s", cn_error(cn));
}

/* ---- errors ---- */

static void refused(bool none, const char *part)
{
    check(none && strstr(cn_error(cn), part), "must say \"%s\", says \"%s\"", part, cn_error(cn));
    cn_error_clear(cn);
}

static void check_errors(void)
{
    check_group("errors");
    cn_tensor *v = cn_ones(cn, CN_F32, CN_DIMS(3)), *m = cn_ones(cn, CN_F32, CN_DIMS(2, 3)), *out[2];
    cn_tensor *whole = cn_ones(cn, CN_I32, CN_DIMS(3, 3)), *half = cn_ones(cn, CN_F16, CN_DIMS(3));
    refused(!cn_mm(m, v), "mm: the operands of the product must have 2 and 2 axes, got [2,3] and [3]");
    refused(!cn_mm(m, m), "mm: ");
    refused(!cn_bmm(cn_ones(cn, CN_F32, CN_DIMS(2, 1, 1)), cn_ones(cn, CN_F32, CN_DIMS(1, 1, 1))),
            "one size, got 2 and 1");
    refused(!cn_addmm(m, m, cn_transpose(m, 0, 1), 1, 1), "addmm: ");
    refused(!cn_addmm(whole, whole, whole, 0.5, 1), "addmm: beta must be a whole number for i32, got 0.5");
    refused(!cn_tensordot(m, m, CN_DIMS(0, 0), CN_DIMS(0, 1)), "tensordot: expects one axis");
    refused(!cn_cross(m, cn_transpose(m, 0, 1), 1), "cross: both operands");
    refused(!cn_cdist(m, v, 2), "cdist: operands must be (..., n, m) and (..., k, m), got [2,3] and [3]");
    refused(!cn_cdist(m, m, -1), "cdist: p must be ≥ 0, got -1");
    refused(!cn_kron(cn_ones(cn, CN_F32, CN_DIMS(1, 1, 1, 1, 1)), v), "kron: operands may have at most 4 axes, got 5");
    refused(!cn_isclose(v, half, 0, 0, false), "isclose: both operands must have one dtype, got f32 and f16");
    refused(!cn_isclose(v, v, -1, 0, false), "isclose: rtol and atol must be ≥ 0, got -1 and 0");
    refused(!cn_allclose(v, half, 0, 0, false), "allclose: both operands");
    refused(!cn_polygamma(-1, v), "polygamma: n must be ≥ 0, got -1");
    refused(!cn_positive(cn_gt_s(v, 0)), "positive: input must not be bool");
    refused(!cn_nanmean(whole, CN_ALL, false), "nanmean: dtype must be a float, got i32");
    refused(!cn_trace(v), "trace: input must be a matrix, got 1 axes");
    refused(!cn_diag(cn_ones(cn, CN_F32, CN_DIMS(1, 1, 1)), 0), "diag: input must be a vector or a matrix, got 3 axes");
    refused(!cn_diag_embed(v, INT64_MIN, 0, 1), "diag_embed: offset -9223372036854775808 is too large");
    refused(!cn_movedim(m, CN_DIMS(0, 1), CN_DIMS(0)),
            "movedim: expects as many places as axes, got 2 axes and 1 places");
    refused(!cn_movedim(m, CN_DIMS(0, -2), CN_DIMS(0, 1)), "movedim: axis -2 is given twice for [2,3]");
    refused(!cn_unflatten(m, 1, CN_DIMS(2, -1)), "unflatten: axis 1 of [2,3] cannot have the sizes [2,-1]");
    refused(!cn_rot90(v, 1, CN_DIMS(0, 1)), "rot90: expects 2 axes of at least 2, got 2 of 1");
    refused(!cn_diff(m, -1, 0, NULL, NULL), "diff: n must be ≥ 0, got -1");
    refused(!cn_diff(m, 1, 0, v, NULL), "diff: prepend and append must have as many axes as input, got 1 and 2");
    refused(!cn_diff(m, 1, 2, NULL, NULL), "diff: dim must be an axis of [2,3], got 2");
    refused(!cn_vander(m, 2, false), "vander: x must be a vector");
    refused(!cn_unbind(m, 1, out, 2), "unbind: the result has 3 parts, but out has room for 2");
    refused(!cn_tensor_split(m, 0, 1, out, 2), "tensor_split: sections must be ≥ 1, got 0");
    refused(!cn_meshgrid((cn_tensor *[]){ v, m }, 2, CN_INDEXING_IJ, out, 2),
            "meshgrid: operands must be vectors, got 2 axes");
    refused(!cn_meshgrid((cn_tensor *[]){ v, half }, 2, CN_INDEXING_IJ, out, 2),
            "meshgrid: vectors must have one dtype");
    refused(!cn_meshgrid((cn_tensor *[]){ v, v, v }, 3, CN_INDEXING_IJ, out, 2), "meshgrid: the result has 3 parts");
    refused(!cn_block_diag((cn_tensor *[]){ v, cn_ones(cn, CN_F32, CN_DIMS(1, 1, 1)) }, 2),
            "block_diag: operands must be");
}

int main(void)
{
    cn = cn_open(&(cn_desc){ .device = "cpu" });
    if (!cn) return 1;
    check_table();
    check_dtypes();
    check_allclose();
    check_errors();
    cn_close(cn);
    return finish();
}
