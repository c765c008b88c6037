/* Rules of normalisation, softmax, dropout and losses. */
#include "onnx/rules.h"

/* (1, C, 1, ...): a vector of channels, for x of n axes. */
static cn_tensor *by_channel(cn_tensor *v, int n)
{
    if (!v) return NULL;
    cn_dims shape = { .n = n - 1 };
    for (int i = 0; i < n - 1; i++) shape.v[i] = i ? 1 : cn_numel(v);
    return cn_reshape(v, shape);
}

static cn_dims all_but_channels(int n)
{
    cn_dims d = { .n = 0 };
    for (int i = 0; i < n; i++)
        if (i != 1) d.v[d.n++] = i;
    return d;
}

/* ---- batches ---- */

/* The statistics of the batch, and the running ones after it. */
static bool batch_norm_training(onnx_call *c, cn_tensor *x, double eps, double momentum)
{
    const cn_dtype t = cn_type(x);
    const cn_dims over = all_but_channels(cn_ndim(x));
    cn_tensor *wide = cn__onnx_wide(x), *mean = NULL;
    cn_tensor *var = cn_var_mean(wide, over, 0, true, &mean);
    cn_tensor *y = cn_mul(cn_sub(wide, mean), cn_rsqrt(cn_add_s(var, eps)));
    y = cn_add(cn_mul(y, by_channel(IN(1), cn_ndim(x))), by_channel(IN(2), cn_ndim(x)));
    if (!GIVE(cn_cast(y, t))) return false;
    cn_tensor *last[] = { mean, var };
    for (int i = 0; i < 2; i++) {
        cn_tensor *old = IN(3 + i);
        cn_tensor *now = cn_add(cn_mul_s(old, momentum), cn_mul_s(cn_reshape(last[i], CN_DIMS(-1)), 1 - momentum));
        if (!old || !GIVE_AT(1 + i, cn_cast(now, cn_type(old)))) return false;
    }
    return true;
}

bool cn__onnx_batch_normalization(onnx_call *c)
{
    cn_tensor *x = IN(0), *weight = IN(1), *bias = IN(2), *mean = IN(3), *var = IN(4);
    const double eps = FLOAT("epsilon", 1e-5), momentum = FLOAT("momentum", 0.9);
    if (!x || !weight || !bias || !mean || !var) return false;
    if (c->version >= 14 && INT("training_mode", 0)) return batch_norm_training(c, x, eps, momentum);
    const cn_dtype t = cn_type(x);
    const bool training = cn_module_training(c->run->model->module) && c->ctx == c->run->model->ctx;
    if (cn_ndim(x) < 2 || cn_type(weight) != t || cn_type(mean) != t || (c->version < 9 && !INT("spatial", 1))) {
        cn_tensor *scale = cn_mul(cn_cast(weight, cn_type(var)), cn_rsqrt(cn_add_s(var, eps)));
        cn_tensor *y = cn_ndim(x) < 2 || (c->version < 9 && !INT("spatial", 1))
                           ? cn_add(cn_mul(cn_sub(x, mean), scale), bias)
                           : cn_add(cn_mul(cn_sub(x, by_channel(mean, cn_ndim(x))), by_channel(scale, cn_ndim(x))),
                                    by_channel(bias, cn_ndim(x)));
        return GIVE(cn_cast(y, t));
    }
    const cn_batch_norm_desc d = {
        .running_mean = mean, .running_var = var, .training = training, .momentum = 1 - momentum, .eps = eps
    };
    return GIVE(cn_batch_norm(x, weight, bias, &d));
}

/* ---- samples ---- */

bool cn__onnx_instance_normalization(onnx_call *c)
{
    return GIVE(cn_instance_norm(IN(0), IN(1), IN(2), FLOAT("epsilon", 1e-5)));
}

static bool same_shape(cn_tensor *x, cn_tensor *part)
{
    const int n = part ? cn_ndim(part) : 0;
    for (int i = 1; i <= n; i++)
        if (i > cn_ndim(x) || cn_size(x, -i) != cn_size(part, -i)) return false;
    return true;
}

/* Both norms: over the axes from `axis` on; scale and bias broadcast. */
static bool layer_norm(onnx_call *c, bool centred)
{
    cn_tensor *x = IN(0), *scale = IN(1), *bias = centred ? IN(2) : NULL;
    const int axis = x ? cn__onnx_axis(c, INT("axis", -1), cn_ndim(x)) : -1;
    if (axis < 0 || !scale) return false;
    const int over = cn_ndim(x) - axis;
    const double eps = FLOAT("epsilon", 1e-5);
    const cn_dtype t = cn_type(x);
    const bool fits = cn_ndim(scale) == over && same_shape(x, scale) && cn_type(scale) == t &&
                      (!bias || (cn_ndim(bias) == over && same_shape(x, bias) && cn_type(bias) == t));
    cn_tensor *y;
    if (fits && centred) y = cn_layer_norm(x, over, scale, bias, eps);
    else if (fits) y = cn_rms_norm(x, over, scale, eps);
    else {
        y = centred ? cn_layer_norm(x, over, NULL, NULL, eps) : cn_rms_norm(x, over, NULL, eps);
        y = cn_mul(y, scale);
        if (bias) y = cn_add(y, bias);
        y = cn_cast(y, cn_type(scale));
    }
    if (!GIVE(y)) return false;
    if (!centred || (!cn__onnx_wanted(c, 1) && !cn__onnx_wanted(c, 2))) return true;
    cn_dims axes = { .n = over };
    for (int i = 0; i < over; i++) axes.v[i] = axis + i;
    cn_tensor *mean = NULL, *var = cn_var_mean(cn__onnx_wide(x), axes, 0, true, &mean);
    return GIVE_AT(1, mean) && GIVE_AT(2, cn_rsqrt(cn_add_s(var, eps)));
}
bool cn__onnx_layer_normalization(onnx_call *c) { return layer_norm(c, true); }
bool cn__onnx_rms_normalization(onnx_call *c) { return layer_norm(c, false); }

/* Before version 21 scale and bias have a number for each group. */
bool cn__onnx_group_normalization(onnx_call *c)
{
    cn_tensor *x = IN(0), *scale = IN(1), *bias = IN(2);
    const int64_t groups = INT("num_groups", 1);
    if (!x || !scale || !bias) return false;
    if (cn_ndim(x) < 2 || groups < 1 || cn_size(x, 1) % groups)
        return FAIL(CN_BAD_SHAPE, "the channels must be a multiple of num_groups = %lld", (long long)groups);
    if (c->version < 21) {
        scale = cn_repeat_interleave(scale, cn_size(x, 1) / groups, 0);
        bias = cn_repeat_interleave(bias, cn_size(x, 1) / groups, 0);
    }
    return GIVE(cn_group_norm(x, groups, scale, bias, FLOAT("epsilon", 1e-5)));
}

bool cn__onnx_mean_variance_normalization(onnx_call *c)
{
    cn_tensor *x = IN(0);
    onnx_ints given;
    cn_dims axes;
    if (!x || !cn__onnx_attr_ints(c, "axes", &given)) return false;
    if (given.n < 0) given = (onnx_ints){ 3, { 0, 2, 3 } };
    if (!cn__onnx_axes(c, &given, cn_ndim(x), &axes)) return false;
    cn_tensor *mean = NULL, *var = cn_var_mean(x, axes, 0, true, &mean);
    return GIVE(cn_div(cn_sub(x, mean), cn_add_s(cn_sqrt(var), 1e-9)));
}

/* x / (bias + alpha/size · Σx²)^beta, over `size` channels around each. */
bool cn__onnx_lrn(onnx_call *c)
{
    cn_tensor *x = IN(0);
    const int64_t size = INT("size", 1);
    const double alpha = FLOAT("alpha", 1e-4), beta = FLOAT("beta", 0.75), bias = FLOAT("bias", 1);
    if (!x) return false;
    if (cn_ndim(x) < 3 || size < 1 || size > INT32_MAX)
        return FAIL(CN_BAD_SHAPE, "the input must be (N, C, ...), and size ≥ 1, got %lld", (long long)size);
    if (size % 2) return GIVE(cn_local_response_norm(x, size, alpha, beta, bias));
    cn_tensor *squares = cn_transpose(cn_square(x), 1, -1);
    squares = cn_pad(squares, CN_DIMS((size - 1) / 2, size / 2), CN_PAD_CONSTANT, 0);
    cn_tensor *sums = cn_transpose(cn_sum(cn_unfold(squares, -1, size, 1), CN_DIMS(-1), false), 1, -1);
    return GIVE(cn_div(x, cn_pow_s(cn_add_s(cn_mul_s(sums, alpha / (double)size), bias), beta)));
}

bool cn__onnx_lp_normalization(onnx_call *c)
{
    cn_tensor *x = IN(0), *norm = cn_norm(x, (double)INT("p", 2), CN_DIMS(INT("axis", -1)), true);
    if (!norm) return false;
    return GIVE(cn_div(x, cn_where(cn_eq_s(norm, 0), cn_ones_like(norm), norm)));
}

/* ---- classes ---- */

/* Before version 13 the axes from `axis` on are one axis. */
static bool over_classes(onnx_call *c, cn_tensor *(*op)(cn_tensor *x, int64_t axis))
{
    cn_tensor *x = IN(0);
    const bool old = c->version < 13;
    if (!x) return false;
    if (cn_ndim(x) == 0) return GIVE(cn_reshape(op(cn_reshape(x, CN_DIMS(1)), 0), CN_SCALAR));
    const int64_t given = INT("axis", old ? 1 : -1);
    const int axis = old && given == cn_ndim(x) ? cn_ndim(x) : cn__onnx_axis(c, given, cn_ndim(x));
    if (axis < 0) return false;
    if (!old || axis == cn_ndim(x) - 1) return GIVE(op(x, axis));
    int64_t rows = 1;
    for (int i = 0; i < axis; i++) rows *= cn_size(x, i);
    cn_tensor *flat = cn_reshape(x, CN_DIMS(rows, rows ? cn_numel(x) / rows : 0));
    return GIVE(cn_reshape(op(flat, 1), cn_shape(x)));
}

static cn_tensor *hardmax(cn_tensor *x, int64_t axis)
{
    if (!x) return NULL;
    cn_tensor *first = cn_argmax(x, CN_DIMS(axis), true);
    return cn_scatter(cn_zeros_like(x), axis, first, cn_ones_like(cn_cast(first, cn_type(x))));
}
bool cn__onnx_softmax(onnx_call *c) { return over_classes(c, cn_softmax); }
bool cn__onnx_log_softmax(onnx_call *c) { return over_classes(c, cn_log_softmax); }
bool cn__onnx_hardmax(onnx_call *c) { return over_classes(c, hardmax); }

static bool loss_desc(onnx_call *c, cn_loss_desc *d)
{
    const char *reduction = TEXT("reduction", "mean");
    *d = (cn_loss_desc){ .weight = IN(2),
                         .has_ignore = cn__onnx_attr(c, "ignore_index") != NULL,
                         .ignore_index = INT("ignore_index", 0) };
    d->reduction = !strcmp(reduction, "sum") ? CN_SUM : !strcmp(reduction, "none") ? CN_NONE : CN_MEAN;
    return true;
}

static cn_tensor *index_of(cn_tensor *target) { return target ? cn_cast(target, CN_I64) : NULL; }

bool cn__onnx_nll_loss(onnx_call *c)
{
    cn_loss_desc d;
    return loss_desc(c, &d) && GIVE(cn_nll_loss(IN(0), index_of(IN(1)), &d));
}

bool cn__onnx_cross_entropy(onnx_call *c)
{
    cn_loss_desc d;
    if (!loss_desc(c, &d)) return false;
    cn_tensor *logs = cn__onnx_wanted(c, 1) ? cn_log_softmax(IN(0), 1) : NULL;
    if (logs) return GIVE(cn_nll_loss(logs, index_of(IN(1)), &d)) && GIVE_AT(1, logs);
    return GIVE(cn_cross_entropy(IN(0), index_of(IN(1)), &d));
}

/* ---- dropout ---- */

bool cn__onnx_dropout(onnx_call *c)
{
    cn_tensor *x = IN(0);
    onnx_floats ratio = { 1, { FLOAT("ratio", 0.5) } };
    onnx_ints mode = { .n = -1 };
    if (!x || (c->version >= 12 && (!cn__onnx_floats(c, 1, &ratio) || !cn__onnx_ints(c, 2, &mode)))) return false;
    const double p = ratio.n > 0 ? ratio.v[0] : 0.5;
    const bool training = (mode.n > 0 && mode.v[0]) || cn_module_training(c->run->model->module);
    const cn_dtype mask_type = c->version < 10 ? cn_type(x) : CN_BOOL;
    if (!training || p == 0) return GIVE(x) && GIVE_AT(1, cn_ones(c->ctx, mask_type, cn_shape(x)));
    if (!cn__onnx_wanted(c, 1)) return GIVE(cn_dropout(x, p, true));
    cn_tensor *keep = cn_ge_s(cn_rand(c->ctx, CN_F32, cn_shape(x)), p);
    return GIVE(cn_mul_s(cn_mul(x, cn_cast(keep, cn_type(x))), 1 / (1 - p))) && GIVE_AT(1, cn_cast(keep, mask_type));
}
