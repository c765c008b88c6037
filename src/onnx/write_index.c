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
    if (from && from->last) return GIVE(EMIT("Identity", from)); /* the cells of an LSTM after its last steps */
    onnx_val *index = index_of(c, 1);
    if (!x->ndim || !i->ndim) { /* without axes there is one of size 1 */
        if (!x->ndim) from = cn__put_unsqueeze(c, from, 0);
        cn__put_int(c, "axis", 0);
        return GIVE(EMIT("Gather", from, index));
    }
    if (sizes_move(c)) c->w->not_alike = true;
    from = cut_to(c, from, x, i, a->axis);
    return take(c, "GatherElements", a->axis, from, index);
}

static bool put_elements(onnx_put *c, int64_t axis, onnx_val *index, onnx_val *source, const char *fold)
{
    onnx_val *x = OF(0);
    const bool scalar = cn__put_meta(c, 0)->layout.ndim == 0;
    if (scalar) x = cn__put_unsqueeze(c, x, 0);
    cn__put_int(c, "axis", axis);
    if (fold) cn__put_text(c, "reduction", fold);
    x = EMIT("ScatterElements", x, index, source);
    return GIVE(scalar ? cn__put_squeeze(c, x, 0) : x);
}

/* The source may be larger than the index. */
static bool scatter(onnx_put *c, const char *fold)
{
    const cn__index_attrs *a = c->step->attrs;
    const cn_layout *i = &cn__put_meta(c, 1)->layout, *s = &cn__put_meta(c, 2)->layout;
    onnx_val *index = index_of(c, 1), *source = OF(2);
    if (cn__put_meta(c, 0)->layout.ndim && i->ndim && sizes_move(c)) c->w->not_alike = true;
    if (s->ndim == i->ndim) source = cut_to(c, source, s, i, -1);
    if (!i->ndim) index = cn__put_unsqueeze(c, index, 0);
    if (!s->ndim) source = cn__put_unsqueeze(c, source, 0);
    return put_elements(c, a->axis, index, source, fold);
}
bool cn__write_scatter(onnx_put *c) { return scatter(c, NULL); }
bool cn__write_scatter_add(onnx_put *c) { return scatter(c, "add"); }

bool cn__write_scatter_fold(onnx_put *c)
{
    static const char *const names[] = { [CN__MUL] = "mul", [CN__MAX] = "max", [CN__MIN] = "min" };
    const cn__fold_attrs *a = c->step->attrs;
    return scatter(c, names[a->fold]);
}

/* Slices: the index is repeated for all elements of a slice. */
static bool put_slices(onnx_put *c, const char *fold)
{
    const cn__index_attrs *a = c->step->attrs;
    const cn_layout *s = &cn__put_meta(c, 2)->layout;
    int64_t shape[CN_MAX_DIMS];
    if (!s->ndim) return GIVE(fold ? EMIT("Add", OF(0), OF(2)) : OF(2));
    for (int d = 0; d < s->ndim; d++) shape[d] = d == a->axis ? -1 : 1;
    onnx_val *index = EMIT("Reshape", index_of(c, 1), cn__put_wholes(c, shape, s->ndim)), *all = EMIT("Shape", OF(2));
    index = EMIT("Expand", index, all);
    return put_elements(c, a->axis, index, OF(2), fold);
}
bool cn__write_index_add(onnx_put *c) { return put_slices(c, "add"); }
bool cn__write_index_copy(onnx_put *c) { return put_slices(c, NULL); }

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
