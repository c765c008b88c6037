/* rows.c: steps that change only the rows of a parameter whose gradient is not zero. The gradient is that of an
   embedding's weight, given as the gradients of the rows that were looked up, and their indices; the dense gradient is
   never computed. With G, the sum of the gradients of a row:

       sgd_rows_step       p = p - lr G
       adam_rows_step      m = m + (1 - beta1)(G - m)     v = v + (1 - beta2)(G² - v)     p = p - rate m / (√v + eps)
       moment_rows_step    the new m of these formulas, or the new v

   The bits are those of the dense gradient, and do not depend on threads: a thread sums whole rows, in the order of the
   indices. adam_rows_step reads the old m and v. */
#include <math.h>

#include "ops/index/index.h"

#include "ops/kernels.h"
#include "optim.h"

extern const cn_op cn__op_embedding_backward;

/* ---- on the CPU ---- */

/* The indices that name the same row form a chain. */
typedef struct chains {
    int64_t *first;   /* of the chains, in the order in which their rows appear */
    int64_t *next;    /* by index: the next one of its chain, or -1 */
    int64_t *last;    /* by the first index of a chain: its last one */
    int64_t *table;   /* rows by their hash: the first index of the chain + 1, or 0 */
    int64_t slots, n; /* of the table, a power of 2; chains */
    char *sums;       /* for each thread a row */
    size_t sum_bytes;
} chains;

static int64_t slots_for(int64_t n)
{
    int64_t slots = 16;
    while (slots < 2 * n) slots *= 2;
    return slots;
}

static size_t row_bytes(const cn_kernel *k)
{
    return (size_t)cn__round_up(k->out[0].shape[1] * (int64_t)cn_dtype_size(k->out[0].dtype) + 1, 64);
}

static size_t scratch(const cn_kernel *k, int threads)
{
    const int64_t n = k->in[2].numel;
    return sizeof(int64_t) * (size_t)(3 * n + slots_for(n) + 8) + (size_t)threads * row_bytes(k);
}

static void add_to_chain(chains *c, const cn_array *index, int64_t a)
{
    const int64_t row = cn__index_at(index, a);
    uint64_t at = (uint64_t)row * 0x9e3779b97f4a7c15u;
    for (at ^= at >> 32;; at++) {
        int64_t *slot = &c->table[at & (uint64_t)(c->slots - 1)];
        if (!*slot) {
            *slot = a + 1;
            c->first[c->n++] = c->last[a] = a;
            return;
        }
        const int64_t first = *slot - 1;
        if (cn__index_at(index, first) != row) continue;
        c->next[c->last[first]] = a;
        c->last[first] = a;
        return;
    }
}

static chains find_chains(const cn_kernel *k)
{
    const int64_t n = k->in[2].numel, rows = k->out[0].shape[0];
    int64_t *ints = k->scratch;
    chains c = { ints, ints + n, ints + 2 * n, ints + 3 * n, .slots = slots_for(n), .sum_bytes = row_bytes(k) };
    c.sums = (char *)k->scratch + cn__round_up((3 * n + c.slots) * (int64_t)sizeof *ints, 64);
    memset(c.table, 0, sizeof *ints * (size_t)c.slots);
    for (int64_t a = 0; a < n; a++) {
        const int64_t row = cn__index_at(&k->in[2], a);
        c.next[a] = -1;
        if (row >= 0 && row < rows) add_to_chain(&c, &k->in[2], a); /* embedding has reported the others */
    }
    return c;
}

static inline float root_f32(float x) { return sqrtf(x); }
static inline double root_f64(double x) { return sqrt(x); }

#define TEMPLATE "ops/optim/rows_body.h"
#define TYPES    CN__FLOAT_TYPES
#include "cpu/each_type.h"

static void cpu(const cn_kernel *k)
{
    const int64_t width = k->out[0].shape[1], bytes = k->out[0].numel * (int64_t)cn_dtype_size(k->out[0].dtype);
    if (k->out[0].data != k->in[0].data) cn__copy_all(k, k->out[0].data, k->in[0].data, bytes);
    if (!k->in[1].numel) return;
    chains c = find_chains(k);
    const cn_body body = k->out[0].dtype == CN_F64 ? rows_f64 : rows_f32;
    cn_parallel(k, c.n, cn__larger(1, 16384 / width), body, &c);
}

/* ---- with other operators: on devices without a kernel, and if the dense gradient exists already ---- */

/* Whether a row of the gradient is not zero: (rows,1). */
static cn_tensor *touched(cn_tensor *g) { return cn_any(cn_ne_s(g, 0), CN_DIMS(1), true); }

static cn_tensor *moment(cn_tensor *s, cn_tensor *g, double fresh, bool square)
{
    return cn_add(s, cn_mul_s(cn_sub(square ? cn_square(g) : g, s), fresh));
}

cn_tensor *cn__moment_dense(cn_tensor *s, cn_tensor *g, const cn_arg *a)
{
    return cn_where(touched(g), moment(s, g, a[CN__ROWS_RATE].f, a[CN__ROWS_SQUARE].i), s);
}

cn_tensor *cn__adam_dense(cn_tensor *p, cn_tensor *g, cn_tensor *m, cn_tensor *v, const cn_arg *a)
{
    cn_tensor *mean = moment(m, g, a[CN__ROWS_FRESH1].f, false), *size = moment(v, g, a[CN__ROWS_FRESH2].f, true);
    cn_tensor *way = cn_div(mean, cn_add_s(cn_sqrt(size), a[CN__ROWS_EPS].f));
    return cn_where(touched(g), cn_sub(p, cn_mul_s(way, a[CN__ROWS_RATE].f)), p);
}

static cn_tensor *dense(cn_tensor *const *in) { return cn__embedding_backward(in[1], in[2], cn_size(in[0], 0)); }

static cn_tensor *compose_sgd(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in, (void)attrs;
    const cn_arg a[CN_MAX_ARGS] = { [CN__SGD_LR].f = args[CN__ROWS_RATE].f, [CN__SGD_SIGN].f = 1 };
    return cn_apply(&cn__op_sgd_step, (cn_tensor *[]){ in[0], dense(in) }, 2, NULL, a);
}

static cn_tensor *compose_moment(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in, (void)attrs;
    return cn__moment_dense(in[0], dense(in), args);
}

static cn_tensor *compose_adam(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in, (void)attrs;
    return cn__adam_dense(in[0], dense(in), in[3], in[4], args);
}

/* ---- records ---- */

/* p (rows, width), gradients (..., width), indices (...); then states like p. */
static bool infer(cn_infer *i)
{
    const cn_layout *p = &i->in[0]->layout, *g = &i->in[1]->layout, *index = &i->in[2]->layout;
    char s[96], t[96], u[96];
    if (!cn__infer_index(i, 2)) return false;
    cn_layout expected = *index;
    if (p->ndim == 2 && index->ndim < CN_MAX_DIMS) expected.shape[expected.ndim++] = p->shape[1];
    if (p->ndim != 2 || !cn__same_shape(&expected, g))
        return cn_infer_fail(i, CN_BAD_SHAPE,
                             "param must be (rows, width), indices (...) and grad (..., width), got %s, "
                             "%s and %s",
                             cn__shape_text(p, s, sizeof s), cn__shape_text(index, t, sizeof t),
                             cn__shape_text(g, u, sizeof u));
    for (int k = 3; k < i->n_in; k++)
        if (!cn__expect_shape(i, "a state", i->in[k], p)) return false;
    i->out[0] = *i->in[0];
    return true;
}

/* The rows that are read and written, at most. */
static double touched_bytes(const cn_meta *in, const cn_meta *out, const void *attrs)
{
    (void)attrs;
    return 3.0 * (double)cn__numel(&in[1].layout) * (double)cn_dtype_size(out->dtype) +
           (double)cn__numel(&in[2].layout) * (double)cn_dtype_size(in[2].dtype);
}

#define STEP                                                                                                    \
    .kind = CN_INDEX, .n_out = 1, .dtypes = CN_FLOATS, .free_dtype = 4, .not_differentiable = 4, .in_place = 1, \
    .infer = infer, CN__NO_GRADIENT, .cpu = cpu, .scratch = scratch, .bytes = touched_bytes
#define P(...)      CN_RANGE(3, 5, __VA_ARGS__)
#define G(...)      CN_RANGE(0.5, 1, __VA_ARGS__)
#define STATES(...) CN_RANGE(0.5, 1, __VA_ARGS__), CN_RANGE(4, 9, __VA_ARGS__)

const cn_op cn__op_sgd_rows_step = {
    .call = "_sgd_rows_step(Tensor param, Tensor grad, Tensor indices, float lr) -> Tensor",
    .name = "sgd_rows_step",
    .doc = "One step of gradient descent on the rows that gradients are given for.",
    .n_in = 3,
    STEP,
    .compose = compose_sgd,
    CN_CASES({ CN_IN(P(6, 4), CN_S(2, 5, 4), CN_IDX(6, 2, 5)), CN_ARGS({ .f = 0.1 }) },
             { CN_IN(P(70, 33), CN_S(20, 11, 33), CN_IDX(70, 20, 11)), CN_ARGS({ .f = 0.1 }) },
             { CN_IN(P(900, 3), CN_S(7, 3), CN_IDX(900, 7)), CN_ARGS({ .f = 0.5 }) },
             { CN_IN(P(4, 3), CN_S(0, 3), CN_IDX(4, 0)), CN_ARGS({ .f = 0.1 }) },
             { CN_IN(P(4, 3), CN_S(3), CN_IDX0(4)), CN_ARGS({ .f = 0.1 }) }),
};

const cn_op cn__op_moment_rows_step = {
    .call = "_moment_rows_step(Tensor state, Tensor grad, Tensor indices, float fresh, bool square) -> Tensor",
    .name = "moment_rows_step",
    .doc = "A state of Adam, moved towards the gradient or its square in the rows that gradients are given for.",
    .n_in = 3,
    STEP,
    .compose = compose_moment,
    CN_CASES({ CN_IN(P(6, 4), G(2, 5, 4), CN_IDX(6, 2, 5)), CN_ARGS({ .f = 0.1 }, { .i = 0 }) },
             { CN_IN(P(70, 33), G(20, 11, 33), CN_IDX(70, 20, 11)), CN_ARGS({ .f = 0.01 }, { .i = 1 }) },
             { CN_IN(P(4, 3), G(0, 3), CN_IDX(4, 0)), CN_ARGS({ .f = 0.1 }, { .i = 1 }) }),
};

const cn_op cn__op_adam_rows_step = {
    .call = "_adam_rows_step(Tensor param, Tensor grad, Tensor indices, Tensor m, Tensor v, float rate, float fresh1, "
            "float fresh2, float eps) -> Tensor",
    .name = "adam_rows_step",
    .doc = "New p from p, gradients, indices and the old m and v: one step of SparseAdam.",
    .n_in = 5,
    STEP,
    .compose = compose_adam,
    CN_CASES({ CN_IN(P(6, 4), G(2, 5, 4), CN_IDX(6, 2, 5), STATES(6, 4)),
               CN_ARGS({ .f = 0.1 }, { .f = 0.1 }, { .f = 0.01 }, { .f = 1e-8 }) },
             { CN_IN(P(70, 33), G(20, 11, 33), CN_IDX(70, 20, 11), STATES(70, 33)),
               CN_ARGS({ .f = 0.1 }, { .f = 0.5 }, { .f = 0.3 }, { .f = 1e-3 }) },
             { CN_IN(P(4, 3), G(0, 3), CN_IDX(4, 0), STATES(4, 3)),
               CN_ARGS({ .f = 0.1 }, { .f = 0.1 }, { .f = 0.01 }, { .f = 1e-8 }) }),
};

/* ---- gradients that are known by rows ---- */

static cn_tensor *operand_handle(cn_ctx *ctx, cn__ref r)
{
    r.node->refs++;
    return cn__handle_new(ctx, r);
}

bool cn__rows_of(const cn_tensor *p, const cn_tensor *g, cn_tensor **rows, cn_tensor **index)
{
    const cn__node *n = g->ref.node;
    if (n->op != &cn__op_embedding_backward || n->state != CN__PENDING || n->variant) return false;
    if (cn__dtype(p) != cn__dtype(g) || cn_ndim(p) != 2) return false;
    *rows = operand_handle(p->ctx, n->in[0]);
    *index = operand_handle(p->ctx, n->in[1]);
    return *rows && *index;
}

cn_tensor *cn__sgd_rows(cn_tensor *p, cn_tensor *g, double lr)
{
    cn_tensor *in[3] = { p };
    if (!(lr >= 0 && isfinite(lr)) || !cn__rows_of(p, g, &in[1], &in[2])) return NULL;
    return cn_apply(&cn__op_sgd_rows_step, in, 3, NULL, (cn_arg[CN_MAX_ARGS]){ [CN__ROWS_RATE].f = lr });
}
