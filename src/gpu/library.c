/* Functions that kernels may use and WGSL lacks. */
#include "gpu/backend.h"

typedef struct function {
    const char *name, *text;
} function;

static const function functions[] = {
    /* WGSL promises nothing about NaN and infinity in arithmetic: bits are looked at. */
    { "isnan", "fn isnan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }\n" },
    { "isinf", "fn isinf(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u; }\n" },
    { "isfinite", "fn isfinite(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) < 0x7f800000u; }\n" },
    { "infinity", "fn infinity() -> f32 { var w = 0x7f800000u; return bitcast<f32>(w); }\n" },
    { "not_a_number", "fn not_a_number() -> f32 { var w = 0x7fc00000u; return bitcast<f32>(w); }\n" },

    /* a * b / c and what is left, however large the product; c < 2^31 */
    { "muldiv", "fn muldiv(a: u32, b: u32, c: u32) -> vec2<u32> {\n"
                "    if (a == 0u || b <= 0xffffffffu / a) { return vec2<u32>(a * b / c, a * b % c); }\n"
                "    var q = 0u; var r = 0u;\n    for (var bit = 32u; bit > 0u; bit--) {\n"
                "        q *= 2u; r *= 2u;\n        if (r >= c) { r -= c; q++; }\n"
                "        if (((a >> (bit - 1u)) & 1u) == 0u) { continue; }\n"
                "        q += b / c; r += b % c;\n        if (r >= c) { r -= c; q++; }\n    }\n"
                "    return vec2<u32>(q, r);\n}\n" },

    /* to nearest, ties to even; the f32 that has the narrower type's value */
    { "to_bf16", "fn to_bf16(x: f32) -> f32 {\n    let w = bitcast<u32>(x);\n    if (isnan(x)) { return x; }\n"
                 "    return bitcast<f32>((w + 0x7fffu + ((w >> 16u) & 1u)) & 0xffff0000u);\n}\n" },
    { "to_f16", "fn to_f16(x: f32) -> f32 {\n    let w = bitcast<u32>(x); let a = w & 0x7fffffffu; let sign = w & "
                "0x80000000u;\n    if (a > 0x7f800000u) { return x; }\n"
                "    if (a >= 0x477ff000u) { return bitcast<f32>(sign | 0x7f800000u); }\n"
                "    if (a < 0x38800000u) {\n        let units = round(abs(x) * 16777216.0);\n"
                "        return bitcast<f32>(sign | bitcast<u32>(units * 5.9604644775390625e-8));\n    }\n"
                "    return bitcast<f32>(sign | ((a + 0xfffu + ((a >> 13u) & 1u)) & 0xffffe000u));\n}\n" },
};

enum { COUNT = sizeof functions / sizeof *functions };

void cn__gpu_library(cn__gpu_source *s, const char *text)
{
    bool wanted[COUNT] = { 0 };
    bool changed = true;
    while (changed) {
        changed = false;
        for (int i = 0; i < COUNT; i++) {
            bool now = cn__gpu_mentions(text, functions[i].name);
            for (int k = 0; k < COUNT && !now; k++)
                now = wanted[k] && k != i && cn__gpu_mentions(functions[k].text, functions[i].name);
            changed |= now && !wanted[i];
            wanted[i] |= now;
        }
    }
    for (int i = 0; i < COUNT; i++)
        if (wanted[i]) cn__gpu_say(s, "%s", functions[i].text);
}
