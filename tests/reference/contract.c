/* References of the contractions: every product of the definition, one after the other. */
#include <string.h>

#include "ops/contract/contract.h"
#include "support/reference.h"

/* Integers wrap around. */
static double rounded(cn_dtype t, double v)
{
    switch (t) {
    case CN_U8: return (uint8_t)(int64_t)v;
    case CN_I8: return (int8_t)(uint8_t)(int64_t)v;
    case CN_I16: return (int16_t)(uint16_t)(int64_t)v;
    case CN_I32: return (int32_t)(uint32_t)(int64_t)v;
    default: return v;
    }
}

/* ---- matmul, linear, dot, outer ---- */

/* The matrix of x that belongs to item `item` of y's batch. */
static const double *matrix_of(const ref_tensor *x, const ref_tensor *y, int64_t item)
{
    int64_t at = 0, step = x->shape[x->ndim - 2] * x->shape[x->ndim - 1];
    for (int d = 1; d <= y->ndim - 2; d++) { /* from the last batch axis to the first */
        int64_t size = y->shape[y->ndim - 2 - d], index = item % size;
        item /= size;
        if (d > x->ndim - 2) continue;
        int64_t own = x->shape[x->ndim - 2 - d];
        if (own > 1) at += index * step;
        step *= own;
    }
    return x->v + at;
}

static void ref_matmul(const ref_call *c)
{
    const ref_tensor *a = &c->in[0], *b = &c->in[1], *y = &c->out[0];
    int64_t m = y->shape[y->ndim - 2], n = y->shape[y->ndim - 1], k = a->shape[a->ndim - 1];
    if (!y->numel) return;
    for (int64_t item = 0; item < y->numel / (m * n); item++) {
        const double *p = matrix_of(a, y, item), *q = matrix_of(b, y, item);
        for (int64_t i = 0; i < m; i++) {
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int64_t l = 0; l < k; l++) sum += p[i * k + l] * q[l * n + j];
                y->v[(item * m + i) * n + j] = rounded(y->dtype, sum);
            }
        }
    }
}

static void ref_linear(const ref_call *c)
{
    const ref_tensor *x = &c->in[0], *w = &c->in[1], *b = &c->in[2], *y = &c->out[0];
    int64_t in = x->shape[x->ndim - 1], out = w->ndim == 2 ? w->shape[0] : 1;
    for (int64_t i = 0; i < y->numel; i++) {
        double sum = b->present ? b->v[b->numel > 1 ? i % out : 0] : 0;
        for (int64_t p = 0; p < in; p++) sum += x->v[i / out * in + p] * w->v[i % out * in + p];
        y->v[i] = rounded(y->dtype, sum);
    }
}

static void ref_dot(const ref_call *c)
{
    double sum = 0;
    for (int64_t i = 0; i < c->in[0].numel; i++) sum += c->in[0].v[i] * c->in[1].v[i];
    c->out[0].v[0] = rounded(c->out[0].dtype, sum);
}

static void ref_outer(const ref_call *c)
{
    int64_t n = c->in[1].numel;
    for (int64_t i = 0; i < c->out[0].numel; i++)
        c->out[0].v[i] = rounded(c->out[0].dtype, c->in[0].v[i / n] * c->in[1].v[i % n]);
}

/* ---- einsum: every combination of the labels' values ---- */

/* Axes as characters: letters, and '0' to '7' for "...", '7' the last. */
static void spell(const char *from, const char *to, int ndim, char *axes)
{
    int letters = 0, n = 0;
    for (const char *p = from; p < to; p++) letters += *p != '.' && *p != ' ';
    for (const char *p = from; p < to; p++) {
        if (*p == ' ') continue;
        if (*p != '.') {
            axes[n++] = *p;
            continue;
        }
        for (int i = ndim - letters; i > 0; i--) axes[n++] = (char)('8' - i);
        p += 2;
    }
    axes[n] = 0;
}

/* Without "->": the axes of "...", then every letter that stands once. */
static void spell_result(const char *text, char (*axes)[16], int n_in, char *result)
{
    const char *arrow = strstr(text, "->");
    int n = 0;
    for (int c = '0'; c <= 'z'; c++) {
        int times = 0;
        for (int k = 0; k < n_in; k++)
            for (const char *p = axes[k]; *p; p++) times += *p == c;
        bool dots = c <= '7';
        if (!arrow && (dots ? times > 0 : times == 1)) result[n++] = (char)c;
    }
    for (const char *p = arrow ? arrow + 2 : ""; *p; p++) {
        if (*p == ' ') continue;
        if (*p != '.') {
            result[n++] = *p;
            continue;
        }
        for (int c = '0'; c <= '7'; c++)
            for (int k = 0, found = 0; k < n_in && !found; k++)
                if (strchr(axes[k], c)) result[n++] = (char)c, found = 1;
        p += 2;
    }
    result[n] = 0;
}

static int64_t place(const ref_tensor *t, const char *axes, const int64_t *value)
{
    int64_t at = 0;
    for (int d = 0; d < t->ndim; d++) at = at * t->shape[d] + (t->shape[d] == 1 ? 0 : value[(int)axes[d]]);
    return at;
}

static void ref_einsum(const ref_call *c)
{
    const char *text = ((const cn__einsum_attrs *)c->attrs)->text, *p = text;
    char axes[CN_MAX_IN][16], result[16];
    int64_t size[128] = { 0 }, value[128] = { 0 };
    for (int k = 0; k < c->n_in; k++) {
        const char *end = p + strcspn(p, ",-");
        spell(p, end, c->in[k].ndim, axes[k]);
        p = end + 1;
        for (int d = 0; d < c->in[k].ndim; d++) {
            int64_t *s = &size[(int)axes[k][d]];
            if (*s == 0 || *s == 1) *s = c->in[k].shape[d];
        }
    }
    spell_result(text, axes, c->n_in, result);
    for (int64_t i = 0; i < c->out[0].numel; i++) c->out[0].v[i] = 0;
    for (int k = 0; k < c->n_in; k++)
        if (!c->in[k].numel) return;
    for (;;) {
        double product = 1;
        for (int k = 0; k < c->n_in; k++) product *= c->in[k].v[place(&c->in[k], axes[k], value)];
        c->out[0].v[place(&c->out[0], result, value)] += product;
        int l = 0;
        while (l < 128 && ++value[l] >= size[l]) value[l++] = 0;
        if (l == 128) break;
    }
    for (int64_t i = 0; i < c->out[0].numel; i++) c->out[0].v[i] = rounded(c->out[0].dtype, c->out[0].v[i]);
}

/* ---- convolutions ---- */

/* y[n,o,p] += x[n, c, p·stride + t·dilation - padding] · w[o,c,t], or the same solved for x or for w. */
typedef struct nest {
    int64_t n, groups, o, c, in[3], kernel[3], out[3], stride[3], padding[3], dilation[3];
    double *x, *w, *y;
} nest;
typedef void (*each)(double *x, double *w, double *y);

static void into_y(double *x, double *w, double *y) { *y += *x * *w; }
static void into_x(double *x, double *w, double *y) { *x += *y * *w; }
static void into_w(double *x, double *w, double *y) { *w += *y * *x; }

static int64_t volume(const int64_t *size) { return size[0] * size[1] * size[2]; }
static void split(int64_t at, const int64_t *size, int64_t *index)
{
    index[0] = at / size[2] / size[1];
    index[1] = at / size[2] % size[1];
    index[2] = at % size[2];
}

static void visit_channels(const nest *s, int64_t n, int64_t o, int64_t c, each fn)
{
    int64_t group = o / s->o, channel = group * s->c + c;
    double *x = s->x + (n * s->groups * s->c + channel) * volume(s->in);
    double *y = s->y + (n * s->groups * s->o + o) * volume(s->out);
    double *w = s->w + (o * s->c + c) * volume(s->kernel);
    for (int64_t p = 0; p < volume(s->out); p++) {
        for (int64_t t = 0; t < volume(s->kernel); t++) {
            int64_t at[3], tap[3], pixel = 0;
            bool inside = true;
            split(p, s->out, at);
            split(t, s->kernel, tap);
            for (int d = 0; d < 3; d++) {
                int64_t i = at[d] * s->stride[d] + tap[d] * s->dilation[d] - s->padding[d];
                inside &= i >= 0 && i < s->in[d];
                pixel = pixel * s->in[d] + i;
            }
            if (inside) fn(x + pixel, w + t, y + p);
        }
    }
}

static void visit(const nest *s, each fn)
{
    for (int64_t n = 0; n < s->n; n++)
        for (int64_t o = 0; o < s->groups * s->o; o++)
            for (int64_t c = 0; c < s->c; c++) visit_channels(s, n, o, c, fn);
}

/* axes: how many there are; x and y may lack the axis of images. */
static nest nest_of(const ref_tensor *x, const ref_tensor *w, const ref_tensor *y, int axes, int64_t groups)
{
    nest s = { .groups = groups, .x = x->v, .w = w->v, .y = y->v };
    s.n = x->ndim == axes + 2 ? x->shape[0] : 1;
    s.c = w->shape[1];
    s.o = w->shape[0] / groups;
    for (int d = 0; d < 3; d++) {
        int from_end = 3 - d;
        bool there = from_end <= axes;
        s.in[d] = there ? x->shape[x->ndim - from_end] : 1;
        s.kernel[d] = there ? w->shape[w->ndim - from_end] : 1;
        s.out[d] = there ? y->shape[y->ndim - from_end] : 1;
        s.stride[d] = s.dilation[d] = 1;
    }
    return s;
}

static void core(const ref_call *c, const ref_tensor *x, const ref_tensor *w, const ref_tensor *y, each fn)
{
    const cn__conv_attrs *a = c->attrs;
    nest s = nest_of(x, w, y, 3, a->groups);
    for (int d = 0; d < 3; d++) {
        s.stride[d] = a->stride[d];
        s.padding[d] = a->padding[d];
        s.dilation[d] = a->dilation[d];
    }
    for (int64_t i = 0; i < c->out[0].numel; i++) c->out[0].v[i] = 0;
    visit(&s, fn);
}

static void ref_conv(const ref_call *c) { core(c, &c->in[0], &c->in[1], &c->out[0], into_y); }
static void ref_conv_input_grad(const ref_call *c) { core(c, &c->out[0], &c->in[1], &c->in[0], into_x); }
static void ref_conv_weight_grad(const ref_call *c) { core(c, &c->in[1], &c->out[0], &c->in[0], into_w); }

/* As users call them: x, weight, bias, with 0 for the default of a stride, dilation or groups. */
static void as_called(const ref_call *c, int axes, bool transposed)
{
    const cn_conv_desc *a = c->attrs;
    const ref_tensor *in = &c->in[0], *w = &c->in[1], *bias = &c->in[2], *out = &c->out[0];
    nest s = nest_of(transposed ? out : in, w, transposed ? in : out, axes, a->groups ? a->groups : 1);
    for (int i = 0, d = 3 - axes; d < 3; i++, d++) {
        s.stride[d] = a->stride[i] ? a->stride[i] : 1;
        s.padding[d] = a->padding[i];
        s.dilation[d] = a->dilation[i] ? a->dilation[i] : 1;
    }
    int64_t channels = s.groups * (transposed ? s.c : s.o), size = volume(transposed ? s.in : s.out);
    for (int64_t i = 0; i < out->numel; i++) out->v[i] = bias->present ? bias->v[i / size % channels] : 0;
    visit(&s, transposed ? into_x : into_y);
}

static void ref_conv1d(const ref_call *c) { as_called(c, 1, false); }
static void ref_conv2d(const ref_call *c) { as_called(c, 2, false); }
static void ref_conv3d(const ref_call *c) { as_called(c, 3, false); }
static void ref_conv_transpose1d(const ref_call *c) { as_called(c, 1, true); }
static void ref_conv_transpose2d(const ref_call *c) { as_called(c, 2, true); }
static void ref_conv_transpose3d(const ref_call *c) { as_called(c, 3, true); }

const ref_entry ref_contract[] = {
    { "matmul", ref_matmul },
    { "linear", ref_linear },
    { "dot", ref_dot },
    { "outer", ref_outer },
    { "einsum", ref_einsum },
    { "conv", ref_conv },
    { "conv_input_grad", ref_conv_input_grad },
    { "conv_weight_grad", ref_conv_weight_grad },
    { "conv1d", ref_conv1d },
    { "conv2d", ref_conv2d },
    { "conv3d", ref_conv3d },
    { "conv_transpose1d", ref_conv_transpose1d },
    { "conv_transpose2d", ref_conv_transpose2d },
    { "conv_transpose3d", ref_conv_transpose3d },
    { NULL, NULL },
};
