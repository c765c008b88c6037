/* How elementwise operators with attributes, and tensors made from nothing, are written. */
#include "onnx/put.h"
#include "ops/create/create.h"
#include "ops/map/map.h"

bool cn__write_cast(onnx_put *c)
{
    const cn__cast_attrs *a = c->step->attrs;
    return GIVE(cn__put_cast(c, OF(0), (cn_dtype)a->dtype));
}

bool cn__write_where(onnx_put *c)
{
    onnx_val *condition = OF(0);
    if (cn__put_meta(c, 0)->dtype != CN_BOOL) condition = cn__put_cast(c, condition, CN_BOOL);
    if (cn__put_result(c, 0)->dtype != CN_BOOL) return GIVE(EMIT("Where", condition, OF(1), OF(2)));
    onnx_val *yes = EMIT("And", condition, OF(1)), *no = EMIT("Not", condition); /* runtimes have no Where of bool */
    no = EMIT("And", no, OF(2));
    return GIVE(EMIT("Or", yes, no));
}

/* ---- made from nothing ---- */

static const int64_t *other_shape(const onnx_put *c)
{
    return c->twin ? cn__res(c->twin->result)->meta->layout.shape : NULL;
}

/* Small constants are written out; others are made by ConstantOfShape. */
enum { WRITTEN_OUT = 16 };

bool cn__write_full(onnx_put *c)
{
    const cn_meta *m = cn__put_result(c, 0);
    const int64_t *shape = m->layout.shape, *other = other_shape(c);
    const double v = c->step->args[0].f;
    const int n = m->layout.ndim;
    if (!cn__put_same_args(c, 1)) c->w->not_alike = true;
    cn_dims dims = { .n = n };
    for (int i = 0; i < n; i++) dims.v[i] = shape[i];
    const bool moves = other && memcmp(shape, other, sizeof *shape * (size_t)n) != 0;
    if (!moves && cn__numel(&m->layout) <= WRITTEN_OUT) return GIVE(cn__put_filled(c, m->dtype, dims, v));
    return GIVE(EMIT("Expand", cn__put_number(c, m->dtype, v), cn__put_sizes(c, shape, other, n)));
}

/* Range computes in i64 or in the floating type: start + k·step. */
bool cn__write_arange(onnx_put *c)
{
    const cn_meta *m = cn__put_result(c, 0);
    const cn_arg *a = c->step->args;
    const bool whole = !cn_dtype_is_float(m->dtype), half = m->dtype == CN_F16 || m->dtype == CN_BF16;
    if (!cn__put_same_args(c, 2)) c->w->not_alike = true;
    onnx_val *count = cn__put_squeeze(c, cn__put_sizes(c, m->layout.shape, other_shape(c), 1), 0);
    onnx_val *k = EMIT("Range", cn__put_number(c, CN_I64, 0), count, cn__put_number(c, CN_I64, 1));
    const cn_dtype t = whole ? CN_I64 : half ? CN_F32 : m->dtype;
    if (!whole) k = cn__put_cast(c, k, t);
    if (a[1].f != 1) k = EMIT("Mul", k, cn__put_number(c, t, a[1].f));
    if (a[0].f != 0) k = EMIT("Add", k, cn__put_number(c, t, a[0].f));
    return GIVE(t == m->dtype ? k : cn__put_cast(c, k, m->dtype));
}

bool cn__write_eye(onnx_put *c)
{
    const cn_meta *m = cn__put_result(c, 0);
    onnx_val *zeros =
        EMIT("Expand", cn__put_number(c, CN_F32, 0), cn__put_sizes(c, m->layout.shape, other_shape(c), 2));
    cn__put_int(c, "dtype", ONNX_FLOAT);
    onnx_val *eye = EMIT("EyeLike", zeros);
    return GIVE(m->dtype == CN_F32 ? eye : cn__put_cast(c, eye, m->dtype));
}

/* Trilu of bool is not everywhere. */
bool cn__write_triangle(onnx_put *c)
{
    const bool is_bool = cn__put_result(c, 0)->dtype == CN_BOOL, upper = !strcmp(c->step->op->name, "triu");
    if (c->twin && c->twin->args[0].i != c->step->args[0].i) c->w->not_alike = true;
    onnx_val *x = is_bool ? cn__put_cast(c, OF(0), CN_I64) : OF(0);
    onnx_val *diagonal = cn__put_constant(c, CN_I64, CN_SCALAR, &c->step->args[0].i);
    cn__put_int(c, "upper", upper);
    x = EMIT("Trilu", x, diagonal);
    return GIVE(is_bool ? cn__put_cast(c, x, CN_BOOL) : x);
}

/* An eps below 0 is none. */
bool cn__write_logit(onnx_put *c)
{
    const double eps = c->step->args[0].f;
    const cn_dtype t = cn__put_meta(c, 0)->dtype;
    onnx_val *x = OF(0);
    if (eps >= 0) x = EMIT("Clip", x, cn__put_number(c, t, eps), cn__put_number(c, t, 1 - eps));
    onnx_val *rest = EMIT("Sub", cn__put_number(c, t, 1), x);
    x = EMIT("Div", x, rest);
    return GIVE(EMIT("Log", x));
}
