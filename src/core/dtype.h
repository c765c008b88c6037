/* core/dtype.h: conversion between element types: of arrays, of single elements, and of halves as bits.

       cn__convert(CN_F16, halves, CN_F32, floats, n);
       double x = cn__load_f64(CN_F16, halves + 3);

   The rules are the same for arrays and single elements:
     to bool         x != 0, so NaN becomes true; stored as a byte 0 or 1
     float to whole  rounded towards zero; NaN becomes 0; i32 and i64 saturate; smaller types keep low bits of the i64
     whole to whole  the low bits are kept
     to f16, bf16    to f32 first, then rounded to nearest even; too large becomes inf, NaN stays NaN */
#ifndef CAIRN_CORE_DTYPE_H
#define CAIRN_CORE_DTYPE_H

#include <stdint.h>
#include <string.h>

#include "cairn/base.h"

/* Contiguous arrays of n elements, aligned for their types, that do not overlap. */
void cn__convert(cn_dtype to, void *dst, cn_dtype from, const void *src, int64_t n);

double cn__load_f64(cn_dtype t, const void *p);
int64_t cn__load_i64(cn_dtype t, const void *p);
void cn__store_f64(cn_dtype t, void *p, double v);
/* Whether the number v is within the range of t. As in PyTorch, every number fits bool, infinities and NaN fit floats,
   and a negative whole number fits u8, where it wraps around. */
bool cn__fits(cn_dtype t, double v);
/* The number v as an operand of dtype t. A whole number that does not fit i32 wraps around, as in PyTorch and as it
   does for smaller dtypes; a conversion of floats to i32 would saturate. */
double cn__wrapped(cn_dtype t, double v);

static inline uint32_t cn__bits_of_f32(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float cn__f32_of_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* yes ? a : b, by a mask: compilers turn ?: into branches around float arithmetic, and then do not vectorise. */
static inline uint32_t cn__select(bool yes, uint32_t a, uint32_t b) { return b ^ ((a ^ b) & -(uint32_t)yes); }

/* Every case is computed, then one is selected. Results equal those of the F16C instructions, even the bits of NaN. */
static inline uint16_t cn__f32_to_f16(float f)
{
    uint32_t u = cn__bits_of_f32(f), a = u & 0x7fffffff;
    uint32_t normal = (a - (112u << 23) + 0xfff + (a >> 13 & 1)) >> 13;
    /* The last place of 0.5 is 2^-24, the smallest half: the addition rounds to a multiple of it. */
    uint32_t tiny = cn__bits_of_f32(cn__f32_of_bits(a) + 0.5f) - 0x3f000000;
    uint32_t nan = 0x7e00 | (a >> 13 & 0x3ff);
    uint32_t h = cn__select(a < 0x38800000, tiny, normal);
    h = cn__select(a >= 0x47800000, 0x7c00, h);
    h = cn__select(a > 0x7f800000, nan, h);
    return (uint16_t)(h | (u >> 16 & 0x8000));
}

static inline float cn__f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, a = h & 0x7fff;
    uint32_t normal = (a << 13) + (112u << 23);
    uint32_t tiny = cn__bits_of_f32((float)(int32_t)a * 0x1p-24f);
    uint32_t special = a << 13 | 0x7f800000 | cn__select(a > 0x7c00, 0x400000, 0);
    uint32_t u = cn__select(a < 0x400, tiny, normal);
    u = cn__select(a >= 0x7c00, special, u);
    return cn__f32_of_bits(u | sign);
}

static inline uint16_t cn__f32_to_bf16(float f)
{
    uint32_t u = cn__bits_of_f32(f);
    uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    uint32_t nan = u >> 16 | 0x40;
    return (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

/* Exact, bit for bit. */
static inline float cn__bf16_to_f32(uint16_t h) { return cn__f32_of_bits((uint32_t)h << 16); }

#endif
