/* How reductions, running results and sorting are written. */
#include <math.h>

#include "onnx/put.h"
#include "ops/reduce/reduce.h"
#include "ops/scan/scan.h"

static onnx_val *reduce_range(onnx_put *c, const char *op, onnx_val *x)
{
    const cn__reduce_attrs *a = c->step->attrs;
    int64_t axes[CN_MAX_DIMS];
    int n = 0;
    for (int64_t d = a->begin; d < a->end; d++) axes[n++] = d;
    return n ? cn__put_reduce(c, op, x, axes, n, a->keepdim) : x;
}

/* Runtimes have no ReduceMax of every type: bool and small whole numbers go through i64. */
bool cn__write_reduce(onnx_put *c)
{
    const char *name = c->step->op->name;
    const cn_dtype t = cn__put_meta(c, 0)->dtype;
    const bool wide = t == CN_BOOL || t == CN_U8 || t == CN_I8 || t == CN_I16;
    onnx_val *x = wide ? cn__put_cast(c, OF(0), CN_I64) : OF(0);
    x = reduce_range(c,
                     !strcmp(name, "sum")    ? "ReduceSum"
                     : !strcmp(name, "prod") ? "ReduceProd"
                     : !strcmp(name, "max")  ? "ReduceMax"
                                             : "ReduceMin",
                     x);
    return GIVE(wide ? cn__put_cast(c, x, cn__put_result(c, 0)->dtype) : x);
}

/* Composites, whose axes are a set: mean and logsumexp. */
bool cn__write_reduce_set(onnx_put *c)
{
    const cn__axis_set_attrs *a = c->step->attrs;
    const cn_dtype from = cn__put_meta(c, 0)->dtype, to = cn__put_result(c, 0)->dtype;
    int64_t axes[CN_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < cn__put_in(c)->ndim; d++)
        if (a->axes >> d & 1) axes[n++] = d;
    onnx_val *x = from == to ? OF(0) : cn__put_cast(c, OF(0), to);
    if (!n) return GIVE(x);
    return GIVE(cn__put_reduce(c, strcmp(c->step->op->name, "mean") ? "ReduceLogSumExp" : "ReduceMean", x, axes, n,
                               a->keepdim));
}

static bool truth(onnx_put *c, const char *op)
{
    onnx_val *x = cn__put_meta(c, 0)->dtype == CN_BOOL ? OF(0) : cn__put_cast(c, OF(0), CN_BOOL);
    return GIVE(cn__put_cast(c, reduce_range(c, op, cn__put_cast(c, x, CN_I32)), CN_BOOL));
}
bool cn__write_any(onnx_put *c) { return truth(c, "ReduceMax"); }
bool cn__write_all(onnx_put *c) { return truth(c, "ReduceMin"); }

/* The index among all elements of the range: its axes become one. */
bool cn__write_arg_extreme(onnx_put *c)
{
    const cn__reduce_attrs *a = c->step->attrs;
    const cn_layout *in = cn__put_in(c);
    const cn_dtype t = cn__put_meta(c, 0)->dtype;
    onnx_val *x = t == CN_BOOL || t == CN_I16 ? cn__put_cast(c, OF(0), CN_I32) : OF(0);
    if (a->begin == a->end) x = cn__put_unsqueeze(c, x, a->begin);
    const bool several = a->end - a->begin > 1;
    if (several) {
        int64_t shape[CN_MAX_DIMS];
        int n = 0;
        for (int d = 0; d < in->ndim; d++)
            if (d == a->begin) shape[n++] = -1;
            else if (d < a->begin) shape[n++] = 0;
            else if (d >= a->end) shape[n++] = in->shape[d];
        x = EMIT("Reshape", x, cn__put_wholes(c, shape, n));
        if (c->twin)
            for (int64_t d = a->end; d < in->ndim; d++)
                if (cn__res(c->twin->in[0])->meta->layout.shape[d] != in->shape[d]) c->w->not_alike = true;
    }
    cn__put_int(c, "axis", a->begin);
    cn__put_int(c, "keepdims", several ? 0 : a->keepdim && a->begin < a->end);
    x = EMIT(strcmp(c->step->op->name, "argmax") ? "ArgMin" : "ArgMax", x);
    for (int64_t d = a->begin; d < a->end && several && a->keepdim; d++) x = cn__put_unsqueeze(c, x, d);
    return GIVE(x);
}

/* ---- running results ---- */

static onnx_val *running_sum(onnx_put *c, onnx_val *x, int64_t axis, bool reverse)
{
    onnx_val *at = cn__put_constant(c, CN_I64, CN_SCALAR, &axis);
    if (reverse) cn__put_int(c, "reverse", 1);
    return EMIT("CumSum", x, at);
}

bool cn__write_cumsum(onnx_put *c)
{
    const cn__scan_attrs *a = c->step->attrs;
    return GIVE(cn__put_in(c)->ndim ? running_sum(c, OF(0), a->axis, a->reverse) : OF(0));
}

/* log of the running sum of exp(x - m), plus m, the largest along the axis */
bool cn__write_logcumsumexp(onnx_put *c)
{
    const cn__axis_attrs *a = c->step->attrs;
    if (!cn__put_in(c)->ndim) return GIVE(OF(0));
    onnx_val *most = cn__put_reduce(c, "ReduceMax", OF(0), &a->axis, 1, true);
    onnx_val *x = EMIT("Sub", OF(0), most);
    x = EMIT("Exp", x);
    x = EMIT("Log", running_sum(c, x, a->axis, false));
    return GIVE(EMIT("Add", x, most));
}

/* x moved by `by` places along the axis; what comes in is `fill`. */
static onnx_val *moved(onnx_put *c, onnx_val *x, int64_t axis, int64_t by, bool reverse, double fill)
{
    const cn_layout *l = cn__put_in(c);
    int64_t pads[2 * CN_MAX_DIMS] = { 0 };
    pads[reverse ? l->ndim + axis : axis] = by;
    onnx_val *wide =
        EMIT("Pad", x, cn__put_wholes(c, pads, 2 * l->ndim), cn__put_number(c, cn__put_result(c, 0)->dtype, fill));
    return reverse ? cn__put_slice(c, wide, axis, by, INT64_MAX, 1) : cn__put_slice(c, wide, axis, 0, -by, 1);
}

/* A running result of n elements in log n steps: each adds what stands 1, 2, 4, .. places before. */
static onnx_val *running(onnx_put *c, const char *op, onnx_val *x, int64_t axis, double neutral)
{
    const int64_t n = cn__put_in(c)->shape[axis];
    if (c->twin && cn__res(c->twin->in[0])->meta->layout.shape[axis] != n) c->w->not_alike = true;
    for (int64_t by = 1; by < n; by *= 2) {
        onnx_val *before = moved(c, x, axis, by, false, neutral);
        x = EMIT(op, x, before);
    }
    return x;
}

bool cn__write_cumprod(onnx_put *c)
{
    const cn__axis_attrs *a = c->step->attrs;
    return GIVE(cn__put_in(c)->ndim ? running(c, "Mul", OF(0), a->axis, 1) : OF(0));
}

bool cn__write_cummax(onnx_put *c)
{
    const cn__axis_attrs *a = c->step->attrs;
    const bool max = !strcmp(c->step->op->name, "cummax");
    if (cn__res((cn__ref){ c->step->result.node, 1 })->consumers)
        return cn__put_refuse(c, "indices of running extremes");
    if (!cn_dtype_is_float(cn__put_meta(c, 0)->dtype)) return cn__put_refuse(c, "whole numbers");
    return GIVE(cn__put_in(c)->ndim ? running(c, max ? "Max" : "Min", OF(0), a->axis, max ? -INFINITY : INFINITY)
                                    : OF(0));
}

/* h[i] = a[i]·h[i-1] + b[i], or in reverse a[i+1]·h[i+1] + b[i]: pairs (a, b) are combined as above. */
bool cn__write_linear_scan(onnx_put *c)
{
    const cn__scan_attrs *s = c->step->attrs;
    onnx_val *a = OF(0), *b = OF(1);
    if (!cn__put_in(c)->ndim) return GIVE(b);
    const int64_t n = cn__put_in(c)->shape[s->axis];
    if (c->twin && cn__res(c->twin->in[0])->meta->layout.shape[s->axis] != n) c->w->not_alike = true;
    if (s->reverse) a = moved(c, a, s->axis, 1, true, 0);
    for (int64_t by = 1; by < n; by *= 2) {
        onnx_val *before = moved(c, b, s->axis, by, s->reverse, 0);
        before = EMIT("Mul", a, before);
        b = EMIT("Add", b, before);
        onnx_val *factor = moved(c, a, s->axis, by, s->reverse, 1);
        a = EMIT("Mul", a, factor);
    }
    return GIVE(b);
}

/* ---- order ---- */

static bool largest(onnx_put *c, int64_t axis, onnx_val *k, bool descending)
{
    onnx_val *out[2], *x = OF(0);
    const cn_dtype t = cn__put_meta(c, 0)->dtype;
    const bool scalar = cn__put_in(c)->ndim == 0, wide = t == CN_BOOL || t == CN_U8 || t == CN_I8 || t == CN_I16;
    if (wide) x = cn__put_cast(c, x, CN_I64);
    if (scalar) x = cn__put_unsqueeze(c, x, 0);
    cn__put_int(c, "axis", axis);
    cn__put_int(c, "largest", descending);
    if (!cn__put_nodes(c, "TopK", (onnx_val *[]){ x, k }, 2, out, 2)) return false;
    if (wide) out[0] = cn__put_cast(c, out[0], t);
    for (int i = 0; i < 2; i++)
        if (!cn__put_give(c, i, scalar ? cn__put_squeeze(c, out[i], 0) : out[i])) return false;
    return true;
}

/* All of them; TopK keeps the order of equal elements. */
bool cn__write_sort(onnx_put *c)
{
    const cn__sort_attrs *a = c->step->attrs;
    const cn_layout *in = cn__put_in(c), *in2 = c->twin ? &cn__res(c->twin->in[0])->meta->layout : in;
    const int64_t size[2] = { in->ndim ? in->shape[a->axis] : 1, in->ndim ? in2->shape[a->axis] : 1 };
    return largest(c, a->axis, cn__put_sizes(c, &size[0], &size[1], 1), a->descending);
}

bool cn__write_topk(onnx_put *c)
{
    const cn__topk_attrs *a = c->step->attrs, *b = c->twin ? c->twin->attrs : a;
    if (a->axis != b->axis || a->largest != b->largest) c->w->not_alike = true;
    return largest(c, a->axis, cn__put_sizes(c, &a->k, &b->k, 1), a->largest);
}

/* How many numbers of the sequence lie below x, or not above it. */
bool cn__write_searchsorted(onnx_put *c)
{
    const cn__search_attrs *a = c->step->attrs;
    const int64_t last = cn__put_meta(c, 1)->layout.ndim;
    onnx_val *x = cn__put_unsqueeze(c, OF(1), last);
    onnx_val *below = EMIT(a->right ? "LessOrEqual" : "Less", OF(0), x);
    onnx_val *count = cn__put_reduce(c, "ReduceSum", cn__put_cast(c, below, CN_I64), &last, 1, false);
    return GIVE(a->int32 ? cn__put_cast(c, count, CN_I32) : count);
}
