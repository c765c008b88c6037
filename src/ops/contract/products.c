/* Products that are composed of matmul: mm, bmm, mv and what adds to them; tensordot, kron, cross, cdist. */
#include <math.h>

#include "ops/contract/contract.h"

/* Whether the operands have n and m axes. */
static bool check_axes(const char *who, cn_tensor *a, int n, cn_tensor *b, int m)
{
    const cn_layout *la = cn__layout(a), *lb = cn__layout(b);
    char s[96], t[96];
    if (la->ndim == n && lb->ndim == m) return true;
    return cn__fail(a->ctx, CN_BAD_SHAPE, "%s: the operands of the product must have %d and %d axes, got %s and %s",
                    who, n, m, cn__shape_text(la, s, sizeof s), cn__shape_text(lb, t, sizeof t));
}

static bool check_batches(const char *who, cn_tensor *a, cn_tensor *b)
{
    if (!check_axes(who, a, 3, b, 3)) return false;
    int64_t n = cn__layout(a)->shape[0], m = cn__layout(b)->shape[0];
    if (n == m) return true;
    return cn__fail(a->ctx, CN_BAD_SHAPE, "%s: both batches must have one size, got %lld and %lld", who, (long long)n,
                    (long long)m);
}

extern const cn_op cn__op_mul; /* ops/map */

/* ---- products of so many axes ---- */

cn_tensor *cn_mm(cn_tensor *a, cn_tensor *b)
{
    CN__CALL call = cn__enter_list((cn_tensor *[]){ a, b }, 2, __func__);
    return call.ctx && check_axes("mm", a, 2, b, 2) ? cn_matmul(a, b) : NULL;
}

cn_tensor *cn_bmm(cn_tensor *a, cn_tensor *b)
{
    CN__CALL call = cn__enter_list((cn_tensor *[]){ a, b }, 2, __func__);
    return call.ctx && check_batches("bmm", a, b) ? cn_matmul(a, b) : NULL;
}

cn_tensor *cn_mv(cn_tensor *a, cn_tensor *b)
{
    CN__CALL call = cn__enter_list((cn_tensor *[]){ a, b }, 2, __func__);
    return call.ctx && check_axes("mv", a, 2, b, 1) ? cn_matmul(a, b) : NULL;
}

/* ---- beta·x + alpha·product ---- */

typedef cn_tensor *(*product_fn)(cn_tensor *a, cn_tensor *b);

/* (b, n, m) and (b, m, p): the sum over the batch is one product of (n, b·m) and (b·m, p). */
static cn_tensor *summed_products(cn_tensor *a, cn_tensor *b)
{
    if (!check_batches("addbmm", a, b)) return NULL;
    const cn_layout *la = cn__layout(a), *lb = cn__layout(b);
    if (la->shape[2] != lb->shape[1]) return cn_matmul(a, b); /* which fails */
    cn_tensor *left = cn_reshape(cn_permute(a, CN_DIMS(1, 0, 2)), CN_DIMS(la->shape[1], la->shape[0] * la->shape[2]));
    return cn_matmul(left, cn_reshape(b, CN_DIMS(lb->shape[0] * lb->shape[1], lb->shape[2])));
}

/* As in PyTorch, whole numbers have no fractional factors. */
static bool check_factor(cn_tensor *x, const char *who, const char *name, double factor)
{
    if (cn_dtype_is_float(cn__dtype(x)) || factor == floor(factor)) return true;
    return cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: %s must be a whole number for %s, got %g", who, name,
                    cn_dtype_name(cn__dtype(x)), factor);
}

static cn_tensor *scaled(cn_tensor *x, double factor) { return factor == 1 ? x : cn_mul_s(x, factor); }

static cn_tensor *added(cn_tensor *const x[3], product_fn product, double beta, double alpha, const char *who)
{
    const cn_dtype t = cn__dtype(x[0]), u = cn__dtype(x[1]);
    if (t != u)
        return cn__fail(x[0]->ctx, CN_BAD_DTYPE, "%s: operands must have one dtype, got %s and %s", who,
                        cn_dtype_name(t), cn_dtype_name(u)),
               NULL;
    if (!check_factor(x[0], who, "beta", beta) || !check_factor(x[0], who, "alpha", alpha)) return NULL;
    cn_tensor *y = product(x[1], x[2]), *wide = y ? cn_expand(x[0], cn_shape(y)) : NULL;
    if (!wide) return NULL;
    return beta == 0 ? scaled(y, alpha) : cn_add(scaled(wide, beta), scaled(y, alpha));
}

static cn_tensor *add_product(cn_tensor *const x[3], product_fn product, double beta, double alpha, const char *who)
{
    CN__CALL call = cn__enter_list(x, 3, who);
    if (!call.ctx) return NULL;
    const cn_scope scope = cn_scope_begin(call.ctx);
    return cn_scope_return(call.ctx, scope, added(x, product, beta, alpha, who + 3)); /* without cn_ */
}

cn_tensor *cn_addmm(cn_tensor *x, cn_tensor *a, cn_tensor *b, double beta, double alpha)
{
    return add_product((cn_tensor *[]){ x, a, b }, cn_mm, beta, alpha, __func__);
}

cn_tensor *cn_addmv(cn_tensor *x, cn_tensor *a, cn_tensor *b, double beta, double alpha)
{
    return add_product((cn_tensor *[]){ x, a, b }, cn_mv, beta, alpha, __func__);
}

cn_tensor *cn_baddbmm(cn_tensor *x, cn_tensor *a, cn_tensor *b, double beta, double alpha)
{
    return add_product((cn_tensor *[]){ x, a, b }, cn_bmm, beta, alpha, __func__);
}

cn_tensor *cn_addbmm(cn_tensor *x, cn_tensor *a, cn_tensor *b, double beta, double alpha)
{
    return add_product((cn_tensor *[]){ x, a, b }, summed_products, beta, alpha, __func__);
}

cn_tensor *cn_addr(cn_tensor *x, cn_tensor *a, cn_tensor *b, double beta, double alpha)
{
    CN__CALL call = cn__enter_list((cn_tensor *[]){ x, a, b }, 3, __func__);
    if (!call.ctx) return NULL;
    /* Unlike the others, it accepts several dtypes. */
    const cn_dtype t = cn__result_dtype(&cn__op_mul, (cn_tensor *[]){ x, a, b }, 3);
    const cn_scope scope = cn_scope_begin(call.ctx);
    cn_tensor *y =
        add_product((cn_tensor *[]){ cn_cast(x, t), cn_cast(a, t), cn_cast(b, t) }, cn_outer, beta, alpha, __func__);
    return cn_scope_return(call.ctx, scope, y);
}

/* ---- other products ---- */

/* The letters of an operand in an equation: `first` and so on, but for the axes in `dims` 'A' and so on. False if an
   axis is out of range or given twice. */
static bool letters(char *out, int ndim, const cn_dims *dims, char first)
{
    for (int d = 0; d < ndim; d++) out[d] = (char)(first + d);
    for (int k = 0; k < dims->n; k++) {
        int d = cn__axis(dims->v[k], ndim);
        if (d < 0 || out[d] < 'a') return false;
        out[d] = (char)('A' + k);
    }
    return true;
}

cn_tensor *cn_tensordot(cn_tensor *a, cn_tensor *b, cn_dims dims_a, cn_dims dims_b)
{
    CN__CALL call = cn__enter_list((cn_tensor *[]){ a, b }, 2, __func__);
    if (!call.ctx) return NULL;
    char equation[64] = "", s[96], t[96];
    int n = cn_ndim(a), m = cn_ndim(b), end = n + m + 1;
    bool ok = dims_a.n == dims_b.n && dims_a.n >= 0 && dims_a.n <= CN_MAX_DIMS;
    if (!ok || !letters(equation, n, &dims_a, 'a') || !letters(equation + n + 1, m, &dims_b, 'a' + CN_MAX_DIMS)) {
        cn__fail(a->ctx, CN_BAD_ARGUMENT, "tensordot: expects one axis of %s for each of %s, each given once",
                 cn__shape_text(cn__layout(a), s, sizeof s), cn__shape_text(cn__layout(b), t, sizeof t));
        return NULL;
    }
    equation[n] = ',';
    equation[end++] = '-', equation[end++] = '>';
    for (int d = 0, all = n + m + 1; d < all; d++)
        if (equation[d] >= 'a') equation[end++] = equation[d];
    return cn_einsum(equation, (cn_tensor *[]){ a, b }, 2);
}

/* a as (a0, 1, a1, 1, ..) times b as (1, b0, 1, b1, ..), where the operand with fewer axes has axes of size 1 first */
static cn_tensor *kron(cn_tensor *a, cn_tensor *b)
{
    const cn_layout *l[] = { cn__layout(a), cn__layout(b) };
    int n = l[0]->ndim > l[1]->ndim ? l[0]->ndim : l[1]->ndim;
    if (2 * n > CN_MAX_DIMS) {
        cn__fail(a->ctx, CN_BAD_SHAPE, "kron: operands may have at most %d axes, got %d", CN_MAX_DIMS / 2, n);
        return NULL;
    }
    cn_dims wide[2] = { { .n = 2 * n }, { .n = 2 * n } }, out = { .n = n };
    for (int d = 0; d < n; d++) {
        out.v[d] = 1;
        for (int k = 0; k < 2; k++) {
            int64_t size = d < n - l[k]->ndim ? 1 : l[k]->shape[d - n + l[k]->ndim];
            wide[k].v[2 * d + k] = size;
            wide[k].v[2 * d + 1 - k] = 1;
            out.v[d] *= size;
        }
    }
    return cn_reshape(cn_mul(cn_reshape(a, wide[0]), cn_reshape(b, wide[1])), out);
}

cn_tensor *cn_kron(cn_tensor *a, cn_tensor *b)
{
    CN__CALL call = cn__enter_list((cn_tensor *[]){ a, b }, 2, __func__);
    if (!call.ctx) return NULL;
    const cn_scope scope = cn_scope_begin(a->ctx);
    return cn_scope_return(a->ctx, scope, kron(a, b));
}

/* Element k of the result is a[k+1] b[k+2] - a[k+2] b[k+1], modulo 3. */
static cn_tensor *cross(cn_tensor *a, cn_tensor *b, int64_t axis)
{
    const cn_layout *la = cn__layout(a), *lb = cn__layout(b);
    int da = cn__axis(axis, la->ndim), db = cn__axis(axis, lb->ndim);
    if (la->ndim != lb->ndim || da < 0 || la->shape[da] != 3 || lb->shape[db] != 3) {
        char s[96], t[96];
        cn__fail(a->ctx, CN_BAD_SHAPE,
                 "cross: both operands must have as many axes, and 3 elements along dim %lld, got %s and %s",
                 (long long)axis, cn__shape_text(la, s, sizeof s), cn__shape_text(lb, t, sizeof t));
        return NULL;
    }
    cn_tensor *x[3], *y[3], *z[3];
    for (int k = 0; k < 3; k++) x[k] = cn_narrow(a, da, k, 1), y[k] = cn_narrow(b, da, k, 1);
    for (int k = 0; k < 3; k++) {
        int i = (k + 1) % 3, j = (k + 2) % 3;
        z[k] = cn_sub(cn_mul(x[i], y[j]), cn_mul(x[j], y[i]));
    }
    return cn_cat(z, 3, da);
}

cn_tensor *cn_cross(cn_tensor *a, cn_tensor *b, int64_t axis)
{
    CN__CALL call = cn__enter_list((cn_tensor *[]){ a, b }, 2, __func__);
    if (!call.ctx) return NULL;
    const cn_scope scope = cn_scope_begin(a->ctx);
    return cn_scope_return(a->ctx, scope, cross(a, b, axis));
}

/* The difference of every two rows is an operand of norm, and never stored. */
static cn_tensor *cdist(cn_tensor *a, cn_tensor *b, double p)
{
    const cn_layout *la = cn__layout(a), *lb = cn__layout(b);
    char s[96], t[96];
    if (la->ndim < 2 || lb->ndim < 2 || la->shape[la->ndim - 1] != lb->shape[lb->ndim - 1]) {
        cn__fail(a->ctx, CN_BAD_SHAPE, "cdist: operands must be (..., n, m) and (..., k, m), got %s and %s",
                 cn__shape_text(la, s, sizeof s), cn__shape_text(lb, t, sizeof t));
        return NULL;
    }
    if (!(p >= 0)) {
        cn__fail(a->ctx, CN_BAD_ARGUMENT, "cdist: p must be ≥ 0, got %g", p);
        return NULL;
    }
    if (la->shape[la->ndim - 1] == 0) p = 1; /* of no elements every norm is 0 */
    return cn_norm(cn_sub(cn_unsqueeze(a, -2), cn_unsqueeze(b, -3)), p, CN_DIMS(-1), false);
}

cn_tensor *cn_cdist(cn_tensor *a, cn_tensor *b, double p)
{
    CN__CALL call = cn__enter_list((cn_tensor *[]){ a, b }, 2, __func__);
    if (!call.ctx) return NULL;
    const cn_scope scope = cn_scope_begin(a->ctx);
    return cn_scope_return(a->ctx, scope, cdist(a, b, p));
}
