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
    return s;
}

static cn__span adaptive_span(int64_t in, int64_t out, int64_t o)
{
    int64_t whole = in / out, part = in % out; /* o * in / out without overflow */
    cn__span s = { o * whole + o * part / out, (o + 1) * whole + ((o + 1) * part + out - 1) / out, 1, 0 };
    s.count = s.hi - s.lo;
    return s;
}

/* Fills the spans of one axis. Returns the sum of their elements. */
static double fill_spans(const cn__pool_attrs *a, int d, int64_t in, int64_t out, cn__span *spans)
{
    double sum = 0;
    for (int64_t o = 0; o < out; o++) {
        spans[o] = a->kernel[0] ? fixed_span(a, d, in, o) : adaptive_span(in, out, o);
        sum += (double)((spans[o].hi - spans[o].lo) / spans[o].step + 1);
    }
    return sum;
}

size_t cn__pool_scratch(const cn_kernel *k, int threads)
{
    (void)threads;
    const cn_array *x = &k->in[0], *y = &k->out[0]; /* forward or backward: one of them is the pooled one */
    int64_t n = x->shape[x->ndim - 1] + x->shape[x->ndim - 2], m = y->shape[y->ndim - 1] + y->shape[y->ndim - 2];
    return sizeof(cn__span) * (size_t)(n > m ? n : m);
}

cn__pool cn__pool_of(const cn_kernel *k, const cn_array *big, const cn_array *small)
{
    const cn__pool_attrs *a = k->attrs;
    int h = big->ndim - 2, w = big->ndim - 1; /* the axes of height and width */
    cn__span *spans = k->scratch;
    cn__pool p = { .planes = 1, .ih = big->shape[h], .iw = big->shape[w], .oh = small->shape[h] };
    p.ow = small->shape[w];
    p.rows = spans;
    p.cols = spans + p.oh;
    for (int d = 0; d < h; d++) p.planes *= big->shape[d];
    const double columns = fill_spans(a, 1, p.iw, p.ow, spans + p.oh), rows = fill_spans(a, 0, p.ih, p.oh, spans);
    p.work = (double)p.ow + columns * rows / (double)(p.oh + 1);
    return p;
}

const char *cn__pool_windows(cn_gpu_call *c, const cn_array *big, const cn_array *small)
{
    const cn__pool_attrs *a = c->attrs;
    for (int d = 2; d > 0; d--) cn_gpu_param(c, big->shape[big->ndim - d]);
    for (int d = 2; d > 0; d--) cn_gpu_param(c, small->shape[small->ndim - d]);
    if (!a->kernel[0]) return a->out[0] || c->n_in == 1 ? "adaptive" : "unknown";
    for (int d = 0; d < 2; d++) {
        int64_t reach = a->dilation[d] * (a->kernel[d] - 1) + 1;
        cn_gpu_param(c, reach < LARGEST / 2 ? reach : LARGEST / 2);
        cn_gpu_param(c, a->stride[d]);
        cn_gpu_param(c, a->padding[d]);
        cn_gpu_param(c, a->dilation[d]);
        cn_gpu_param(c, a->exclude_padding);
    }
    return "fixed";
}

bool cn__infer_planes(cn_infer *i, const int64_t size[2])
{
    i->out[0] = *i->in[0];
    cn_layout *l = &i->out[0].layout;
    l->shape[l->ndim - 2] = size[0];
    l->shape[l->ndim - 1] = size[1];
    return true;
}

bool cn__is_planes(cn_infer *i)
{
    const cn_layout *x = &i->in[0]->layout;
    char s[96];
    if (x->ndim == 3 || x->ndim == 4) return true;
    return cn_infer_fail(i, CN_BAD_SHAPE, "x must be (N, C, H, W) or (C, H, W), got %s",
                         cn__shape_text(x, s, sizeof s));
}

bool cn__infer_pool(cn_infer *i)
{
    const cn__pool_attrs *a = i->attrs;
    if (!cn__is_planes(i)) return false;
    const cn_layout *x = &i->in[0]->layout;
    int64_t size[2];
    for (int d = 0; d < 2; d++) {
        int64_t in = x->shape[x->ndim - 2 + d];
        size[d] = a->kernel[0] ? windows(a, d, in) : a->out[d];
        char s[96];
        if (in == 0 || (size[d] == 0 && a->kernel[0]))
            return cn_infer_fail(i, CN_BAD_SHAPE, "the padded x must have room for a window, got %s",
                                 cn__shape_text(x, s, sizeof s));
    }
    cn__infer_planes(i, size);
    if (i->n_out == 2) i->out[1] = (cn_meta){ CN_I64, i->out[0].layout };
    return true;
}

bool cn__infer_pool_backward(cn_infer *i)
{
    return cn__is_planes(i) && cn__infer_planes(i, ((const cn__pool_attrs *)i->attrs)->in);
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
    *a = (cn__pool_attrs){ .kernel = { 1, 1 }, .stride = { 1, 1 }, .dilation = { 1, 1 }, .ceil_mode = desc->ceil_mode };
    a->exclude_padding = average && desc->exclude_padding;
    for (int d = 0; d < axes; d++) {
        int at = 2 - axes + d;
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

cn_tensor *cn__pool_apply(const cn_op *op, cn_tensor *x, const cn__pool_attrs *a)
{
    CN__CALL call = cn__enter_tensor(x, op->name);
    if (!call.ctx) return NULL;
    cn_scope s = cn_scope_begin(call.ctx);
    return cn_scope_return(call.ctx, s, cn_apply(op, &x, 1, a, NULL));
}

cn_tensor *cn__pool_lines(const char *who, const cn_op *op, cn_tensor *x, const cn__pool_attrs *a)
{
    const cn_layout *l = cn__layout(x);
    char s[96];
    if (l->ndim != 2 && l->ndim != 3) {
        cn__fail(x->ctx, CN_BAD_SHAPE, "%s: x must be (N, C, L) or (C, L), got %s", who,
                 cn__shape_text(l, s, sizeof s));
        return NULL;
    }
    return cn_squeeze(cn__pool_apply(op, cn_unsqueeze(x, -2), a), CN_DIMS(-2));
}
