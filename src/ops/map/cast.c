/* cast.c: conversion between element types; the rules are in core/dtype.h. */
#include <stdio.h>

#include "ops/shared.h"

#include "map.h"

static void convert(cn_dtype from, const cn_loop *l)
{
    const cn__cast_attrs *a = l->attrs;
    cn__convert((cn_dtype)a->dtype, l->out, from, l->in[0], l->n);
}

static void from_bool(const cn_loop *l) { convert(CN_BOOL, l); }
static void from_u8(const cn_loop *l) { convert(CN_U8, l); }
static void from_i8(const cn_loop *l) { convert(CN_I8, l); }
static void from_i16(const cn_loop *l) { convert(CN_I16, l); }
static void from_i32(const cn_loop *l) { convert(CN_I32, l); }
static void from_i64(const cn_loop *l) { convert(CN_I64, l); }
static void from_f16(const cn_loop *l) { convert(CN_F16, l); }
static void from_bf16(const cn_loop *l) { convert(CN_BF16, l); }
static void from_f32(const cn_loop *l) { convert(CN_F32, l); }
static void from_f64(const cn_loop *l) { convert(CN_F64, l); }

static bool infer(cn_infer *i)
{
    const cn__cast_attrs *a = i->attrs;
    if (a->dtype < 0 || a->dtype >= CN_DTYPES)
        return cn_infer_fail(i, CN_BAD_DTYPE, "dtype must be one of cn_dtype, got %lld", (long long)a->dtype);
    if (!cn_infer_map(i)) return false;
    i->out[0].dtype = (cn_dtype)a->dtype;
    return true;
}

/* Rounding to halves and cutting to narrow whole numbers happens where the result is stored. */
static int wgsl(const void *attrs, cn_dtype from, char *out, size_t size)
{
    const cn__cast_attrs *a = attrs;
    const char *expression = "x";
    if (cn_dtype_is_float(from)) {
        if (a->dtype == CN_BOOL) expression = "truth(x)";
        else if (a->dtype == CN_U8 || a->dtype == CN_I8 || a->dtype == CN_I16) expression = "low_bits(x)";
        else if (!cn_dtype_is_float((cn_dtype)a->dtype)) expression = "to_whole(x)";
    }
    return snprintf(out, size, "%s", expression);
}

static void grad(cn_grad_call *c) { c->in_grad[0] = cn_cast(c->out_grad[0], cn__dtype(c->in[0])); }

#define TO(t) .attrs = &(const cn__cast_attrs){ t }

const cn_op cn__op_cast = {
    .call = "cast(Tensor input, dtype dtype) -> Tensor",
    .name = "cast", .doc = "The same numbers in another element type.", .kind = CN_MAP, .n_in = 1, .n_out = 1,
    .dtypes = CN_ANY, .cheap = true, .any_order = true, .attr_size = sizeof(cn__cast_attrs), .infer = infer,
    .grad = grad,
    .loops = { [CN_BOOL] = from_bool, [CN_U8] = from_u8, [CN_I8] = from_i8, [CN_I16] = from_i16, [CN_I32] = from_i32,
               [CN_I64] = from_i64, [CN_F16] = from_f16, [CN_BF16] = from_bf16, [CN_F32] = from_f32,
               [CN_F64] = from_f64 },
    .wgsl_print = wgsl, .onnx = "Cast",
    CN_CASES({ CN_IN(CN_S(2, 3, 4)), TO(CN_F64) }, { CN_IN(CN_S(7)), TO(CN_I32) },
             /* finite differences of 1e-6 are lost in a narrower type */
             { CN_IN(CN_S(65, 67)), TO(CN_F32), .no_gradient_check = true },
             { CN_IN(CN_S(3, 5)), TO(CN_F16), .no_gradient_check = true },
             { CN_IN(CN_S(3, 5)), TO(CN_BF16), .no_gradient_check = true },
             { CN_IN(CN_RANGE(-99, 99, 9)), TO(CN_I8) }, { CN_IN(CN_RANGE(0, 99, 9)), TO(CN_U8) },
             { CN_IN(CN_RANGE(-99, 99, 9)), TO(CN_I16) }, { CN_IN(CN_S0), TO(CN_I64) },
             { CN_IN(CN_S(3, 0)), TO(CN_BOOL) }, { CN_IN(CN_S(4, 4)), TO(CN_BOOL) }),
};

cn_tensor *cn_cast(cn_tensor *x, cn_dtype t)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx || cn__dtype(x) == t) return call.ctx ? x : NULL;
    cn__cast_attrs a = { t };
    return cn_apply(&cn__op_cast, &x, 1, &a, NULL);
}
