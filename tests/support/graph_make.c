/* graph_make.c: programs from seeds. */
#include <string.h>

#include "support/graph.h"

/* splitmix64 */
uint64_t graph_random(graph_maker *m)
{
    uint64_t z = m->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
int64_t graph_below(graph_maker *m, int64_t n) { return n > 0 ? (int64_t)(graph_random(m) % (uint64_t)n) : 0; }
bool graph_chance(graph_maker *m, int percent) { return graph_below(m, 100) < percent; }
double graph_real(graph_maker *m, double low, double high)
{
    return low + (high - low) * (double)(graph_random(m) >> 11) * 0x1p-53;
}

const graph_meta *graph_meta_of(const graph_maker *m, int value) { return &m->model.v[value].meta; }

/* Later values are met more often: graphs grow deep as well as wide. */
int graph_pick(graph_maker *m, uint32_t dtypes, int min_dims)
{
    if (m->p->smooth && dtypes & 1u << CN_F64) dtypes = 1u << CN_F64;
    for (int tries = 0; tries < 20; tries++) {
        int64_t a = graph_below(m, m->model.n), b = graph_below(m, m->model.n);
        int v = (int)(graph_chance(m, 60) && b > a ? b : a);
        if (v >= m->model.n || !graph_usable(&m->model, v)) continue;
        const graph_meta *meta = graph_meta_of(m, v);
        if (dtypes >> meta->dtype & 1 && meta->shape.n >= min_dims) return v;
    }
    return -1;
}

bool graph_emit(graph_maker *m, graph_instr *i)
{
    if (m->p->n >= GRAPH_ROOM || !graph_accept(&m->model, i)) return false;
    m->p->code[m->p->n++] = *i;
    return true;
}

static int find(graph_maker *m, cn_dtype dtype, const cn_dims *shape, int64_t bound)
{
    for (int tries = 0; tries < 15; tries++) {
        int v = (int)graph_below(m, m->model.n);
        if (v >= m->model.n || !graph_usable(&m->model, v)) continue;
        const graph_meta *meta = graph_meta_of(m, v);
        bool fine = bound ? meta->bound > 0 && meta->bound <= bound && (meta->dtype == CN_I64 || meta->dtype == CN_I32)
                          : meta->dtype == dtype;
        if (fine && graph_same_dims(&meta->shape, shape)) return v;
    }
    return -1;
}

int graph_leaf(graph_maker *m, cn_dtype dtype, cn_dims shape)
{
    int v = graph_chance(m, 60) ? find(m, dtype, &shape, 0) : -1;
    if (v >= 0) return v;
    bool param = cn_dtype_is_float(dtype) && graph_chance(m, 40) && m->model.params < (m->p->smooth ? 3 : 5);
    graph_instr i = { .op = graph_op_named(param ? "param" : "from"),
                      .dtype = dtype,
                      .dims = shape,
                      .seed = graph_random(m),
                      .keep = param || graph_chance(m, 30) };
    return graph_emit(m, &i) ? m->p->n - 1 : -1;
}

int graph_index(graph_maker *m, cn_dims shape, int64_t bound)
{
    int v = graph_chance(m, 60) ? find(m, CN_I64, &shape, bound) : -1;
    if (v >= 0) return v;
    graph_instr i = {
        .op = graph_op_named("index"), .dtype = CN_I64, .dims = shape, .seed = graph_random(m), .a = { bound }
    };
    return graph_emit(m, &i) ? m->p->n - 1 : -1;
}

/* ---- a program ---- */

static const int usual[GRAPH_GROUPS] = {
    [G_LEAF] = 8,     [G_CREATE] = 4, [G_UNARY] = 12, [G_BINARY] = 14,  [G_NUMBER] = 7, [G_TERNARY] = 4, [G_CAST] = 4,
    [G_VIEW] = 16,    [G_REDUCE] = 9, [G_BLOCK] = 4,  [G_CONTRACT] = 5, [G_INDEX] = 4,  [G_SCAN] = 4,    [G_JOIN] = 5,
    [G_IN_PLACE] = 3, [G_ASSIGN] = 4, [G_READ] = 5,   [G_SCOPE] = 2,    [G_KEEP] = 2,   [G_GRAD] = 4,
};
static const int busy_usual[GRAPH_GROUPS] = {
    [G_LEAF] = 5,     [G_CREATE] = 2,  [G_UNARY] = 10, [G_BINARY] = 16,  [G_NUMBER] = 6, [G_TERNARY] = 3, [G_CAST] = 2,
    [G_VIEW] = 18,    [G_REDUCE] = 5,  [G_BLOCK] = 3,  [G_CONTRACT] = 5, [G_INDEX] = 2,  [G_SCAN] = 2,    [G_JOIN] = 3,
    [G_IN_PLACE] = 8, [G_ASSIGN] = 18, [G_READ] = 4,   [G_SCOPE] = 1,    [G_KEEP] = 2,   [G_GRAD] = 14,
};
static const int smooth_usual[GRAPH_GROUPS] = {
    [G_LEAF] = 8,   [G_UNARY] = 14, [G_BINARY] = 16,  [G_NUMBER] = 5, [G_TERNARY] = 4, [G_VIEW] = 18,
    [G_REDUCE] = 8, [G_BLOCK] = 5,  [G_CONTRACT] = 7, [G_INDEX] = 4,  [G_SCAN] = 3,    [G_JOIN] = 5,
};

static graph_group draw_group(graph_maker *m)
{
    const int *weight = m->p->smooth ? smooth_usual : m->p->busy ? busy_usual : usual;
    int total = 0, g = 0;
    for (int k = 0; k < GRAPH_GROUPS; k++) total += weight[k];
    for (int64_t at = graph_below(m, total); at >= weight[g]; g++) at -= weight[g];
    return (graph_group)g;
}

static const graph_op *draw_op(graph_maker *m)
{
    int count;
    const graph_op *ops = graph_ops(&count);
    for (;;) {
        graph_group g = draw_group(m);
        for (int tries = 0; tries < 200; tries++) {
            const graph_op *op = &ops[graph_below(m, count)];
            if (op->group == g && (!m->p->smooth || op->traits & OP_SMOOTH)) return op;
        }
    }
}

static void add_one(graph_maker *m)
{
    graph_instr i = { .op = draw_op(m), .in = { -1, -1, -1 } };
    i.n_in = i.op->n_in;
    if (!i.op->draw(m, &i)) return;
    i.keep = !(i.op->traits & OP_ACTION) && graph_chance(m, 18);
    graph_emit(m, &i);
    if (i.op->group == G_SCAN && graph_chance(m, 50)) {
        graph_instr s = { .op = graph_op_named("indices"), .keep = graph_chance(m, 20) };
        if (s.op->draw(m, &s)) graph_emit(m, &s);
    }
}

void graph_make(graph *p, uint64_t seed, bool smooth)
{
    static graph_maker m; /* large */
    *p = (graph){ .seed = seed, .smooth = smooth, .busy = !smooth && seed % 2 };
    memset(&m, 0, sizeof m);
    m.p = p;
    m.state = seed * 0x2545f4914f6cdd1du + smooth;
    graph_instr first = { .op = graph_op_named(smooth || graph_chance(&m, 70) ? "param" : "from"), .keep = true };
    first.op->draw(&m, &first);
    int64_t side = 24 + graph_below(&m, 24);
    if (p->busy && graph_chance(&m, 50))
        first.dims = graph_chance(&m, 60) ? CN_DIMS(side, side) : CN_DIMS(40 * side); /* several tiles */
    graph_emit(&m, &first);
    int length = (int)(smooth ? 4 + graph_below(&m, 18) : 6 + graph_below(&m, 50));
    for (int tries = 0; tries < 6 * length && p->n < length; tries++) add_one(&m);
}
