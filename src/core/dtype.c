/* Facts about element types, and promotion between them. */
#include "core/dtype.h"

#include <float.h>
#include <math.h>

typedef struct {
    const char *name;
    size_t size;
    bool is_float;
} facts;

static const facts table[CN_DTYPES] = {
    [CN_BOOL] = { "bool", 1, false }, [CN_U8] = { "u8", 1, false },    [CN_I8] = { "i8", 1, false },
    [CN_I16] = { "i16", 2, false },   [CN_I32] = { "i32", 4, false },  [CN_I64] = { "i64", 8, false },
    [CN_F16] = { "f16", 2, true },    [CN_BF16] = { "bf16", 2, true }, [CN_F32] = { "f32", 4, true },
    [CN_F64] = { "f64", 8, true },
};

static bool known(cn_dtype t) { return (unsigned)t < CN_DTYPES; }

const char *cn_dtype_name(cn_dtype t) { return known(t) ? table[t].name : "?"; }

size_t cn_dtype_size(cn_dtype t) { return known(t) ? table[t].size : 0; }

bool cn_dtype_is_float(cn_dtype t) { return known(t) && table[t].is_float; }

/* The enum is in the order of promotion. In two pairs neither type can hold the other's values. */
cn_dtype cn_promote(cn_dtype a, cn_dtype b)
{
    cn_dtype low = a < b ? a : b, high = a < b ? b : a;
    if (low == CN_U8 && high == CN_I8) return CN_I16;
    if (low == CN_F16 && high == CN_BF16) return CN_F32;
    return high;
}

static bool within(double v, double low, double high) { return v >= low && v <= high; }

bool cn__fits(cn_dtype t, double v)
{
    switch (t) {
    case CN_BOOL:
    case CN_F64: return true;
    case CN_F16: return !isfinite(v) || fabs(v) <= 65504;
    case CN_BF16: return !isfinite(v) || fabs(v) <= 0x1.fep127;
    case CN_F32: return !isfinite(v) || fabs(v) <= FLT_MAX;
    case CN_U8: return within(v, v == floor(v) ? -255 : 0, 255);
    case CN_I8: return within(v, INT8_MIN, INT8_MAX);
    case CN_I16: return within(v, INT16_MIN, INT16_MAX);
    case CN_I32: return within(v, INT32_MIN, INT32_MAX);
    default: return v >= -0x1p63 && v < 0x1p63;
    }
}

double cn__wrapped(cn_dtype t, double v)
{
    return t == CN_I32 && v >= -0x1p63 && v < 0x1p63 ? (double)(int32_t)(uint32_t)(uint64_t)(int64_t)v : v;
}
