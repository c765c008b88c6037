/* The block operators from their definitions: one loop for every sum sign. */
#include <math.h>
#include <stdlib.h>

#include "ops/block/block.h"
#include "support/reference.h"

/* x as (outer, n, inner) along an axis */
typedef struct lines {
    int64_t outer, n, inner;
} lines;

static lines lines_of(const ref_tensor *x, int64_t axis)
{
    lines l = { 1, x->ndim ? x->shape[axis] : 1, 1 };
    for (int d = 0; d < x->ndim; d++) {
        if (d < axis) l.outer *= x->shape[d];
        if (d > axis) l.inner *= x->shape[d];
    }
    return l;
}

/* Element i of line number k; there are outer * inner lines. */
static int64_t at(lines l, int64_t k, int64_t i) { return (k / l.inner * l.n + i) * l.inner + k % l.inner; }

/* sum of exp(x - max), and max, of a line */
static double sum_exp(const double *x, lines l, int64_t k, double *max)
{
    *max = -INFINITY;
    for (int64_t i = 0; i < l.n; i++) *max = fmax(*max, x[at(l, k, i)]);
    double sum = 0;
    for (int64_t i = 0; i < l.n; i++) sum += exp(x[at(l, k, i)] - *max);
    return sum;
}

static void softmax(const ref_call *c)
{
    const lines l = lines_of(&c->in[0], ((const cn__softmax_attrs *)c->attrs)->axis);
    for (int64_t k = 0; k < l.outer * l.inner; k++) {
        double max, sum = sum_exp(c->in[0].v, l, k, &max);
        for (int64_t i = 0; i < l.n; i++) c->out[0].v[at(l, k, i)] = exp(c->in[0].v[at(l, k, i)] - max) / sum;
    }
}

static void log_softmax(const ref_call *c)
{
    const lines l = lines_of(&c->in[0], ((const cn__softmax_attrs *)c->attrs)->axis);
    for (int64_t k = 0; k < l.outer * l.inner; k++) {
        double max, sum = sum_exp(c->in[0].v, l, k, &max);
        for (int64_t i = 0; i < l.n; i++) c->out[0].v[at(l, k, i)] = c->in[0].v[at(l, k, i)] - max - log(sum);
    }
}

/* dx_i = sum over j of g_j dy_j/dx_i,  dy_j/dx_i = y_i ([i = j] - y_j) */
static void softmax_backward(const ref_call *c)
{
    const lines l = lines_of(&c->in[0], ((const cn__softmax_attrs *)c->attrs)->axis);
    const double *g = c->in[0].v, *y = c->in[1].v;
    for (int64_t k = 0; k < l.outer * l.inner; k++)
        for (int64_t i = 0; i < l.n; i++) {
            double dx = 0;
            for (int64_t j = 0; j < l.n; j++) dx += g[at(l, k, j)] * y[at(l, k, i)] * ((i == j) - y[at(l, k, j)]);
            c->out[0].v[at(l, k, i)] = dx;
        }
}

/* dy_j/dx_i = [i = j] - exp(y_i) */
static void log_softmax_backward(const ref_call *c)
{
    const lines l = lines_of(&c->in[0], ((const cn__softmax_attrs *)c->attrs)->axis);
    const double *g = c->in[0].v, *y = c->in[1].v;
    for (int64_t k = 0; k < l.outer * l.inner; k++)
        for (int64_t i = 0; i < l.n; i++) {
            double dx = 0;
            for (int64_t j = 0; j < l.n; j++) dx += g[at(l, k, j)] * ((i == j) - exp(y[at(l, k, i)]));
            c->out[0].v[at(l, k, i)] = dx;
        }
}

/* ---- norms: a group of values at offsets index[0..n) */

typedef struct stats {
    double mean, var, r;
} stats;

static stats stats_of(const double *x, const int64_t *index, int64_t n, bool centred, double eps)
{
    stats s = { 0, 0, 0 };
    if (centred) {
        for (int64_t i = 0; i < n; i++) s.mean += x[index[i]];
        s.mean /= (double)n;
    }
    for (int64_t i = 0; i < n; i++) s.var += (x[index[i]] - s.mean) * (x[index[i]] - s.mean);
    s.var /= (double)n;
    s.r = 1 / sqrt(s.var + eps);
    return s;
}

static void normalise(const double *x, double *y, const int64_t *index, int64_t n, bool centred, double eps)
{
    const stats s = stats_of(x, index, n, centred, eps);
    for (int64_t i = 0; i < n; i++) y[index[i]] = (x[index[i]] - s.mean) * s.r;
}

/* dh_j/dx_i = r ([i = j] - 1/n - h_i h_j / n), without the 1/n if not centred; up: gradient of h */
static void normalise_backward(const double *x, const double *up, double *dx, double *h, const int64_t *index,
                               int64_t n, bool centred, double eps)
{
    const stats s = stats_of(x, index, n, centred, eps);
    for (int64_t i = 0; i < n; i++) h[index[i]] = (x[index[i]] - s.mean) * s.r;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++)
            sum += up[index[j]] * s.r *
                   ((i == j) - (centred ? 1.0 : 0.0) / (double)n - h[index[i]] * h[index[j]] / (double)n);
        dx[index[i]] = sum;
    }
}

static void *room(int64_t n, size_t size) { return calloc((size_t)n + 1, size); }

static void last_axes(const ref_tensor *x, int64_t axes, int64_t *rows, int64_t *n)
{
    *rows = *n = 1;
    for (int d = 0; d < x->ndim; d++) *(d < x->ndim - axes ? rows : n) *= x->shape[d];
}

static void norm_forward(const ref_call *c, bool centred)
{
    int64_t rows, n;
    last_axes(&c->in[0], ((const cn__norm_attrs *)c->attrs)->axes, &rows, &n);
    int64_t *index = room(n, sizeof *index);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < n; i++) index[i] = r * n + i;
        normalise(c->in[0].v, c->out[0].v, index, n, centred, c->args[0].f);
        for (int64_t i = 0; i < n; i++) {
            double *y = &c->out[0].v[r * n + i];
            if (c->in[1].present) *y *= c->in[1].v[i];
            if (c->n_in > 2 && c->in[2].present) *y += c->in[2].v[i];
        }
    }
    free(index);
}
static void layer_norm(const ref_call *c) { norm_forward(c, true); }
static void rms_norm(const ref_call *c) { norm_forward(c, false); }

/* Gradients to the parameters: element i belongs to parameter i / inner % size. */
static void parameter_gradients(const ref_call *c, const double *h, int64_t inner, int64_t size)
{
    for (int k = 1; k < c->n_out; k++) {
        for (int64_t i = 0; i < c->out[k].numel; i++) c->out[k].v[i] = 0;
        for (int64_t i = 0; i < c->in[0].numel && c->out[k].numel; i++)
            c->out[k].v[i / inner % size] += c->in[0].v[i] * (k == 1 ? h[i] : 1);
    }
}

static void norm_backward(const ref_call *c, bool centred)
{
    int64_t rows, n, total = c->in[0].numel;
    last_axes(&c->in[1], ((const cn__norm_backward_attrs *)c->attrs)->axes, &rows, &n);
    int64_t *index = room(n, sizeof *index);
    double *up = room(total, sizeof *up), *h = room(total, sizeof *h);
    for (int64_t i = 0; i < total; i++) up[i] = c->in[0].v[i] * (c->in[2].present ? c->in[2].v[i % n] : 1);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < n; i++) index[i] = r * n + i;
        normalise_backward(c->in[1].v, up, c->out[0].v, h, index, n, centred, c->args[0].f);
    }
    parameter_gradients(c, h, 1, n);
    free(index), free(up), free(h);
}
static void layer_norm_backward(const ref_call *c) { norm_backward(c, true); }
static void rms_norm_backward(const ref_call *c) { norm_backward(c, false); }

typedef struct image {
    int64_t n, c, s;
} image;

static image image_of(const ref_tensor *x)
{
    image m = { x->shape[0], x->shape[1], 1 };
    for (int d = 2; d < x->ndim; d++) m.s *= x->shape[d];
    return m;
}

/* Offsets of a channel's elements; how many. */
static int64_t channel(image m, int64_t c, int64_t *index)
{
    int64_t count = 0;
    for (int64_t n = 0; n < m.n; n++)
        for (int64_t s = 0; s < m.s; s++) index[count++] = (n * m.c + c) * m.s + s;
    return count;
}

static void affine_by_channel(const ref_call *c, image m)
{
    for (int64_t i = 0; i < c->out[0].numel; i++) {
        double *y = &c->out[0].v[i];
        if (c->in[1].present) *y *= c->in[1].v[i / m.s % m.c];
        if (c->in[2].present) *y += c->in[2].v[i / m.s % m.c];
    }
}

static void batch_norm(const ref_call *c)
{
    const image m = image_of(&c->in[0]);
    int64_t *index = room(m.n * m.s, sizeof *index);
    for (int64_t ch = 0; ch < m.c; ch++) {
        const int64_t n = channel(m, ch, index);
        const stats s = stats_of(c->in[0].v, index, n, true, c->args[0].f);
        normalise(c->in[0].v, c->out[0].v, index, n, true, c->args[0].f);
        c->out[1].v[ch] = s.mean;
        c->out[2].v[ch] = s.var;
    }
    affine_by_channel(c, m);
    free(index);
}

static void batch_norm_backward(const ref_call *c)
{
    const image m = image_of(&c->in[1]);
    const int64_t total = c->in[1].numel;
    int64_t *index = room(m.n * m.s, sizeof *index);
    double *up = room(total, sizeof *up), *h = room(total, sizeof *h);
    for (int64_t i = 0; i < total; i++) up[i] = c->in[0].v[i] * (c->in[2].present ? c->in[2].v[i / m.s % m.c] : 1);
    for (int64_t ch = 0; ch < m.c; ch++) {
        const int64_t n = channel(m, ch, index);
        normalise_backward(c->in[1].v, up, c->out[0].v, h, index, n, true, c->args[0].f);
    }
    parameter_gradients(c, h, m.s, m.c);
    free(index), free(up), free(h);
}

static void batch_norm_eval(const ref_call *c)
{
    const image m = image_of(&c->in[0]);
    for (int64_t i = 0; i < c->in[0].numel; i++) {
        const int64_t ch = i / m.s % m.c;
        c->out[0].v[i] = (c->in[0].v[i] - c->in[3].v[ch]) / sqrt(c->in[4].v[ch] + c->args[0].f);
    }
    affine_by_channel(c, m);
}

static void in_groups(const ref_call *c, int64_t groups)
{
    const image m = image_of(&c->in[0]);
    const int64_t n = m.c / groups * m.s;
    int64_t *index = room(n, sizeof *index);
    for (int64_t g = 0; g < m.n * groups; g++) {
        for (int64_t i = 0; i < n; i++) index[i] = g * n + i;
        normalise(c->in[0].v, c->out[0].v, index, n, true, c->args[0].f);
    }
    affine_by_channel(c, m);
    free(index);
}
static void group_norm(const ref_call *c) { in_groups(c, ((const cn__group_attrs *)c->attrs)->groups); }
static void instance_norm(const ref_call *c) { in_groups(c, c->in[0].shape[1]); }

/* ---- dropout: Philox4x32-10, written once more */

static uint32_t random_bits(uint64_t seed, uint64_t stream, uint64_t element)
{
    uint64_t block = element / 4;
    uint32_t c[4] = { (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream, (uint32_t)(stream >> 32) };
    uint32_t k[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)c[0] * 0xD2511F53u, b = (uint64_t)c[2] * 0xCD9E8D57u;
        uint32_t next[4] = { (uint32_t)(b >> 32) ^ c[1] ^ k[0], (uint32_t)b, (uint32_t)(a >> 32) ^ c[3] ^ k[1],
                             (uint32_t)a };
        for (int i = 0; i < 4; i++) c[i] = next[i];
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    return c[element % 4];
}

/* args: p, seed, stream */
static double kept(const cn_arg *args, int64_t element)
{
    const double p = args[0].f, u = (random_bits(args[1].u, args[2].u, (uint64_t)element) >> 8) / 16777216.0;
    return u < (float)p || p == 1 ? 0 : 1 / (1 - p);
}

static void dropout_mask(const ref_call *c)
{
    for (int64_t i = 0; i < c->out[0].numel; i++) c->out[0].v[i] = kept(c->args, i);
}
static void dropout(const ref_call *c)
{
    for (int64_t i = 0; i < c->out[0].numel; i++) c->out[0].v[i] = c->in[0].v[i] * kept(c->args, i);
}

static void rotary_embedding(const ref_call *c)
{
    const ref_tensor *x = &c->in[0];
    const int64_t d = x->shape[x->ndim - 1], half = d / 2, t = x->shape[x->ndim - 2];
    for (int64_t row = 0; row < (d ? x->numel / d : 0); row++)
        for (int64_t i = 0; i < half; i++) {
            const double cos = c->in[1].v[row % t * half + i], sin = c->in[2].v[row % t * half + i];
            const double a = x->v[row * d + i], b = x->v[row * d + half + i];
            c->out[0].v[row * d + i] = a * cos - b * sin;
            c->out[0].v[row * d + half + i] = b * cos + a * sin;
        }
}

/* ---- attention */

typedef struct scene {
    int64_t heads, group, tq, tk, e, ev;
    const ref_tensor *q, *k, *v, *mask;
    const cn_arg *args;
    bool causal;
} scene;

static scene scene_of(const ref_call *c, const ref_tensor *in)
{
    const int n = in[0].ndim;
    scene s = { .heads = 1,
                .group = 1,
                .q = &in[0],
                .k = &in[1],
                .v = &in[2],
                .mask = &in[3],
                .args = c->args,
                .causal = ((const cn__attention_attrs *)c->attrs)->causal };
    s.tq = in[0].shape[n - 2], s.tk = in[1].shape[n - 2], s.e = in[0].shape[n - 1], s.ev = in[2].shape[n - 1];
    for (int d = 0; d < n - 2; d++) s.heads *= in[0].shape[d];
    if (n > 2 && in[1].shape[n - 3]) s.group = in[0].shape[n - 3] / in[1].shape[n - 3];
    return s;
}

/* The mask's element for (head, i, j): the position in (..., heads, Tq, Tk), broadcast. */
static double mask_value(const scene *s, int64_t head, int64_t i, int64_t j)
{
    const ref_tensor *m = s->mask;
    if (!m->present) return 0;
    int64_t position[CN_MAX_DIMS], offset = 0;
    const int n = s->q->ndim;
    position[n - 1] = j, position[n - 2] = i;
    for (int d = n - 3; d >= 0; d--) position[d] = head % s->q->shape[d], head /= s->q->shape[d];
    for (int d = 0; d < m->ndim; d++)
        offset = offset * m->shape[d] + (m->shape[d] == 1 ? 0 : position[d + n - m->ndim]);
    return m->dtype == CN_BOOL ? (m->v[offset] ? 0 : -INFINITY) : m->v[offset];
}

static double score(const scene *s, int64_t head, int64_t i, int64_t j)
{
    double sum = 0;
    const double *q = s->q->v + (head * s->tq + i) * s->e, *k = s->k->v + (head / s->group * s->tk + j) * s->e;
    for (int64_t d = 0; d < s->e; d++) sum += q[d] * k[d];
    return s->causal && j > i ? -INFINITY : sum * s->args[0].f + mask_value(s, head, i, j);
}

static double keep_at(const scene *s, int64_t head, int64_t i, int64_t j)
{
    return s->args[1].f > 0 ? kept(s->args + 1, (head * s->tq + i) * s->tk + j) : 1;
}

static void attention(const ref_call *c)
{
    const scene s = scene_of(c, c->in);
    for (int64_t h = 0; h < s.heads; h++)
        for (int64_t i = 0; i < s.tq; i++) {
            double max = -INFINITY, sum = 0;
            for (int64_t j = 0; j < s.tk; j++) max = fmax(max, score(&s, h, i, j));
            for (int64_t j = 0; j < s.tk; j++) sum += exp(score(&s, h, i, j) - max);
            const bool blind = s.tk == 0 || max == -INFINITY;
            if (c->n_out > 1) c->out[1].v[h * s.tq + i] = blind ? INFINITY : max + log(sum);
            for (int64_t d = 0; d < s.ev; d++) {
                double out = 0;
                for (int64_t j = 0; j < s.tk && !blind; j++)
                    out += exp(score(&s, h, i, j) - max) / sum * keep_at(&s, h, i, j) *
                           s.v->v[(h / s.group * s.tk + j) * s.ev + d];
                c->out[0].v[(h * s.tq + i) * s.ev + d] = out;
            }
        }
}

/* x with the outer axes of `like`. Of an axis with fewer elements, each is repeated. */
static ref_tensor repeated(const ref_tensor *x, const ref_tensor *like)
{
    ref_tensor y = *x;
    const int n = like->ndim, lacks = n - x->ndim;
    y.ndim = n, y.numel = 1;
    for (int d = 0; d < n; d++) {
        y.shape[d] = d < n - 2 ? like->shape[d] : x->shape[d - lacks];
        y.numel *= y.shape[d];
    }
    y.v = room(y.numel, sizeof *y.v);
    for (int64_t p = 0; p < y.numel; p++) {
        int64_t rest = p, at[CN_MAX_DIMS], from = 0;
        for (int d = n - 1; d >= 0; rest /= y.shape[d--]) at[d] = rest % y.shape[d];
        for (int d = lacks; d < n; d++) from = from * x->shape[d - lacks] + at[d] * x->shape[d - lacks] / y.shape[d];
        y.v[p] = x->v[from];
    }
    return y;
}

static void broadcast_attention(const ref_call *c)
{
    ref_tensor in[4];
    for (int i = 0; i < 3; i++) in[i] = repeated(&c->in[i], &c->out[0]);
    in[3] = c->in[3];
    ref_call call = *c;
    call.in = in;
    attention(&call);
    for (int i = 0; i < 3; i++) free(in[i].v);
}

/* out[b,i,h] = sum over j of softmax(q[b,i,h] · key[b,j,kv] scale) value[b,j,kv]; the keys are the used ones, then new ones up to i */
static void cached_attention(const ref_call *c)
{
    const ref_tensor *q = &c->in[0], *k = &c->in[1], *v = &c->in[2], *keys = &c->in[3], *values = &c->in[4];
    const int64_t B = q->shape[0], T = q->shape[1], H = q->shape[2], E = q->shape[3], K = k->shape[2], V = v->shape[3],
                  L = keys->shape[1], used = c->args[0].i;
    double *p = malloc(sizeof *p * (size_t)(used + T + 1));
    for (int64_t n = 0; n < B * T * H; n++) {
        const int64_t b = n / (T * H), i = n / H % T, kv = n % H / (H / K), seen = used + i + 1;
        double max = -INFINITY, sum = 0;
        for (int64_t j = 0; j < seen; j++) {
            const double *key = j < used ? keys->v + ((b * L + j) * K + kv) * E : k->v + ((b * T + j - used) * K + kv) * E;
            p[j] = 0;
            for (int64_t e = 0; e < E; e++) p[j] += q->v[n * E + e] * key[e] * c->args[1].f;
            max = fmax(max, p[j]);
        }
        for (int64_t j = 0; j < seen; j++) sum += p[j] = exp(p[j] - max);
        for (int64_t e = 0; e < V; e++) {
            double y = 0;
            for (int64_t j = 0; j < seen; j++)
                y += p[j] / sum * (j < used ? values->v[((b * L + j) * K + kv) * V + e] : v->v[((b * T + j - used) * K + kv) * V + e]);
            c->out[0].v[n * V + e] = y;
        }
    }
    free(p);
}

/* in: g, q, k, v, mask, lse */
static void attention_backward(const ref_call *c)
{
    const scene s = scene_of(c, c->in + 1);
    for (int k = 0; k < 3; k++)
        for (int64_t i = 0; i < c->out[k].numel; i++) c->out[k].v[i] = 0;
    double *dp = room(s.tk, sizeof *dp);
    for (int64_t h = 0; h < s.heads; h++)
        for (int64_t i = 0; i < s.tq; i++) {
            const double *g = c->in[0].v + (h * s.tq + i) * s.ev, lse = c->in[5].v[h * s.tq + i];
            const int64_t kv = h / s.group * s.tk;
            double mean = 0;
            for (int64_t j = 0; j < s.tk; j++) {
                dp[j] = 0;
                for (int64_t d = 0; d < s.ev; d++) dp[j] += g[d] * s.v->v[(kv + j) * s.ev + d] * keep_at(&s, h, i, j);
                mean += exp(score(&s, h, i, j) - lse) * dp[j];
            }
            for (int64_t j = 0; j < s.tk; j++) {
                const double p = exp(score(&s, h, i, j) - lse), ds = p * (dp[j] - mean) * s.args[0].f;
                for (int64_t d = 0; d < s.e; d++) {
                    c->out[0].v[(h * s.tq + i) * s.e + d] += ds * s.k->v[(kv + j) * s.e + d];
                    c->out[1].v[(kv + j) * s.e + d] += ds * s.q->v[(h * s.tq + i) * s.e + d];
                }
                for (int64_t d = 0; d < s.ev; d++) c->out[2].v[(kv + j) * s.ev + d] += p * keep_at(&s, h, i, j) * g[d];
            }
        }
    free(dp);
}

/* ---- losses over classes */

static lines classes_of(const ref_tensor *x) { return lines_of(x, x->ndim > 1 ? 1 : 0); }

static double weight_of(const ref_tensor *w, int64_t c) { return w->present ? w->v[c] : 1; }

static bool counts(const cn__loss_attrs *a, double target)
{
    return !a->has_ignore || target != (double)a->ignore_index;
}

/* What sums are divided by. */
static double divisor(const cn__loss_attrs *a, const ref_tensor *target, const ref_tensor *w)
{
    double sum = 0;
    for (int64_t i = 0; i < target->numel; i++)
        if (counts(a, target->v[i])) sum += weight_of(w, (int64_t)target->v[i]);
    return a->reduction == CN_MEAN ? sum : 1;
}

static void reduce(const ref_call *c, const cn__loss_attrs *a, const double *each, int64_t n, double by)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += each[i];
    if (a->reduction == CN_NONE)
        for (int64_t i = 0; i < n; i++) c->out[0].v[i] = each[i];
    else c->out[0].v[0] = sum / by;
}

static void losses(const ref_call *c, bool logits, double smoothing)
{
    const cn__loss_attrs *a = c->attrs;
    const ref_tensor *x = &c->in[0], *target = &c->in[1], *w = &c->in[2];
    const lines l = classes_of(x);
    double *each = room(target->numel, sizeof *each);
    for (int64_t k = 0; k < target->numel; k++) {
        double max, lse = 0;
        if (logits) lse = log(sum_exp(x->v, l, k, &max)) + max;
        if (c->n_out > 1) c->out[1].v[k] = counts(a, target->v[k]) ? lse : 0;
        if (!counts(a, target->v[k])) continue;
        for (int64_t i = 0; i < l.n; i++) {
            const double hot = (double)i == target->v[k], mix = (1 - smoothing) * hot + smoothing / (double)l.n;
            each[k] += mix * weight_of(w, i) * (lse - x->v[at(l, k, i)]);
        }
    }
    reduce(c, a, each, target->numel, divisor(a, target, w));
    free(each);
}
static void cross_entropy(const ref_call *c) { losses(c, true, c->args[0].f); }
static void nll_loss(const ref_call *c) { losses(c, false, 0); }

/* in: g, logits, target, weight, lse. Of the sum over c of mix_c w_c (lse - x_c): to x_i, through lse and by itself. */
static void cross_entropy_backward(const ref_call *c)
{
    const cn__loss_attrs *a = c->attrs;
    const ref_tensor *g = &c->in[0], *x = &c->in[1], *target = &c->in[2], *w = &c->in[3], *lse = &c->in[4];
    const lines l = classes_of(x);
    const double by = divisor(a, target, w), smoothing = c->args[0].f;
    for (int64_t k = 0; k < target->numel; k++)
        for (int64_t i = 0; i < l.n; i++) {
            double sum = 0, p = exp(x->v[at(l, k, i)] - lse->v[k]);
            for (int64_t j = 0; j < l.n; j++) {
                const double hot = (double)j == target->v[k], mix = (1 - smoothing) * hot + smoothing / (double)l.n;
                sum += mix * weight_of(w, j) * (p - (i == j));
            }
            const double up = g->v[a->reduction == CN_NONE ? k : 0] / by;
            c->out[0].v[at(l, k, i)] = counts(a, target->v[k]) ? up * sum : 0;
        }
}

static void cross_entropy_soft(const ref_call *c)
{
    const cn__loss_attrs *a = c->attrs;
    const ref_tensor *x = &c->in[0], *target = &c->in[1], *w = &c->in[2];
    const lines l = classes_of(x);
    const int64_t samples = l.outer * l.inner;
    double *each = room(samples, sizeof *each);
    for (int64_t k = 0; k < samples; k++) {
        double max, lse = log(sum_exp(x->v, l, k, &max)) + max;
        for (int64_t i = 0; i < l.n; i++) {
            const double t = target->v[at(l, k, i)] * (1 - c->args[0].f) + c->args[0].f / (double)l.n;
            each[k] += t * weight_of(w, i) * (lse - x->v[at(l, k, i)]);
        }
    }
    reduce(c, a, each, samples, a->reduction == CN_MEAN ? (double)samples : 1);
    free(each);
}

/* ---- ctc_loss: log_probs, targets and lengths at in[0..4) */

/* The probability of all class sequences that spell target n once repetitions, then blanks, are struck out; of those that
   have class `fixed` at step `when`, if that is not negative. ways[j][0]: j labels so far, then a blank (or nothing);
   ways[j][1]: j labels so far, the last of them just now. */
static double spellings(const ref_tensor *in, int64_t blank, int64_t n, int64_t when, int64_t fixed)
{
    const int64_t samples = in[0].shape[1], classes = in[0].shape[2], length = (int64_t)in[3].v[n];
    int64_t start = in[1].ndim == 2 ? n * in[1].shape[1] : 0;
    for (int64_t i = 0; i < n && in[1].ndim == 1; i++) start += (int64_t)in[3].v[i];
    double(*ways)[2] = room(length + 1, sizeof *ways), (*next)[2] = room(length + 1, sizeof *ways), sum;
    ways[0][0] = 1;
    for (int64_t t = 0; t < (int64_t)in[2].v[n]; t++) {
        for (int64_t j = 0; j <= length; j++) next[j][0] = next[j][1] = 0;
        for (int64_t j = 0; j <= length; j++)
            for (int64_t c = 0; c < classes; c++) {
                const double p = t == when && c != fixed ? 0 : exp(in[0].v[(t * samples + n) * classes + c]);
                const bool last = j > 0 && c == (int64_t)in[1].v[start + j - 1];
                const bool new = j < length && c == (int64_t)in[1].v[start + j];
                if (c == blank) next[j][0] += p * (ways[j][0] + ways[j][1]);
                if (last) next[j][1] += p * ways[j][1];
                if (new) next[j + 1][1] += p * (ways[j][0] + (last ? 0 : ways[j][1]));
            }
        double(*old)[2] = ways;
        ways = next;
        next = old;
    }
    sum = ways[length][0] + ways[length][1];
    free(ways);
    free(next);
    return sum;
}

static void ctc_loss(const ref_call *c)
{
    const cn__ctc_attrs *a = c->attrs;
    for (int64_t n = 0; n < c->out[0].numel; n++) {
        const double p = spellings(c->in, a->blank, n, -1, 0);
        c->out[0].v[n] = p == 0 && a->zero_infinity ? 0 : -log(p);
    }
}

/* -d log P / d log_probs: how much of P has this class at this step */
static void ctc_loss_backward(const ref_call *c)
{
    const cn__ctc_attrs *a = c->attrs;
    const ref_tensor *x = &c->in[1];
    for (int64_t i = 0; i < x->numel; i++) {
        const int64_t t = i / x->shape[2] / x->shape[1], n = i / x->shape[2] % x->shape[1], k = i % x->shape[2];
        const double p = spellings(x, a->blank, n, -1, 0);
        const bool counts = t < (int64_t)c->in[3].v[n] && !(p == 0 && a->zero_infinity);
        c->out[0].v[i] = counts ? -c->in[0].v[n] * spellings(x, a->blank, n, t, k) / p : 0;
    }
}

const ref_entry ref_block[] = {
    { "softmax", softmax },
    { "log_softmax", log_softmax },
    { "softmax_backward", softmax_backward },
    { "log_softmax_backward", log_softmax_backward },
    { "layer_norm", layer_norm },
    { "layer_norm_backward", layer_norm_backward },
    { "rms_norm", rms_norm },
    { "rms_norm_backward", rms_norm_backward },
    { "batch_norm", batch_norm },
    { "batch_norm_backward", batch_norm_backward },
    { "batch_norm_eval", batch_norm_eval },
    { "group_norm", group_norm },
    { "instance_norm", instance_norm },
    { "dropout_mask", dropout_mask },
    { "dropout", dropout },
    { "rotary_embedding", rotary_embedding },
    { "attention", attention },
    { "scaled_dot_product_attention", broadcast_attention },
    { "attention_backward", attention_backward },
    { "cached_attention", cached_attention },
    { "cross_entropy", cross_entropy },
    { "cross_entropy_backward", cross_entropy_backward },
    { "nll_loss", nll_loss },
    { "cross_entropy_soft", cross_entropy_soft },
    { "ctc_loss", ctc_loss },
    { "ctc_loss_backward", ctc_loss_backward },
    { "recurrent", ref_recurrent },
    { "recurrent_backward", ref_recurrent_backward },
    { NULL, NULL },
};
