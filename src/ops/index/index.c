/* Functions that the operators which read and write by index share. */
#include "ops/index/index.h"
#include "gpu/shaders.h"

#include "cpu/isa.h"

bool cn__index_axis(const char *who, const cn_tensor *x, int64_t axis, cn__index_attrs *a)
{
    if (!cn__alive_in(x, who)) return false;
    int ndim = cn__layout(x)->ndim;
    a->axis = cn__axis(axis, ndim ? ndim : 1);
    if (a->axis >= 0) return true;
    return cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: dim must be from %d to %d for %d dimensions, got %lld", who,
                    ndim ? -ndim : -1, ndim ? ndim - 1 : 0, ndim, (long long)axis);
}

bool cn__index_value(const char *who, const cn_tensor *value, cn_dims to)
{
    const cn_layout *v = cn__layout(value);
    bool fine = v->ndim <= to.n;
    for (int d = 1; d <= v->ndim && fine; d++) {
        int64_t size = v->shape[v->ndim - d];
        fine = size == 1 || size == to.v[to.n - d];
    }
    if (fine) return true;
    cn_layout l = { .ndim = to.n };
    memcpy(l.shape, to.v, sizeof l.shape);
    char s[96], t[96];
    return cn__fail(value->ctx, CN_BAD_SHAPE, "%s: the value must broadcast to %s, got %s", who,
                    cn__shape_text(&l, t, sizeof t), cn__shape_text(v, s, sizeof s));
}

bool cn__broadcast(cn_ctx *ctx, const char *who, cn_dims x, cn_dims y, cn_dims *to)
{
    *to = x.n > y.n ? x : y;
    for (int d = 1; d <= to->n; d++) {
        int64_t p = d <= x.n ? x.v[x.n - d] : 1, q = d <= y.n ? y.v[y.n - d] : 1;
        to->v[to->n - d] = p == 1 ? q : p;
        if (p == q || p == 1 || q == 1) continue;
        cn_layout a = { .ndim = x.n }, b = { .ndim = y.n };
        memcpy(a.shape, x.v, sizeof a.shape);
        memcpy(b.shape, y.v, sizeof b.shape);
        char s[96], t[96];
        return cn__fail(ctx, CN_BAD_SHAPE, "%s: shapes must broadcast, got %s and %s", who,
                        cn__shape_text(&a, s, sizeof s), cn__shape_text(&b, t, sizeof t));
    }
    return true;
}

bool cn__infer_index(cn_infer *i, int k)
{
    cn_dtype t = i->in[k]->dtype;
    if (t == CN_I32 || t == CN_I64) return true;
    return cn_infer_fail(i, CN_BAD_DTYPE, "an index must be i32 or i64, got %s", cn_dtype_name(t));
}

cn_tensor *cn__zeros_for(const cn_grad_call *g, int k)
{
    return cn_zeros(g->ctx, cn_type(g->in[k]), cn_shape(g->in[k]));
}

cn__around cn__around_axis(int ndim, const int64_t *shape, int64_t axis)
{
    cn__around a = { 1, 1, 1 };
    for (int d = 0; d < ndim; d++) *(d < axis ? &a.outer : d > axis ? &a.inner : &a.n) *= shape[d];
    return a;
}

/* The sizes and row-major strides of an operand; a scalar has one axis of size 1. */
typedef struct sizes {
    int64_t shape[CN_MAX_DIMS], stride[CN_MAX_DIMS];
} sizes;

static sizes sizes_of(const cn_array *v)
{
    sizes s = { .shape = { 1 }, .stride = { 1 } };
    int64_t step = 1;
    for (int d = v->ndim - 1; d >= 0; d--) {
        s.shape[d] = v->shape[d];
        s.stride[d] = step;
        step *= v->shape[d];
    }
    return s;
}

static void side_of(cn__side *s, const sizes *index, const sizes *x, const sizes *source, int begin, int end)
{
    *s = (cn__side){ .n = 1, .numel = 1, .shape = { 1 } };
    bool first = true, same = true; /* same: the joined axes so far cover x and the source completely */
    for (int d = end - 1; d >= begin; d--) {
        if (first || !same) {
            int g = first ? 0 : s->n++;
            s->shape[g] = 1;
            s->x[g] = x->stride[d];
            s->source[g] = source->stride[d];
        }
        s->numel *= index->shape[d];
        s->shape[s->n - 1] *= index->shape[d];
        same = index->shape[d] == x->shape[d] && index->shape[d] == source->shape[d];
        first = false;
    }
}

void cn__space_of(cn__space *s, const cn_array *index, const cn_array *x, const cn_array *source, int64_t axis)
{
    sizes a = sizes_of(index), b = sizes_of(x), c = sizes_of(source);
    side_of(&s->outer, &a, &b, &c, 0, (int)axis);
    side_of(&s->inner, &a, &b, &c, (int)axis + 1, index->ndim);
    s->n = a.shape[axis];
    s->size = b.shape[axis];
    s->x_step = b.stride[axis];
    s->source_step = c.stride[axis];
}

void cn__side_offset(const cn__side *s, int64_t at, int64_t *x, int64_t *source)
{
    for (int g = 0; g < s->n && at; g++) {
        int64_t c = at % s->shape[g];
        at /= s->shape[g];
        *x += c * s->x[g];
        *source += c * s->source[g];
    }
}

const char *cn__gpu_side(cn_gpu_call *c, const char *name, const cn__side *s)
{
    const int first = cn_gpu_params(c);
    for (int g = 0; g < s->n; g++) {
        cn_gpu_param(c, s->shape[g]);
        cn_gpu_param(c, s->x[g]);
        cn_gpu_param(c, s->source[g]);
    }
    return cn_gpu_part(
        c, cn__wgsl_walk, "sides",
        CN_GPU_HOLES(CN_GPU_TEXT("name", name), CN_GPU_NUMBER("first", first), CN_GPU_NUMBER("axes", s->n)));
}

typedef struct copy {
    char *dst;
    const char *src;
} copy;

static void copy_part(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k, (void)thread;
    const copy *c = user;
    if (c->src) memcpy(c->dst + begin, c->src + begin, (size_t)(end - begin));
    else memset(c->dst + begin, 0, (size_t)(end - begin));
}

void cn__copy_all(const cn_kernel *k, void *dst, const void *src, int64_t bytes)
{
    cn_parallel(k, bytes, 1 << 18, copy_part, &(copy){ dst, src });
}

/* size: bytes of an element, a constant after inlining. For an index out of range the element is 0. */
CN__INLINE void pick(const cn_kernel *k, const cn__pick *p, const int64_t size)
{
    char *out = (char *)k->out[0].data + p->at * size;
    const char *x = (const char *)k->in[0].data + p->x * size;
    for (int64_t c = 0; c < p->count; c++) {
        const int64_t t = cn__index_at(&k->in[1], p->index + c);
        const bool fine = t >= 0 && t < p->size;
        if (!fine) cn_kernel_fault(k, t, p->size);
        if (fine) memcpy(out + c * size, x + (t * p->step + c * p->next) * size, (size_t)size);
        else memset(out + c * size, 0, (size_t)size);
    }
}

void cn__pick_run(const cn_kernel *k, const cn__pick *p)
{
    switch (cn_dtype_size(k->in[0].dtype)) {
    case 1: pick(k, p, 1); break;
    case 2: pick(k, p, 2); break;
    case 4: pick(k, p, 4); break;
    default: pick(k, p, 8);
    }
}
