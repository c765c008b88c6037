/* sort, argsort and topk. Elements of every dtype become unsigned keys of the same order, so one sort serves all
   dtypes. NaN is the largest. Equal elements keep their order. */
#include "ops/scan/order.h"
#include "ops/scan/scan.h"
#include "gpu/shaders.h"

typedef struct item {
    uint64_t key;
    int64_t index;
} item;

/* The bits of a float as an unsigned key: negative numbers reversed, -0 like 0, NaN above all others. */
static inline uint64_t float_key(uint64_t bits, uint64_t sign, bool zero, bool nan)
{
    if (zero) bits = 0;
    return nan ? UINT64_MAX : bits & sign ? ~bits & (sign | (sign - 1)) : bits | sign;
}

static inline uint64_t key_of(cn_dtype t, const void *x, int64_t i)
{
    switch (t) {
    case CN_BOOL:
    case CN_U8: return ((const uint8_t *)x)[i];
    case CN_I8: return (uint64_t)(((const int8_t *)x)[i] + 128);
    case CN_I16: return (uint64_t)(((const int16_t *)x)[i] + 32768);
    case CN_I32: return (uint64_t)((const int32_t *)x)[i] + (UINT64_C(1) << 31);
    case CN_I64: return (uint64_t)((const int64_t *)x)[i] ^ UINT64_C(1) << 63;
    case CN_F32: {
        float f = ((const float *)x)[i];
        return float_key(cn__bits_of_f32(f), UINT64_C(1) << 31, f == 0, f != f);
    }
    default: {
        double f = ((const double *)x)[i];
        uint64_t bits;
        memcpy(&bits, &f, sizeof bits);
        return float_key(bits, UINT64_C(1) << 63, f == 0, f != f);
    }
    }
}

static void copy_element(size_t size, void *to, int64_t i, const void *from, int64_t j)
{
    if (size == 1) ((uint8_t *)to)[i] = ((const uint8_t *)from)[j];
    else if (size == 2) ((uint16_t *)to)[i] = ((const uint16_t *)from)[j];
    else if (size == 4) ((uint32_t *)to)[i] = ((const uint32_t *)from)[j];
    else ((uint64_t *)to)[i] = ((const uint64_t *)from)[j];
}

static void insertion_sort(item *a, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        item x = a[i];
        int64_t j = i;
        for (; j > 0 && a[j - 1].key > x.key; j--) a[j] = a[j - 1];
        a[j] = x;
    }
}

/* Radix sort by the bytes of the key, lowest first. A byte that all keys share is skipped. Returns a or b, whichever
   has the result. */
static item *radix_sort(item *a, item *b, int64_t n)
{
    uint64_t differ = 0;
    for (int64_t i = 1; i < n; i++) differ |= a[i].key ^ a[0].key;
    for (int shift = 0; shift < 64; shift += 8) {
        if (!(differ >> shift & 255)) continue;
        int64_t place[256] = {0}, before = 0;
        for (int64_t i = 0; i < n; i++) place[a[i].key >> shift & 255]++;
        for (int v = 0; v < 256; v++) {
            int64_t count = place[v];
            place[v] = before;
            before += count;
        }
        for (int64_t i = 0; i < n; i++) b[place[a[i].key >> shift & 255]++] = a[i];
        item *t = a;
        a = b;
        b = t;
    }
    return a;
}

static item *sorted(item *a, item *b, int64_t n)
{
    if (n > 64) return radix_sort(a, b, n);
    insertion_sort(a, n);
    return a;
}

static bool later(item a, item b) { return a.key != b.key ? a.key > b.key : a.index > b.index; }

/* Restores the heap h[0], .., h[n - 1], whose top is the item latest in order, after h[i] changed. */
static void sift(item *h, int64_t i, int64_t n)
{
    item x = h[i];
    for (int64_t c; (c = 2 * i + 1) < n; i = c) {
        if (c + 1 < n && later(h[c + 1], h[c])) c++;
        if (!later(h[c], x)) break;
        h[i] = h[c];
    }
    h[i] = x;
}

typedef struct job {
    cn__lines lines; /* of the operand */
    int64_t k;       /* number of wanted elements; sort: n */
    size_t room;     /* items of scratch for each thread */
    bool flip;       /* descending */
} job;

/* Writes the first k items of a line to h, in order. A heap holds the best k so far; a later equal item never enters.
   */
static const item *select_first(const job *j, cn_dtype t, const void *x, int64_t at, item *h)
{
    uint64_t flip = j->flip ? UINT64_MAX : 0;
    for (int64_t i = 0; i < j->k; i++) h[i] = (item){key_of(t, x, at + i * j->lines.inner) ^ flip, i};
    for (int64_t i = j->k / 2 - 1; i >= 0; i--) sift(h, i, j->k);
    for (int64_t i = j->k; i < j->lines.n; i++) {
        uint64_t key = key_of(t, x, at + i * j->lines.inner) ^ flip;
        if (key >= h[0].key) continue;
        h[0] = (item){key, i};
        sift(h, 0, j->k);
    }
    for (int64_t last = j->k - 1; last > 0; last--) {
        item top = h[0];
        h[0] = h[last];
        h[last] = top;
        sift(h, 0, last);
    }
    return h;
}

static const item *sort_line(const job *j, cn_dtype t, const void *x, int64_t at, item *a)
{
    uint64_t flip = j->flip ? UINT64_MAX : 0;
    int64_t n = j->lines.n;
    for (int64_t i = 0; i < n; i++) a[i] = (item){key_of(t, x, at + i * j->lines.inner) ^ flip, i};
    return sorted(a, a + n, n);
}

static void lines(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    const job *j = user;
    const cn_array *x = &k->in[0];
    int64_t inner = j->lines.inner;
    size_t size = cn_dtype_size(x->dtype);
    item *scratch = (item *)k->scratch + (size_t)thread * j->room;
    for (int64_t u = begin; u < end; u++) {
        int64_t from = u / inner * j->lines.n * inner + u % inner, to = u / inner * j->k * inner + u % inner;
        const item *first = j->k < j->lines.n ? select_first(j, x->dtype, x->data, from, scratch)
                                              : sort_line(j, x->dtype, x->data, from, scratch);
        for (int64_t i = 0; i < j->k; i++) {
            copy_element(size, k->out[0].data, to + i * inner, x->data, from + first[i].index * inner);
            ((int64_t *)k->out[1].data)[to + i * inner] = first[i].index;
        }
    }
}

/* A whole line is sorted between two halves of scratch; a few items are selected with a heap. */
static size_t room(int64_t n, int64_t k) { return (size_t)(k < n ? k : 2 * n); }

static void run(const cn_kernel *kernel, int64_t axis, int64_t k, bool flip)
{
    if (kernel->out[0].numel == 0) return;
    cn__lines l = cn__lines_of(&kernel->in[0], axis);
    job j = {l, k < 0 ? l.n : k, room(l.n, k < 0 ? l.n : k), flip};
    cn_parallel(kernel, l.outer * l.inner, cn__grain(l.n * 8), lines, &j);
}

static void sort_cpu(const cn_kernel *k)
{
    const cn__sort_attrs *a = k->attrs;
    run(k, a->axis, -1, a->descending);
}

static size_t sort_scratch(const cn_kernel *k, int threads)
{
    const cn__sort_attrs *a = k->attrs;
    int64_t n = cn__lines_of(&k->in[0], a->axis).n;
    return (size_t)threads * room(n, n) * sizeof(item);
}

static void topk_cpu(const cn_kernel *k)
{
    const cn__topk_attrs *a = k->attrs;
    run(k, a->axis, k->in[0].ndim ? a->k : 1, a->largest);
}

static size_t topk_scratch(const cn_kernel *k, int threads)
{
    const cn__topk_attrs *a = k->attrs;
    return (size_t)threads * room(cn__lines_of(&k->in[0], a->axis).n, k->in[0].ndim ? a->k : 1) * sizeof(item);
}

/* ---- on the GPU: the same keys, of 32 bits ---- */

/* Parameters: elements after the axis, elements along it, wanted elements, the mask that reverses keys. */
static bool run_gpu(cn_gpu_call *c, int64_t axis, int64_t k, bool flip)
{
    cn__lines l = cn__lines_of(&c->in[0], axis);
    if (c->out[0].numel == 0) return true;
    int64_t wanted = k < 0 ? l.n : k;
    cn__order o = { .lines = l.outer * l.inner,
                    .n = l.n,
                    .keep = wanted < l.n ? wanted : 0,
                    .across = l.inner > 1,
                    .shader = cn__wgsl_sort,
                    .holes = { CN_GPU_TEXT("key", cn__gpu_key(c->in[0].dtype)) },
                    .stores = true,
                    .numbers = { l.inner, l.n, wanted, flip ? UINT32_MAX : 0 } };
    return cn__gpu_order(c, &o);
}

static bool sort_gpu(cn_gpu_call *c)
{
    const cn__sort_attrs *a = c->attrs;
    return run_gpu(c, a->axis, -1, a->descending);
}

static bool topk_gpu(cn_gpu_call *c)
{
    const cn__topk_attrs *a = c->attrs;
    return run_gpu(c, a->axis, c->in[0].ndim ? a->k : 1, a->largest);
}

static bool infer_topk(cn_infer *i)
{
    if (!cn__infer_scan(i)) return false;
    const cn__topk_attrs *a = i->attrs;
    const cn_layout *x = &i->in[0]->layout;
    int64_t n = x->ndim ? x->shape[a->axis] : 1;
    if (a->k < 0 || a->k > n)
        return cn_infer_fail(i, CN_BAD_ARGUMENT, "k must be 0 to %lld, the size of axis %lld, got %lld", (long long)n,
                             (long long)a->axis, (long long)a->k);
    if (x->ndim) i->out[0].layout.shape[a->axis] = i->out[1].layout.shape[a->axis] = a->k;
    return true;
}

static void grad(cn_grad_call *g) { g->in_grad[0] = cn__scatter_back(g, *(const int64_t *)g->attrs); }

const cn_op cn__op_sort = {
    .call = "sort(Tensor input, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    .name = "sort",
    .doc = "Sorts the elements along an axis; also returns their former indices. Stable; NaN is the largest.",
    .kind = CN_SORT, .n_in = 1, .n_out = 2, .dtypes = CN_NUMBERS | CN_BIT(CN_BOOL), .attr_size = sizeof(cn__sort_attrs),
    .infer = cn__infer_scan, .grad = grad, .cpu = sort_cpu, .scratch = sort_scratch, .gpu = sort_gpu,
    CN_CASES(
        {CN_IN(CN_DISTINCT(2, 3, 4)), .attrs = &(const cn__sort_attrs){1, 0}},
        {CN_IN(CN_DISTINCT(5, 7)), .attrs = &(const cn__sort_attrs){1, 1}},
        {CN_IN(CN_DISTINCT(3, 0, 2)), .attrs = &(const cn__sort_attrs){1, 0}},
        {CN_IN(CN_S0), .attrs = &(const cn__sort_attrs){0, 0}},
        {CN_IN(CN_DISTINCT(131, 17)), .attrs = &(const cn__sort_attrs){0, 1}},
        {CN_IN(CN_DISTINCT(2, 1500)), .attrs = &(const cn__sort_attrs){1, 0}}),
};

const cn_op cn__op_topk = {
    .call = "topk(Tensor input, int k, int dim=-1, bool largest=True) -> (Tensor values, Tensor indices)",
    .name = "topk", .doc = "The k largest (or smallest) elements along an axis in order, and their indices.",
    .kind = CN_SORT, .n_in = 1, .n_out = 2, .dtypes = CN_NUMBERS | CN_BIT(CN_BOOL), .attr_size = sizeof(cn__topk_attrs),
    .infer = infer_topk, .grad = grad, .cpu = topk_cpu, .scratch = topk_scratch, .gpu = topk_gpu,
    .onnx = "TopK",
    CN_CASES(
        {CN_IN(CN_DISTINCT(2, 5, 4)), .attrs = &(const cn__topk_attrs){1, 2, 1}},
        {CN_IN(CN_DISTINCT(5, 7)), .attrs = &(const cn__topk_attrs){1, 7, 0}},
        {CN_IN(CN_DISTINCT(4, 3)), .attrs = &(const cn__topk_attrs){0, 0, 1}},
        {CN_IN(CN_DISTINCT(3, 0, 2)), .attrs = &(const cn__topk_attrs){1, 0, 1}},
        {CN_IN(CN_S0), .attrs = &(const cn__topk_attrs){0, 1, 1}},
        {CN_IN(CN_DISTINCT(131, 17)), .attrs = &(const cn__topk_attrs){0, 20, 0}},
        {CN_IN(CN_DISTINCT(2, 1500)), .attrs = &(const cn__topk_attrs){1, 9, 1}}),
};

static cn_tensor *compose_argsort(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in, (void)args;
    const cn__sort_attrs *a = attrs;
    cn_tensor *indices;
    cn_sort(in[0], a->axis, a->descending, &indices);
    return indices;
}

const cn_op cn__op_argsort = {
    .call = "argsort(Tensor input, int dim=-1, bool descending=False) -> Tensor",
    .name = "argsort", .doc = "The indices that sort the elements along an axis.",
    .kind = CN_COMPOSITE, .n_in = 1, .n_out = 1, .dtypes = CN_NUMBERS | CN_BIT(CN_BOOL),
    .attr_size = sizeof(cn__sort_attrs), .no_grad = "an index does not change smoothly", .compose = compose_argsort,
    CN_CASES(
        {CN_IN(CN_DISTINCT(2, 3, 4)), .attrs = &(const cn__sort_attrs){1, 0}},
        {CN_IN(CN_DISTINCT(5, 7)), .attrs = &(const cn__sort_attrs){1, 1}},
        {CN_IN(CN_DISTINCT(3, 0, 2)), .attrs = &(const cn__sort_attrs){1, 0}},
        {CN_IN(CN_DISTINCT(131, 17)), .attrs = &(const cn__sort_attrs){0, 1}}),
};

cn_tensor *cn_sort(cn_tensor *x, int64_t axis, bool descending, cn_tensor **indices)
{
    if (indices) *indices = NULL;
    if (!cn__alive(x) || !cn__scan_axis("sort", x, &axis)) return NULL;
    cn_tensor *out[CN_MAX_OUT];
    if (!cn_apply_n(&cn__op_sort, &x, 1, &(cn__sort_attrs){axis, descending}, NULL, out)) return NULL;
    if (indices) *indices = out[1];
    return out[0];
}

cn_tensor *cn_argsort(cn_tensor *x, int64_t axis, bool descending)
{
    if (!cn__alive(x) || !cn__scan_axis("argsort", x, &axis)) return NULL;
    return cn_apply(&cn__op_argsort, &x, 1, &(cn__sort_attrs){axis, descending}, NULL);
}

cn_tensor *cn_topk(cn_tensor *x, int64_t k, int64_t axis, bool largest, cn_tensor **indices)
{
    if (indices) *indices = NULL;
    if (!cn__alive(x) || !cn__scan_axis("topk", x, &axis)) return NULL;
    cn_tensor *out[CN_MAX_OUT];
    if (!cn_apply_n(&cn__op_topk, &x, 1, &(cn__topk_attrs){axis, k, largest}, NULL, out)) return NULL;
    if (indices) *indices = out[1];
    return out[0];
}
