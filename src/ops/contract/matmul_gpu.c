/* matmul on the GPU: chooses the kernel of matmul.wgsl and the number of parts. If there would be too few workgroups,
   the inner axis is cut into parts, whose sums a second launch adds in a fixed order. */
#include "gpu/variants.h"
#include "ops/contract/contract.h"
#include "ops/view/move.h"
#include "gpu/shaders.h"

typedef enum form { PLAIN, TILED, DIRECT, BLOCK } form; /* as gpu/variants.c numbers them */

typedef struct product {
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col;
    int axes; /* of the batch, the innermost first; neighbouring axes are joined where strides allow it */
    int64_t size[CN_MAX_DIMS], a[CN_MAX_DIMS], b[CN_MAX_DIMS];
    int64_t numel, parts;
} product;

/* ---- what is to be multiplied ---- */

static void add_axis(product *p, int64_t size, int64_t a, int64_t b)
{
    int last = p->axes - 1;
    if (size == 1) return;
    if (p->axes && a == p->a[last] * p->size[last] && b == p->b[last] * p->size[last]) {
        p->size[last] *= size;
        return;
    }
    p->size[p->axes] = size;
    p->a[p->axes] = a;
    p->b[p->axes++] = b;
}

static product product_of(const cn_array *a, const cn_array *b, const cn_array *c)
{
    product p = { .m = a->shape[a->ndim - 2],
                  .n = b->shape[b->ndim - 1],
                  .k = a->shape[a->ndim - 1],
                  .a_row = a->stride[a->ndim - 2],
                  .a_col = a->stride[a->ndim - 1],
                  .b_row = b->stride[b->ndim - 2],
                  .b_col = b->stride[b->ndim - 1],
                  .numel = c->numel,
                  .parts = 1 };
    for (int d = c->ndim - 3; d >= 0; d--) {
        int da = d - (c->ndim - a->ndim), db = d - (c->ndim - b->ndim);
        add_axis(&p, c->shape[d], da < 0 || a->shape[da] == 1 ? 0 : a->stride[da],
                 db < 0 || b->shape[db] == 1 ? 0 : b->stride[db]);
    }
    /* The same b for all: the rows of the batch are rows of one product. */
    if (p.axes && p.b[0] == 0 && (p.m == 1 || p.a[0] == p.m * p.a_row)) {
        if (p.m == 1) p.a_row = p.a[0];
        p.m *= p.size[0];
        p.axes--;
        memmove(p.size, p.size + 1, sizeof *p.size * (size_t)p.axes);
        memmove(p.a, p.a + 1, sizeof *p.a * (size_t)p.axes);
        memmove(p.b, p.b + 1, sizeof *p.b * (size_t)p.axes);
    }
    return p;
}

/* ---- which form ---- */

/* WebGPU does not report how many invocations run in step. The name of llvmpipe has the number of bits of a vector. */
static bool runs_8_in_step(const cn_gpu_info *g)
{
    return g->subgroups && strstr(g->name, "llvmpipe") && (strstr(g->name, "256 bits") || strstr(g->name, "512 bits"));
}

/* Of a workgroup: the sums that it keeps, and its invocations. */
static const struct {
    int64_t height, width;
    int size;
    const char *kernel;
} tile[] = { [TILED] = { 64, 64, 256, "tiled" }, [DIRECT] = { 16, 32, 8, "direct" }, [BLOCK] = { 8, 32, 4, "block" } };

static int64_t tiles_of(const product *p, form f)
{
    int64_t tiles = 1;
    for (int d = 0; d < p->axes; d++) tiles *= p->size[d];
    return tiles * ((p->m + tile[f].height - 1) / tile[f].height) * ((p->n + tile[f].width - 1) / tile[f].width);
}

static bool is_software(const cn_gpu_info *g) { return strcmp(g->kind, "software") == 0; }

/* CAIRN_GPU_MATMUL=plain, tiled, direct or block chooses that kernel, if the device can run it. */
static form form_of(const cn_ctx *ctx, const product *p, const cn_gpu_info *g)
{
    form best = runs_8_in_step(g) ? DIRECT : is_software(g) ? BLOCK : TILED;
    bool empty = p->numel * 16 < tiles_of(p, best) * tile[best].height * tile[best].width; /* nearly empty tiles */
    form f = (form)cn__gpu_variant(ctx, "matmul", empty ? PLAIN : best);
    return f == DIRECT ? best : f;
}

/* Enough parts to occupy the device. No part is short, and the sums of all parts do not take too much memory. */
static int64_t parts_of(const product *p, form f, bool software)
{
    enum { MOST = 64, SCRATCH = 1 << 22 };
    int64_t units = f == PLAIN ? p->numel : tiles_of(p, f);
    int64_t enough = f == PLAIN ? (software ? 256 : 65536) : f == BLOCK ? 16 : software ? 64 : 256;
    int64_t parts = enough / units, longest = p->k / (f == PLAIN ? 32 : 256);
    if (parts > longest) parts = longest;
    if (parts > MOST) parts = MOST;
    if (parts * p->numel > SCRATCH) parts = SCRATCH / p->numel;
    return parts < 1 ? 1 : parts;
}

/* ---- launches ---- */

enum { NUMBERS = 12 }; /* parameters before those of the batch axes */

static int64_t size_of_stride(int64_t stride) { return stride < 0 ? -stride : stride; }

static void add_numbers(cn_gpu_call *c, const product *p)
{
    int64_t part = (p->k + p->parts - 1) / p->parts;
    bool a_along = size_of_stride(p->a_col) <= size_of_stride(p->a_row);
    bool b_along = size_of_stride(p->b_row) < size_of_stride(p->b_col);
    const int64_t numbers[NUMBERS] = {
        p->m,   p->n, p->k, p->a_row, p->a_col, p->b_row, p->b_col, p->numel, p->parts, part, a_along | b_along << 1,
        p->axes
    };
    for (int i = 0; i < NUMBERS; i++) cn_gpu_param(c, numbers[i]);
    for (int d = 0; d < p->axes; d++) {
        cn_gpu_param(c, p->size[d]);
        cn_gpu_param(c, p->a[d]);
        cn_gpu_param(c, p->b[d]);
    }
}

static bool is_strided(const cn_array *out)
{
    cn_layout l = { .ndim = out->ndim };
    memcpy(l.shape, out->shape, sizeof l.shape);
    memcpy(l.stride, out->stride, sizeof l.stride);
    return !cn__layout_contiguous(&l);
}

/* Launches a kernel over n workgroups of `size` invocations; with size 0, for each of n elements. */
static bool run(cn_gpu_call *c, const char *kernel, bool parts, int64_t n, int size)
{
    const bool strided = !parts && is_strided(&c->out[0]);
    const char *lies = strided ? cn__gpu_walk_array(c, "lies", &c->out[0]) : "";
    const char *type = cn_dtype_is_float(c->out[0].dtype) ? "f32" : "i32";
    return cn_gpu_run(
        c, &(cn_gpu_launch){ .shader = cn__wgsl_matmul,
                             .kernel = kernel,
                             .holes = CN_GPU_HOLES(CN_GPU_TEXT("type", type), CN_GPU_FLAG("parts", parts),
                                                   CN_GPU_FLAG("strided", strided), CN_GPU_TEXT("lies", lies)),
                             .each = size ? 0 : n,
                             .groups = size ? n : 0,
                             .size = size });
}

static bool multiply(cn_gpu_call *c, const product *p, form f)
{
    const bool parts = p->parts > 1;
    if (f == PLAIN) return run(c, "plain", parts, p->parts * p->numel, 0);
    return run(c, tile[f].kernel, parts, p->parts * tiles_of(p, f), tile[f].size);
}

bool cn__matmul_gpu(cn_gpu_call *c)
{
    if (!c->out[0].numel) return true;
    product p = product_of(&c->in[0], &c->in[1], &c->out[0]);
    form f = form_of(c->ctx, &p, c->limits);
    p.parts = parts_of(&p, f, is_software(c->limits));
    add_numbers(c, &p);
    if (p.parts > 1) cn_gpu_scratch(c, p.parts * p.numel);
    if (!multiply(c, &p, f)) return false;
    if (p.parts == 1) return true;
    cn_gpu_params_clear(c);
    cn_gpu_param(c, p.numel);
    cn_gpu_param(c, p.parts);
    return run(c, "add_parts", false, p.numel, 0);
}
