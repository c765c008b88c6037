/* References of the operators that make tensors, with a Philox4x32-10 of their own. */
#include <math.h>

#include "ops/create/create.h"
#include "support/reference.h"

static bool is_float(cn_dtype t) { return t == CN_F16 || t == CN_BF16 || t == CN_F32 || t == CN_F64; }

static double as(cn_dtype t, double v)
{
    if (is_float(t)) return v;
    if (t == CN_BOOL) return v != 0;
    double range = t == CN_I64 ? 0x1p64 : t == CN_I32 ? 0x1p32 : t == CN_I16 ? 0x1p16 : 0x1p8;
    double low = t == CN_U8 ? 0 : -range / 2;
    double whole = trunc(v);
    return whole < low || whole >= low + range ? whole - range * floor((whole - low) / range) : whole;
}

static void full_reference(const ref_call *c)
{
    for (int64_t i = 0; i < c->out[0].numel; i++) c->out[0].v[i] = as(c->out[0].dtype, c->args[0].f);
}

static void arange_reference(const ref_call *c)
{
    for (int64_t i = 0; i < c->out[0].numel; i++)
        c->out[0].v[i] = as(c->out[0].dtype, c->args[0].f + (double)i * c->args[1].f);
}

static void linspace_reference(const ref_call *c)
{
    int64_t n = c->out[0].numel;
    for (int64_t i = 0; i < n; i++) {
        double part = n > 1 ? (double)i / (double)(n - 1) : 0;
        c->out[0].v[i] = as(c->out[0].dtype, c->args[0].f + (c->args[1].f - c->args[0].f) * part);
    }
}

static void eye_reference(const ref_call *c)
{
    const ref_tensor *out = &c->out[0];
    for (int64_t row = 0; row < out->shape[0]; row++)
        for (int64_t col = 0; col < out->shape[1]; col++) out->v[row * out->shape[1] + col] = row == col;
}

static void triangle(const ref_call *c, int side)
{
    const ref_tensor *x = &c->in[0];
    int64_t rows = x->shape[x->ndim - 2], cols = x->shape[x->ndim - 1], k = c->args[0].i;
    for (int64_t i = 0; i < x->numel; i++) {
        int64_t row = i / cols % rows, col = i % cols;
        c->out[0].v[i] = side * (col - row - k) >= 0 ? x->v[i] : 0;
    }
}

static void tril_reference(const ref_call *c) { triangle(c, -1); }
static void triu_reference(const ref_call *c) { triangle(c, 1); }

/* Random123's test: counter and key of zeros give 6627e8d5 e169c58d bc57ac4c 9b00dbd8. */
static uint32_t word(const ref_call *c, uint64_t position)
{
    uint64_t seed = c->args[0].u, stream = c->args[1].u, block = position / 4;
    uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    uint32_t x[4] = { (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream, (uint32_t)(stream >> 32) };
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)x[0] * 0xD2511F53u, b = (uint64_t)x[2] * 0xCD9E8D57u;
        x[0] = (uint32_t)(b >> 32) ^ x[1] ^ key[0];
        x[1] = (uint32_t)b;
        x[2] = (uint32_t)(a >> 32) ^ x[3] ^ key[1];
        x[3] = (uint32_t)a;
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    return x[position % 4];
}

/* The highest bits of a word, or two, as a fraction. */
static double unit(const ref_call *c, uint64_t i, cn_dtype t)
{
    if (t == CN_F64) return ldexp((double)(((uint64_t)word(c, 2 * i) << 32 | word(c, 2 * i + 1)) >> 11), -53);
    int bits = t == CN_F16 ? 11 : t == CN_BF16 ? 8 : 24;
    return ldexp(word(c, i) >> (32 - bits), -bits);
}

static void rand_reference(const ref_call *c)
{
    for (int64_t i = 0; i < c->out[0].numel; i++) c->out[0].v[i] = unit(c, (uint64_t)i, c->out[0].dtype);
}

static void randn_reference(const ref_call *c)
{
    for (int64_t i = 0; i < c->out[0].numel; i++) {
        double a = word(c, 2 * (uint64_t)i), b = word(c, 2 * (uint64_t)i + 1);
        double u = c->out[0].dtype == CN_F64 ? ldexp(a + 1, -32) : 1 - ldexp(floor(a / 256), -24);
        double v = c->out[0].dtype == CN_F64 ? ldexp(b, -32) : ldexp(floor(b / 256), -24);
        c->out[0].v[i] = sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
    }
}

__extension__ typedef unsigned __int128 wide;

static uint64_t below(const ref_call *c, uint64_t i, uint64_t limit)
{
    uint64_t r = (uint64_t)word(c, 2 * i) << 32 | word(c, 2 * i + 1);
    return (uint64_t)((wide)r * limit >> 64);
}

static void randint_reference(const ref_call *c)
{
    for (int64_t i = 0; i < c->out[0].numel; i++)
        c->out[0].v[i] = (double)(c->args[2].i + (int64_t)below(c, (uint64_t)i, c->args[3].u));
}

/* Halves are compared in f32. */
static void bernoulli_reference(const ref_call *c)
{
    cn_dtype t = c->in[0].dtype == CN_F64 ? CN_F64 : CN_F32;
    for (int64_t i = 0; i < c->out[0].numel; i++) c->out[0].v[i] = unit(c, (uint64_t)i, t) < c->in[0].v[i];
}

static void randperm_reference(const ref_call *c)
{
    double *v = c->out[0].v;
    for (int64_t i = 0; i < c->out[0].numel; i++) v[i] = (double)i;
    for (int64_t i = c->out[0].numel - 1; i > 0; i--) {
        uint64_t j = below(c, (uint64_t)i, (uint64_t)i + 1);
        double swap = v[i];
        v[i] = v[j];
        v[j] = swap;
    }
}

/* The category whose running sum first exceeds a random part of the whole. */
static double drawn(const ref_call *c, const double *w, int64_t n, uint64_t i, cn_dtype t)
{
    double whole = 0, sum = 0;
    for (int64_t k = 0; k < n; k++) whole += w[k];
    for (int64_t k = 0; k < n; k++)
        if ((sum += w[k]) > unit(c, i, t) * whole) return (double)k;
    return (double)(n - 1);
}

/* The category that comes next after those that were drawn: the one with the largest weight / waiting time. */
static int64_t next_drawn(const ref_call *c, int64_t row, int64_t n, const double *before, int64_t m, cn_dtype t)
{
    double best = -1;
    int64_t at = 0;
    for (int64_t k = 0; k < n; k++) {
        const double rate = c->in[0].v[row * n + k] / -log1p(-unit(c, (uint64_t)(row * n + k), t));
        bool again = false;
        for (int64_t j = 0; j < m; j++) again |= before[j] == (double)k;
        if (!again && rate > best) best = rate, at = k;
    }
    return at;
}

static void multinomial_reference(const ref_call *c)
{
    const cn__multinomial_attrs *a = c->attrs;
    const int64_t n = c->in[0].shape[c->in[0].ndim - 1], m = a->samples;
    const cn_dtype t = c->in[0].dtype == CN_F64 ? CN_F64 : CN_F32;
    for (int64_t i = 0; i < c->out[0].numel; i++) {
        double *row = c->out[0].v + i / m * m;
        row[i % m] = a->replacement ? drawn(c, c->in[0].v + i / m * n, n, (uint64_t)i, t)
                                    : (double)next_drawn(c, i / m, n, row, i % m, t);
    }
}

const ref_entry ref_create[] = {
    { "full", full_reference },       { "arange", arange_reference },       { "linspace", linspace_reference },
    { "eye", eye_reference },         { "tril", tril_reference },           { "triu", triu_reference },
    { "rand", rand_reference },       { "randn", randn_reference },         { "randint", randint_reference },
    { "bernoulli", bernoulli_reference }, { "randperm", randperm_reference },
    { "multinomial", multinomial_reference }, { NULL, NULL },
};
