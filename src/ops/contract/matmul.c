/* matmul: a(..., m, k) · b(..., k, n) → (..., m, n); the axes before the last two broadcast. */
#include "cpu/gemm.h"
#include "cpu/isa.h"
#include "ops/contract/whole.h"
#include "ops/kernels.h"

static bool is_half(cn_dtype t) { return t == CN_F16 || t == CN_BF16; }

/* Serves vectors too, which cn_matmul accepts: the inner axis of a vector on the right is its first. */
static bool inner_sizes_agree(cn_ctx *ctx, const cn_layout *a, const cn_layout *b)
{
    bool axes = a->ndim >= 1 && b->ndim >= 1;
    if (axes && a->shape[a->ndim - 1] == b->shape[b->ndim > 1 ? b->ndim - 2 : 0]) return true;
    char s[96], t[96];
    return cn__fail(ctx, CN_BAD_SHAPE,
                    axes ? "matmul: inner sizes differ: %s @ %s"
                         : "matmul: each operand must have an axis at least, got %s @ %s",
                    cn__shape_text(a, s, sizeof s), cn__shape_text(b, t, sizeof t));
}

static bool infer(cn_infer *i)
{
    const cn_layout *a = &i->in[0]->layout, *b = &i->in[1]->layout;
    char s[96], t[96];
    if (a->ndim < 2 || b->ndim < 2)
        return cn_infer_fail(i, CN_BAD_SHAPE, "both operands must be matrices, got %s @ %s",
                             cn__shape_text(a, s, sizeof s), cn__shape_text(b, t, sizeof t));
    if (!inner_sizes_agree(i->ctx, a, b)) return false;
    cn_layout *out = &i->out[0].layout;
    out->ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    for (int d = 0; d < out->ndim - 2; d++) {
        int da = d - (out->ndim - a->ndim), db = d - (out->ndim - b->ndim);
        int64_t p = da >= 0 ? a->shape[da] : 1, q = db >= 0 ? b->shape[db] : 1;
        if (p != q && p != 1 && q != 1)
            return cn_infer_fail(i, CN_BAD_SHAPE, "batch axes must broadcast, got %s @ %s",
                                 cn__shape_text(a, s, sizeof s), cn__shape_text(b, t, sizeof t));
        out->shape[d] = p == 1 ? q : p;
    }
    out->shape[out->ndim - 2] = a->shape[a->ndim - 2];
    out->shape[out->ndim - 1] = b->shape[b->ndim - 1];
    i->out[0].dtype = is_half(i->in[0]->dtype) ? CN_F32 : i->in[0]->dtype;
    return true;
}

static int64_t batch_count(const cn_layout *l)
{
    int64_t count = 1;
    for (int d = 0; d < l->ndim - 2; d++) count *= l->shape[d];
    return count;
}

/* (..., m, k) → (...·m, k) */
static cn_tensor *as_rows(cn_tensor *x)
{
    const cn_layout *l = cn__layout(x);
    return cn_reshape(x, CN_DIMS(batch_count(l) * l->shape[l->ndim - 2], l->shape[l->ndim - 1]));
}

/* True if the last two axes are transposed in memory, as those of a transposed weight are. */
static bool column_major(const cn_layout *l) { return l->stride[l->ndim - 2] == 1 && l->stride[l->ndim - 1] != 1; }

/* x·y; by columns: (yᵀ·xᵀ)ᵀ, which has the same bits but column-major layout. */
static cn_tensor *product_laid_out(cn_tensor *x, cn_tensor *y, bool by_columns)
{
    if (!by_columns) return cn_matmul(x, y);
    return cn_transpose(cn_matmul(cn_transpose(y, -2, -1), cn_transpose(x, -2, -1)), -2, -1);
}

/* da = g·bᵀ, db = aᵀ·g, each summed over broadcast axes, with the layout of the operand. If b is the same for the whole
   batch (a layer's weight), db is a single product over all rows. */
static void grad(cn_grad_call *g)
{
    cn_tensor *a = g->in[0], *b = g->in[1], *y = cn_cast(g->out_grad[0], cn__dtype(a)); /* halves have f32 gradients */
    if (!y) return;
    const cn_layout *la = cn__layout(a), *lb = cn__layout(b);
    if (g->needs[0]) g->in_grad[0] = cn__sum_to(product_laid_out(y, cn_transpose(b, -2, -1), column_major(la)), la);
    if (!g->needs[1]) return;
    if (cn__layout(y)->ndim > 2 && batch_count(lb) == 1) {
        cn_tensor *db = product_laid_out(cn_transpose(as_rows(a), 0, 1), as_rows(y), column_major(lb));
        cn_dims shape = { lb->ndim, { 0 } };
        memcpy(shape.v, lb->shape, sizeof *lb->shape * (size_t)lb->ndim);
        g->in_grad[1] = cn_reshape(db, shape);
    } else {
        g->in_grad[1] = cn__sum_to(product_laid_out(cn_transpose(a, -2, -1), y, column_major(lb)), lb);
    }
}

/* The strides of x along the batch axes of the result. */
static void batch_strides(const cn_array *x, int dims, int64_t *stride)
{
    int lead = dims - (x->ndim - 2);
    for (int d = 0; d < dims; d++) stride[d] = d < lead || x->shape[d - lead] == 1 ? 0 : x->stride[d - lead];
}

static cn__gemm_storage storage(cn_dtype t)
{
    return t == CN_F16 ? CN__GEMM_F16 : t == CN_BF16 ? CN__GEMM_BF16 : CN__GEMM_PLAIN;
}

static cn__gemm product(const cn_kernel *k)
{
    const cn_array *a = &k->in[0], *b = &k->in[1], *c = &k->out[0];
    cn__gemm g = { .kernel = cn__kernel_gemm(k, c->dtype),
                   .a_storage = storage(a->dtype),
                   .b_storage = storage(b->dtype),
                   .a = a->data,
                   .b = b->data,
                   .c = c->data,
                   .batch_dims = c->ndim - 2 };
    g.m = a->shape[a->ndim - 2];
    g.k = a->shape[a->ndim - 1];
    g.n = b->shape[b->ndim - 1];
    g.a_row = a->stride[a->ndim - 2];
    g.a_col = a->stride[a->ndim - 1];
    g.b_row = b->stride[b->ndim - 2];
    g.b_col = b->stride[b->ndim - 1];
    g.c_row = c->stride[c->ndim - 2];
    g.c_col = c->stride[c->ndim - 1];
    for (int d = 0; d < g.batch_dims; d++) {
        g.batch_shape[d] = c->shape[d];
        g.c_batch[d] = c->stride[d];
    }
    batch_strides(a, g.batch_dims, g.a_batch);
    batch_strides(b, g.batch_dims, g.b_batch);
    return g;
}

static void batch_offsets(const cn__gemm *g, int64_t item, int64_t *a, int64_t *b, int64_t *c)
{
    *a = *b = *c = 0;
    for (int d = g->batch_dims - 1; d >= 0; d--) {
        int64_t x = item % g->batch_shape[d];
        item /= g->batch_shape[d];
        *a += x * g->a_batch[d];
        *b += x * g->b_batch[d];
        *c += x * g->c_batch[d];
    }
}

/* ---- whole numbers, modulo 2 to the number of bits: signed numbers are multiplied like unsigned ones ---- */

CN__INLINE uint64_t load(const void *x, int64_t at, const size_t size)
{
    if (size == 8) return ((const uint64_t *)x)[at];
    if (size == 4) return ((const uint32_t *)x)[at];
    return size == 2 ? ((const uint16_t *)x)[at] : ((const uint8_t *)x)[at];
}
CN__INLINE void store(void *x, int64_t at, uint64_t value, const size_t size)
{
    if (size == 8) ((uint64_t *)x)[at] = value;
    else if (size == 4) ((uint32_t *)x)[at] = (uint32_t)value;
    else if (size == 2) ((uint16_t *)x)[at] = (uint16_t)value;
    else ((uint8_t *)x)[at] = (uint8_t)value;
}

/* Row r of all rows of the batch. size: bytes of an element, a constant after inlining. */
CN__INLINE void multiply_row(const cn_kernel *k, const cn__gemm *g, int64_t r, const size_t size)
{
    int64_t i = r % g->m, a_at, b_at, c_at;
    batch_offsets(g, r / g->m, &a_at, &b_at, &c_at);
    a_at += i * g->a_row, c_at += i * g->c_row;
    for (int64_t j = 0; j < g->n; j++) {
        uint64_t sum = 0;
        for (int64_t p = 0; p < g->k; p++)
            sum += load(k->in[0].data, a_at + p * g->a_col, size) *
                   load(k->in[1].data, b_at + j * g->b_col + p * g->b_row, size);
        store(k->out[0].data, c_at + j * g->c_col, sum, size);
    }
}

static void multiply_rows(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const size_t size = cn_dtype_size(k->out[0].dtype);
    for (int64_t r = begin; r < end; r++) {
        if (size == 8) multiply_row(k, user, r, 8);
        else if (size == 4) multiply_row(k, user, r, 4);
        else if (size == 2) multiply_row(k, user, r, 2);
        else multiply_row(k, user, r, 1);
    }
}

typedef struct finished {
    const cn_kernel *k;
    int64_t m, n;
} finished;

static void rows_done(void *user, int64_t batch, int64_t begin, int64_t end, int thread)
{
    const finished *f = user;
    cn_kernel_done(f->k, (batch * f->m + begin) * f->n, (batch * f->m + end) * f->n, thread);
}

/* ---- weights that are kept packed ---- */

enum {
    MOST_ROWS = 512,       /* with more, packing is a small part of the work */
    LEAST_WEIGHT = 1 << 12 /* elements */
};

/* Whether B is worth keeping in panels. A single row reads a B with contiguous rows as fast as it lies. */
static bool keeps_panels(const cn__gemm *g)
{
    int64_t rows = g->m;
    for (int d = 0; d < g->batch_dims; d++) {
        if (g->b_batch[d] != 0 && g->batch_shape[d] != 1) return false;
        rows *= g->batch_shape[d];
    }
    if (g->b_storage || g->a_storage || rows > MOST_ROWS || g->n < g->kernel->width || g->n * g->k < LEAST_WEIGHT)
        return false;
    return rows > 1 || g->b_col != 1;
}

typedef struct packing {
    cn__gemm g;
    char *to;
} packing;

static void pack_panels(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k, (void)thread;
    const packing *p = user;
    const cn__gemm *g = &p->g;
    const int64_t width = g->kernel->width, size = g->kernel->size, first = begin * width;
    cn__gemm_pack_b(g->kernel, p->to + first * g->k * size, g->k, cn__smaller(end * width, g->n) - first,
                    (const char *)g->b + first * g->b_col * size, g->b_row, g->b_col);
}

static void use_panels(const cn_kernel *k, cn__gemm *g)
{
    bool made;
    if (!keeps_panels(g)) return;
    void *panels = cn__kernel_form(k, 1, CN__FORM_PANELS, 0, cn__gemm_pack_bytes(g->kernel, g->k, g->n), &made);
    if (!panels) return;
    if (!made) cn_parallel(k, cn__divide_up(g->n, g->kernel->width), 4, pack_panels, &(packing){ *g, panels });
    g->b = panels;
    g->b_packed = g->k;
}

static void cpu(const cn_kernel *k)
{
    cn__gemm g = product(k);
    if (cn_dtype_is_float(k->out[0].dtype)) {
        use_panels(k, &g);
        finished f = { k, g.m, g.n };
        g.done = rows_done;
        g.user = &f;
        cn__gemm_run(&g, cn__kernel_workers(k), k->scratch);
        return;
    }
    if (!k->out[0].numel) return;
    if (k->out[0].dtype == CN_I32 && cn__whole_product(k, &g)) {
        cn__kernel_done_all(k);
        return;
    }
    double work = (double)g.n * (double)(g.k ? g.k : 1);
    cn_parallel(k, k->out[0].numel / g.n, work < 16384 ? (int64_t)(16384 / work) : 1, multiply_rows, &g);
    cn__kernel_done_all(k);
}

static size_t scratch(const cn_kernel *k, int threads)
{
    cn__gemm g = product(k);
    if (!cn_dtype_is_float(k->out[0].dtype)) return k->out[0].dtype == CN_I32 ? cn__whole_scratch(&g) : 0;
    const size_t plain = cn__gemm_scratch(&g, threads);
    if (!keeps_panels(&g)) return plain;
    g.b_packed = g.k;
    const size_t packed = cn__gemm_scratch(&g, threads);
    return packed > plain ? packed : plain;
}

static double flops(const cn_meta *in, const cn_meta *out, const void *attrs)
{
    (void)attrs;
    const cn_layout *a = &in[0].layout;
    return a->ndim ? 2.0 * (double)cn__numel(&out->layout) * (double)a->shape[a->ndim - 1] : 0;
}

const cn_op cn__op_matmul = {
    .call = "matmul(Tensor input, Tensor other) -> Tensor",
    .name = "matmul",
    .doc = "The matrix product over the last two axes; the axes before them broadcast.",
    .kind = CN_CONTRACT,
    .n_in = 2,
    .n_out = 1,
    .dtypes = CN_NUMBERS,
    .strided = true,
    .strided_out = 1,
    .widens = true,
    .epilogue = true,
    .infer = infer,
    .grad = grad,
    .cpu = cpu,
    .gpu = cn__matmul_gpu,
    .scratch = scratch,
    .flops = flops,
    .onnx = "MatMul",
    CN_CASES({ CN_IN(CN_S(3, 4), CN_S(4, 5)) }, { CN_IN(CN_S(1, 1), CN_S(1, 1)) }, { CN_IN(CN_S(7, 13), CN_S(13, 5)) },
             { CN_IN(CN_S(2, 3, 4), CN_S(4, 5)) }, { CN_IN(CN_S(3, 4), CN_S(2, 4, 5)) },
             { CN_IN(CN_S(2, 1, 3, 4), CN_S(5, 4, 2)) }, { CN_IN(CN_S(2, 3, 2, 2), CN_S(1, 1, 2, 3)) },
             { CN_IN(CN_S(1, 2, 1, 2, 1, 2, 2, 3), CN_S(2, 1, 2, 1, 2, 1, 3, 2)) }, { CN_IN(CN_S(3, 0), CN_S(0, 4)) },
             { CN_IN(CN_S(0, 3, 2), CN_S(2, 4)) }, { CN_IN(CN_S(2, 0, 3), CN_S(2, 3, 2)) },
             { CN_IN(CN_S(65, 300), CN_S(300, 67)) }),
};

cn_tensor *cn_matmul(cn_tensor *a, cn_tensor *b)
{
    CN__CALL call = cn__call_tensor(a);
    if (!call.ctx || !cn__of_context(call.ctx, b, __func__, "other")) return NULL;
    if (!inner_sizes_agree(a->ctx, cn__layout(a), cn__layout(b))) {
        cn__name_operands(call.ctx, (cn_tensor *[]){ a, b }, 2);
        return NULL;
    }
    bool row = cn__layout(a)->ndim == 1, column = cn__layout(b)->ndim == 1;
    if (row) a = cn_unsqueeze(a, 0);
    if (column) b = cn_unsqueeze(b, 1);
    cn_tensor *y = cn_apply(&cn__op_matmul, (cn_tensor *[]){ a, b }, 2, NULL, NULL);
    if (column) y = cn_squeeze(y, CN_DIMS(-1));
    if (row) y = cn_squeeze(y, CN_DIMS(column ? -1 : -2));
    return y;
}
