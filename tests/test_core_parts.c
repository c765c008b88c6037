/* Element types, their conversion, random numbers and printing, each against an independent slow answer or by hand. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/dtype.h"
#include "core/format.h"
#include "core/philox.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

typedef struct {
    int passed, failed;
} tally;

__attribute__((format(printf, 3, 4))) static void check(tally *t, bool ok, const char *what, ...)
{
    if (ok) {
        t->passed++;
        return;
    }
    va_list args;
    va_start(args, what);
    printf("FAILED ");
    vprintf(what, args);
    printf("\n");
    va_end(args);
    t->failed++;
}

/* ---- facts and promotion ---- */

static void test_facts(tally *t)
{
    static const char *const names[CN_DTYPES] = {
        "bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"
    };
    static const size_t sizes[CN_DTYPES] = { 1, 1, 1, 2, 4, 8, 2, 2, 4, 8 };
    for (int i = 0; i < CN_DTYPES; i++) {
        cn_dtype d = (cn_dtype)i;
        check(t, strcmp(cn_dtype_name(d), names[i]) == 0, "name of %s is %s", names[i], cn_dtype_name(d));
        check(t, cn_dtype_size(d) == sizes[i], "size of %s is %zu", names[i], cn_dtype_size(d));
        check(t, cn_dtype_is_float(d) == (names[i][0] == 'f' || i == CN_BF16), "is_float of %s", names[i]);
    }
    cn_dtype outside[] = { (cn_dtype)CN_DTYPES, (cn_dtype)-1, (cn_dtype)1000 };
    for (int i = 0; i < COUNT(outside); i++) {
        check(t, strcmp(cn_dtype_name(outside[i]), "?") == 0, "name of type %d", (int)outside[i]);
        check(t, cn_dtype_size(outside[i]) == 0, "size of type %d", (int)outside[i]);
        check(t, !cn_dtype_is_float(outside[i]), "is_float of type %d", (int)outside[i]);
    }
}

static void test_promotion(tally *t)
{
    enum { b = CN_BOOL, u = CN_U8, c = CN_I8, s = CN_I16, i = CN_I32, l = CN_I64 };
    enum { h = CN_F16, g = CN_BF16, f = CN_F32, d = CN_F64 };
    static const int table[CN_DTYPES][CN_DTYPES] = {
        { b, u, c, s, i, l, h, g, f, d }, /* bool */
        { u, u, s, s, i, l, h, g, f, d }, /* u8 */
        { c, s, c, s, i, l, h, g, f, d }, /* i8 */
        { s, s, s, s, i, l, h, g, f, d }, /* i16 */
        { i, i, i, i, i, l, h, g, f, d }, /* i32 */
        { l, l, l, l, l, l, h, g, f, d }, /* i64 */
        { h, h, h, h, h, h, h, f, f, d }, /* f16 */
        { g, g, g, g, g, g, f, g, f, d }, /* bf16 */
        { f, f, f, f, f, f, f, f, f, d }, /* f32 */
        { d, d, d, d, d, d, d, d, d, d }, /* f64 */
    };
    for (int x = 0; x < CN_DTYPES; x++)
        for (int y = 0; y < CN_DTYPES; y++) {
            cn_dtype got = cn_promote((cn_dtype)x, (cn_dtype)y);
            check(t, (int)got == table[x][y], "promote(%s, %s) is %s", cn_dtype_name((cn_dtype)x),
                  cn_dtype_name((cn_dtype)y), cn_dtype_name(got));
        }
}

/* ---- halves ---- */

/* A format by its numbers: value = mantissa * 2^(exponent - mantissa bits). */
typedef struct {
    int mantissa_bits, min_exponent;
    double largest;
} half_kind;

static const half_kind f16_kind = { 10, -14, 65504.0 };
static const half_kind bf16_kind = { 7, -126, 0x1.fep127 };

static double slow_half_value(half_kind k, unsigned bits)
{
    unsigned mantissa = bits & ((1u << k.mantissa_bits) - 1), exponent = (bits & 0x7fff) >> k.mantissa_bits;
    unsigned top = (1u << (15 - k.mantissa_bits)) - 1;
    double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == top) return mantissa ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(mantissa, k.min_exponent - k.mantissa_bits);
    return sign * ldexp(mantissa + (1u << k.mantissa_bits), k.min_exponent - k.mantissa_bits + (int)exponent - 1);
}

static double slow_round(half_kind k, double x)
{
    if (!isfinite(x) || x == 0) return x;
    int e;
    frexp(x, &e);
    e = (e - 1 < k.min_exponent ? k.min_exponent : e - 1) - k.mantissa_bits;
    double r = ldexp(nearbyint(ldexp(x, -e)), e);
    return fabs(r) > k.largest ? copysign(INFINITY, x) : r;
}

static bool same(double a, double b) { return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b)); }

static void test_half_values(tally *t)
{
    int wrong = 0;
    for (unsigned bits = 0; bits < 65536; bits++) {
        uint16_t h = (uint16_t)bits;
        float f = cn__f16_to_f32(h), g = cn__bf16_to_f32(h);
        wrong += !same(f, slow_half_value(f16_kind, bits)) + !same(g, slow_half_value(bf16_kind, bits));
        /* a NaN comes back quiet, with its sign and payload */
        wrong += cn__f32_to_f16(f) != (isnan(f) ? (h | 0x200) : h);
        wrong += cn__f32_to_bf16(g) != (isnan(g) ? (h | 0x40) : h);
    }
    check(t, wrong == 0, "%d of the 65,536 values of f16 and bf16 are read wrong or do not return", wrong);
}

static void test_half_sweep(tally *t)
{
    int wrong = 0;
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += 8191) {
        float x = cn__f32_of_bits((uint32_t)bits);
        wrong += !same(cn__f16_to_f32(cn__f32_to_f16(x)), slow_round(f16_kind, x));
        wrong += !same(cn__bf16_to_f32(cn__f32_to_bf16(x)), slow_round(bf16_kind, x));
    }
    check(t, wrong == 0, "%d of a sweep over all f32 are rounded wrong", wrong);
}

/* Between each half and the next lies a tie: it goes to the even one, its neighbours to the nearer. */
static void test_half_ties(tally *t)
{
    int wrong = 0;
    for (uint16_t h = 0; h < 0x7c00; h++) {
        double next = h == 0x7bff ? 65536 : cn__f16_to_f32((uint16_t)(h + 1));
        float tie = (float)((cn__f16_to_f32(h) + next) / 2);
        wrong += cn__f32_to_f16(tie) != h + (h & 1);
        wrong += cn__f32_to_f16(nextafterf(tie, 0)) != h;
        wrong += cn__f32_to_f16(nextafterf(tie, INFINITY)) != h + 1;
        wrong += cn__f32_to_f16(-tie) != (0x8000 | (h + (h & 1)));
    }
    for (uint16_t h = 0; h < 0x7f80; h++) {
        float tie = cn__f32_of_bits((uint32_t)h << 16 | 0x8000);
        wrong += cn__f32_to_bf16(tie) != h + (h & 1);
        wrong += cn__f32_to_bf16(cn__f32_of_bits((uint32_t)h << 16 | 0x7fff)) != h;
        wrong += cn__f32_to_bf16(cn__f32_of_bits((uint32_t)h << 16 | 0x8001)) != h + 1;
    }
    check(t, wrong == 0, "%d ties between halves are rounded wrong", wrong);
}

static void test_half_by_hand(tally *t)
{
    static const struct {
        float from;
        uint16_t f16, bf16;
    } rows[] = {
        { 0.0f, 0x0000, 0x0000 },
        { -0.0f, 0x8000, 0x8000 },
        { 1.0f, 0x3c00, 0x3f80 },
        { -2.0f, 0xc000, 0xc000 },
        { 65504.0f, 0x7bff, 0x4780 },
        { 65519.99f, 0x7bff, 0x4780 },
        { 65520.0f, 0x7c00, 0x4780 },
        { 1e30f, 0x7c00, 0x714a },
        { 0x1p-14f, 0x0400, 0x3880 },
        { 0x1p-24f, 0x0001, 0x3380 },
        { 0x1p-25f, 0x0000, 0x3300 },
        { 0x1.8p-24f, 0x0002, 0x33c0 },
        { 0x1.000002p-25f, 0x0001, 0x3300 },
        { INFINITY, 0x7c00, 0x7f80 },
        { -INFINITY, 0xfc00, 0xff80 },
        { 0x1.fffffep127f, 0x7c00, 0x7f80 },
        { 0x1p-149f, 0x0000, 0x0000 },
        { 0x1p-133f, 0x0000, 0x0001 },
    };
    for (int i = 0; i < COUNT(rows); i++) {
        check(t, cn__f32_to_f16(rows[i].from) == rows[i].f16, "f16 of %a is %04x", rows[i].from,
              cn__f32_to_f16(rows[i].from));
        check(t, cn__f32_to_bf16(rows[i].from) == rows[i].bf16, "bf16 of %a is %04x", rows[i].from,
              cn__f32_to_bf16(rows[i].from));
    }
}

/* ---- conversion of arrays ---- */

typedef union {
    uint8_t u8;
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    uint16_t half;
    float f32;
    double f64;
} element;

/* Edge values of a type, and how many. */
typedef struct {
    int n;
    element v[32];
} edges;

static const int64_t integers[] = {
    0,        1,         -1,        2,         100,        127,        128,       -128,
    -129,     255,       256,       -32768,    65504,      65535,      65536,     16777217,
    33554435, 1ll << 53, INT32_MAX, INT32_MIN, 4294967295, 4294967297, INT64_MAX, INT64_MIN,
};

static const double numbers[] = {
    0.0,           -0.0,   0.5,     -0.5,           0.999,  1.0,      -1.5,      127.9,
    128,           255.5,  -128.9,  256.25,         65504,  65520,    1e5,       -1e9,
    0x1.fffffep30, 0x1p31, -0x1p31, -0x1.000002p31, 0x1p53, 0x1p63,   -0x1p63,   3e38,
    1e300,         -1e300, 0x1p-24, 0x1p-25,        5e-324, INFINITY, -INFINITY, NAN,
};

static edges edges_of(cn_dtype d)
{
    edges e = { .n = cn_dtype_is_float(d) ? COUNT(numbers) : COUNT(integers) };
    for (int i = 0; i < e.n; i++) switch (d) {
        case CN_BOOL: e.v[i].u8 = integers[i] != 0; break;
        case CN_U8: e.v[i].u8 = (uint8_t)integers[i]; break;
        case CN_I8: e.v[i].i8 = (int8_t)integers[i]; break;
        case CN_I16: e.v[i].i16 = (int16_t)integers[i]; break;
        case CN_I32: e.v[i].i32 = (int32_t)integers[i]; break;
        case CN_I64: e.v[i].i64 = integers[i]; break;
        case CN_F16: e.v[i].half = cn__f32_to_f16((float)numbers[i]); break;
        case CN_BF16: e.v[i].half = cn__f32_to_bf16((float)numbers[i]); break;
        case CN_F32: e.v[i].f32 = (float)numbers[i]; break;
        case CN_F64: e.v[i].f64 = numbers[i]; break;
        }
    return e;
}

/* long double holds all values of all types, where it has 64 bits of mantissa or more */
static long double slow_read(cn_dtype d, element e)
{
    switch (d) {
    case CN_BOOL:
    case CN_U8: return e.u8;
    case CN_I8: return e.i8;
    case CN_I16: return e.i16;
    case CN_I32: return e.i32;
    case CN_I64: return e.i64;
    case CN_F16: return slow_half_value(f16_kind, e.half);
    case CN_BF16: return slow_half_value(bf16_kind, e.half);
    case CN_F32: return e.f32;
    case CN_F64: return e.f64;
    }
    return 0;
}

static int64_t slow_i64(long double x)
{
    if (isnan(x)) return 0;
    return x >= 0x1p63L ? INT64_MAX : x <= -0x1p63L ? INT64_MIN : (int64_t)x;
}

static long double slow_convert(cn_dtype to, cn_dtype from, long double x)
{
    int64_t i = slow_i64(x);
    switch (to) {
    case CN_BOOL: return x != 0;
    case CN_U8: return (uint8_t)i;
    case CN_I8: return (int8_t)i;
    case CN_I16: return (int16_t)i;
    case CN_I32:
        if (cn_dtype_is_float(from)) return i > INT32_MAX ? INT32_MAX : i < INT32_MIN ? INT32_MIN : (int32_t)i;
        return (int32_t)i;
    case CN_I64: return i;
    case CN_F16: return slow_round(f16_kind, (float)x);
    case CN_BF16: return slow_round(bf16_kind, (float)x);
    case CN_F32: return (float)x;
    case CN_F64: return (double)x;
    }
    return 0;
}

static bool same_value(long double a, long double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

/* Element i of an array of n = 1300, so that blocks, vectors and their remainders are all used, is edge i mod count. */
static void test_pair(tally *t, cn_dtype to, cn_dtype from)
{
    enum { N = 1300 };
    static _Alignas(16) unsigned char src[N * 8], dst[N * 8 + 1];
    edges e = edges_of(from);
    size_t from_size = cn_dtype_size(from), to_size = cn_dtype_size(to);
    for (int i = 0; i < N; i++) memcpy(src + (size_t)i * from_size, &e.v[i % e.n], from_size);
    dst[N * to_size] = 0xa5;
    cn__convert(to, dst, from, src, N);
    check(t, dst[N * to_size] == 0xa5, "%s to %s wrote past the end", cn_dtype_name(from), cn_dtype_name(to));
    int wrong = 0, first = -1;
    for (int i = 0; i < N; i++) {
        element got = { 0 };
        memcpy(&got, dst + (size_t)i * to_size, to_size);
        long double want = slow_convert(to, from, slow_read(from, e.v[i % e.n]));
        if (same_value(slow_read(to, got), want)) continue;
        if (wrong++ == 0) first = i % e.n;
    }
    check(t, wrong == 0, "%s to %s: %d wrong, edge %d (%Lg) first", cn_dtype_name(from), cn_dtype_name(to), wrong,
          first, first < 0 ? 0.0L : slow_read(from, e.v[first]));
}

static void test_convert(tally *t)
{
    for (int to = 0; to < CN_DTYPES; to++)
        for (int from = 0; from < CN_DTYPES; from++) test_pair(t, (cn_dtype)to, (cn_dtype)from);
    cn__convert(CN_F32, NULL, CN_F32, NULL, 0);
    cn__convert(CN_U8, NULL, CN_F16, NULL, 0);
}

static void test_single_elements(tally *t)
{
    for (int d = 0; d < CN_DTYPES; d++) {
        cn_dtype type = (cn_dtype)d;
        edges e = edges_of(type);
        int wrong = 0;
        for (int i = 0; i < e.n; i++) {
            long double x = slow_read(type, e.v[i]);
            wrong += !same_value(cn__load_f64(type, &e.v[i]), (double)x);
            wrong += cn__load_i64(type, &e.v[i]) != slow_i64(x);
        }
        for (int i = 0; i < COUNT(numbers); i++) {
            element got = { 0 };
            cn__store_f64(type, &got, numbers[i]);
            wrong += !same_value(slow_read(type, got), slow_convert(type, CN_F64, numbers[i]));
        }
        check(t, wrong == 0, "%d single elements of %s are loaded or stored wrong", wrong, cn_dtype_name(type));
    }
}

/* ---- random numbers ---- */

/* The known answers of Random123 for philox4x32-10. */
static void test_philox(tally *t)
{
    static const struct {
        uint64_t seed, stream, block;
        uint32_t want[4];
    } rows[] = {
        { 0, 0, 0, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { UINT64_MAX, UINT64_MAX, UINT64_MAX, { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { 0x299f31d0a4093822,
          0x0370734413198a2e,
          0x85a308d3243f6a88,
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (int i = 0; i < COUNT(rows); i++) {
        cn__philox_out got = cn__philox(rows[i].seed, rows[i].stream, rows[i].block);
        check(t, memcmp(got.v, rows[i].want, sizeof got.v) == 0, "philox answer %d is %08x %08x %08x %08x", i, got.v[0],
              got.v[1], got.v[2], got.v[3]);
    }
    for (uint64_t i = 0; i < 16; i++)
        check(t, cn__random_u32(7, 9, i) == cn__philox(7, 9, i / 4).v[i % 4], "element %d of a stream", (int)i);
}

static void test_unit(tally *t)
{
    check(t, cn__unit_f32(0) == 0 && cn__unit_f32(255) == 0, "unit_f32 of small bits");
    check(t, cn__unit_f32(256) == 0x1p-24f, "unit_f32 of 256");
    check(t, cn__unit_f32(0x80000000) == 0.5f, "unit_f32 of the top bit");
    check(t, cn__unit_f32(UINT32_MAX) == 1 - 0x1p-24f, "unit_f32 of all ones");
    check(t, cn__unit_f64(0, 2047) == 0, "unit_f64 of small bits");
    check(t, cn__unit_f64(0, 2048) == 0x1p-53, "unit_f64 of 2048");
    check(t, cn__unit_f64(0x80000000, 0) == 0.5, "unit_f64 of the top bit");
    check(t, cn__unit_f64(UINT32_MAX, UINT32_MAX) == 1 - 0x1p-53, "unit_f64 of all ones");
    double sum = 0;
    for (uint64_t i = 0; i < 100000; i++) sum += cn__unit_f32(cn__random_u32(1, 2, i));
    check(t, fabs(sum / 100000 - 0.5) < 0.004, "mean of 100,000 is %g", sum / 100000);
}

/* ---- printing ---- */

typedef struct {
    cn_dtype dtype;
    cn_dims shape;
    double values[24];
    const char *text;
} print_case;

#define D(...)                                                                       \
    {                                                                                \
        (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), { __VA_ARGS__ } \
    }
#define D0       \
    {            \
        0, { 0 } \
    }

static const print_case float_cases[] = {
    { CN_F32, D(2, 2), { 1, 2, 3, 4 }, "tensor([[1., 2.],\n        [3., 4.]])" },
    { CN_F32, D0, { 3.14159265 }, "tensor(3.1416)" },
    { CN_F32, D0, { 2 }, "tensor(2.)" },
    { CN_F32, D0, { 0 }, "tensor(0.)" },
    { CN_F32, D0, { NAN }, "tensor(nan)" },
    { CN_F32, D0, { -INFINITY }, "tensor(-inf)" },
    { CN_F32, D(1), { 1.5 }, "tensor([1.5000])" },
    { CN_F32, D(3), { 0.1, 22.5, -3 }, "tensor([ 0.1000, 22.5000, -3.0000])" },
    { CN_F32, D(3), { 0, 0, 0 }, "tensor([0., 0., 0.])" },
    { CN_F32, D(2), { -0.0, 1 }, "tensor([-0., 1.])" },
    { CN_F32, D(2), { 0, -1.5 }, "tensor([ 0.0000, -1.5000])" },
    { CN_F32, D(3), { 1, -20, 300 }, "tensor([  1., -20., 300.])" },
    /* the ratio may reach 1000 but not pass it */
    { CN_F32, D(2), { 1, 1000 }, "tensor([   1., 1000.])" },
    { CN_F32, D(2), { 1, 1001 }, "tensor([1.0000e+00, 1.0010e+03])" },
    { CN_F32, D(2), { 1, 1000.5 }, "tensor([1.0000e+00, 1.0005e+03])" },
    { CN_F32, D(2), { -0.5, 500 }, "tensor([ -0.5000, 500.0000])" },
    { CN_F32, D(1), { 1e8 }, "tensor([100000000.])" },
    { CN_F32, D(1), { 2e8 }, "tensor([2.0000e+08])" },
    { CN_F32, D(1), { 123456.789 }, "tensor([123456.7891])" },
    /* as f32 this is below 1e-4, as f64 it is not */
    { CN_F32, D0, { 1e-4 }, "tensor(1.0000e-04)" },
    { CN_F64, D0, { 1e-4 }, "tensor(0.0001, dtype=f64)" },
    { CN_F32, D(2), { 0.03125, 0.09375 }, "tensor([0.0312, 0.0938])" },
    { CN_F32, D(4), { 1e-5, 0, NAN, -1 }, "tensor([ 1.0000e-05,  0.0000e+00,         nan, -1.0000e+00])" },
    { CN_F32, D(2), { NAN, INFINITY }, "tensor([nan, inf])" },
    { CN_F32, D(3), { NAN, -INFINITY, 0 }, "tensor([nan, -inf, 0.])" },
    { CN_F32, D(2), { 1, NAN }, "tensor([1., nan])" },
    { CN_F32, D(2), { 100, -INFINITY }, "tensor([100., -inf])" },
    { CN_F32, D(4), { 0.5, NAN, INFINITY, -INFINITY }, "tensor([0.5000,    nan,    inf,   -inf])" },
    { CN_F64, D(2), { 0.5, 1 }, "tensor([0.5000, 1.0000], dtype=f64)" },
    { CN_F64, D(2), { 1e-300, -1e300 }, "tensor([ 1.0000e-300, -1.0000e+300], dtype=f64)" },
    { CN_F64, D(1), { 5e-324 }, "tensor([4.9407e-324], dtype=f64)" },
    { CN_F16, D(2), { 65504, 0.5 }, "tensor([6.5504e+04, 5.0000e-01], dtype=f16)" },
    { CN_F16, D(2), { 0.1, 0.2 }, "tensor([0.1000, 0.2000], dtype=f16)" },
    { CN_BF16, D(2), { 1, 2.5 }, "tensor([1.0000, 2.5000], dtype=bf16)" },
    { CN_BF16, D(1), { 3.14159265 }, "tensor([3.1406], dtype=bf16)" },
};

static const print_case other_cases[] = {
    { CN_I64, D0, { 7 }, "tensor(7)" },
    { CN_I32, D0, { -7 }, "tensor(-7, dtype=i32)" },
    { CN_I64, D(3), { 1, -20, 300 }, "tensor([  1, -20, 300])" },
    { CN_I64, D(2), { -0x1p63, 0 }, "tensor([-9223372036854775808,                    0])" },
    { CN_I32, D(2), { 1, 2 }, "tensor([1, 2], dtype=i32)" },
    { CN_U8, D(3), { 0, 7, 255 }, "tensor([  0,   7, 255], dtype=u8)" },
    { CN_I8, D(2), { -128, 127 }, "tensor([-128,  127], dtype=i8)" },
    { CN_I16, D(2), { -32768, 7 }, "tensor([-32768,      7], dtype=i16)" },
    { CN_BOOL, D0, { 1 }, "tensor(True)" },
    { CN_BOOL, D(2), { 1, 1 }, "tensor([True, True])" },
    { CN_BOOL, D(2), { 1, 0 }, "tensor([ True, False])" },
    { CN_F32, D(0), { 0 }, "tensor([])" },
    { CN_F32, D(0, 3), { 0 }, "tensor([], size=(0, 3))" },
    { CN_F32, D(2, 0, 5), { 0 }, "tensor([], size=(2, 0, 5))" },
    { CN_I64, D(0), { 0 }, "tensor([], dtype=i64)" },
    { CN_BOOL, D(0), { 0 }, "tensor([], dtype=bool)" },
    { CN_F64, D(0, 3), { 0 }, "tensor([], size=(0, 3), dtype=f64)" },
    { CN_F32, D(1, 1), { 5 }, "tensor([[5.]])" },
    { CN_F32, D(3, 1), { 1, 2, 3 }, "tensor([[1.],\n        [2.],\n        [3.]])" },
    { CN_I64,
      D(2, 2, 2),
      { 1, 2, 3, 4, 5, 6, 7, 8 },
      "tensor([[[1, 2],\n         [3, 4]],\n\n        [[5, 6],\n         [7, 8]]])" },
    { CN_I32,
      D(2, 1, 2, 1),
      { 1, 2, 3, 4 },
      "tensor([[[[1],\n          [2]]],\n\n\n        [[[3],\n          [4]]]], dtype=i32)" },
};

static void check_text(tally *t, cn_dtype dtype, cn_dims shape, const void *data, const char *want)
{
    static char got[8192];
    size_t length = cn__format(dtype, shape.n, shape.v, data, got, sizeof got);
    check(t, strcmp(got, want) == 0, "printing: got\n%s\nwant\n%s", got, want);
    check(t, length == strlen(want), "printing: length %zu, want %zu", length, strlen(want));
}

static void test_cases(tally *t, const print_case *cases, int n)
{
    for (int i = 0; i < n; i++) {
        _Alignas(16) unsigned char data[24 * 8];
        for (int k = 0; k < 24; k++)
            cn__store_f64(cases[i].dtype, data + (size_t)k * cn_dtype_size(cases[i].dtype), cases[i].values[k]);
        check_text(t, cases[i].dtype, cases[i].shape, data, cases[i].text);
    }
}

/* Counting numbers 0, 1, 2, ... */
static void check_count(tally *t, cn_dtype dtype, cn_dims shape, const char *want)
{
    static _Alignas(16) unsigned char data[4096 * 8];
    for (int k = 0; k < 4096; k++) cn__store_f64(dtype, data + (size_t)k * cn_dtype_size(dtype), k);
    check_text(t, dtype, shape, data, want);
}

static void test_wrapping(tally *t)
{
    check_count(t, CN_I64, (cn_dims)D(30),
                "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
                "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])");
    check_count(t, CN_F32, (cn_dims)D(2, 16),
                "tensor([[ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,\n"
                "         14., 15.],\n"
                "        [16., 17., 18., 19., 20., 21., 22., 23., 24., 25., 26., 27., 28., 29.,\n"
                "         30., 31.]])");
    /* the type goes to a line of its own when it does not fit: 15 numbers and it take 79 columns, 16 would take 83 */
    check_count(t, CN_I32, (cn_dims)D(15),
                "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14], dtype=i32)");
    check_count(t, CN_I32, (cn_dims)D(16),
                "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15],\n"
                "       dtype=i32)");
    /* the same on the last of several lines: 18 numbers, then 16 */
    check_count(t, CN_I32, (cn_dims)D(34),
                "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
                "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33],\n"
                "       dtype=i32)");
}

static void test_summaries(tally *t)
{
    check_count(t, CN_I64, (cn_dims)D(1001), "tensor([   0,    1,    2,  ...,  998,  999, 1000])");
    check_count(t, CN_I32, (cn_dims)D(1001), "tensor([   0,    1,    2,  ...,  998,  999, 1000], dtype=i32)");
    check_count(t, CN_F32, (cn_dims)D(1001), "tensor([   0.,    1.,    2.,  ...,  998.,  999., 1000.])");
    check_count(t, CN_F32, (cn_dims)D(1100),
                "tensor([0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 1.0970e+03, 1.0980e+03,\n"
                "        1.0990e+03])");
    check_count(t, CN_I64, (cn_dims)D(40, 30),
                "tensor([[   0,    1,    2,  ...,   27,   28,   29],\n"
                "        [  30,   31,   32,  ...,   57,   58,   59],\n"
                "        [  60,   61,   62,  ...,   87,   88,   89],\n"
                "        ...,\n"
                "        [1110, 1111, 1112,  ..., 1137, 1138, 1139],\n"
                "        [1140, 1141, 1142,  ..., 1167, 1168, 1169],\n"
                "        [1170, 1171, 1172,  ..., 1197, 1198, 1199]])");
    check_count(t, CN_I64, (cn_dims)D(2, 7, 100),
                "tensor([[[   0,    1,    2,  ...,   97,   98,   99],\n"
                "         [ 100,  101,  102,  ...,  197,  198,  199],\n"
                "         [ 200,  201,  202,  ...,  297,  298,  299],\n"
                "         ...,\n"
                "         [ 400,  401,  402,  ...,  497,  498,  499],\n"
                "         [ 500,  501,  502,  ...,  597,  598,  599],\n"
                "         [ 600,  601,  602,  ...,  697,  698,  699]],\n"
                "\n"
                "        [[ 700,  701,  702,  ...,  797,  798,  799],\n"
                "         [ 800,  801,  802,  ...,  897,  898,  899],\n"
                "         [ 900,  901,  902,  ...,  997,  998,  999],\n"
                "         ...,\n"
                "         [1100, 1101, 1102,  ..., 1197, 1198, 1199],\n"
                "         [1200, 1201, 1202,  ..., 1297, 1298, 1299],\n"
                "         [1300, 1301, 1302,  ..., 1397, 1398, 1399]]])");
    /* a dimension of six is whole */
    check_count(t, CN_I64, (cn_dims)D(200, 6),
                "tensor([[   0,    1,    2,    3,    4,    5],\n"
                "        [   6,    7,    8,    9,   10,   11],\n"
                "        [  12,   13,   14,   15,   16,   17],\n"
                "        ...,\n"
                "        [1182, 1183, 1184, 1185, 1186, 1187],\n"
                "        [1188, 1189, 1190, 1191, 1192, 1193],\n"
                "        [1194, 1195, 1196, 1197, 1198, 1199]])");
}

/* What is not shown has no say in the style; 1,000 elements are all shown. */
static void test_summary_limits(tally *t)
{
    static float data[1001], zeros[1000];
    static char text[16384];
    data[500] = 1e20f;
    check_text(t, CN_F32, (cn_dims)D(1001), data, "tensor([0., 0., 0.,  ..., 0., 0., 0.])");
    size_t length = cn__format(CN_F32, 1, (int64_t[]){ 1000 }, zeros, text, sizeof text);
    /* zeros alone count as one wide, so 24 to a line: 999 commas, 41 line breaks of 9 and 958 spaces */
    check(t, length == 7 + 2 + 2000 + 999 + 41 * 9 + 958 + 1, "1,000 zeros take %zu", length);
    check(t, strstr(text, "...") == NULL, "1,000 zeros are cut");
}

static void test_short_buffers(tally *t)
{
    static const char whole[] = "tensor([1., 2.])";
    float data[] = { 1, 2 };
    int64_t shape[] = { 2 };
    for (size_t size = 0; size <= sizeof whole + 1; size++) {
        char out[sizeof whole + 2];
        memset(out, '#', sizeof out);
        size_t length = cn__format(CN_F32, 1, shape, data, out, size);
        size_t kept = size == 0 ? 0 : size - 1 < sizeof whole - 1 ? size - 1 : sizeof whole - 1;
        bool ok = length == sizeof whole - 1 && memcmp(out, whole, kept) == 0;
        ok = ok && (size == 0 || out[kept] == '\0') && (size == 0 ? out[0] == '#' : out[kept + 1] == '#');
        check(t, ok, "printing to %zu bytes", size);
    }
    check(t, cn__format(CN_F32, 1, shape, data, NULL, 0) == sizeof whole - 1, "measuring without a buffer");
}

static void test_long_size(tally *t)
{
    cn_dims huge = D(0, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX);
    check_text(t, CN_F64, huge, NULL,
               "tensor([],\n       size=(0, 9223372036854775807, 9223372036854775807, 9223372036854775807, "
               "9223372036854775807, 9223372036854775807, 9223372036854775807, 9223372036854775807),\n"
               "       dtype=f64)");
}

int main(void)
{
    tally t = { 0, 0 };
    test_facts(&t);
    test_promotion(&t);
    test_half_values(&t);
    test_half_sweep(&t);
    test_half_ties(&t);
    test_half_by_hand(&t);
    test_convert(&t);
    test_single_elements(&t);
    test_philox(&t);
    test_unit(&t);
    test_cases(&t, float_cases, COUNT(float_cases));
    test_cases(&t, other_cases, COUNT(other_cases));
    test_wrapping(&t);
    test_summaries(&t);
    test_summary_limits(&t);
    test_short_buffers(&t);
    test_long_size(&t);
    printf("%d passed, %d failed\n", t.passed, t.failed);
    return t.failed > 0;
}
