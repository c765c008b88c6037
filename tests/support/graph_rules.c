/* graph_rules.c: what each operator's result looks like, said a second time: PyTorch's rules for shapes and dtypes.
   A rule that returns false says that the instruction is not valid; the generator then draws another. */
#include <math.h>
#include <string.h>

#include "support/graph.h"

#define LARGEST 300000   /* elements of a value */
#define WORK 2e7         /* multiplications of a contraction */

int64_t graph_numel(const cn_dims *d)
{
    int64_t n = 1;
    for (int k = 0; k < d->n; k++) n *= d->v[k];
    return n;
}

bool graph_same_dims(const cn_dims *a, const cn_dims *b)
{
    return a->n == b->n && !memcmp(a->v, b->v, sizeof *a->v * (size_t)a->n);
}

bool graph_broadcast(const cn_dims *a, const cn_dims *b, cn_dims *out)
{
    *out = (cn_dims){a->n > b->n ? a->n : b->n, {0}};
    for (int d = 1; d <= out->n; d++) {
        int64_t p = d <= a->n ? a->v[a->n - d] : 1, q = d <= b->n ? b->v[b->n - d] : 1;
        if (p != q && p != 1 && q != 1) return false;
        out->v[out->n - d] = p == 1 ? q : p;
    }
    return true;
}

static bool fits(const graph_meta *m)
{
    if (m->shape.n > CN_MAX_DIMS - 2) return false;
    for (int d = 0; d < m->shape.n; d++)
        if (m->shape.v[d] < 0) return false;
    return graph_numel(&m->shape) <= LARGEST;
}

static bool give(graph_meta *out, cn_dtype dtype, cn_dims shape)
{
    *out = (graph_meta){dtype, shape, 0};
    return fits(out);
}

static bool is_float(const graph_meta *m) { return cn_dtype_is_float(m->dtype); }
static bool is_axis(int64_t axis, const cn_dims *d) { return axis >= 0 && axis < d->n; }
static bool is_index(const graph_meta *m) { return (m->dtype == CN_I32 || m->dtype == CN_I64) && m->bound > 0; }

/* ---- elementwise ---- */

static int category(cn_dtype t) { return t == CN_BOOL ? 0 : cn_dtype_is_float(t) ? 2 : 1; }

/* Tensors with dimensions decide; single numbers, and then plain ones, only if of a higher category. */
static cn_dtype combined(const graph_meta *const *in, int n, const cn_dtype *plain)
{
    int tier[3] = {-1, -1, plain ? (int)*plain : -1}, t = -1;
    for (int k = 0; k < n; k++) {
        int *at = &tier[in[k]->shape.n == 0];
        *at = *at < 0 ? (int)in[k]->dtype : (int)cn_promote((cn_dtype)*at, in[k]->dtype);
    }
    for (int k = 2; k >= 0; k--) {
        if (tier[k] < 0) continue;
        if (t < 0 || category((cn_dtype)t) <= category((cn_dtype)tier[k])) t = tier[k];
        else t = (int)cn_promote((cn_dtype)tier[k], (cn_dtype)t);
    }
    return (cn_dtype)t;
}

static bool by_class(graph_class class, cn_dtype t, cn_dtype *out)
{
    *out = class == CLASS_TEST ? CN_BOOL : class == CLASS_REAL && !cn_dtype_is_float(t) ? CN_F32 : t;
    switch (class) {
    case CLASS_FLOAT: return cn_dtype_is_float(t);
    case CLASS_NUMBER: return t != CN_BOOL;
    case CLASS_BITS: return !cn_dtype_is_float(t);
    case CLASS_WHOLE: return !cn_dtype_is_float(t) && t != CN_BOOL;
    default: return true;
    }
}

static bool elementwise(const graph_instr *i, const graph_meta *const *in, int n, const cn_dtype *plain, graph_meta *out)
{
    cn_dims shape = in[0]->shape, wider;
    for (int k = 1; k < n; k++) {
        if (!graph_broadcast(&shape, &in[k]->shape, &wider)) return false;
        shape = wider;
    }
    cn_dtype t;
    return by_class(i->op->class, combined(in, n, plain), &t) && give(out, t, shape);
}

/* Whole numbers divided by a 0 in the data are an error. */
static bool divides(const graph_op *op)
{
    return !strncmp(op->name, "floor_div", 9) || !strncmp(op->name, "remainder", 9) || !strncmp(op->name, "fmod", 4);
}

bool rule_map(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    return elementwise(i, in, i->n_in, NULL, out) && (!divides(i->op) || cn_dtype_is_float(out->dtype));
}

bool rule_number(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    cn_dtype plain = is_float(in[0]) ? in[0]->dtype : i->x[0] == floor(i->x[0]) ? CN_I64 : CN_F32;
    if (!elementwise(i, in, 1, &plain, out)) return false;
    if (cn_dtype_is_float(out->dtype)) return true;
    return divides(i->op) ? i->x[0] != 0 : strncmp(i->op->name, "pow", 3) || i->x[0] >= 0;
}

bool rule_where(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    cn_dims shape;
    if (in[0]->dtype != CN_BOOL || !elementwise(i, in + 1, 2, NULL, out)) return false;
    return graph_broadcast(&in[0]->shape, &out->shape, &shape) && give(out, out->dtype, shape);
}

bool rule_masked_fill(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    (void)i;
    cn_dims shape;
    return in[1]->dtype == CN_BOOL && graph_broadcast(&in[0]->shape, &in[1]->shape, &shape) && give(out, in[0]->dtype, shape);
}

/* To its own dtype a cast gives the same handle: not a new value. */
bool rule_cast(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    return i->dtype != in[0]->dtype && give(out, i->dtype, in[0]->shape);
}

/* ---- creation ---- */

bool rule_created(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    (void)in;
    return give(out, i->dtype, i->dims);
}

bool rule_index_leaf(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    if (!rule_created(i, in, out)) return false;
    out->bound = i->a[0];
    return i->a[0] > 0;
}

/* ---- views: an index stays one ---- */

static bool seen(graph_meta *out, const graph_meta *in, cn_dims shape)
{
    *out = (graph_meta){in->dtype, shape, in->bound};
    return fits(out);
}

bool rule_same(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    (void)i;
    return seen(out, in[0], in[0]->shape);
}

bool rule_transpose(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    cn_dims s = in[0]->shape;
    if (!is_axis(i->a[0], &s) || !is_axis(i->a[1], &s)) return false;
    s.v[i->a[0]] = in[0]->shape.v[i->a[1]];
    s.v[i->a[1]] = in[0]->shape.v[i->a[0]];
    return seen(out, in[0], s);
}

bool rule_permute(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    cn_dims s = in[0]->shape;
    if (i->dims.n != s.n) return false;
    for (int d = 0; d < s.n; d++) s.v[d] = in[0]->shape.v[i->dims.v[d]];
    return seen(out, in[0], s);
}

bool rule_reshape(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    return graph_numel(&i->dims) == graph_numel(&in[0]->shape) && seen(out, in[0], i->dims);
}

/* axis, start, end, step */
bool rule_slice(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    cn_dims s = in[0]->shape;
    if (!is_axis(i->a[0], &s) || i->a[3] < 1) return false;
    int64_t size = s.v[i->a[0]], from = i->a[1] < 0 ? i->a[1] + size : i->a[1], to = i->a[2] < 0 ? i->a[2] + size : i->a[2];
    from = from < 0 ? 0 : from > size ? size : from;
    to = to < 0 ? 0 : to > size ? size : to;
    s.v[i->a[0]] = to > from ? (to - from + i->a[3] - 1) / i->a[3] : 0;
    return seen(out, in[0], s);
}

bool rule_narrow(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    cn_dims s = in[0]->shape;
    if (!is_axis(i->a[0], &s) || i->a[1] < 0 || i->a[2] < 0 || i->a[1] + i->a[2] > s.v[i->a[0]]) return false;
    s.v[i->a[0]] = i->a[2];
    return seen(out, in[0], s);
}

static cn_dims without(cn_dims s, int64_t axis)
{
    memmove(s.v + axis, s.v + axis + 1, sizeof *s.v * (size_t)(s.n - axis - 1));
    s.n--;
    return s;
}

static cn_dims with(cn_dims s, int64_t axis, int64_t size)
{
    memmove(s.v + axis + 1, s.v + axis, sizeof *s.v * (size_t)(s.n - axis));
    s.v[axis] = size;
    s.n++;
    return s;
}

bool rule_select(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    const cn_dims *s = &in[0]->shape;
    if (!is_axis(i->a[0], s) || i->a[1] < -s->v[i->a[0]] || i->a[1] >= s->v[i->a[0]]) return false;
    return seen(out, in[0], without(*s, i->a[0]));
}

bool rule_expand(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    cn_dims s = i->dims;
    int lead = s.n - in[0]->shape.n;
    if (lead < 0) return false;
    for (int d = 0; d < s.n; d++) {
        int64_t have = d < lead ? 1 : in[0]->shape.v[d - lead];
        if (s.v[d] == -1 && d >= lead) s.v[d] = have;
        if (have != 1 && s.v[d] != have) return false;
    }
    return seen(out, in[0], s);
}

bool rule_squeeze(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    cn_dims s = in[0]->shape;
    for (int d = s.n - 1; d >= 0; d--) {
        bool named = i->dims.n < 0;
        for (int k = 0; k < i->dims.n; k++) named |= i->dims.v[k] == d;
        if (named && s.v[d] == 1) s = without(s, d);
    }
    for (int k = 0; k < i->dims.n; k++)
        if (!is_axis(i->dims.v[k], &in[0]->shape)) return false;
    return seen(out, in[0], s);
}

bool rule_unsqueeze(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    if (i->a[0] < 0 || i->a[0] > in[0]->shape.n || in[0]->shape.n == CN_MAX_DIMS) return false;
    return seen(out, in[0], with(in[0]->shape, i->a[0], 1));
}

bool rule_flip(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    for (int k = 0; k < i->dims.n; k++)
        if (!is_axis(i->dims.v[k], &in[0]->shape)) return false;
    return seen(out, in[0], in[0]->shape);
}

/* offset, axis1, axis2 */
bool rule_diagonal(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    cn_dims s = in[0]->shape;
    int64_t p = i->a[1], q = i->a[2];
    if (!is_axis(p, &s) || !is_axis(q, &s) || p == q) return false;
    int64_t rows = s.v[p] + (i->a[0] < 0 ? i->a[0] : 0), cols = s.v[q] - (i->a[0] > 0 ? i->a[0] : 0), n = rows < cols ? rows : cols;
    s = without(without(s, p > q ? p : q), p > q ? q : p);
    s.v[s.n++] = n > 0 ? n : 0;
    return seen(out, in[0], s);
}

/* axis, size, step */
bool rule_unfold(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    cn_dims s = in[0]->shape;
    if (!is_axis(i->a[0], &s) || i->a[1] < 0 || i->a[1] > s.v[i->a[0]] || i->a[2] < 1 || s.n == CN_MAX_DIMS) return false;
    s.v[i->a[0]] = (s.v[i->a[0]] - i->a[1]) / i->a[2] + 1;
    s.v[s.n++] = i->a[1];
    return seen(out, in[0], s);
}

bool rule_triangle(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    (void)i;
    return in[0]->shape.n >= 2 && give(out, in[0]->dtype, in[0]->shape);
}

/* ---- reductions: dims are the axes, flag keeps them ---- */

static bool reduced(const graph_instr *i, const graph_meta *in, cn_dtype t, graph_meta *out)
{
    cn_dims s = in->shape;
    unsigned set = 0;
    for (int k = 0; k < i->dims.n; k++) {
        if (!is_axis(i->dims.v[k], &in->shape) || set >> i->dims.v[k] & 1) return false;
        set |= 1u << i->dims.v[k];
    }
    for (int d = s.n - 1; d >= 0; d--) {
        if (i->dims.n > 0 && !(set >> d & 1)) continue;
        if (i->flag) s.v[d] = 1;
        else s = without(s, d);
    }
    return give(out, t, s);
}

bool rule_sum(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    return reduced(i, in[0], is_float(in[0]) ? in[0]->dtype : CN_I64, out);
}
bool rule_mean(const graph_instr *i, const graph_meta *const *in, graph_meta *out) { return is_float(in[0]) && reduced(i, in[0], in[0]->dtype, out); }
bool rule_truth(const graph_instr *i, const graph_meta *const *in, graph_meta *out) 
{
    return reduced(i, in[0], in[0]->dtype == CN_U8 ? CN_U8 : CN_BOOL, out);
}
bool rule_logsumexp(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    return reduced(i, in[0], is_float(in[0]) ? in[0]->dtype : CN_F32, out);
}

static bool something_to_choose(const graph_meta *in, const graph_meta *out)
{
    return graph_numel(&in->shape) > 0 || graph_numel(&out->shape) == 0;
}
bool rule_max(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    return reduced(i, in[0], in[0]->dtype, out) && something_to_choose(in[0], out);
}
bool rule_arg(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    if (i->dims.n > 1 || !reduced(i, in[0], CN_I64, out) || !something_to_choose(in[0], out)) return false;
    out->bound = i->dims.n == 1 ? in[0]->shape.v[i->dims.v[0]] : graph_numel(&in[0]->shape);
    return true;
}

/* ---- along an axis ---- */

static bool along(int64_t axis, const cn_dims *s) { return axis >= 0 && axis < (s->n ? s->n : 1); }

bool rule_softmax(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    return is_float(in[0]) && along(i->a[0], &in[0]->shape) && give(out, in[0]->dtype, in[0]->shape);
}
bool rule_scan(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    return along(i->a[0], &in[0]->shape) && give(out, is_float(in[0]) ? in[0]->dtype : CN_I64, in[0]->shape);
}
bool rule_sort(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    return along(i->a[0], &in[0]->shape) && give(out, in[0]->dtype, in[0]->shape);
}
/* k, axis */
bool rule_topk(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    cn_dims s = in[0]->shape;
    if (!is_axis(i->a[1], &s) || i->a[0] < 0 || i->a[0] > s.v[i->a[1]]) return false;
    s.v[i->a[1]] = i->a[0];
    return give(out, in[0]->dtype, s);
}
/* The indices that came with a value: a[0] is their bound, which the draw knows. */
bool rule_second(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    *out = (graph_meta){CN_I64, in[0]->shape, i->a[0]};
    return true;
}
/* x, weight, bias (either may be absent) over the last a[0] axes */
bool rule_norm(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    cn_dims epilogue = {(int)i->a[0], {0}};
    if (!is_float(in[0]) || i->a[0] < 1 || i->a[0] > in[0]->shape.n) return false;
    memcpy(epilogue.v, in[0]->shape.v + in[0]->shape.n - epilogue.n, sizeof *epilogue.v * (size_t)epilogue.n);
    for (int k = 1; k < i->n_in; k++)
        if (in[k] && (in[k]->dtype != in[0]->dtype || !graph_same_dims(&in[k]->shape, &epilogue))) return false;
    return give(out, in[0]->dtype, in[0]->shape);
}
bool rule_dropout(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    return is_float(in[0]) && i->x[0] > 0 && give(out, in[0]->dtype, in[0]->shape);
}

/* ---- contractions ---- */

bool rule_matmul(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    (void)i;
    cn_dims a = in[0]->shape, b = in[1]->shape, s, p, q;
    if (a.n < 1 || b.n < 1 || in[0]->dtype != in[1]->dtype || in[0]->dtype == CN_BOOL) return false;
    bool row = a.n == 1, column = b.n == 1;
    if (row) a = with(a, 0, 1);
    if (column) b = with(b, 1, 1);
    if (a.v[a.n - 1] != b.v[b.n - 2]) return false;
    p = a, q = b;
    p.n -= 2, q.n -= 2;
    if (!graph_broadcast(&p, &q, &s)) return false;
    s = with(with(s, s.n, a.v[a.n - 2]), s.n + 1, b.v[b.n - 1]);
    double work = (double)graph_numel(&s) * (double)a.v[a.n - 1];
    if (column) s.n--;
    if (row) s = without(s, s.n - (column ? 1 : 2));
    return work < WORK && give(out, in[0]->dtype, s);
}

/* x (..., k), weight (n, k), bias (n) or none */
bool rule_linear(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    (void)i;
    cn_dims s = in[0]->shape;
    if (s.n < 1 || in[1]->shape.n != 2 || in[0]->dtype != in[1]->dtype || !is_float(in[0])) return false;
    if (s.v[s.n - 1] != in[1]->shape.v[1]) return false;
    if (in[2] && (in[2]->dtype != in[0]->dtype || in[2]->shape.n != 1 || in[2]->shape.v[0] != in[1]->shape.v[0])) return false;
    s.v[s.n - 1] = in[1]->shape.v[0];
    return (double)graph_numel(&s) * (double)in[1]->shape.v[1] < WORK && give(out, in[0]->dtype, s);
}

/* x (N, C, ...), weight (O, C / groups, ...); a: stride, padding, dilation, groups */
static bool conv(const graph_instr *i, const graph_meta *const *in, int axes, graph_meta *out)
{
    const cn_dims *x = &in[0]->shape, *w = &in[1]->shape;
    if (x->n != axes + 2 || w->n != axes + 2 || in[0]->dtype != in[1]->dtype || !is_float(in[0])) return false;
    if (i->a[0] < 1 || i->a[2] < 1 || i->a[3] < 1 || x->v[1] != w->v[1] * i->a[3] || w->v[0] % i->a[3] || x->v[1] < 1) return false;
    cn_dims s = {x->n, {x->v[0], w->v[0]}};
    double work = (double)w->v[1];
    for (int d = 2; d < x->n; d++) {
        int64_t room = x->v[d] + 2 * i->a[1] - i->a[2] * (w->v[d] - 1) - 1;
        if (room < 0 || w->v[d] < 1 || x->v[d] < 1) return false;
        s.v[d] = room / i->a[0] + 1;
        work *= (double)w->v[d];
    }
    return work * (double)graph_numel(&s) < WORK && give(out, in[0]->dtype, s);
}
bool rule_conv1d(const graph_instr *i, const graph_meta *const *in, graph_meta *out) { return conv(i, in, 1, out); }
bool rule_conv2d(const graph_instr *i, const graph_meta *const *in, graph_meta *out) { return conv(i, in, 2, out); }

/* a: kernel, stride, padding, the same along both axes */
bool rule_pool(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    cn_dims s = in[0]->shape;
    if (!is_float(in[0]) || s.n != 4 || i->a[0] < 1 || i->a[1] < 1 || i->a[2] * 2 > i->a[0] || s.v[1] < 1) return false;
    for (int d = 2; d < 4; d++) {
        if (s.v[d] + 2 * i->a[2] < i->a[0] || s.v[d] < 1) return false;
        s.v[d] = (s.v[d] + 2 * i->a[2] - i->a[0]) / i->a[1] + 1;
    }
    return give(out, in[0]->dtype, s);
}

bool rule_cross_entropy(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    (void)i;
    const cn_dims *x = &in[0]->shape, *t = &in[1]->shape;
    bool fine = is_float(in[0]) && x->n == 2 && t->n == 1 && t->v[0] == x->v[0] && x->v[0] > 0 && in[1]->dtype == CN_I64;
    return fine && in[1]->bound > 0 && in[1]->bound <= x->v[1] && give(out, in[0]->dtype, CN_SCALAR);
}

/* ---- indexing: values of an index stay below the size they index ---- */

static bool reaches(const graph_meta *index, int64_t size) { return is_index(index) && index->bound <= size; }

/* Along every axis but one, an index is not larger. */
static bool covers(const cn_dims *x, const cn_dims *index, int64_t skip)
{
    if (x->n != index->n) return false;
    for (int d = 0; d < x->n; d++)
        if (d != skip && index->v[d] > x->v[d]) return false;
    return true;
}

bool rule_gather(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    const cn_dims *x = &in[0]->shape;
    if (!is_axis(i->a[0], x) || !covers(x, &in[1]->shape, i->a[0]) || !reaches(in[1], x->v[i->a[0]])) return false;
    *out = (graph_meta){in[0]->dtype, in[1]->shape, in[0]->bound};
    return fits(out);
}
bool rule_index_select(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    cn_dims s = in[0]->shape;
    if (!is_axis(i->a[0], &s) || in[1]->shape.n != 1 || !reaches(in[1], s.v[i->a[0]])) return false;
    s.v[i->a[0]] = in[1]->shape.v[0];
    return seen(out, in[0], s);
}
bool rule_embedding(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    (void)i;
    if (in[0]->shape.n != 2 || !reaches(in[1], in[0]->shape.v[0]) || in[1]->shape.n == CN_MAX_DIMS) return false;
    return give(out, in[0]->dtype, with(in[1]->shape, in[1]->shape.n, in[0]->shape.v[1]));
}
/* x, index, source */
bool rule_scatter_add(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    const cn_dims *x = &in[0]->shape;
    if (!is_axis(i->a[0], x) || !covers(x, &in[1]->shape, i->a[0]) || !reaches(in[1], x->v[i->a[0]])) return false;
    if (in[2]->dtype != in[0]->dtype || in[0]->dtype == CN_BOOL || !covers(&in[2]->shape, &in[1]->shape, -1)) return false;
    return give(out, in[0]->dtype, *x);
}
bool rule_index_add(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    cn_dims s = in[0]->shape;
    if (!is_axis(i->a[0], &s) || in[1]->shape.n != 1 || !reaches(in[1], s.v[i->a[0]])) return false;
    s.v[i->a[0]] = in[1]->shape.v[0];
    if (in[2]->dtype != in[0]->dtype || in[0]->dtype == CN_BOOL || !graph_same_dims(&s, &in[2]->shape)) return false;
    return give(out, in[0]->dtype, in[0]->shape);
}

/* ---- joining ---- */

bool rule_cat(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    cn_dims s = in[0]->shape;
    cn_dtype t = in[0]->dtype;
    if (!is_axis(i->a[0], &s) || (s.n == 1 && s.v[0] == 0)) return false; /* an empty list joins anything: left alone here */
    for (int k = 1; k < i->n_in; k++) {
        cn_dims x = in[k]->shape;
        if (x.n != s.n || (x.n == 1 && x.v[0] == 0)) return false;
        for (int d = 0; d < s.n; d++)
            if (d != i->a[0] && x.v[d] != s.v[d]) return false;
        s.v[i->a[0]] += x.v[i->a[0]];
        t = cn_promote(t, in[k]->dtype);
    }
    return give(out, t, s);
}

bool rule_stack(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    cn_dtype t = in[0]->dtype;
    const cn_dims *s = &in[0]->shape;
    if (i->a[0] < 0 || i->a[0] > s->n || s->n == CN_MAX_DIMS) return false;
    for (int k = 1; k < i->n_in; k++) {
        if (!graph_same_dims(s, &in[k]->shape)) return false;
        t = cn_promote(t, in[k]->dtype);
    }
    return give(out, t, with(*s, i->a[0], i->n_in));
}

/* dims: pairs (before, after) from the last axis on; a[0]: mode */
bool rule_pad(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    cn_dims s = in[0]->shape;
    if (i->dims.n % 2 || i->dims.n / 2 > s.n) return false;
    for (int k = 0; k < i->dims.n / 2; k++) {
        int64_t before = i->dims.v[2 * k], after = i->dims.v[2 * k + 1], most = before > after ? before : after, *size = &s.v[s.n - 1 - k];
        if (before < 0 || after < 0) return false;
        if (i->a[0] == CN_PAD_REFLECT && most > 0 && most >= *size) return false;
        if (i->a[0] == CN_PAD_REPLICATE && most > 0 && *size == 0) return false;
        if (i->a[0] == CN_PAD_CIRCULAR && most > *size) return false;
        *size += before + after;
    }
    return give(out, in[0]->dtype, s);
}

bool rule_repeat(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    cn_dims s = i->dims;
    int lead = s.n - in[0]->shape.n;
    if (lead < 0) return false;
    for (int d = lead; d < s.n; d++) s.v[d] *= in[0]->shape.v[d - lead];
    return seen(out, in[0], s);
}

bool rule_roll(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    if (i->dims.n != i->more.n || i->dims.n < 1) return false;
    for (int k = 0; k < i->more.n; k++)
        if (!is_axis(i->more.v[k], &in[0]->shape)) return false;
    return seen(out, in[0], in[0]->shape);
}

/* ---- actions ---- */

bool rule_none(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    (void)i, (void)in, (void)out;
    return true;
}
bool rule_item(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    (void)i, (void)out;
    return graph_numel(&in[0]->shape) == 1;
}
bool rule_set(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    (void)out;
    if (i->dims.n != in[0]->shape.n) return false;
    for (int d = 0; d < i->dims.n; d++)
        if (i->dims.v[d] < 0 || i->dims.v[d] >= in[0]->shape.v[d]) return false;
    return true;
}
bool rule_assign(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    (void)i, (void)out;
    return graph_same_dims(&in[0]->shape, &in[1]->shape);
}
bool rule_backward(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    (void)out;
    for (int k = 0; k < i->n_in; k++)
        if (in[k] && !is_float(in[k])) return false;
    return true;
}
static bool fits_into(const graph_meta *to, const graph_meta *result)
{
    return graph_same_dims(&to->shape, &result->shape) && category(result->dtype) <= category(to->dtype);
}
bool rule_in_place(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    return rule_map(i, in, out) && fits_into(in[0], out);
}
bool rule_in_place_number(const graph_instr *i, const graph_meta *const *in, graph_meta *out)
{
    return rule_number(i, in, out) && fits_into(in[0], out);
}
