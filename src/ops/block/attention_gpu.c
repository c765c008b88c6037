/* Attention on the GPU: the parameters and launches of attention.wgsl, whose opening comment explains the kernels. */
#include "core/philox.h"
#include "gpu/shaders.h"
#include "ops/block/attention_gpu.h"
#include "ops/block/block.h"

enum { TILE = 32, SIZE = 64, SLICE = 4, BACKWARD_SLICE = 2 };

/* ---- parameters ---- */

/* The first TABLES parameters are those of common_params. A table of TABLE parameters follows for each operand and
   result: the strides of rows and columns, then size and stride of each outer axis, the last axis first. */
enum { OUTER_MOST = CN_MAX_DIMS - 2, TABLES = 12, TABLE = 2 + 2 * OUTER_MOST };
_Static_assert(TABLE == 14, "attention.wgsl expects the tables at 12, 26, 40, ..");

typedef struct sizes {
    int64_t tq, tk, e, ev, heads, kv_heads, group;
    int outer;
    bool causal;
} sizes;

static int64_t parts_of(int64_t n, int64_t part) { return n > part ? (n + part - 1) / part : 1; }

static void common_params(cn_gpu_call *c, const sizes *s, int64_t blocks, int64_t slices, int64_t parts)
{
    const int64_t reach = s->causal ? 1 : INT32_MAX;
    const int64_t values[] = { s->tq,  s->tk,  s->e,  s->ev,    s->group,          s->outer,
                               blocks, slices, parts, TILE / 4, CN__PHILOX_ROUNDS, reach };
    cn_gpu_params_clear(c);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) cn_gpu_param(c, values[i]);
}

static int64_t stride_of(const cn_array *x, int d) { return d < 0 || x->shape[d] == 1 ? 0 : x->stride[d]; }

/* x (outer ..., rows, columns), own = 2, or (outer ..., rows), own = 1. Heads are counted over the outer axes of
   `like`, to which x broadcasts. */
static void table_param(cn_gpu_call *c, const sizes *s, const cn_array *x, int own, const cn_array *like)
{
    const int first = x->ndim - own - s->outer;
    cn_gpu_param(c, stride_of(x, x->ndim - own));
    cn_gpu_param(c, own > 1 ? stride_of(x, x->ndim - 1) : 0);
    for (int d = s->outer - 1; d >= s->outer - OUTER_MOST; d--) {
        cn_gpu_param(c, d < 0 ? 1 : like->shape[d]);
        cn_gpu_param(c, d < 0 ? 0 : stride_of(x, first + d));
    }
}

/* ---- forward ---- */

/* The value of the hole {{mask}} for operand k. */
static const char *mask_of(const cn_gpu_call *c, int k)
{
    return !c->in[k].data ? "none" : c->in[k].dtype == CN_BOOL ? "bool" : "float";
}

/* first: the number of q among the operands; k, v and, without caches, the mask follow. */
static bool launch(cn_gpu_call *c, cn_gpu_launch l, int first, bool cached, int parts)
{
    l.shader = cn__wgsl_attention;
    l.size = SIZE;
    l.holes = CN_GPU_HOLES(CN_GPU_FLAG("cached", cached), CN_GPU_TEXT("mask", cached ? "none" : mask_of(c, first + 3)),
                           CN_GPU_NUMBER("parts", parts), CN_GPU_NUMBER("q", first), CN_GPU_NUMBER("k", first + 1),
                           CN_GPU_NUMBER("v", first + 2), CN_GPU_NUMBER("mask_operand", first + 3),
                           CN_GPU_NUMBER("result", cached ? 5 : 4));
    return cn_gpu_run(c, &l);
}

static bool launch_forward(cn_gpu_call *c, const sizes *s, bool cached)
{
    const int64_t blocks = parts_of(s->tq, TILE), slices = parts_of(s->ev, SLICE * TILE);
    const int parts = (int)parts_of(s->ev < SLICE * TILE ? s->ev : SLICE * TILE, TILE);
    const int64_t groups = s->tq ? s->heads * slices * blocks : 0;
    return launch(c, (cn_gpu_launch){ .kernel = "forward", .groups = groups }, 0, cached, parts);
}

/* first: the number of q among the operands */
static sizes sizes_of(const cn_gpu_call *c, int first)
{
    const cn_array *q = &c->in[first], *k = &c->in[first + 1], *v = &c->in[first + 2];
    const int n = q->ndim;
    sizes s = { q->shape[n - 2],
                k->shape[n - 2],
                q->shape[n - 1],
                v->shape[n - 1],
                1,
                1,
                1,
                n - 2,
                ((const cn__attention_attrs *)c->attrs)->causal };
    for (int d = 0; d < n - 2; d++) s.heads *= q->shape[d], s.kv_heads *= k->shape[d];
    if (s.kv_heads) s.group = s.heads / s.kv_heads;
    return s;
}

bool cn__attention_gpu(cn_gpu_call *c)
{
    const sizes s = sizes_of(c, 0);
    common_params(c, &s, parts_of(s.tq, TILE), parts_of(s.ev, SLICE * TILE), parts_of(s.e, TILE));
    for (int i = 0; i < c->n_in; i++) table_param(c, &s, &c->in[i], 2, i == 1 || i == 2 ? &c->in[1] : &c->in[0]);
    table_param(c, &s, &c->out[0], 2, &c->in[0]);
    return launch_forward(c, &s, false);
}

/* The table of x (B, T, heads, width). */
static void token_table(cn_gpu_call *c, const cn_array *x)
{
    const int64_t values[TABLE] = { x->stride[1], x->stride[3], x->shape[2], x->stride[2], x->shape[0], x->stride[0] };
    for (int i = 0; i < TABLE; i++) cn_gpu_param(c, values[i]);
}

bool cn__cached_attention_gpu(cn_gpu_call *c)
{
    const cn_array *q = &c->in[0], *k = &c->in[1], *v = &c->in[2];
    const sizes s = { q->shape[1],
                      k->shape[1],
                      q->shape[3],
                      v->shape[3],
                      q->shape[0] * q->shape[2],
                      k->shape[0] * k->shape[2],
                      k->shape[2] ? q->shape[2] / k->shape[2] : 1,
                      2,
                      true };
    if (!c->out[0].numel) return true;
    common_params(c, &s, parts_of(s.tq, TILE), parts_of(s.ev, SLICE * TILE), parts_of(s.e, TILE));
    for (int i = 0; i < c->n_in; i++) token_table(c, &c->in[i]);
    token_table(c, &c->out[0]);
    return launch_forward(c, &s, true);
}

/* ---- backward ---- */

static void backward_params(cn_gpu_call *c, const sizes *s, int64_t blocks, int64_t slices, int64_t widest)
{
    const cn_array *q = &c->in[1], *k = &c->in[2];
    common_params(c, s, blocks, slices, parts_of(widest, TILE));
    for (int i = 0; i < c->n_in; i++) table_param(c, s, &c->in[i], i == 5 ? 1 : 2, i == 2 || i == 3 ? k : q);
    for (int i = 0; i < c->n_out; i++) table_param(c, s, &c->out[i], 2, i ? k : q);
}

bool cn__attention_backward_gpu(cn_gpu_call *c)
{
    const sizes s = sizes_of(c, 1);
    const int64_t widest = s.e > s.ev ? s.e : s.ev, most = BACKWARD_SLICE * TILE, slices = parts_of(widest, most);
    const int64_t query_blocks = parts_of(s.tq, TILE), key_blocks = parts_of(s.tk, TILE);
    const int parts = (int)parts_of(widest < most ? widest : most, TILE);
    cn_gpu_scratch(c, s.heads * query_blocks * TILE);
    backward_params(c, &s, query_blocks, slices, widest);
    const cn_gpu_launch queries = { .name = "attention_backward, queries",
                                    .kernel = "backward_queries",
                                    .groups = s.tq ? s.heads * slices * query_blocks : 0 };
    if (!launch(c, queries, 1, false, parts)) return false;
    backward_params(c, &s, key_blocks, slices, widest);
    const cn_gpu_launch keys = { .name = "attention_backward, keys",
                                 .kernel = "backward_keys",
                                 .groups = s.tk ? s.kv_heads * slices * key_blocks : 0 };
    return launch(c, keys, 1, false, parts);
}
