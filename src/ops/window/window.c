/* The windows of pooling: how many there are, and which elements each one covers; shape rules and checks. */
#include "ops/window/window.h"

#define LARGEST INT32_MAX /* of kernel, stride, padding and dilation: then no product of two overflows */

/* The number of windows, by PyTorch's rule: with ceil_mode a last, partial window counts if it begins in the input or
   in the padding before it. */
static int64_t windows(const cn__pool_attrs *a, int d, int64_t in)
{
    int64_t left = in + 2 * a->padding[d] - a->dilation[d] * (a->kernel[d] - 1) - 1;
    if (a->ceil_mode) left += a->stride[d] - 1;
    if (left < 0) return 0;
    int64_t n = left / a->stride[d] + 1;
    return a->ceil_mode && (n - 1) * a->stride[d] >= in + a->padding[d] ? n - 1 : n;
}

static cn__span fixed_span(const cn__pool_attrs *a, int d, int64_t in, int64_t o)
{
    int64_t start = o * a->stride[d] - a->padding[d], step = a->dilation[d];
    int64_t end = start + step * (a->kernel[d] - 1) + 1;
    if (end > in + a->padding[d]) end = in + a->padding[d];
    cn__span s = { start, end < in ? end : in, step, end - start };
    if (start < 0) s.lo += (-start + step - 1) / step * step;
    if (s.lo > s.hi) s.lo = s.hi;
    if (a->exclude_padding) s.count = s.hi > s.lo ? s.hi - s.lo : 1;
    if (a->divisor) s.count = d == 0 ? a->divisor : 1; /* kernels divide by the product over the axes */
    return s;
}

static cn__span adaptive_span(int64_t in, int64_t out, int64_t o)
{
    int64_t whole = in / out, part = in % out; /* o * in / out without overflow */
    cn__span s = { o * whole + o * part / out, (o + 1) * whole + ((o + 1) * part + out - 1) / out, 1, 0 };
    s.count = s.hi - s.lo;
    return s;
}

/* Fills the spans of axis d; d < 0: the depth of a plane. Returns the sum of their elements. */
static double fill_spans(const cn__pool_attrs *a, int d, int64_t in, int64_t out, cn__span *spans)
{
    double sum = 0;
    if (d < 0) {
        spans[0] = (cn__span){ 0, 1, 1, 1 };
        return 1;
    }
    for (int64_t o = 0; o < out; o++) {
        spans[o] = a->kernel[0] ? fixed_span(a, d, in, o) : adaptive_span(in, out, o);
        sum += (double)((spans[o].hi - spans[o].lo) / spans[o].step + 1);
    }
    return sum;
}

static int64_t sum_of_sizes(const cn_array *x, int64_t axes)
{
    int64_t sum = 0;
    for (int64_t d = x->ndim - axes; d < x->ndim; d++) sum += x->shape[d];
    return sum;
}

size_t cn__pool_scratch(const cn_kernel *k, int threads)
{
    (void)threads;
    const int64_t axes = ((const cn__pool_attrs *)k->attrs)->axes; /* forward or backward: one of the two is pooled */
    const int64_t n = sum_of_sizes(&k->in[0], axes), m = sum_of_sizes(&k->out[0], axes);
    return sizeof(cn__span) * (size_t)((n > m ? n : m) + 1);
}

cn__pool cn__pool_of(const cn_kernel *k, const cn_array *big, const cn_array *small)
{
    const cn__pool_attrs *a = k->attrs;
    const int axes = (int)a->axes, first = big->ndim - axes;
    const int64_t *in = big->shape + big->ndim - 3, *out = small->shape + small->ndim - 3; /* [1], [2]: (H, W) */
    const bool deep = axes == 3;
    cn__span *spans = k->scratch;
    cn__pool p = { .volumes = 1, .id = deep ? in[0] : 1, .ih = in[1], .iw = in[2], .od = deep ? out[0] : 1 };
    p.oh = out[1];
    p.ow = out[2];
    p.slabs = spans;
    p.rows = spans + p.od;
    p.cols = spans + p.od + p.oh;
    for (int d = 0; d < first; d++) p.volumes *= big->shape[d];
    const double slabs = fill_spans(a, axes - 3, p.id, p.od, spans),
                 rows = fill_spans(a, axes - 2, p.ih, p.oh, spans + p.od),
                 columns = fill_spans(a, axes - 1, p.iw, p.ow, spans + p.od + p.oh);
    p.work = (double)p.ow + columns * rows * slabs / (double)(p.od * p.oh + 1);
    return p;
}

/* How an average counts elements: 0: with padding, 1: without, 2: the number that follows. */
static void count_params(cn_gpu_call *c, const cn__pool_attrs *a, int d)
{
    cn_gpu_param(c, a->divisor ? 2 : a->exclude_padding);
    cn_gpu_param(c, d == 0 ? a->divisor : 1);
}

const char *cn__pool_windows(cn_gpu_call *c, const cn_array *big, const cn_array *small)
{
    const cn__pool_attrs *a = c->attrs;
    const int axes = (int)a->axes;
    for (int d = 3; d > 0; d--) cn_gpu_param(c, d > axes ? 1 : big->shape[big->ndim - d]);
    for (int d = 3; d > 0; d--) cn_gpu_param(c, d > axes ? 1 : small->shape[small->ndim - d]);
    if (!a->kernel[0]) return a->out[0] || c->n_in == 1 ? "adaptive" : "unknown";
    for (int d = axes - 3; d < axes; d++) {
        const int at = d < 0 ? 0 : d; /* planes have no depth: its numbers are not read */
        const int64_t reach = a->dilation[at] * (a->kernel[at] - 1) + 1;
        cn_gpu_param(c, reach < LARGEST / 2 ? reach : LARGEST / 2);
        cn_gpu_param(c, a->stride[at]);
        cn_gpu_param(c, a->padding[at]);
        cn_gpu_param(c, a->dilation[at]);
        count_params(c, a, d);
    }
    return "fixed";
}

bool cn__infer_sizes(cn_infer *i, int axes, const int64_t *size)
{
    i->out[0] = *i->in[0];
    cn_layout *l = &i->out[0].layout;
    for (int d = 0; d < axes; d++) l->shape[l->ndim - axes + d] = size[d];
    return true;
}

bool cn__has_windows(cn_infer *i, int axes)
{
    const cn_layout *x = &i->in[0]->layout;
    char s[96];
    if (x->ndim == axes + 1 || x->ndim == axes + 2) return true;
    return cn_infer_fail(i, CN_BAD_SHAPE, "x must be (N, C, %s) or (C, %s), got %s", axes == 3 ? "D, H, W" : "H, W",
                         axes == 3 ? "D, H, W" : "H, W", cn__shape_text(x, s, sizeof s));
}

bool cn__infer_pool(cn_infer *i)
{
    const cn__pool_attrs *a = i->attrs;
    const int axes = (int)a->axes;
    if (!cn__has_windows(i, axes)) return false;
    const cn_layout *x = &i->in[0]->layout;
    int64_t size[3];
    for (int d = 0; d < axes; d++) {
        int64_t in = x->shape[x->ndim - axes + d];
        size[d] = a->kernel[0] ? windows(a, d, in) : a->out[d];
        char s[96];
        if (in == 0 || (size[d] == 0 && a->kernel[0]))
            return cn_infer_fail(i, CN_BAD_SHAPE, "the padded x must have room for a window, got %s",
                                 cn__shape_text(x, s, sizeof s));
    }
    cn__infer_sizes(i, axes, size);
    if (i->n_out == 2) i->out[1] = (cn_meta){ CN_I64, i->out[0].layout };
    return true;
}

bool cn__infer_pool_backward(cn_infer *i)
{
    const cn__pool_attrs *a = i->attrs;
    return cn__has_windows(i, (int)a->axes) && cn__infer_sizes(i, (int)a->axes, a->in);
}

static bool in_range(const cn__pool_attrs *a, int d)
{
    return a->kernel[d] >= 1 && a->kernel[d] <= LARGEST && a->stride[d] >= 1 && a->stride[d] <= LARGEST &&
           a->dilation[d] >= 1 && a->dilation[d] <= LARGEST && a->padding[d] >= 0 && a->padding[d] <= a->kernel[d] / 2;
}

bool cn__pool_attrs_of(const char *who, const cn_tensor *x, const cn_pool_desc *desc, int axes, bool average,
                       cn__pool_attrs *a)
{
    if (!cn__alive_in(x, who)) return false;
    if (!desc) return cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: desc must be given, with a kernel_size, got NULL", who);
    *a = (cn__pool_attrs){ .axes = axes == 3 ? 3 : 2,
                           .kernel = { 1, 1, 1 },
                           .stride = { 1, 1, 1 },
                           .dilation = { 1, 1, 1 },
                           .ceil_mode = desc->ceil_mode };
    a->exclude_padding = average && desc->exclude_padding;
    a->divisor = average ? desc->divisor_override : 0;
    if (a->divisor && (axes == 1 || a->divisor < -LARGEST || a->divisor > LARGEST))
        return cn__fail(x->ctx, CN_BAD_ARGUMENT,
                        "%s: divisor_override must be from %d to %d, and 0 for lines, got %lld", who, -LARGEST, LARGEST,
                        (long long)a->divisor);
    for (int d = 0; d < axes; d++) {
        int at = axes == 1 ? 1 : d;
        a->kernel[at] = desc->kernel_size[d];
        a->stride[at] = desc->stride[d] ? desc->stride[d] : desc->kernel_size[d];
        a->padding[at] = desc->padding[d];
        if (desc->dilation[d]) a->dilation[at] = desc->dilation[d];
        if (!in_range(a, at))
            return cn__fail(x->ctx, CN_BAD_ARGUMENT,
                            "%s: kernel_size, stride and dilation must be from 1 to %d and padding from 0 to half the "
                            "kernel, got kernel_size %lld, stride %lld, padding %lld, dilation %lld",
                            who, LARGEST, (long long)a->kernel[at], (long long)a->stride[at], (long long)a->padding[at],
                            (long long)a->dilation[at]);
        if (average && a->dilation[at] != 1)
            return cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: dilation must be 1 except for max pooling, got %lld", who,
                            (long long)a->dilation[at]);
    }
    return true;
}

bool cn__pool_adaptive(const char *who, const cn_tensor *x, cn_dims size, int axes, cn__pool_attrs *a)
{
    if (!cn__alive_in(x, who)) return false;
    *a = (cn__pool_attrs){ .axes = axes };
    if (size.n != axes)
        return cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: output_size must have %d numbers, got %d", who, axes, size.n);
    for (int d = 0; d < axes; d++) a->out[d] = size.v[d];
    return true;
}

cn_tensor *cn__pool_apply(const cn_op *op, cn_tensor *x, const cn__pool_attrs *a)
{
    CN__CALL call = cn__enter_tensor(x, op->name);
    if (!call.ctx) return NULL;
    cn_scope s = cn_scope_begin(call.ctx);
    return cn_scope_return(call.ctx, s, cn_apply(op, &x, 1, a, NULL));
}

bool cn__are_lines(const char *who, cn_tensor *x)
{
    const cn_layout *l = cn__layout(x);
    char s[96];
    return l->ndim == 2 || l->ndim == 3 ||
           cn__fail(x->ctx, CN_BAD_SHAPE, "%s: x must be (N, C, L) or (C, L), got %s", who,
                    cn__shape_text(l, s, sizeof s));
}

cn_tensor *cn__pool_lines(const char *who, const cn_op *op, cn_tensor *x, const cn__pool_attrs *a)
{
    if (!cn__are_lines(who, x)) return NULL;
    return cn_squeeze(cn__pool_apply(op, cn_unsqueeze(x, -2), a), CN_DIMS(-2));
}
