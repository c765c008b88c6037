/* graph_draws.c: operands and attributes at random, one function for each kind of instruction. A draw need not be valid: the
   rule decides. False: nothing to draw from. */
#include <math.h>

#include "support/graph.h"

#define ALL_DTYPES CN_ANY
#define BIT(t) (1u << (t))
#define FLOAT_BITS (BIT(CN_F16) | BIT(CN_BF16) | BIT(CN_F32) | BIT(CN_F64))

static const cn_dims *shape_of(graph_maker *m, int v) { return &graph_meta_of(m, v)->shape; }
static cn_dtype dtype_of(graph_maker *m, int v) { return graph_meta_of(m, v)->dtype; }
static int64_t between(graph_maker *m, int64_t low, int64_t high) { return low + graph_below(m, high - low + 1); }
static int64_t axis_of(graph_maker *m, int v) { return graph_below(m, shape_of(m, v)->n); }

static bool take(graph_maker *m, graph_instr *i, uint32_t dtypes, int min_dims)
{
    i->n_in = 1;
    return (i->in[0] = graph_pick(m, dtypes, min_dims)) >= 0;
}

static bool add(graph_instr *i, int value)
{
    i->in[i->n_in++] = value;
    return value >= 0;
}

/* ---- leaves ---- */

static int64_t small_size(graph_maker *m) { return graph_chance(m, 3) ? 0 : graph_chance(m, 20) ? 1 : between(m, 2, 7); }

static cn_dims draw_shape(graph_maker *m)
{
    cn_dims s = {(int)graph_below(m, 5), {0}};
    for (int d = 0; d < s.n; d++) s.v[d] = small_size(m);
    if (m->p->smooth) {
        s.n = (int)between(m, 1, 3);
        for (int d = 0; d < s.n; d++) s.v[d] = between(m, 1, 4);
        return s;
    }
    int known = m->p->busy && graph_chance(m, 70) ? graph_pick(m, ALL_DTYPES, 0) : -1;
    if (known >= 0) return *shape_of(m, known);
    int kind = (int)graph_below(m, 100);
    if (kind < 8) s = CN_DIMS(between(m, 100, 700));
    else if (kind < 14) s = CN_DIMS(between(m, 15, 40), between(m, 15, 40));
    else if (kind < 16) s = CN_DIMS(between(m, 500, 530), between(m, 1, 4));
    else if (kind < 17) s = CN_DIMS(between(m, 69000, 71000));
    else if (kind < 18) s = CN_DIMS(between(m, 250, 270), between(m, 250, 270));
    else if (kind < 19) s = CN_DIMS(between(m, 2, 5), between(m, 9000, 14000));
    else if (kind < 20) s = CN_DIMS(between(m, 20, 40), between(m, 3, 5), between(m, 500, 600));
    return s;
}

static cn_dtype draw_dtype(graph_maker *m)
{
    static const cn_dtype often[] = {CN_F32, CN_F32, CN_F32, CN_F32, CN_F32, CN_F32, CN_F32, CN_F32, CN_F64, CN_F64, CN_F64, CN_I64,
                                     CN_I64, CN_I32, CN_I32, CN_BOOL, CN_BOOL, CN_F16, CN_F16, CN_BF16, CN_BF16, CN_U8, CN_I8,
                                     CN_I16};
    return m->p->smooth ? CN_F64 : often[graph_below(m, sizeof often / sizeof *often)];
}

bool draw_leaf(graph_maker *m, graph_instr *i)
{
    i->dtype = draw_dtype(m);
    i->dims = draw_shape(m);
    i->seed = graph_random(m);
    i->flag = !m->p->smooth && graph_chance(m, 4); /* with infinities, NaN and large numbers */
    return true;
}

bool draw_param(graph_maker *m, graph_instr *i)
{
    draw_leaf(m, i);
    i->flag = false;
    if (!cn_dtype_is_float(i->dtype)) i->dtype = CN_F32;
    return m->model.params < (m->p->smooth ? 3 : 5);
}

bool draw_index_leaf(graph_maker *m, graph_instr *i)
{
    draw_leaf(m, i);
    i->flag = false;
    i->dtype = graph_chance(m, 70) ? CN_I64 : CN_I32;
    i->a[0] = between(m, 1, 6);
    return !m->p->smooth;
}

bool draw_created(graph_maker *m, graph_instr *i)
{
    i->dims = draw_shape(m);
    i->dtype = draw_dtype(m);
    if (!cn_dtype_is_float(i->dtype)) i->dtype = CN_F32;
    i->x[0] = (double)between(m, -8, 8) / 4;
    return true;
}

/* ---- elementwise ---- */

static uint32_t dtypes_of(graph_class class)
{
    switch (class) {
    case CLASS_FLOAT: return FLOAT_BITS;
    case CLASS_NUMBER: return ALL_DTYPES & ~BIT(CN_BOOL);
    case CLASS_BITS: return ALL_DTYPES & ~FLOAT_BITS;
    case CLASS_WHOLE: return ALL_DTYPES & ~FLOAT_BITS & ~BIT(CN_BOOL);
    default: return ALL_DTYPES;
    }
}

/* One that broadcasts with x: any value that does, or one made for it. */
static int partner(graph_maker *m, int x, uint32_t dtypes)
{
    cn_dims s = *shape_of(m, x), unused;
    for (int tries = 0; tries < 6; tries++) {
        int y = graph_pick(m, dtypes, 0);
        if (y >= 0 && graph_broadcast(&s, shape_of(m, y), &unused)) return y;
    }
    if (graph_chance(m, 30) && dtypes >> dtype_of(m, x) & 1) return x;
    while (s.n && graph_chance(m, 20)) {
        for (int d = 1; d < s.n; d++) s.v[d - 1] = s.v[d];
        s.n--;
    }
    for (int d = 0; d < s.n; d++)
        if (graph_chance(m, 20)) s.v[d] = 1;
    cn_dtype t = dtype_of(m, x);
    if (graph_chance(m, 20)) t = draw_dtype(m);
    if (!(dtypes >> t & 1)) t = dtypes & BIT(CN_F32) ? CN_F32 : CN_I64;
    return graph_leaf(m, t, s);
}

bool draw_unary(graph_maker *m, graph_instr *i) { return take(m, i, dtypes_of(i->op->class), 0); }
bool draw_binary(graph_maker *m, graph_instr *i)
{
    uint32_t dtypes = dtypes_of(i->op->class);
    return take(m, i, dtypes, 0) && add(i, partner(m, i->in[0], dtypes));
}

static double plain_number(graph_maker *m, cn_dtype t)
{
    double v = (double)between(m, -12, 12) / 4;
    return cn_dtype_is_float(t) || graph_chance(m, 25) ? v : floor(v);
}
bool draw_number(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, dtypes_of(i->op->class), 0)) return false;
    i->x[0] = plain_number(m, dtype_of(m, i->in[0]));
    if (m->p->smooth && i->x[0] == 0) i->x[0] = 1.5; /* nothing is divided by 0 */
    return true;
}
bool draw_where(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, BIT(CN_BOOL), 0)) return false;
    if (!add(i, partner(m, i->in[0], ALL_DTYPES))) return false;
    return add(i, partner(m, i->in[1], ALL_DTYPES));
}
bool draw_ternary(graph_maker *m, graph_instr *i)
{
    uint32_t dtypes = dtypes_of(i->op->class);
    if (!take(m, i, dtypes, 0) || !add(i, partner(m, i->in[0], dtypes)) || !add(i, partner(m, i->in[0], dtypes))) return false;
    i->x[0] = (double)between(m, -3, 3);
    return true;
}
bool draw_clamp(graph_maker *m, graph_instr *i)
{
    i->x[0] = (double)between(m, -3, 0);
    i->x[1] = i->x[0] + (double)between(m, 0, 4);
    return take(m, i, ALL_DTYPES & ~BIT(CN_BOOL), 0);
}
bool draw_cast(graph_maker *m, graph_instr *i)
{
    i->dtype = draw_dtype(m);
    return take(m, i, ALL_DTYPES, 0);
}
bool draw_masked_fill(graph_maker *m, graph_instr *i)
{
    i->x[0] = (double)between(m, -2, 2);
    return take(m, i, ALL_DTYPES, 0) && add(i, partner(m, i->in[0], BIT(CN_BOOL)));
}
bool draw_any(graph_maker *m, graph_instr *i) { return take(m, i, ALL_DTYPES, 0); }

/* ---- views ---- */

bool draw_transpose(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, ALL_DTYPES, 1)) return false;
    i->a[0] = axis_of(m, i->in[0]);
    i->a[1] = axis_of(m, i->in[0]);
    return true;
}
bool draw_permute(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, ALL_DTYPES, 0)) return false;
    i->dims.n = shape_of(m, i->in[0])->n;
    for (int d = 0; d < i->dims.n; d++) {
        int at = (int)graph_below(m, d + 1);
        i->dims.v[d] = i->dims.v[at];
        i->dims.v[at] = d;
    }
    return true;
}
bool draw_reshape(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, ALL_DTYPES, 0)) return false;
    int64_t left = graph_numel(shape_of(m, i->in[0]));
    i->dims = CN_DIMS(left);
    if (left == 0) {
        if (graph_chance(m, 50)) i->dims = CN_DIMS(between(m, 1, 3), 0);
        return true;
    }
    for (i->dims.n = 0; i->dims.n < 4 && left > 1 && graph_chance(m, 75); i->dims.n++) {
        int64_t f = between(m, 1, 8);
        while (left % f) f--;
        i->dims.v[i->dims.n] = f;
        left /= f;
    }
    if (left > 1 || graph_chance(m, 30)) i->dims.v[i->dims.n++] = left;
    return true;
}
bool draw_slice(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, ALL_DTYPES, 1)) return false;
    i->a[0] = axis_of(m, i->in[0]);
    int64_t size = shape_of(m, i->in[0])->v[i->a[0]];
    i->a[1] = between(m, -size, size);
    i->a[2] = graph_chance(m, 40) ? INT64_MAX : between(m, -size, size + 1);
    i->a[3] = graph_chance(m, 50) ? 1 : between(m, 1, 3);
    return true;
}
bool draw_narrow(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, ALL_DTYPES, 1)) return false;
    i->a[0] = axis_of(m, i->in[0]);
    int64_t size = shape_of(m, i->in[0])->v[i->a[0]];
    i->a[1] = between(m, 0, size);
    i->a[2] = between(m, 0, size - i->a[1]);
    return true;
}
bool draw_select(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, ALL_DTYPES, 1)) return false;
    i->a[0] = axis_of(m, i->in[0]);
    int64_t size = shape_of(m, i->in[0])->v[i->a[0]];
    i->a[1] = size ? between(m, -size, size - 1) : 0;
    return true;
}
bool draw_expand(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, ALL_DTYPES, 0)) return false;
    const cn_dims *s = shape_of(m, i->in[0]);
    int lead = (int)graph_below(m, 3);
    i->dims = (cn_dims){0, {0}};
    for (int d = 0; d < lead; d++) i->dims.v[i->dims.n++] = between(m, 1, 4);
    for (int d = 0; d < s->n && i->dims.n < 6; d++) i->dims.v[i->dims.n++] = s->v[d] == 1 && graph_chance(m, 70) ? between(m, 1, 9) : -1;
    return true;
}
bool draw_squeeze(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, ALL_DTYPES, 1)) return false;
    i->dims = graph_chance(m, 50) ? CN_ALL : CN_DIMS(axis_of(m, i->in[0]));
    return true;
}
bool draw_unsqueeze(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, ALL_DTYPES, 0)) return false;
    i->a[0] = between(m, 0, shape_of(m, i->in[0])->n);
    return true;
}

/* Some of the axes, in order. */
static cn_dims some_axes(graph_maker *m, int v, int percent)
{
    cn_dims axes = {0, {0}};
    for (int d = 0; d < shape_of(m, v)->n; d++)
        if (graph_chance(m, percent)) axes.v[axes.n++] = d;
    return axes;
}
bool draw_flip(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, ALL_DTYPES, 1)) return false;
    i->dims = some_axes(m, i->in[0], 60);
    return true;
}
bool draw_diagonal(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, ALL_DTYPES, 2)) return false;
    i->a[0] = between(m, -2, 2);
    i->a[1] = axis_of(m, i->in[0]);
    i->a[2] = axis_of(m, i->in[0]);
    return true;
}
bool draw_unfold(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, ALL_DTYPES, 1)) return false;
    i->a[0] = axis_of(m, i->in[0]);
    int64_t size = shape_of(m, i->in[0])->v[i->a[0]];
    i->a[1] = between(m, 1, size < 5 ? size + 1 : 5);
    i->a[2] = between(m, 1, 3);
    return true;
}
bool draw_triangle(graph_maker *m, graph_instr *i)
{
    i->a[0] = between(m, -2, 2);
    return take(m, i, ALL_DTYPES, 2);
}

/* ---- reductions and what goes along an axis ---- */

bool draw_reduce(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, ALL_DTYPES, 0)) return false;
    i->dims = graph_chance(m, 30) ? CN_ALL : some_axes(m, i->in[0], 50);
    if (i->op->rule == rule_arg && i->dims.n > 1) i->dims.n = 1;
    if (i->dims.n == 0) i->dims = CN_ALL;
    i->flag = graph_chance(m, 50);
    i->x[0] = graph_chance(m, 70) ? 1 : 0; /* correction */
    return true;
}
bool draw_along(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, i->op->rule == rule_softmax ? FLOAT_BITS : ALL_DTYPES, 0)) return false;
    i->a[0] = graph_below(m, shape_of(m, i->in[0])->n);
    i->flag = graph_chance(m, 50);
    return true;
}
bool draw_sort(graph_maker *m, graph_instr *i) { return draw_along(m, i); }
bool draw_topk(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, ALL_DTYPES, 1)) return false;
    i->a[1] = axis_of(m, i->in[0]);
    i->a[0] = between(m, 0, shape_of(m, i->in[0])->v[i->a[1]]);
    i->flag = graph_chance(m, 50);
    return true;
}
/* The indices of a sort, topk or cummax just made. */
bool draw_second(graph_maker *m, graph_instr *i)
{
    int last = m->p->n - 1;
    const graph_instr *s = last >= 0 ? &m->p->code[last] : NULL;
    if (!s || !s->op || s->op->group != G_SCAN || !(s->op->rule == rule_sort || s->op->rule == rule_topk)) return false;
    const cn_dims *x = shape_of(m, s->in[0]);
    int64_t axis = s->op->rule == rule_topk ? s->a[1] : s->a[0];
    i->in[0] = last;
    i->n_in = 1;
    i->a[0] = x->n ? x->v[axis] : 1;
    return true;
}
bool draw_norm(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, FLOAT_BITS, 1)) return false;
    cn_dims epilogue = *shape_of(m, i->in[0]);
    i->a[0] = between(m, 1, epilogue.n < 3 ? epilogue.n : 3);
    i->x[0] = m->p->smooth ? 0.5 : 1e-5;
    for (int d = 0; d < i->a[0]; d++) epilogue.v[d] = epilogue.v[epilogue.n - i->a[0] + d];
    epilogue.n = (int)i->a[0];
    while (i->n_in < i->op->n_in) {
        int p = graph_chance(m, 60) ? graph_leaf(m, dtype_of(m, i->in[0]), epilogue) : -1;
        i->in[i->n_in++] = p;
    }
    return true;
}
bool draw_dropout(graph_maker *m, graph_instr *i)
{
    i->x[0] = (double)between(m, 1, 4) / 5;
    return take(m, i, FLOAT_BITS, 0);
}

/* ---- contractions ---- */

bool draw_matmul(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, ALL_DTYPES & ~BIT(CN_BOOL), 1)) return false;
    cn_dims a = *shape_of(m, i->in[0]), b = {0, {0}};
    int64_t k = a.v[a.n - 1];
    if (graph_chance(m, 30) && a.n >= 2 && a.v[a.n - 1] == a.v[a.n - 2]) return add(i, i->in[0]);
    int batch = (int)graph_below(m, 3);
    if (graph_chance(m, 20)) return add(i, graph_leaf(m, dtype_of(m, i->in[0]), CN_DIMS(k)));
    for (int d = a.n - 2 - batch; d < a.n - 2; d++)
        if (d >= 0) b.v[b.n++] = graph_chance(m, 30) ? 1 : a.v[d];
    b.v[b.n++] = k;
    b.v[b.n++] = graph_chance(m, 10) ? between(m, 20, 90) : small_size(m);
    return add(i, graph_leaf(m, dtype_of(m, i->in[0]), b));
}
bool draw_linear(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, FLOAT_BITS, 1)) return false;
    const cn_dims *x = shape_of(m, i->in[0]);
    cn_dtype t = dtype_of(m, i->in[0]);
    int64_t n = between(m, 1, 6), k = x->v[x->n - 1];
    if (!add(i, graph_leaf(m, t, CN_DIMS(n, k)))) return false;
    i->in[i->n_in++] = graph_chance(m, 60) ? graph_leaf(m, t, CN_DIMS(n)) : -1;
    return true;
}

static bool draw_conv(graph_maker *m, graph_instr *i, int axes)
{
    cn_dtype t = m->p->smooth ? CN_F64 : graph_chance(m, 80) ? CN_F32 : CN_BF16;
    int64_t groups = graph_chance(m, 80) ? 1 : 2, c = groups * between(m, 1, 3), o = groups * between(m, 1, 3), n = between(m, 1, 2);
    cn_dims x = {axes + 2, {n, c}}, w = {axes + 2, {o, c / groups}};
    for (int d = 2; d < axes + 2; d++) {
        x.v[d] = m->p->smooth ? between(m, 2, 4) : between(m, 3, 9);
        w.v[d] = between(m, 1, m->p->smooth ? 2 : 3);
    }
    i->n_in = 0;
    i->a[0] = between(m, 1, 2);
    i->a[1] = between(m, 0, 1);
    i->a[2] = graph_chance(m, 80) ? 1 : 2;
    i->a[3] = groups;
    return add(i, graph_leaf(m, t, x)) && add(i, graph_leaf(m, t, w));
}
bool draw_conv1d(graph_maker *m, graph_instr *i) { return draw_conv(m, i, 1); }
bool draw_conv2d(graph_maker *m, graph_instr *i) { return draw_conv(m, i, 2); }
bool draw_pool(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, FLOAT_BITS, 4)) {
        cn_dims s = CN_DIMS(between(m, 1, 2), between(m, 1, 3), between(m, 3, 9), between(m, 3, 9));
        if (!add(i, graph_leaf(m, CN_F32, s))) return false;
        i->in[0] = i->in[1];
        i->n_in = 1;
    }
    i->a[0] = between(m, 1, 3);
    i->a[1] = between(m, 1, 2);
    i->a[2] = between(m, 0, i->a[0] / 2);
    return true;
}
bool draw_cross_entropy(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, FLOAT_BITS, 2)) return false;
    const cn_dims *x = shape_of(m, i->in[0]);
    return x->n == 2 && x->v[0] > 0 && x->v[1] > 0 && add(i, graph_index(m, CN_DIMS(x->v[0]), x->v[1]));
}

/* ---- indexing ---- */

/* x with an axis that has something in it. */
static bool take_axis(graph_maker *m, graph_instr *i, uint32_t dtypes, int64_t *size)
{
    if (!take(m, i, dtypes, 1)) return false;
    i->a[0] = axis_of(m, i->in[0]);
    *size = shape_of(m, i->in[0])->v[i->a[0]];
    return *size > 0;
}
bool draw_gather(graph_maker *m, graph_instr *i)
{
    int64_t size;
    if (!take_axis(m, i, ALL_DTYPES, &size)) return false;
    cn_dims s = *shape_of(m, i->in[0]);
    for (int d = 0; d < s.n; d++)
        if (d != i->a[0] && s.v[d] > 0 && graph_chance(m, 30)) s.v[d] = between(m, 1, s.v[d]);
    s.v[i->a[0]] = between(m, 0, 6);
    return add(i, graph_index(m, s, size));
}
bool draw_index_select(graph_maker *m, graph_instr *i)
{
    int64_t size;
    return take_axis(m, i, ALL_DTYPES, &size) && add(i, graph_index(m, CN_DIMS(between(m, 0, 6)), size));
}
bool draw_embedding(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, ALL_DTYPES, 2)) return false;
    const cn_dims *x = shape_of(m, i->in[0]);
    if (x->n != 2 || x->v[0] == 0) return false;
    return add(i, graph_index(m, graph_chance(m, 50) ? CN_DIMS(between(m, 0, 6)) : CN_DIMS(2, between(m, 1, 4)), x->v[0]));
}
bool draw_scatter_add(graph_maker *m, graph_instr *i)
{
    int64_t size;
    if (!take_axis(m, i, ALL_DTYPES & ~BIT(CN_BOOL), &size)) return false;
    cn_dims s = *shape_of(m, i->in[0]);
    s.v[i->a[0]] = between(m, 0, 6);
    return add(i, graph_index(m, s, size)) && add(i, graph_leaf(m, dtype_of(m, i->in[0]), s));
}
bool draw_index_add(graph_maker *m, graph_instr *i)
{
    int64_t size, n = between(m, 0, 6);
    if (!take_axis(m, i, ALL_DTYPES & ~BIT(CN_BOOL), &size)) return false;
    cn_dims s = *shape_of(m, i->in[0]);
    s.v[i->a[0]] = n;
    return add(i, graph_index(m, CN_DIMS(n), size)) && add(i, graph_leaf(m, dtype_of(m, i->in[0]), s));
}

/* ---- joining ---- */

bool draw_join(graph_maker *m, graph_instr *i)
{
    bool stack = i->op->rule == rule_stack;
    if (!take(m, i, ALL_DTYPES, stack ? 0 : 1)) return false;
    int count = (int)between(m, 1, GRAPH_IN);
    i->a[0] = between(m, 0, shape_of(m, i->in[0])->n - !stack);
    while (i->n_in < count) {
        cn_dims s = *shape_of(m, i->in[0]);
        if (!stack && graph_chance(m, 50)) s.v[i->a[0]] = small_size(m);
        int y = graph_chance(m, 20) ? i->in[0] : graph_leaf(m, graph_chance(m, 85) ? dtype_of(m, i->in[0]) : draw_dtype(m), s);
        if (!add(i, y)) return false;
    }
    return true;
}
bool draw_pad(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, ALL_DTYPES, 1)) return false;
    int axes = shape_of(m, i->in[0])->n;
    i->a[0] = graph_below(m, 4);
    i->x[0] = i->a[0] == CN_PAD_CONSTANT ? (double)between(m, -2, 2) : 0;
    i->dims.n = 2 * (int)between(m, 1, axes < 3 ? axes : 3);
    for (int k = 0; k < i->dims.n; k++) i->dims.v[k] = graph_below(m, 3);
    return true;
}
bool draw_repeat(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, ALL_DTYPES, 0)) return false;
    i->dims.n = shape_of(m, i->in[0])->n + (int)graph_below(m, 2);
    for (int d = 0; d < i->dims.n; d++) i->dims.v[d] = between(m, 1, 3);
    return true;
}
bool draw_roll(graph_maker *m, graph_instr *i)
{
    if (!take(m, i, ALL_DTYPES, 1)) return false;
    i->more = some_axes(m, i->in[0], 60);
    i->dims.n = i->more.n;
    for (int k = 0; k < i->dims.n; k++) i->dims.v[k] = between(m, -3, 3);
    return true;
}

/* ---- actions ---- */

/* A handle to assign to: mostly a kept one. */
static int target(graph_maker *m, uint32_t dtypes)
{
    int v = -1;
    for (int tries = 0; tries < 8; tries++) {
        v = graph_pick(m, dtypes, 0);
        if (v < 0 || !(m->model.v[v].kept || graph_chance(m, 10))) continue;
        if (!m->p->busy || m->model.node[m->model.v[v].node].param || graph_chance(m, 40)) return v;
    }
    return v;
}
bool draw_assign(graph_maker *m, graph_instr *i)
{
    i->n_in = 1;
    i->in[0] = target(m, ALL_DTYPES);
    if (i->in[0] < 0) return false;
    if (i->op->act == ACT_WRITE) {
        i->seed = graph_random(m);
        return true;
    }
    for (int tries = 0; tries < 12; tries++) {
        int y = graph_pick(m, ALL_DTYPES, 0);
        if (y >= 0 && graph_same_dims(shape_of(m, y), shape_of(m, i->in[0]))) return add(i, y);
    }
    return add(i, graph_leaf(m, dtype_of(m, i->in[0]), *shape_of(m, i->in[0])));
}
bool draw_set(graph_maker *m, graph_instr *i)
{
    i->n_in = 1;
    if ((i->in[0] = target(m, ALL_DTYPES)) < 0) return false;
    const cn_dims *s = shape_of(m, i->in[0]);
    i->dims.n = s->n;
    for (int d = 0; d < s->n; d++) i->dims.v[d] = graph_below(m, s->v[d]);
    i->x[0] = (double)between(m, 0, 1);
    return true;
}
bool draw_unary_in_place(graph_maker *m, graph_instr *i)
{
    i->n_in = 1;
    return (i->in[0] = target(m, dtypes_of(i->op->class))) >= 0;
}
bool draw_binary_in_place(graph_maker *m, graph_instr *i) { return draw_unary_in_place(m, i) && add(i, partner(m, i->in[0], dtypes_of(i->op->class))); }
bool draw_number_in_place(graph_maker *m, graph_instr *i)
{
    if (!draw_unary_in_place(m, i)) return false;
    i->x[0] = plain_number(m, dtype_of(m, i->in[0]));
    return true;
}
bool draw_item(graph_maker *m, graph_instr *i)
{
    for (int tries = 0; tries < 12; tries++)
        if (take(m, i, ALL_DTYPES, 0) && graph_numel(shape_of(m, i->in[0])) == 1) return true;
    return false;
}
bool draw_none(graph_maker *m, graph_instr *i)
{
    (void)m, (void)i;
    return true;
}
bool draw_keep(graph_maker *m, graph_instr *i) { return take(m, i, ALL_DTYPES, 0); }
bool draw_release(graph_maker *m, graph_instr *i)
{
    i->n_in = 1;
    return (i->in[0] = target(m, ALL_DTYPES)) >= 0;
}
/* flag: retain; a[0]: 1 reads the loss before, 2 after */
bool draw_backward(graph_maker *m, graph_instr *i)
{
    i->n_in = 0;
    for (int tries = 0; tries < 24 && i->n_in < GRAPH_IN; tries++) {
        int v = graph_pick(m, FLOAT_BITS, 0);
        if (v >= 0 && graph_tracks(&m->model, v)) i->in[i->n_in++] = v;
        if (i->n_in && graph_chance(m, 40)) break;
    }
    i->flag = graph_chance(m, 25);
    i->a[0] = graph_below(m, 3);
    return i->n_in > 0;
}
bool draw_of_param(graph_maker *m, graph_instr *i)
{
    i->n_in = 1;
    i->x[0] = 0.125;
    for (int tries = 0; tries < 12; tries++) {
        i->in[0] = (int)graph_below(m, m->model.n);
        const graph_value *v = &m->model.v[i->in[0]];
        if (v->exists && v->alive && m->model.node[v->node].param) return true;
    }
    return false;
}
