/* Rules of operators that make tensors, ask for shapes, and give other shapes. */
#include "onnx/rules.h"

/* ---- constants ---- */

bool cn__onnx_constant(onnx_call *c)
{
    onnx_weights *w = &c->run->model->weights;
    const onnx_attr *a;
    if (c->node->weight) return GIVE(cn__onnx_weight(c->run, c->node->constant, c->node->weight));
    if ((a = cn__onnx_attr(c, "value")) && a->t) return GIVE(cn__onnx_tensor(w, a->t, c->ctx));
    if ((a = cn__onnx_attr(c, "sparse_value")) && a->sparse) return GIVE(cn__onnx_dense(w, a->sparse, c->ctx));
    if ((a = cn__onnx_attr(c, "value_int"))) return GIVE(cn_from(c->ctx, CN_I64, CN_SCALAR, &a->i));
    if ((a = cn__onnx_attr(c, "value_float"))) return GIVE(cn_from(c->ctx, CN_F32, CN_SCALAR, &a->f));
    if ((a = cn__onnx_attr(c, "value_ints"))) return GIVE(cn_from(c->ctx, CN_I64, CN_DIMS(a->n_ints), a->ints));
    if ((a = cn__onnx_attr(c, "value_floats"))) return GIVE(cn_from(c->ctx, CN_F32, CN_DIMS(a->n_floats), a->floats));
    return FAIL(CN_UNSUPPORTED, "the constant is a text, or has no value");
}

bool cn__onnx_constant_of_shape(onnx_call *c)
{
    onnx_ints sizes;
    cn_dims shape;
    const onnx_attr *a = cn__onnx_attr(c, "value");
    if (!cn__onnx_ints(c, 0, &sizes) || !cn__onnx_dims(c, &sizes, &shape)) return false;
    for (int i = 0; i < shape.n; i++)
        if (shape.v[i] < 0) return FAIL(CN_BAD_SHAPE, "a size must be ≥ 0, got %lld", (long long)shape.v[i]);
    if (!a || !a->t) return GIVE(cn_zeros(c->ctx, CN_F32, shape));
    cn_tensor *value = cn__onnx_tensor(&c->run->model->weights, a->t, c->run->model->host);
    if (!value) return false;
    if (cn_numel(value) != 1) return FAIL(CN_BAD_SHAPE, "its value must be one number");
    return GIVE(cn_full(c->ctx, cn_type(value), shape, cn_item(cn_reshape(value, CN_SCALAR))));
}

bool cn__onnx_eye_like(onnx_call *c)
{
    cn_tensor *x = IN(0);
    cn_dtype t = x ? cn_type(x) : CN_F32;
    if (!x || (cn__onnx_attr(c, "dtype") && !cn__onnx_cast_to(c, INT("dtype", 1), &t))) return false;
    if (cn_ndim(x) != 2) return FAIL(CN_BAD_SHAPE, "the input must be a matrix, got %d axes", cn_ndim(x));
    cn_tensor *row = cn_reshape(cn_arange(c->ctx, CN_I64, 0, (double)cn_size(x, 0), 1), CN_DIMS(cn_size(x, 0), 1));
    cn_tensor *column = cn_arange(c->ctx, CN_I64, 0, (double)cn_size(x, 1), 1);
    return GIVE(cn_cast(cn_eq(cn_add_s(row, (double)INT("k", 0)), column), t));
}

bool cn__onnx_range(onnx_call *c)
{
    cn_tensor *start = IN(0);
    onnx_floats from, to, by;
    if (!start || !cn__onnx_floats(c, 0, &from) || !cn__onnx_floats(c, 1, &to) || !cn__onnx_floats(c, 2, &by))
        return false;
    if (from.n != 1 || to.n != 1 || by.n != 1 || !(by.v[0] != 0))
        return FAIL(CN_BAD_ARGUMENT, "start, limit and delta must be single numbers, and delta not 0");
    const double count = ceil((to.v[0] - from.v[0]) / by.v[0]);
    const double n = count > 0 ? count : 0;
    if (!(n < 1e15)) return FAIL(CN_BAD_ARGUMENT, "it would have %g elements", n);
    const cn_dtype t = cn_type(start);
    if (!cn_dtype_is_float(t))
        return GIVE(cn_cast(cn_add_s(cn_mul_s(cn_arange(c->ctx, CN_I64, 0, n, 1), by.v[0]), from.v[0]), t));
    cn_tensor *i = cn_arange(c->ctx, t == CN_F64 ? CN_F64 : CN_F32, 0, n, 1);
    return GIVE(cn_cast(cn_add_s(cn_mul_s(i, by.v[0]), from.v[0]), t));
}

/* ---- shapes ---- */

static cn_dims shape_of(onnx_call *c) { return cn_shape(c->in[0]->data ? c->in[0]->data : c->in[0]->known->host); }

bool cn__onnx_shape(onnx_call *c)
{
    if (c->in[0]->kind != ONNX_TENSOR) return FAIL(CN_BAD_ARGUMENT, "the input must be a tensor");
    const cn_dims s = shape_of(c);
    int64_t from = INT("start", 0), to = INT("end", s.n);
    from = from < 0 ? from + s.n : from;
    to = to < 0 ? to + s.n : to;
    from = from < 0 ? 0 : from > s.n ? s.n : from;
    to = to < from ? from : to > s.n ? s.n : to;
    return GIVE(cn_from(c->run->model->host, CN_I64, CN_DIMS(to - from), s.v + from));
}

bool cn__onnx_size(onnx_call *c)
{
    if (c->in[0]->kind != ONNX_TENSOR) return FAIL(CN_BAD_ARGUMENT, "the input must be a tensor");
    const cn_dims s = shape_of(c);
    int64_t n = 1;
    for (int i = 0; i < s.n; i++) n *= s.v[i];
    return GIVE(cn_from(c->run->model->host, CN_I64, CN_SCALAR, &n));
}

bool cn__onnx_reshape(onnx_call *c)
{
    cn_tensor *x = IN(0);
    onnx_ints sizes;
    cn_dims shape;
    if (!x || !cn__onnx_ints_of(c, "shape", 5, 1, &sizes) || !cn__onnx_dims(c, &sizes, &shape)) return false;
    const bool allow_zero = INT("allowzero", 0) != 0;
    const onnx_run *run = c->run;
    if (run->batch_given && shape.n && shape.v[0] == run->batch_declared && cn_ndim(x) &&
        cn_size(x, 0) == run->batch_given)
        shape.v[0] = run->batch_given;
    int64_t known = 1;
    int open = -1;
    for (int i = 0; i < shape.n; i++) {
        if (shape.v[i] == 0 && !allow_zero) {
            if (i >= cn_ndim(x)) return FAIL(CN_BAD_SHAPE, "size 0 at axis %d: the input has %d axes", i, cn_ndim(x));
            shape.v[i] = cn_size(x, i);
        }
        if (shape.v[i] == -1 && open < 0) open = i;
        else if (shape.v[i] < 0 || __builtin_mul_overflow(known, shape.v[i], &known))
            return FAIL(CN_BAD_SHAPE, "a size must be ≥ 0, or -1 once, got %lld", (long long)shape.v[i]);
    }
    if (open >= 0) shape.v[open] = known ? cn_numel(x) / known : 0;
    return GIVE(cn_reshape(x, shape));
}

bool cn__onnx_flatten(onnx_call *c)
{
    cn_tensor *x = IN(0);
    if (!x) return false;
    int64_t axis = INT("axis", 1), before = 1, after = 1;
    if (axis < 0) axis += cn_ndim(x);
    if (axis < 0 || axis > cn_ndim(x)) return FAIL(CN_BAD_ARGUMENT, "axis %lld is out of range", (long long)axis);
    for (int d = 0; d < cn_ndim(x); d++) *(d < axis ? &before : &after) *= cn_size(x, d);
    return GIVE(cn_reshape(x, CN_DIMS(before, after)));
}

bool cn__onnx_transpose(onnx_call *c)
{
    cn_tensor *x = IN(0);
    onnx_ints perm;
    cn_dims axes;
    if (!x || !cn__onnx_attr_ints(c, "perm", &perm)) return false;
    if (perm.n < 0)
        for (perm.n = 0; perm.n < cn_ndim(x); perm.n++) perm.v[perm.n] = cn_ndim(x) - 1 - perm.n;
    if (!cn__onnx_dims(c, &perm, &axes)) return false;
    return GIVE(axes.n ? cn_permute(x, axes) : x);
}

bool cn__onnx_squeeze(onnx_call *c)
{
    cn_tensor *x = IN(0);
    onnx_ints given;
    cn_dims axes, shape = CN_SCALAR;
    if (!x || !cn__onnx_ints_of(c, "axes", 13, 1, &given) || !cn__onnx_axes(c, &given, cn_ndim(x), &axes)) return false;
    for (int d = 0; d < cn_ndim(x); d++) {
        bool gone = given.n < 0 && cn_size(x, d) == 1;
        for (int i = 0; i < given.n; i++) gone |= axes.v[i] == d;
        if (gone && cn_size(x, d) != 1)
            return FAIL(CN_BAD_SHAPE, "axis %d has size %lld, and cannot be removed", d, (long long)cn_size(x, d));
        if (!gone) shape.v[shape.n++] = cn_size(x, d);
    }
    return GIVE(cn_reshape(x, shape));
}

bool cn__onnx_unsqueeze(onnx_call *c)
{
    cn_tensor *x = IN(0);
    onnx_ints given;
    if (!x || !cn__onnx_ints_of(c, "axes", 13, 1, &given)) return false;
    const int n = cn_ndim(x) + (given.n > 0 ? given.n : 0);
    if (n > CN_MAX_DIMS) return FAIL(CN_UNSUPPORTED, "the result has %d axes; at most %d are allowed", n, CN_MAX_DIMS);
    bool added[CN_MAX_DIMS] = { false };
    for (int i = 0; i < given.n; i++) {
        const int axis = cn__onnx_axis(c, given.v[i], n);
        if (axis < 0) return false;
        if (added[axis]) return FAIL(CN_BAD_ARGUMENT, "axis %d is named twice", axis);
        added[axis] = true;
    }
    cn_dims shape = { .n = n };
    for (int d = 0, from = 0; d < n; d++) shape.v[d] = added[d] ? 1 : cn_size(x, from++);
    return GIVE(cn_reshape(x, shape));
}

bool cn__onnx_expand(onnx_call *c)
{
    cn_tensor *x = IN(0);
    onnx_ints sizes;
    cn_dims shape;
    if (!x || !cn__onnx_ints(c, 1, &sizes) || !cn__onnx_dims(c, &sizes, &shape)) return false;
    const int n = cn_ndim(x) > shape.n ? cn_ndim(x) : shape.n;
    cn_dims out = { .n = n };
    for (int d = 1; d <= n; d++) {
        const int64_t have = d <= cn_ndim(x) ? cn_size(x, -d) : 1, want = d <= shape.n ? shape.v[shape.n - d] : 1;
        if (want < 0) return FAIL(CN_BAD_SHAPE, "a size must be ≥ 0, got %lld", (long long)want);
        out.v[n - d] = want == 1 ? have : want;
    }
    return GIVE(cn_expand(x, out));
}

bool cn__onnx_tile(onnx_call *c)
{
    cn_tensor *x = IN(0);
    onnx_ints given;
    cn_dims repeats;
    if (!x || !cn__onnx_ints(c, 1, &given) || !cn__onnx_dims(c, &given, &repeats)) return false;
    return GIVE(repeats.n ? cn_repeat(x, repeats) : x);
}

/* ---- joining and cutting ---- */

bool cn__onnx_concat(onnx_call *c)
{
    cn_tensor **t = cn__onnx_run_new(c->run, (size_t)c->n_in + 1, sizeof *t);
    int n = 0;
    for (int i = 0; t && i < c->n_in; i++)
        if (HAS(i) && !(t[n++] = IN(i))) return false;
    if (!t || !n) return t && FAIL(CN_BAD_ARGUMENT, "it needs an input");
    return GIVE(cn_cat(t, n, INT("axis", 1)));
}

/* Sizes of the parts along an axis: those given, or `parts` equal ones, of which the last may be smaller. */
bool cn__onnx_part_sizes(onnx_call *c, const onnx_ints *given, int64_t size, int parts, int64_t *out)
{
    int64_t at = 0;
    const int64_t each = parts > 0 ? (size + parts - 1) / parts : 0;
    for (int i = 0; i < parts; i++) {
        const int64_t left = size - at, n = given->n > 0  ? (i < given->n ? given->v[i] : -1)
                                            : each < left ? each
                                                          : left;
        if (n < 0 || n > left) return FAIL(CN_BAD_SHAPE, "the parts do not make up the size %lld", (long long)size);
        out[i] = n;
        at += n;
    }
    return at == size || FAIL(CN_BAD_SHAPE, "the parts do not make up the size %lld", (long long)size);
}

bool cn__onnx_split(onnx_call *c)
{
    cn_tensor *x = IN(0);
    onnx_ints given;
    int64_t *sizes = cn__onnx_run_new(c->run, (size_t)c->n_out + 1, sizeof *sizes), at = 0;
    const int axis = x ? cn__onnx_axis(c, INT("axis", 0), cn_ndim(x)) : -1;
    if (!sizes || axis < 0 || !cn__onnx_ints_of(c, "split", 13, 1, &given)) return false;
    if (!cn__onnx_part_sizes(c, &given, cn_size(x, axis), c->n_out, sizes)) return false;
    for (int i = 0; i < c->n_out; at += sizes[i++])
        if (!GIVE_AT(i, cn_narrow(x, axis, at, sizes[i]))) return false;
    return true;
}

/* x[start:end:step] along an axis; step may be negative. Unlike in NumPy, a start before the first element is the first
   one then. */
static cn_tensor *sliced(cn_tensor *x, int axis, int64_t start, int64_t end, int64_t step)
{
    const int64_t n = cn_size(x, axis);
    const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
    if (start < 0) start = start < -n ? 0 : start + n;
    if (end < 0) end = end < -n ? low : end + n;
    start = start > high ? high : start;
    end = end < low ? low : end > high ? high : end;
    if (step < 0) {
        x = cn_flip(x, CN_DIMS(axis));
        start = n - 1 - start;
        end = n - 1 - end;
        step = step == INT64_MIN ? INT64_MAX : -step;
    }
    return end <= start ? cn_narrow(x, axis, 0, 0) : cn_slice(x, axis, start, end, step < n ? step : n);
}

bool cn__onnx_slice(onnx_call *c)
{
    cn_tensor *x = IN(0);
    onnx_ints starts, ends, axes, steps = { .n = -1 };
    if (!x || !cn__onnx_ints_of(c, "starts", 10, 1, &starts) || !cn__onnx_ints_of(c, "ends", 10, 2, &ends) ||
        !cn__onnx_ints_of(c, "axes", 10, 3, &axes) || (c->version >= 10 && !cn__onnx_ints(c, 4, &steps)))
        return false;
    if (starts.n < 0 || ends.n != starts.n || (axes.n >= 0 && axes.n != starts.n) ||
        (steps.n >= 0 && steps.n != starts.n))
        return FAIL(CN_BAD_ARGUMENT, "starts, ends, axes and steps must have the same length");
    for (int i = 0; i < starts.n && x; i++) {
        const int axis = cn__onnx_axis(c, axes.n < 0 ? i : axes.v[i], cn_ndim(x));
        const int64_t step = steps.n < 0 ? 1 : steps.v[i];
        if (axis < 0) return false;
        if (step == 0) return FAIL(CN_BAD_ARGUMENT, "a step must not be 0");
        x = sliced(x, axis, starts.v[i], ends.v[i], step);
    }
    return GIVE(x);
}

/* ---- borders ---- */

/* Along an axis, a border of a number. */
static cn_tensor *with_border(onnx_call *c, cn_tensor *x, int axis, int64_t before, int64_t after, cn_tensor *value)
{
    cn_tensor *part[3];
    int n = 0;
    cn_dims shape = cn_shape(x);
    if (before > 0) shape.v[axis] = before, part[n++] = cn_expand(value, shape);
    part[n++] = x;
    if (after > 0) shape.v[axis] = after, part[n++] = cn_expand(value, shape);
    (void)c;
    return cn_cat(part, n, axis);
}

/* Which element stands at place i of an axis of n elements, beyond its ends. */
static int64_t mirrored(int64_t i, int64_t n, const char *mode)
{
    if (*mode == 'e') return i < 0 ? 0 : i >= n ? n - 1 : i;
    if (*mode == 'w') return ((i % n) + n) % n;
    const int64_t period = n > 1 ? 2 * (n - 1) : 1;
    i = ((i % period) + period) % period;
    return i < n ? i : period - i;
}

static cn_tensor *with_mirror(onnx_call *c, cn_tensor *x, int axis, int64_t before, int64_t after, const char *mode)
{
    const int64_t n = cn_size(x, axis), total = n + before + after;
    int64_t *from = total >= 0 && total < INT32_MAX ? cn__onnx_run_new(c->run, (size_t)total, sizeof *from) : NULL;
    if (!from || (n == 0 && total > 0)) return FAIL(CN_BAD_SHAPE, "the border is too large"), NULL;
    for (int64_t i = 0; i < total; i++) from[i] = mirrored(i - before, n, mode);
    return cn_index_select(x, axis, cn_from(c->ctx, CN_I64, CN_DIMS(total), from));
}

cn_tensor *cn__onnx_padded(onnx_call *c, cn_tensor *x, int axis, int64_t before, int64_t after, const char *mode,
                           cn_tensor *value)
{
    if (!x) return NULL;
    const int64_t n = cn_size(x, axis);
    const bool small = before >= -n && before <= INT32_MAX && after >= -n && after <= INT32_MAX;
    const int64_t cut = small && before < 0 ? -before : 0, cut_after = small && after < 0 ? -after : 0;
    if (!small || cut_after > n - cut)
        return FAIL(CN_BAD_SHAPE, "a border of %lld and %lld is not possible for size %lld", (long long)before,
                    (long long)after, (long long)n),
               NULL;
    if (cut || cut_after) x = cn_narrow(x, axis, cut, n - cut - cut_after);
    if (before < 0) before = 0;
    if (after < 0) after = 0;
    if (!before && !after) return x;
    if (*mode == 'c') return with_border(c, x, axis, before, after, value);
    return with_mirror(c, x, axis, before, after, mode);
}

bool cn__onnx_pad(onnx_call *c)
{
    cn_tensor *x = IN(0);
    onnx_ints pads, axes = { .n = -1 };
    if (!x || !cn__onnx_ints_of(c, "pads", 11, 1, &pads) || (c->version >= 18 && !cn__onnx_ints(c, 3, &axes)))
        return false;
    const int n = axes.n < 0 ? cn_ndim(x) : axes.n;
    if (pads.n != 2 * n) return FAIL(CN_BAD_ARGUMENT, "pads must have %d numbers, got %d", 2 * n, pads.n);
    cn_tensor *value = c->version < 11 ? cn_full(c->ctx, cn_type(x), CN_SCALAR, FLOAT("value", 0))
                       : HAS(2)        ? cn_reshape(IN(2), CN_SCALAR)
                                       : cn_zeros(c->ctx, cn_type(x), CN_SCALAR);
    for (int i = 0; i < n && x; i++) {
        const int axis = cn__onnx_axis(c, axes.n < 0 ? i : axes.v[i], cn_ndim(x));
        if (axis < 0) return false;
        x = cn__onnx_padded(c, x, axis, pads.v[i], pads.v[i + n], TEXT("mode", "constant"), value);
    }
    return GIVE(x);
}

bool cn__onnx_center_crop_pad(onnx_call *c)
{
    cn_tensor *x = IN(0);
    onnx_ints sizes, axes;
    if (!x || !cn__onnx_ints(c, 1, &sizes) || !cn__onnx_attr_ints(c, "axes", &axes)) return false;
    cn_tensor *zero = cn_zeros(c->ctx, cn_type(x), CN_SCALAR);
    if (sizes.n != (axes.n < 0 ? cn_ndim(x) : axes.n)) return FAIL(CN_BAD_ARGUMENT, "it needs a size for each axis");
    for (int i = 0; i < sizes.n && x; i++) {
        const int axis = cn__onnx_axis(c, axes.n < 0 ? i : axes.v[i], cn_ndim(x));
        if (axis < 0) return false;
        if (sizes.v[i] < 0) return FAIL(CN_BAD_SHAPE, "a size must be ≥ 0, got %lld", (long long)sizes.v[i]);
        const int64_t more = sizes.v[i] - cn_size(x, axis), less = more < 0 ? -more : more;
        const int64_t before = more < 0 ? -(less / 2) : less / 2;
        x = cn__onnx_padded(c, x, axis, before, more - before, "constant", zero);
    }
    return GIVE(x);
}

/* ---- planes and channels ---- */

enum { MOST_BLOCK = 1 << 15 }; /* its square fits an int */

bool cn__onnx_depth_to_space(onnx_call *c)
{
    cn_tensor *x = IN(0);
    const int64_t b = INT("blocksize", 1);
    if (!x) return false;
    if (cn_ndim(x) != 4 || b < 1 || b > MOST_BLOCK || cn_size(x, 1) % (b * b))
        return FAIL(CN_BAD_SHAPE, "the input must be (N, C·b·b, H, W) for blocksize b = %lld", (long long)b);
    const int64_t n = cn_size(x, 0), d = cn_size(x, 1) / (b * b), h = cn_size(x, 2), w = cn_size(x, 3);
    const bool rows_first = !strcmp(TEXT("mode", "DCR"), "CRD");
    x = rows_first ? cn_permute(cn_reshape(x, CN_DIMS(n, d, b, b, h, w)), CN_DIMS(0, 1, 4, 2, 5, 3))
                   : cn_permute(cn_reshape(x, CN_DIMS(n, b, b, d, h, w)), CN_DIMS(0, 3, 4, 1, 5, 2));
    return GIVE(cn_reshape(x, CN_DIMS(n, d, h * b, w * b)));
}

bool cn__onnx_space_to_depth(onnx_call *c)
{
    cn_tensor *x = IN(0);
    const int64_t b = INT("blocksize", 1);
    if (!x) return false;
    if (cn_ndim(x) != 4 || b < 1 || b > MOST_BLOCK || cn_size(x, 2) % b || cn_size(x, 3) % b)
        return FAIL(CN_BAD_SHAPE, "the input must be (N, C, H·b, W·b) for blocksize b = %lld", (long long)b);
    const int64_t n = cn_size(x, 0), d = cn_size(x, 1), h = cn_size(x, 2) / b, w = cn_size(x, 3) / b;
    const bool rows_first = !strcmp(TEXT("mode", "DCR"), "CRD");
    x = cn_reshape(x, CN_DIMS(n, d, h, b, w, b));
    x = cn_permute(x, rows_first ? CN_DIMS(0, 1, 3, 5, 2, 4) : CN_DIMS(0, 3, 5, 1, 2, 4));
    return GIVE(cn_reshape(x, CN_DIMS(n, d * b * b, h, w)));
}

bool cn__onnx_trilu(onnx_call *c)
{
    cn_tensor *x = IN(0);
    onnx_ints k;
    if (!x || !cn__onnx_ints(c, 1, &k)) return false;
    const int64_t diagonal = k.n > 0 ? k.v[0] : 0;
    return GIVE(INT("upper", 1) ? cn_triu(x, diagonal) : cn_tril(x, diagonal));
}
