/* fft, ifft, rfft, irfft: transforms along one axis, with PyTorch's lengths and factors; the same along several axes. */
#include <math.h>

#include "ops/fft/fft.h"

/* x with n elements along an axis: cut, or filled with zeros at the end. */
static cn_tensor *with_length(cn_tensor *x, int axis, int64_t n)
{
    if (!x || cn_size(x, axis) == n) return x;
    if (cn_size(x, axis) > n) return cn_narrow(x, axis, 0, n);
    cn_dims rest = cn_shape(x);
    rest.v[axis] = n - rest.v[axis];
    return cn_cat((cn_tensor *[]){ x, cn_zeros(x->ctx, cn__dtype(x), rest) }, 2, axis);
}

/* x times the factor of a norm. */
static cn_tensor *normalised(cn_tensor *x, int64_t n, int64_t norm, bool inverse)
{
    if (norm == CN_FFT_ORTHO) return cn_mul_s(x, 1 / sqrt((double)n));
    return (norm == CN_FFT_FORWARD) != inverse ? cn_mul_s(x, 1 / (double)n) : x;
}

/* The axis that an attribute names, or -1 after an error. */
static int axis_of(cn_ctx *ctx, const char *who, cn_tensor *x, const cn__fft_attrs *a, bool complex)
{
    const int ndim = cn_ndim(x) - (complex ? 1 : 0);
    char s[96];
    if (complex && (ndim < 1 || cn_size(x, -1) != 2)) {
        cn__fail(ctx, CN_BAD_SHAPE, "%s: a complex input has a last axis of 2, behind at least one other, got %s", who,
                 cn__shape_text(cn__layout(x), s, sizeof s));
        return -1;
    }
    const int axis = cn__axis(a->dim, ndim);
    if (axis < 0)
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: dim must be from %d to %d for an input of shape %s, got %lld", who, -ndim,
                 ndim - 1, cn__shape_text(cn__layout(x), s, sizeof s), (long long)a->dim);
    return axis;
}

static bool check(cn_ctx *ctx, const char *who, int64_t n, int64_t norm)
{
    if (norm < CN_FFT_BACKWARD || norm > CN_FFT_ORTHO)
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: norm must be one of cn_fft_norm, got %lld", who, (long long)norm);
    else if (n < 1)
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: a signal must have at least 1 element, got %lld", who, (long long)n);
    else return true;
    return false;
}

/* Rows of complex elements along the last axis but one; rows of real elements along the last. */
static cn_tensor *transform(const cn_op *op, cn_tensor *x, int axis, int from_end, const void *attrs)
{
    if (!x) return NULL;
    cn_tensor *rows = cn_transpose(x, axis, cn_ndim(x) - from_end);
    return cn_apply(op, &rows, 1, attrs, NULL);
}

static cn_tensor *complex_to_complex(cn_ctx *ctx, const char *who, cn_tensor *x, const cn__fft_attrs *a, bool inverse)
{
    const int axis = axis_of(ctx, who, x, a, true);
    if (axis < 0) return NULL;
    const int64_t n = a->n ? a->n : cn_size(x, axis);
    if (!check(ctx, who, n, a->norm)) return NULL;
    cn_tensor *y = transform(&cn__op_fft_c2c, with_length(x, axis, n), axis, 2, &(cn__fft_c2c_attrs){ inverse });
    return normalised(cn_transpose(y, axis, -2), n, a->norm, inverse);
}

static cn_tensor *fft_compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    return complex_to_complex(ctx, "fft", in[0], attrs, false);
}

static cn_tensor *ifft_compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    return complex_to_complex(ctx, "ifft", in[0], attrs, true);
}

static cn_tensor *rfft_compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const cn__fft_attrs *a = attrs;
    const int axis = axis_of(ctx, "rfft", in[0], a, false);
    if (axis < 0) return NULL;
    const int64_t n = a->n ? a->n : cn_size(in[0], axis);
    if (!check(ctx, "rfft", n, a->norm)) return NULL;
    cn_tensor *y = transform(&cn__op_fft_r2c, with_length(in[0], axis, n), axis, 1, NULL);
    return normalised(cn_transpose(y, axis, -2), n, a->norm, false);
}

static cn_tensor *irfft_compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const cn__fft_attrs *a = attrs;
    const int axis = axis_of(ctx, "irfft", in[0], a, true);
    if (axis < 0) return NULL;
    const int64_t n = a->n ? a->n : 2 * (cn_size(in[0], axis) - 1);
    if (!check(ctx, "irfft", n, a->norm)) return NULL;
    cn_tensor *y = transform(&cn__op_fft_c2r, with_length(in[0], axis, n / 2 + 1), axis, 2, &(cn__fft_c2r_attrs){ n });
    return normalised(cn_transpose(y, axis, -1), n, a->norm, true);
}

const cn_op cn__op_fft = {
    .call = "fft(Tensor input, int? n=None, int dim=-1, backward|forward|ortho norm=backward) -> Tensor",
    .name = "fft",
    .doc = "The spectrum of complex signals along an axis: Σ x[t] e^(-2πi kt/n).",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .ints_to_float = true,
    .attr_size = sizeof(cn__fft_attrs),
    .compose = fft_compose,
    .onnx = "DFT",
    CN_CASES({ CN_IN(CN_S(3, 8, 2)), .attrs = &(const cn__fft_attrs){ 0, -1, CN_FFT_BACKWARD } },
             { CN_IN(CN_S(5, 3, 2)), .attrs = &(const cn__fft_attrs){ 7, 0, CN_FFT_ORTHO } },
             { CN_IN(CN_S(2, 9, 2, 2)), .attrs = &(const cn__fft_attrs){ 6, 1, CN_FFT_FORWARD } },
             { CN_IN(CN_S(0, 3, 2)), .attrs = &(const cn__fft_attrs){ 0, 1, CN_FFT_FORWARD } },
             { CN_IN(CN_S(60, 31, 2)), .attrs = &(const cn__fft_attrs){ 0, 0, CN_FFT_BACKWARD } }),
};

const cn_op cn__op_ifft = {
    .call = "ifft(Tensor input, int? n=None, int dim=-1, backward|forward|ortho norm=backward) -> Tensor",
    .name = "ifft",
    .doc = "Complex signals from their spectrum: the inverse of fft.",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .ints_to_float = true,
    .attr_size = sizeof(cn__fft_attrs),
    .compose = ifft_compose,
    .onnx = "DFT",
    CN_CASES({ CN_IN(CN_S(3, 8, 2)), .attrs = &(const cn__fft_attrs){ 0, -1, CN_FFT_BACKWARD } },
             { CN_IN(CN_S(5, 3, 2)), .attrs = &(const cn__fft_attrs){ 7, 0, CN_FFT_ORTHO } },
             { CN_IN(CN_S(2, 9, 2, 2)), .attrs = &(const cn__fft_attrs){ 6, 1, CN_FFT_FORWARD } },
             { CN_IN(CN_S(60, 31, 2)), .attrs = &(const cn__fft_attrs){ 0, 0, CN_FFT_BACKWARD } }),
};

const cn_op cn__op_rfft = {
    .call = "rfft(Tensor input, int? n=None, int dim=-1, backward|forward|ortho norm=backward) -> Tensor",
    .name = "rfft",
    .doc = "The first n/2 + 1 elements of the spectrum of real signals along an axis; the others mirror them.",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .ints_to_float = true,
    .attr_size = sizeof(cn__fft_attrs),
    .compose = rfft_compose,
    .onnx = "DFT",
    CN_CASES({ CN_IN(CN_S(3, 8)), .attrs = &(const cn__fft_attrs){ 0, -1, CN_FFT_BACKWARD } },
             { CN_IN(CN_S(5, 3)), .attrs = &(const cn__fft_attrs){ 7, 0, CN_FFT_ORTHO } },
             { CN_IN(CN_S(2, 9, 2)), .attrs = &(const cn__fft_attrs){ 6, 1, CN_FFT_FORWARD } },
             { CN_IN(CN_S(1)), .attrs = &(const cn__fft_attrs){ 0, 0, CN_FFT_FORWARD } },
             { CN_IN(CN_S(60, 31)), .attrs = &(const cn__fft_attrs){ 0, 0, CN_FFT_BACKWARD } }),
};

const cn_op cn__op_irfft = {
    .call = "irfft(Tensor input, int? n=None, int dim=-1, backward|forward|ortho norm=backward) -> Tensor",
    .name = "irfft",
    .doc = "Real signals of n elements from the first half of their spectrum; n 0: 2(size - 1).",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .ints_to_float = true,
    .attr_size = sizeof(cn__fft_attrs),
    .compose = irfft_compose,
    .onnx = "DFT",
    CN_CASES({ CN_IN(CN_S(3, 5, 2)), .attrs = &(const cn__fft_attrs){ 0, -1, CN_FFT_BACKWARD } },
             { CN_IN(CN_S(5, 3, 2)), .attrs = &(const cn__fft_attrs){ 7, 0, CN_FFT_ORTHO } },
             { CN_IN(CN_S(2, 9, 2, 2)), .attrs = &(const cn__fft_attrs){ 6, 1, CN_FFT_FORWARD } },
             { CN_IN(CN_S(31, 31, 2)), .attrs = &(const cn__fft_attrs){ 0, 0, CN_FFT_BACKWARD } }),
};

static cn_tensor *along(const cn_op *op, cn_tensor *x, int64_t n, int64_t dim, cn_fft_norm norm)
{
    CN__CALL call = cn__enter_tensor(x, op->name);
    if (!call.ctx) return NULL;
    if (n >= 0) return cn_apply(op, &x, 1, &(cn__fft_attrs){ n, dim, norm }, NULL);
    cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: n must be ≥ 0, got %lld", op->name, (long long)n);
    return NULL;
}

cn_tensor *cn_fft(cn_tensor *x, int64_t n, int64_t dim, cn_fft_norm norm)
{
    return along(&cn__op_fft, x, n, dim, norm);
}
cn_tensor *cn_ifft(cn_tensor *x, int64_t n, int64_t dim, cn_fft_norm norm)
{
    return along(&cn__op_ifft, x, n, dim, norm);
}
cn_tensor *cn_rfft(cn_tensor *x, int64_t n, int64_t dim, cn_fft_norm norm)
{
    return along(&cn__op_rfft, x, n, dim, norm);
}
cn_tensor *cn_irfft(cn_tensor *x, int64_t n, int64_t dim, cn_fft_norm norm)
{
    return along(&cn__op_irfft, x, n, dim, norm);
}

/* ---- several axes ---- */

/* The list of axes, counted from the front; false after an error. */
static bool axes_of(cn_tensor *x, cn_dims dim, int ndim, const char *who, cn_dims *axes)
{
    axes->n = dim.n == -1 ? ndim : dim.n; /* CN_ALL */
    bool ok = axes->n >= 0 && axes->n <= CN_MAX_DIMS;
    for (int i = 0; i < axes->n && ok; i++) {
        axes->v[i] = dim.n == -1 ? i : cn__axis(dim.v[i], ndim);
        ok = axes->v[i] >= 0;
        for (int k = 0; k < i; k++) ok &= axes->v[k] != axes->v[i];
    }
    char s[96];
    if (!ok)
        cn__fail(x->ctx, CN_BAD_ARGUMENT,
                 "%s: dim must list different axes from %d to %d, got another list for shape %s", who, -ndim, ndim - 1,
                 cn__shape_text(cn__layout(x), s, sizeof s));
    return ok;
}

static cn_tensor *along_each(const cn_op *op, cn_tensor *x, const cn_dims *axes, int n, cn_fft_norm norm)
{
    for (int i = n - 1; i >= 0; i--) x = along(op, x, 0, axes->v[i], norm);
    return x;
}

static cn_tensor *complex_n(const cn_op *op, cn_tensor *x, cn_dims dim, cn_fft_norm norm, const char *who)
{
    CN__CALL call = cn__enter_tensor(x, who);
    cn_dims axes;
    if (!call.ctx || !axes_of(x, dim, cn__larger(cn_ndim(x) - 1, 0), who, &axes)) return NULL;
    return axes.n ? along_each(op, x, &axes, axes.n, norm) : cn_clone(x);
}

cn_tensor *cn_fftn(cn_tensor *x, cn_dims dim, cn_fft_norm norm) { return complex_n(&cn__op_fft, x, dim, norm, "fftn"); }
cn_tensor *cn_ifftn(cn_tensor *x, cn_dims dim, cn_fft_norm norm)
{
    return complex_n(&cn__op_ifft, x, dim, norm, "ifftn");
}

cn_tensor *cn_rfftn(cn_tensor *x, cn_dims dim, cn_fft_norm norm)
{
    CN__CALL call = cn__enter_tensor(x, "rfftn");
    cn_dims axes;
    if (!call.ctx || !axes_of(x, dim, cn_ndim(x), "rfftn", &axes)) return NULL;
    if (axes.n == 0) {
        cn__fail(x->ctx, CN_BAD_ARGUMENT, "rfftn: dim must name at least one axis");
        return NULL;
    }
    return along_each(&cn__op_fft, cn_rfft(x, 0, axes.v[axes.n - 1], norm), &axes, axes.n - 1, norm);
}

/* ---- frequencies ---- */

static bool can_sample(cn_ctx *ctx, cn_dtype dtype, int64_t n, double d, const char *who)
{
    if (!cn_dtype_is_float(dtype)) {
        cn__fail(ctx, CN_BAD_DTYPE, "%s: dtype must be f16, bf16, f32 or f64", who);
        return false;
    }
    if (n >= 1 && d != 0) return true;
    cn__fail(ctx, CN_BAD_ARGUMENT, "%s: n must be ≥ 1 and d not 0, got %lld and %g", who, (long long)n, d);
    return false;
}

cn_tensor *cn_fftfreq(cn_ctx *ctx, cn_dtype dtype, int64_t n, double d)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx || !can_sample(ctx, dtype, n, d, "fftfreq")) return NULL;
    const int64_t positive = n / 2 + n % 2;
    cn_tensor *parts[] = { cn_arange(ctx, dtype, 0, (double)positive, 1),
                           cn_arange(ctx, dtype, (double)(positive - n), 0, 1) };
    return cn_mul_s(cn_cat(parts, 2, 0), 1 / ((double)n * d));
}

cn_tensor *cn_rfftfreq(cn_ctx *ctx, cn_dtype dtype, int64_t n, double d)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx || !can_sample(ctx, dtype, n, d, "rfftfreq")) return NULL;
    return cn_mul_s(cn_arange(ctx, dtype, 0, (double)(n / 2 + 1), 1), 1 / ((double)n * d));
}

/* Rolls each axis by half its size, rounded down or up. */
static cn_tensor *shifted(cn_tensor *x, cn_dims dim, int64_t round, const char *who)
{
    CN__CALL call = cn__enter_tensor(x, who);
    if (!call.ctx) return NULL;
    cn_dims axes = dim, shifts = dim;
    if (dim.n == -1) { /* CN_ALL */
        axes.n = shifts.n = cn_ndim(x);
        for (int i = 0; i < axes.n; i++) axes.v[i] = i;
    }
    for (int i = 0; i < axes.n && i < CN_MAX_DIMS; i++) {
        const int axis = cn__axis(axes.v[i], cn_ndim(x)); /* roll reports one that is out of range */
        shifts.v[i] = axis < 0 ? 0 : cn_size(x, axis) / 2 + (round ? cn_size(x, axis) % 2 : 0);
    }
    return cn_roll(x, shifts, axes);
}

cn_tensor *cn_fftshift(cn_tensor *x, cn_dims dim) { return shifted(x, dim, 0, "fftshift"); }
cn_tensor *cn_ifftshift(cn_tensor *x, cn_dims dim) { return shifted(x, dim, 1, "ifftshift"); }
