/* Layouts: reductions and elementwise operators over views that are permuted, cut with steps and broadcast, for random
   shapes and sets of axes, against plain loops. One operation at a time, whole plans, and any number of threads give
   the same bits. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"

static uint64_t state;

static int64_t draw(int64_t n) /* 0 .. n - 1 */
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)n);
}

/* A view of row-major elements, as it should be. */
typedef struct view {
    int ndim;
    int64_t shape[4], stride[4], offset;
} view;

enum { MOST = 1 << 15 };

typedef struct given {
    cn_ctx *cn;
    cn_dtype dtype;
    cn_tensor *x; /* a view */
    view v;
    double all[MOST], seen[MOST]; /* elements of the base, and of the view in order */
    int64_t n;
} given;

static int64_t numel(const view *v)
{
    int64_t n = 1;
    for (int d = 0; d < v->ndim; d++) n *= v->shape[d];
    return n;
}

static int64_t place_of(const view *v, int64_t i)
{
    int64_t at = v->offset;
    for (int d = v->ndim - 1; d >= 0; d--) {
        at += i % v->shape[d] * v->stride[d];
        i /= v->shape[d];
    }
    return at;
}

static void permute(given *g)
{
    cn_dims order = { .n = g->v.ndim };
    view old = g->v;
    for (int d = 0; d < order.n; d++) order.v[d] = d;
    for (int d = order.n - 1; d > 0; d--) {
        int other = (int)draw(d + 1);
        int64_t axis = order.v[d];
        order.v[d] = order.v[other];
        order.v[other] = axis;
    }
    for (int d = 0; d < order.n; d++) g->v.shape[d] = old.shape[order.v[d]], g->v.stride[d] = old.stride[order.v[d]];
    g->x = cn_permute(g->x, order);
}

static void cut(given *g)
{
    int d = (int)draw(g->v.ndim);
    int64_t size = g->v.shape[d], start = draw(size), step = 1 + draw(3);
    g->x = cn_slice(g->x, d, start, size, step);
    g->v.offset += start * g->v.stride[d];
    g->v.shape[d] = (size - start + step - 1) / step;
    g->v.stride[d] *= step;
}

static void repeat(given *g)
{
    int d = (int)draw(g->v.ndim);
    cn_dims shape = { .n = g->v.ndim };
    g->x = cn_slice(g->x, d, 0, 1, 1);
    g->v.shape[d] = 1 + draw(5);
    g->v.stride[d] = 0;
    for (int k = 0; k < shape.n; k++) shape.v[k] = g->v.shape[k];
    g->x = cn_expand(g->x, shape);
}

/* The same program of a seed in any context. */
static void make(given *g, cn_desc desc, uint64_t seed)
{
    static const cn_dtype types[] = { CN_F32, CN_F32, CN_F32, CN_F64, CN_I64, CN_I32, CN_U8 };
    state = seed * 2 + 1;
    for (int i = 0; i < 5; i++) draw(2);
    g->cn = cn_open(&desc);
    g->dtype = types[draw(7)];
    g->v = (view){ .ndim = 1 + (int)draw(4) };
    cn_dims shape = { .n = g->v.ndim };
    const int64_t wide = draw(g->v.ndim);
    int64_t n = 1;
    for (int d = g->v.ndim - 1; d >= 0; d--) {
        g->v.shape[d] = shape.v[d] = d == wide ? 1 + draw(150) : 1 + draw(g->v.ndim > 3 ? 6 : 14);
        g->v.stride[d] = n;
        n *= shape.v[d];
    }
    for (int64_t i = 0; i < n; i++) g->all[i] = (double)draw(97) - (g->dtype == CN_U8 ? 0 : 48);
    g->x = cn_keep(cn_cast(cn_from(g->cn, CN_F64, shape, g->all), g->dtype));
    cn_eval(g->x);
    permute(g);
    for (int64_t k = draw(3); k > 0; k--) cut(g);
    if (draw(4) == 0) repeat(g);
    if (draw(2)) permute(g);
    g->n = numel(&g->v);
    for (int64_t i = 0; i < g->n; i++) g->seen[i] = g->all[place_of(&g->v, i)];
}

/* ---- reductions ---- */

enum { SUM, MAX, ARGMAX, SQUARES, WAYS };

/* The result that element i of the view belongs to, and the element's place among those that are reduced. */
static int64_t result_of(const view *v, int64_t set, int64_t i, int64_t *place)
{
    int64_t at = 0, kept = 1, reduced = 1;
    *place = 0;
    for (int d = v->ndim - 1; d >= 0; d--) {
        const int64_t k = i % v->shape[d];
        i /= v->shape[d];
        if (set >> d & 1) *place += k * reduced, reduced *= v->shape[d];
        else at += k * kept, kept *= v->shape[d];
    }
    return at;
}

static int64_t reference(const given *g, int way, int64_t set, double *out)
{
    static double best[MOST], mean[MOST];
    int64_t results = 1, place;
    for (int d = 0; d < g->v.ndim; d++) results *= set >> d & 1 ? 1 : g->v.shape[d];
    const double count = (double)(g->n / results);
    for (int64_t i = 0; i < results; i++) out[i] = mean[i] = 0, best[i] = -INFINITY;
    for (int64_t i = 0; i < g->n; i++) mean[result_of(&g->v, set, i, &place)] += g->seen[i] / count;
    for (int64_t i = 0; i < g->n; i++) {
        const int64_t to = result_of(&g->v, set, i, &place);
        const double x = g->seen[i];
        if (way == SUM) out[to] += x;
        if (way == SQUARES) out[to] += (x - mean[to]) * (x - mean[to]);
        if (way == MAX && x > best[to]) best[to] = out[to] = x;
        if (way == ARGMAX && (x > best[to] || (x == best[to] && (double)place < out[to]))) {
            best[to] = x;
            out[to] = (double)place;
        }
    }
    return results;
}

static cn_tensor *reduce(const given *g, int way, cn_dims axes, bool keepdim)
{
    cn_tensor *x = g->x;
    if (way == SUM) return cn_sum(x, axes, keepdim);
    if (way == MAX) return cn_max(x, axes, keepdim);
    if (way == ARGMAX) return cn_argmax(x, axes.n == 1 ? axes : CN_ALL, keepdim);
    if (!cn_dtype_is_float(g->dtype)) x = cn_cast(x, CN_F32);
    return cn_sum(cn_square(cn_sub(x, cn_mean(x, axes, true))), axes, keepdim);
}

static size_t run_reduction(given *g, int way, int64_t set, bool keepdim, char *bits)
{
    static double got[MOST], wanted[MOST];
    cn_dims axes = { 0 };
    for (int d = 0; d < g->v.ndim; d++)
        if (set >> d & 1) axes.v[axes.n++] = d;
    if (way == ARGMAX && axes.n > 1) set = (INT64_C(1) << g->v.ndim) - 1;
    const int64_t n = reference(g, way, set, wanted);
    cn_tensor *y = reduce(g, way, axes, keepdim);
    int64_t i = 0;
    if (cn_numel(y) == n && cn_read_f64(y, got, n))
        while (i < n && fabs(got[i] - wanted[i]) <= 2e-6 * (1 + fabs(wanted[i]))) i++;
    check(i == n && !cn_failed(g->cn), "reduction %d of %s over %d axes of %d: element %lld is %g, not %g; %s", way,
          cn_dtype_name(g->dtype), axes.n, g->v.ndim, (long long)i, got[i], wanted[i], cn_error(g->cn));
    const size_t bytes = (size_t)n * cn_dtype_size(cn_type(y));
    cn_read(y, bits, bytes);
    return bytes;
}

static void reductions(void)
{
    static given g;
    static char bits[3][8 * MOST];
    check_group("reductions");
    for (uint64_t seed = 0; seed < (test_is_quick() ? 60 : 600); seed++) {
        size_t bytes[3];
        for (int k = 0; k < 3; k++) {
            make(&g, (cn_desc){ .threads = k == 2 ? 3 : 1, .eager = k == 0 }, seed);
            const int way = (int)draw(WAYS);
            const int64_t set = 1 + draw((INT64_C(1) << g.v.ndim) - 1);
            bytes[k] = run_reduction(&g, way, set, draw(2), bits[k]);
            cn_close(g.cn);
        }
        for (int k = 1; k < 3; k++)
            check(bytes[k] == bytes[0] && !memcmp(bits[0], bits[k], bytes[0]), "seed %d: other bits %s", (int)seed,
                  k == 1 ? "than one operation at a time" : "with three threads");
    }
}

/* ---- elementwise operators ---- */

/* x + y·2 where y is another view of the same shape, or lacks axes, and a copy of it. */
static void elementwise(void)
{
    static given g;
    static double got[MOST];
    check_group("elementwise");
    for (uint64_t seed = 0; seed < (test_is_quick() ? 60 : 600); seed++) {
        make(&g, (cn_desc){ .threads = 1 + (int)(seed % 3), .eager = seed % 5 == 0 }, seed + 10000);
        cn_tensor *x = cn_cast(g.x, CN_F64), *y = cn_mul_s(cn_permute(g.x, (cn_dims){ g.v.ndim, { 0, 1, 2, 3 } }), 2);
        if (draw(2)) y = cn_contiguous(y); /* row-major: the operands disagree */
        if (draw(2)) y = cn_slice(y, 0, 0, 1, 1);
        const bool first = cn_size(y, 0) != cn_size(g.x, 0);
        const int64_t row = g.n / g.v.shape[0];
        y = cn_add(x, y);
        if (draw(2)) y = cn_contiguous(y);
        int64_t i = 0;
        if (cn_numel(y) == g.n && cn_read_f64(y, got, g.n))
            for (double other; i < g.n; i++) {
                other = 2 * g.seen[first ? i % row : i];
                if (g.dtype == CN_U8) other = (double)(uint8_t)other;
                if (got[i] != g.seen[i] + other) break;
            }
        check(i == g.n && !cn_failed(g.cn), "seed %d: element %lld of %lld; %s", (int)seed, (long long)i,
              (long long)g.n, cn_error(g.cn));
        cn_close(g.cn);
    }
}

/* Large enough for boxes, of all sizes of elements; sizes that are no multiples of a box. */
static void turned(void)
{
    static const cn_dtype types[] = { CN_BOOL, CN_U8, CN_F16, CN_I32, CN_F32, CN_I64, CN_F64 };
    static const int64_t orders[][3] = { { 2, 1, 0 }, { 0, 2, 1 }, { 1, 2, 0 }, { 2, 0, 1 } };
    const cn_dims shape = CN_DIMS(37, 5, 83);
    enum { N = 37 * 5 * 83 };
    static double all[N], got[N];
    check_group("turned");
    for (int i = 0; i < N; i++) all[i] = (i * 7 + i / 13) % 2 ? 1 : i % 100;
    for (int t = 0; t < 7; t++) {
        for (int o = 0; o < 4; o++) {
            cn_ctx *cn = cn_open(&(cn_desc){ .threads = 2 });
            cn_tensor *x = cn_keep(cn_cast(cn_from(cn, CN_F64, shape, all), types[t]));
            const int64_t *order = orders[o], strides[3] = { 5 * 83, 83, 1 };
            cn_tensor *p = cn_permute(x, CN_DIMS(order[0], order[1], order[2])), *y = cn_contiguous(p);
            cn_tensor *sum = cn_add(cn_cast(y, CN_F64), cn_cast(p, CN_F64)); /* operands disagree */
            bool same = cn_is_contiguous(y) && cn_read_f64(y, got, N), twice = true;
            for (int k = 0; k < 2; k++) {
                if (k) twice = cn_read_f64(sum, got, N);
                for (int i = 0; i < N; i++) {
                    const int64_t s1 = shape.v[order[1]], s2 = shape.v[order[2]];
                    const int64_t at = i / (s1 * s2) * strides[order[0]] + i / s2 % s1 * strides[order[1]] +
                                       i % s2 * strides[order[2]];
                    const double v = types[t] == CN_BOOL ? all[at] != 0 : all[at];
                    if (k) twice &= got[i] == 2 * v;
                    else same &= got[i] == v;
                }
            }
            check(same && twice && !cn_failed(cn), "%s, order %d: %s %s", cn_dtype_name(types[t]), o,
                  same ? "sum" : "copy", cn_error(cn));
            cn_close(cn);
        }
    }
}

/* ---- results that are copied in another order ---- */

enum { LARGE = 1 << 17 }; /* elements: groups write such copies themselves */

/* Wants some values of a graph around such a copy. Returns how many. */
typedef int (*copied_graph)(cn_ctx *cn, cn_dtype t, int number, cn_tensor **out);

static cn_tensor *some(cn_ctx *cn, cn_dtype t, cn_dims shape, double scale)
{
    cn_tensor *x = cn_keep(cn_cast(cn_mul_s(cn_randn(cn, CN_F32, shape), scale), t));
    cn_eval(x);
    return x;
}

/* Several axes, numbers of rows and lengths that are no multiples of a block. */
static int copied_chain(cn_ctx *cn, cn_dtype t, int number, cn_tensor **out)
{
    static const struct {
        cn_dims shape, order;
    } cases[] = {
        { { 3, { 3, 40, 600 } }, { 3, { 0, 2, 1 } } },        { { 3, { 5, 70, 257 } }, { 3, { 0, 2, 1 } } },
        { { 3, { 70, 5, 257 } }, { 3, { 1, 2, 0 } } },        { { 2, { 350, 300 } }, { 2, { 1, 0 } } },
        { { 4, { 2, 40, 30, 32 } }, { 4, { 0, 2, 3, 1 } } },  { { 4, { 9, 4, 33, 64 } }, { 4, { 2, 3, 1, 0 } } },
        { { 4, { 2, 3, 33, 400 } }, { 4, { 3, 0, 2, 1 } } },  { { 4, { 2, 33, 3, 400 } }, { 4, { 2, 0, 3, 1 } } },
        { { 4, { 2, 33, 1, 1400 } }, { 4, { 0, 2, 3, 1 } } },
    };
    enum { CASES = sizeof cases / sizeof *cases };
    if (number >= CASES) return 0;
    cn_tensor *x = some(cn, t, cases[number].shape, 50), *y = some(cn, t, cases[number].shape, 50);
    cn_tensor *row = some(cn, t, CN_DIMS(cn_size(x, -1)), 50);
    out[0] = cn_contiguous(cn_permute(cn_add(cn_mul(cn_maximum(x, y), row), y), cases[number].order));
    return 1;
}

/* The copy takes the place of what is still read: the value that an assignment replaces, one of two operands that die
   where they are added. Or somebody else reads what was copied. */
static int copied_over(cn_ctx *cn, cn_dtype t, int number, cn_tensor **out)
{
    if (number > 2) return 0;
    const cn_dims shape = CN_DIMS(300, 300);
    cn_tensor *x = some(cn, t, shape, 3), *y = some(cn, t, shape, 3);
    cn_tensor *sum = number == 1 ? cn_add(cn_cumsum(x, 0), cn_cumsum(y, 0)) : cn_add(x, y);
    cn_tensor *copy = cn_contiguous(cn_transpose(sum, 0, 1));
    out[0] = number == 1 ? cn_cumsum(copy, 0) : copy;
    if (number == 0) cn_assign(x, copy), out[0] = x;
    if (number == 2) out[1] = cn_sum(sum, CN_ALL, false);
    return 1 + (number == 2);
}

static void copied(copied_graph graph, const char *name)
{
    static const cn_dtype types[] = { CN_U8, CN_F16, CN_I32, CN_F32, CN_F64 };
    static char bits[3][2][8 * LARGE];
    check_group(name);
    for (int t = 0; t < 5; t++) {
        for (int number = 0, n = 1; n; number++) {
            for (int k = 0; k < 3; k++) {
                cn_ctx *cn = cn_open(&(cn_desc){ .threads = k == 2 ? 3 : 1, .eager = k == 0, .seed = 7 });
                cn_tensor *out[2] = { 0 };
                n = graph(cn, types[t], number, out);
                for (int i = 0; i < n; i++) cn_keep(out[i]);
                for (int i = 0; i < n; i++) {
                    const size_t bytes = (size_t)cn_numel(out[i]) * cn_dtype_size(cn_type(out[i]));
                    cn_read(out[i], bits[k][i], bytes);
                    check(!cn_failed(cn) && !memcmp(bits[0][i], bits[k][i], bytes), "%s, case %d: other bits %s; %s",
                          cn_dtype_name(types[t]), number, k == 1 ? "as a plan" : "with three threads", cn_error(cn));
                }
                cn_close(cn);
            }
        }
    }
}

/* As in PyTorch, an elementwise result lies as its operands do. */
static void lies_as_operands(void)
{
    check_group("strides");
    cn_ctx *cn = cn_open(NULL);
    cn_tensor *x = cn_keep(cn_randn(cn, CN_F32, CN_DIMS(3, 4, 5))), *p = cn_permute(x, CN_DIMS(2, 0, 1));
    cn_dims s = cn_strides(cn_exp(cn_add(p, cn_slice(p, 0, 0, 1, 1))));
    check(s.v[0] == 1 && s.v[1] == 20 && s.v[2] == 5, "permuted operands: strides %d %d %d", (int)s.v[0], (int)s.v[1],
          (int)s.v[2]);
    check(cn_is_contiguous(cn_add(p, cn_contiguous(p))), "operands that disagree: row-major");
    check(cn_is_contiguous(cn_tril(cn_transpose(cn_slice(x, 0, 0, 1, 1), 1, 2), 0)),
          "an operator of places: row-major");
    check(cn_is_contiguous(cn_add(p, p)) == false && cn_is_contiguous(cn_contiguous(cn_add(p, p))), "contiguous");
    check(!cn_failed(cn), "%s", cn_error(cn));
    cn_close(cn);
}

int main(void)
{
    reductions();
    elementwise();
    turned();
    copied(copied_chain, "copied in another order");
    copied(copied_over, "copied over what is read");
    lies_as_operands();
    return finish();
}
