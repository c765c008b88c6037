/* How norms, softmax, attention and losses are written. */
#include <math.h>

#include "onnx/put.h"
#include "ops/block/block.h"

bool cn__write_softmax(onnx_put *c)
{
    const cn__softmax_attrs *a = c->step->attrs;
    const char *op = strcmp(c->step->op->name, "softmax") ? "LogSoftmax" : "Softmax";
    const bool scalar = cn__put_in(c)->ndim == 0;
    onnx_val *x = scalar ? cn__put_unsqueeze(c, OF(0), 0) : OF(0);
    cn__put_int(c, "axis", a->axis);
    x = EMIT(op, x);
    return GIVE(scalar ? cn__put_squeeze(c, x, 0) : x);
}

/* ---- norms ---- */

/* Operand i, or a constant of the last `axes` sizes of x if it is absent. */
static onnx_val *operand_or(onnx_put *c, int i, int64_t axes, double usual)
{
    if (cn__put_has(c, i)) return OF(i);
    const cn_layout *l = cn__put_in(c);
    cn_dims shape = { .n = (int)axes };
    for (int d = 0; d < axes; d++) shape.v[d] = l->shape[l->ndim - axes + d];
    return cn__put_filled(c, cn__put_meta(c, 0)->dtype, shape, usual);
}

bool cn__write_layer_norm(onnx_put *c)
{
    const cn__norm_attrs *a = c->step->attrs;
    onnx_val *weight = operand_or(c, 1, a->axes, 1);
    cn__put_int(c, "axis", -a->axes);
    cn__put_float(c, "epsilon", c->step->args[0].f);
    return GIVE(EMIT("LayerNormalization", OF(0), weight, OF(2)));
}

bool cn__write_rms_norm(onnx_put *c)
{
    const cn__norm_attrs *a = c->step->attrs;
    onnx_val *weight = operand_or(c, 1, a->axes, 1);
    cn__put_int(c, "axis", -a->axes);
    cn__put_float(c, "epsilon", c->step->args[0].f);
    return GIVE(EMIT("RMSNormalization", OF(0), weight));
}

static onnx_val *per_channel(onnx_put *c, int i, double usual)
{
    if (cn__put_has(c, i)) return OF(i);
    return cn__put_filled(c, cn__put_meta(c, 0)->dtype, CN_DIMS(cn__put_in(c)->shape[1]), usual);
}

bool cn__write_batch_norm_eval(onnx_put *c)
{
    onnx_val *weight = per_channel(c, 1, 1), *bias = per_channel(c, 2, 0);
    cn__put_float(c, "epsilon", c->step->args[0].f);
    return GIVE(EMIT("BatchNormalization", OF(0), weight, bias, OF(3), OF(4)));
}

bool cn__write_group_norm(onnx_put *c)
{
    const cn__group_attrs *a = c->step->attrs;
    cn__put_float(c, "epsilon", c->step->args[0].f);
    cn__put_int(c, "num_groups", a->groups);
    return GIVE(EMIT("GroupNormalization", OF(0), OF(1), OF(2)));
}

bool cn__write_instance_norm(onnx_put *c)
{
    onnx_val *weight = per_channel(c, 1, 1), *bias = per_channel(c, 2, 0);
    cn__put_float(c, "epsilon", c->step->args[0].f);
    return GIVE(EMIT("InstanceNormalization", OF(0), weight, bias));
}

/* ---- attention ---- */

bool cn__write_attention(onnx_put *c)
{
    const cn__attention_attrs *a = c->step->attrs;
    cn__put_int(c, "is_causal", a->causal != 0);
    cn__put_float(c, "scale", c->step->args[0].f);
    return GIVE(EMIT("Attention", OF(0), OF(1), OF(2), OF(3)));
}

/* (n,1) or (n): 0, 1, .. of the last axis but one of operand i */
static onnx_val *positions(onnx_put *c, int i, bool as_rows)
{
    const cn_layout *l = &cn__put_meta(c, i)->layout;
    const int64_t *other = c->twin ? cn__res(c->twin->in[i])->meta->layout.shape : l->shape;
    onnx_val *n = cn__put_squeeze(c, cn__put_sizes(c, &l->shape[l->ndim - 2], &other[l->ndim - 2], 1), 0);
    n = EMIT("Range", cn__put_number(c, CN_I64, 0), n, cn__put_number(c, CN_I64, 1));
    return as_rows ? cn__put_unsqueeze(c, n, 1) : n;
}

/* softmax(q·kᵀ·scale + mask)·v; a query that sees no key gets 0 */
bool cn__write_attention_parts(onnx_put *c)
{
    const cn__attention_attrs *a = c->step->attrs;
    const cn_layout *k = &cn__put_meta(c, 1)->layout;
    const cn_dtype t = cn__put_meta(c, 0)->dtype;
    int64_t order[CN_MAX_DIMS];
    for (int d = 0; d < k->ndim; d++) order[d] = d;
    order[k->ndim - 2] = k->ndim - 1, order[k->ndim - 1] = k->ndim - 2;
    onnx_val *s = EMIT("MatMul", OF(0), cn__put_transpose(c, OF(1), order, k->ndim));
    onnx_val *never = cn__put_number(c, t, -INFINITY);
    s = EMIT("Mul", s, cn__put_number(c, t, c->step->args[0].f));
    if (cn__put_has(c, 3)) {
        const cn_dtype of_mask = cn__put_meta(c, 3)->dtype;
        if (of_mask == CN_BOOL) s = EMIT("Where", OF(3), s, never);
        else s = EMIT("Add", s, of_mask == t ? OF(3) : cn__put_cast(c, OF(3), t));
    }
    if (a->causal) {
        onnx_val *query = positions(c, 0, true), *key = positions(c, 1, false);
        onnx_val *later = EMIT("Greater", key, query);
        s = EMIT("Where", later, never, s);
    }
    cn__put_int(c, "axis", -1);
    onnx_val *p = EMIT("Softmax", s);
    if (cn__put_has(c, 3)) {
        onnx_val *blind = EMIT("IsNaN", p);
        p = EMIT("Where", blind, cn__put_number(c, t, 0), p);
    }
    return GIVE(EMIT("MatMul", p, OF(2)));
}

/* ---- losses ---- */

static bool loss(onnx_put *c, const char *op)
{
    static const char *const names[] = { [CN_MEAN] = "mean", [CN_SUM] = "sum", [CN_NONE] = "none" };
    const cn__loss_attrs *a = c->step->attrs;
    cn__put_text(c, "reduction", names[a->reduction]);
    if (a->has_ignore) cn__put_int(c, "ignore_index", a->ignore_index);
    return GIVE(EMIT(op, OF(0), OF(1), OF(2)));
}
bool cn__write_cross_entropy(onnx_put *c) { return loss(c, "SoftmaxCrossEntropyLoss"); }
bool cn__write_nll_loss(onnx_put *c) { return loss(c, "NegativeLogLikelihoodLoss"); }
