/* Converts arrays between element types. Each conversion goes through one of f32, f64 and i64, the hub, chosen so that
   rounding is that of a direct conversion. If the hub is one of the two types, one loop converts; otherwise blocks are
   converted to the hub and from there. */
#include "core/dtype.h"

enum { BLOCK = 512 };

typedef union {
    float f32[BLOCK];
    double f64[BLOCK];
    int64_t i64[BLOCK];
} block;

static inline int32_t saturated_i32(double v)
{
    v = v == v ? v : 0;
    v = v > -2147483648.0 ? v : -2147483648.0;
    v = v < 2147483647.0 ? v : 2147483647.0;
    return (int32_t)v;
}

/* The largest f32 below 2^31 is 2^31 - 128. For larger values the last seven bits are set afterwards. Masks take the
   place of ?:, which would keep gcc from vectorising. */
static inline int32_t saturated_i32_of_f32(float v)
{
    float c = v > -0x1p31f ? v : -0x1p31f;
    c = c < 0x1.fffffep30f ? c : 0x1.fffffep30f;
    return ((int32_t)c | (-(int32_t)(v >= 0x1p31f) & 127)) & -(int32_t)(v == v);
}

static inline int64_t saturated_i64(double v)
{
    if (v >= 0x1p63) return INT64_MAX;
    if (v < -0x1p63) return INT64_MIN;
    return v == v ? (int64_t)v : 0;
}

static void to_f32(float *restrict d, cn_dtype from, const void *src, int64_t n)
{
    const uint8_t *u8 = src;
    const int8_t *i8 = src;
    const int16_t *i16 = src;
    const int32_t *i32 = src;
    const int64_t *i64 = src;
    const uint16_t *half = src;
    const double *f64 = src;
    switch (from) {
    case CN_BOOL:
    case CN_U8:
        for (int64_t i = 0; i < n; i++) d[i] = u8[i];
        break;
    case CN_I8:
        for (int64_t i = 0; i < n; i++) d[i] = i8[i];
        break;
    case CN_I16:
        for (int64_t i = 0; i < n; i++) d[i] = i16[i];
        break;
    case CN_I32:
        for (int64_t i = 0; i < n; i++) d[i] = (float)i32[i];
        break;
    case CN_I64:
        for (int64_t i = 0; i < n; i++) d[i] = (float)i64[i];
        break;
    case CN_F16:
        for (int64_t i = 0; i < n; i++) d[i] = cn__f16_to_f32(half[i]);
        break;
    case CN_BF16:
        for (int64_t i = 0; i < n; i++) d[i] = cn__bf16_to_f32(half[i]);
        break;
    case CN_F32: memcpy(d, src, (size_t)n * sizeof *d); break;
    case CN_F64:
        for (int64_t i = 0; i < n; i++) d[i] = (float)f64[i];
        break;
    }
}

static void to_f64(double *restrict d, cn_dtype from, const void *src, int64_t n)
{
    const uint8_t *u8 = src;
    const int8_t *i8 = src;
    const int16_t *i16 = src;
    const int32_t *i32 = src;
    const int64_t *i64 = src;
    const uint16_t *half = src;
    const float *f32 = src;
    switch (from) {
    case CN_BOOL:
    case CN_U8:
        for (int64_t i = 0; i < n; i++) d[i] = u8[i];
        break;
    case CN_I8:
        for (int64_t i = 0; i < n; i++) d[i] = i8[i];
        break;
    case CN_I16:
        for (int64_t i = 0; i < n; i++) d[i] = i16[i];
        break;
    case CN_I32:
        for (int64_t i = 0; i < n; i++) d[i] = i32[i];
        break;
    case CN_I64:
        for (int64_t i = 0; i < n; i++) d[i] = (double)i64[i];
        break;
    case CN_F16:
        for (int64_t i = 0; i < n; i++) d[i] = cn__f16_to_f32(half[i]);
        break;
    case CN_BF16:
        for (int64_t i = 0; i < n; i++) d[i] = cn__bf16_to_f32(half[i]);
        break;
    case CN_F32:
        for (int64_t i = 0; i < n; i++) d[i] = f32[i];
        break;
    case CN_F64: memcpy(d, src, (size_t)n * sizeof *d); break;
    }
}

/* From whole numbers only: i64 is never the hub of a float. */
static void to_i64(int64_t *restrict d, cn_dtype from, const void *src, int64_t n)
{
    const uint8_t *u8 = src;
    const int8_t *i8 = src;
    const int16_t *i16 = src;
    const int32_t *i32 = src;
    switch (from) {
    case CN_BOOL:
    case CN_U8:
        for (int64_t i = 0; i < n; i++) d[i] = u8[i];
        break;
    case CN_I8:
        for (int64_t i = 0; i < n; i++) d[i] = i8[i];
        break;
    case CN_I16:
        for (int64_t i = 0; i < n; i++) d[i] = i16[i];
        break;
    case CN_I32:
        for (int64_t i = 0; i < n; i++) d[i] = i32[i];
        break;
    case CN_I64: memcpy(d, src, (size_t)n * sizeof *d); break;
    default: break;
    }
}

static void from_f32(cn_dtype to, void *restrict dst, const float *s, int64_t n)
{
    uint8_t *u8 = dst;
    int8_t *i8 = dst;
    int16_t *i16 = dst;
    int32_t *i32 = dst;
    int64_t *i64 = dst;
    uint16_t *half = dst;
    switch (to) {
    case CN_BOOL:
        for (int64_t i = 0; i < n; i++) u8[i] = s[i] != 0;
        break;
    case CN_U8:
        for (int64_t i = 0; i < n; i++) u8[i] = (uint8_t)saturated_i64(s[i]);
        break;
    case CN_I8:
        for (int64_t i = 0; i < n; i++) i8[i] = (int8_t)saturated_i64(s[i]);
        break;
    case CN_I16:
        for (int64_t i = 0; i < n; i++) i16[i] = (int16_t)saturated_i64(s[i]);
        break;
    case CN_I32:
        for (int64_t i = 0; i < n; i++) i32[i] = saturated_i32_of_f32(s[i]);
        break;
    case CN_I64:
        for (int64_t i = 0; i < n; i++) i64[i] = saturated_i64(s[i]);
        break;
    case CN_F16:
        for (int64_t i = 0; i < n; i++) half[i] = cn__f32_to_f16(s[i]);
        break;
    case CN_BF16:
        for (int64_t i = 0; i < n; i++) half[i] = cn__f32_to_bf16(s[i]);
        break;
    default: break;
    }
}

/* To whole numbers and bool only: the hub of f64 and a smaller float is f32. */
static void from_f64(cn_dtype to, void *restrict dst, const double *s, int64_t n)
{
    uint8_t *u8 = dst;
    int8_t *i8 = dst;
    int16_t *i16 = dst;
    int32_t *i32 = dst;
    int64_t *i64 = dst;
    switch (to) {
    case CN_BOOL:
        for (int64_t i = 0; i < n; i++) u8[i] = s[i] != 0;
        break;
    case CN_U8:
        for (int64_t i = 0; i < n; i++) u8[i] = (uint8_t)saturated_i64(s[i]);
        break;
    case CN_I8:
        for (int64_t i = 0; i < n; i++) i8[i] = (int8_t)saturated_i64(s[i]);
        break;
    case CN_I16:
        for (int64_t i = 0; i < n; i++) i16[i] = (int16_t)saturated_i64(s[i]);
        break;
    case CN_I32:
        for (int64_t i = 0; i < n; i++) i32[i] = saturated_i32(s[i]);
        break;
    case CN_I64:
        for (int64_t i = 0; i < n; i++) i64[i] = saturated_i64(s[i]);
        break;
    default: break;
    }
}

static void from_i64(cn_dtype to, void *restrict dst, const int64_t *s, int64_t n)
{
    uint8_t *u8 = dst;
    int8_t *i8 = dst;
    int16_t *i16 = dst;
    int32_t *i32 = dst;
    switch (to) {
    case CN_BOOL:
        for (int64_t i = 0; i < n; i++) u8[i] = s[i] != 0;
        break;
    case CN_U8:
        for (int64_t i = 0; i < n; i++) u8[i] = (uint8_t)s[i];
        break;
    case CN_I8:
        for (int64_t i = 0; i < n; i++) i8[i] = (int8_t)s[i];
        break;
    case CN_I16:
        for (int64_t i = 0; i < n; i++) i16[i] = (int16_t)s[i];
        break;
    case CN_I32:
        for (int64_t i = 0; i < n; i++) i32[i] = (int32_t)s[i];
        break;
    default: break;
    }
}

static cn_dtype hub_of(cn_dtype to, cn_dtype from)
{
    if (cn_dtype_is_float(to)) return to == CN_F64 ? CN_F64 : CN_F32;
    if (cn_dtype_is_float(from)) return from == CN_F64 ? CN_F64 : CN_F32;
    return CN_I64;
}

static void enter(cn_dtype hub, void *dst, cn_dtype from, const void *src, int64_t n)
{
    if (hub == CN_F32) to_f32(dst, from, src, n);
    else if (hub == CN_F64) to_f64(dst, from, src, n);
    else to_i64(dst, from, src, n);
}

static void leave(cn_dtype to, void *dst, cn_dtype hub, const void *src, int64_t n)
{
    if (hub == CN_F32) from_f32(to, dst, src, n);
    else if (hub == CN_F64) from_f64(to, dst, src, n);
    else from_i64(to, dst, src, n);
}

static void convert_blocks(cn_dtype to, char *dst, cn_dtype hub, cn_dtype from, const char *src, int64_t n)
{
    size_t to_size = cn_dtype_size(to), from_size = cn_dtype_size(from);
    block between;
    for (int64_t done = 0; done < n; done += BLOCK) {
        int64_t some = n - done < BLOCK ? n - done : BLOCK;
        enter(hub, &between, from, src + (size_t)done * from_size, some);
        leave(to, dst + (size_t)done * to_size, hub, &between, some);
    }
}

void cn__convert(cn_dtype to, void *dst, cn_dtype from, const void *src, int64_t n)
{
    if (n <= 0) return;
    cn_dtype hub = hub_of(to, from);
    if (to == from) memcpy(dst, src, (size_t)n * cn_dtype_size(to));
    else if (hub == to) enter(hub, dst, from, src, n);
    else if (hub == from) leave(to, dst, hub, src, n);
    else convert_blocks(to, dst, hub, from, src, n);
}

double cn__load_f64(cn_dtype t, const void *p)
{
    double v = 0;
    cn__convert(CN_F64, &v, t, p, 1);
    return v;
}

int64_t cn__load_i64(cn_dtype t, const void *p)
{
    int64_t v = 0;
    cn__convert(CN_I64, &v, t, p, 1);
    return v;
}

void cn__store_f64(cn_dtype t, void *p, double v) { cn__convert(t, p, CN_F64, &v, 1); }
