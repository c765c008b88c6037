/* How gathering and scattering are written. */
#include "onnx/put.h"
#include "ops/index/index.h"

/* Indices of ONNX are i32 or i64. */
static onnx_val *index_of(onnx_put *c, int i)
{
    const cn_dtype t = cn__put_meta(c, i)->dtype;
    return t == CN_I64 || t == CN_I32 ? OF(i) : cn__put_cast(c, OF(i), CN_I64);
}

static bool take(onnx_put *c, const char *op, int64_t axis, onnx_val *x, onnx_val *index)
{
    cn__put_int(c, "axis", axis);
    return GIVE(EMIT(op, x, index));
}

bool cn__write_embedding(onnx_put *c)
{
    onnx_val *index = index_of(c, 1);
    return take(c, "Gather", 0, OF(0), index);
}

bool cn__write_index_select(onnx_put *c)
{
    const cn__index_attrs *a = c->step->attrs;
    const bool scalar = cn__put_meta(c, 0)->layout.ndim == 0; /* it has one axis of size 1, and the result has none */
    onnx_val *index = index_of(c, 1);
    if (scalar) return GIVE(OF(0));
    if (cn__put_meta(c, 1)->layout.ndim == 0) index = cn__put_unsqueeze(c, index, 0);
    return take(c, "Gather", a->axis, OF(0), index);
}

/* Gather takes whole slices of the index's shape: ONNX's index may be smaller than x only along the axis, so x is cut. */
static onnx_val *cut_to(onnx_put *c, onnx_val *x, const cn_layout *l, const cn_layout *index, int64_t axis)
{
    for (int d = 0; d < l->ndim; d++)
        if (d != axis && l->shape[d] != index->shape[d]) x = cn__put_slice(c, x, d, 0, index->shape[d], 1);
    return x;
}

static bool sizes_move(const onnx_put *c)
{
    if (!c->twin) return false;
    const cn_layout *x = &cn__put_meta(c, 0)->layout, *i = &cn__put_meta(c, 1)->layout;
    const cn_layout *y = &cn__res(c->twin->in[0])->meta->layout, *k = &cn__res(c->twin->in[1])->meta->layout;
    for (int d = 0; d < x->ndim; d++)
        if ((x->shape[d] == i->shape[d]) != (y->shape[d] == k->shape[d]) ||
            (x->shape[d] != i->shape[d] && i->shape[d] != k->shape[d]))
            return true;
    return false;
}

bool cn__write_gather(onnx_put *c)
{
    const cn__index_attrs *a = c->step->attrs;
    const cn_layout *x = &cn__put_meta(c, 0)->layout, *i = &cn__put_meta(c, 1)->layout;
    onnx_val *from = OF(0);
    if (from && from->last) return GIVE(cn__put_unsqueeze(c, from, 0)); /* cells of an LSTM after its last steps */
    if (!x->ndim) return GIVE(from);
    if (sizes_move(c)) c->w->not_alike = true;
    from = cut_to(c, from, x, i, a->axis);
    onnx_val *index = index_of(c, 1);
    return take(c, "GatherElements", a->axis, from, index);
}

static bool put_elements(onnx_put *c, int64_t axis, onnx_val *index, onnx_val *source, bool add)
{
    cn__put_int(c, "axis", axis);
    if (add) cn__put_text(c, "reduction", "add");
    return GIVE(EMIT("ScatterElements", OF(0), index, source));
}

/* The source may be larger than the index. */
bool cn__write_scatter(onnx_put *c)
{
    const cn__index_attrs *a = c->step->attrs;
    const cn_layout *i = &cn__put_meta(c, 1)->layout, *s = &cn__put_meta(c, 2)->layout;
    const bool add = !strcmp(c->step->op->name, "scatter_add");
    if (!cn__put_meta(c, 0)->layout.ndim) return GIVE(add ? EMIT("Add", OF(0), OF(2)) : OF(2));
    if (sizes_move(c)) c->w->not_alike = true;
    onnx_val *source = cut_to(c, OF(2), s, i, -1), *index = index_of(c, 1);
    return put_elements(c, a->axis, index, source, add);
}

/* Slices: the index is repeated for all elements of a slice. */
static bool put_slices(onnx_put *c, bool add)
{
    const cn__index_attrs *a = c->step->attrs;
    const cn_layout *s = &cn__put_meta(c, 2)->layout;
    int64_t shape[CN_MAX_DIMS];
    if (!s->ndim) return GIVE(add ? EMIT("Add", OF(0), OF(2)) : OF(2));
    for (int d = 0; d < s->ndim; d++) shape[d] = d == a->axis ? -1 : 1;
    onnx_val *index = EMIT("Reshape", index_of(c, 1), cn__put_wholes(c, shape, s->ndim)), *all = EMIT("Shape", OF(2));
    index = EMIT("Expand", index, all);
    return put_elements(c, a->axis, index, OF(2), add);
}
bool cn__write_index_add(onnx_put *c) { return put_slices(c, true); }
bool cn__write_index_copy(onnx_put *c) { return put_slices(c, false); }

/* Numbers that count from the end become positive. */
bool cn__write_wrap_index(onnx_put *c)
{
    const cn__wrap_attrs *a = c->step->attrs, *b = c->twin ? c->twin->attrs : a;
    const cn_dtype t = cn__put_meta(c, 0)->dtype, to = cn__put_result(c, 0)->dtype;
    onnx_val *index = t == CN_I64 ? OF(0) : cn__put_cast(c, OF(0), CN_I64);
    onnx_val *negative = EMIT("Less", index, cn__put_number(c, CN_I64, 0));
    onnx_val *wrapped = EMIT("Add", index, cn__put_squeeze(c, cn__put_sizes(c, &a->size, &b->size, 1), 0));
    index = EMIT("Where", negative, wrapped, index);
    return GIVE(to == CN_I64 ? index : cn__put_cast(c, index, to));
}

/* (axes, n) -> (n, axes) */
bool cn__write_nonzero(onnx_put *c)
{
    onnx_val *x = EMIT("NonZero", OF(0));
    return GIVE(cn__put_transpose(c, x, (const int64_t[]){ 1, 0 }, 2));
}
