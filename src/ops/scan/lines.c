/* Scans along one axis: shape rule, gradient of (values, indices), launches on the GPU. */
#include "ops/scan/scan.h"
#include "gpu/shaders.h"

cn__lines cn__lines_of(const cn_array *x, int64_t axis)
{
    cn__lines l = {1, 1, 1};
    for (int d = 0; d < x->ndim; d++) *(d < axis ? &l.outer : d == axis ? &l.n : &l.inner) *= x->shape[d];
    return l;
}

int64_t cn__grain(int64_t work) { return work >= 16384 ? 1 : 16384 / (work > 0 ? work : 1); }

bool cn__scan_axis(const char *who, const cn_tensor *x, int64_t *axis)
{
    int ndim = cn__layout(x)->ndim;
    int d = cn__axis(*axis, ndim ? ndim : 1); /* as in PyTorch, a tensor without axes has axis 0 */
    if (d < 0)
        return cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: axis %lld is out of range for %d dimensions", who,
                        (long long)*axis, ndim);
    *axis = d;
    return true;
}

bool cn__infer_scan(cn_infer *i)
{
    int64_t axis = *(const int64_t *)i->attrs;
    const cn_meta *x = i->in[0];
    if (axis < 0 || axis >= (x->layout.ndim ? x->layout.ndim : 1))
        return cn_infer_fail(i, CN_BAD_ARGUMENT, "axis %lld is out of range for %d dimensions", (long long)axis,
                             x->layout.ndim);
    for (int k = 0; k < i->n_out; k++) {
        i->out[k].layout = x->layout;
        i->out[k].dtype = k == 0 ? x->dtype : CN_I64;
    }
    return true;
}

cn_tensor *cn__scatter_back(cn_grad_call *g, int64_t axis)
{
    if (!g->out_grad[0] || cn__layout(g->in[0])->ndim == 0) return g->out_grad[0];
    return cn_scatter_add(cn_zeros_like(g->in[0]), axis, g->out[1], g->out_grad[0]);
}

/* ---- on the GPU ---- */

const char *cn__gpu_key(cn_dtype t) { return cn_dtype_is_float(t) ? "float_key" : "whole_key"; }

bool cn__gpu_scan_lines(cn_gpu_call *c, cn__lines l, const cn__gpu_scan *s)
{
    enum { SHORT = 32, MANY = 2048 };
    if (l.n == 0) return true;
    cn_gpu_param(c, l.inner);
    cn_gpu_param(c, l.n);
    cn_gpu_param(c, s->reverse);
    const bool side_by_side = l.n <= SHORT || (l.inner > 1 && l.outer * l.inner >= MANY);
    cn_gpu_launch launch = { .shader = cn__wgsl_lines,
                             .kernel = side_by_side ? "side_by_side" : "tiles",
                             .with = s->shader,
                             .holes = s->holes };
    if (side_by_side) launch.each = l.outer * l.inner;
    else launch.groups = l.outer * l.inner, launch.size = 256;
    return cn_gpu_run(c, &launch);
}
