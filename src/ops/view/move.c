/* Copies elements between strided memory: axes are merged where possible, and threads share the rows. */
#include "ops/view/move.h"
#include "gpu/shaders.h"

#include <string.h>

static inline __attribute__((always_inline)) void carry(char *to, int64_t to_step, const char *from, int64_t from_step,
                                                        int64_t n, size_t bytes)
{
    for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, bytes);
}

void cn__move_row(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n, int64_t bytes)
{
    int64_t ts = to_stride * bytes, fs = from_stride * bytes;
    if (n <= 0) return;
    if (to_stride == 1 && from_stride == 1) {
        memcpy(to, from, (size_t)(n * bytes));
        return;
    }
    switch (bytes) { /* in each call the compiler knows the size */
    case 1: carry(to, ts, from, fs, n, 1); break;
    case 2: carry(to, ts, from, fs, n, 2); break;
    case 4: carry(to, ts, from, fs, n, 4); break;
    case 8: carry(to, ts, from, fs, n, 8); break;
    }
}

/* Removes axes of size 1, and merges neighbouring axes that are evenly spaced on both sides, so that rows are long. */
static cn__move merged(const cn__move *m)
{
    cn__move r = *m;
    r.ndim = 0;
    for (int d = 0; d < m->ndim; d++) {
        int64_t n = m->shape[d], ts = m->to_stride[d], fs = m->from_stride[d];
        if (n == 1) continue;
        int last = r.ndim - 1;
        if (last >= 0 && r.to_stride[last] == ts * n && r.from_stride[last] == fs * n) {
            r.shape[last] *= n;
        } else {
            last = r.ndim++;
            r.shape[last] = n;
        }
        r.to_stride[last] = ts;
        r.from_stride[last] = fs;
    }
    if (r.ndim == 0) {
        r.ndim = 1;
        r.shape[0] = r.to_stride[0] = r.from_stride[0] = 1;
    }
    return r;
}

static void span(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k, (void)thread;
    const cn__move *m = user;
    int last = m->ndim - 1;
    int64_t at[CN_MAX_DIMS], to = 0, from = 0, rest = begin;
    for (int d = last; d >= 0; d--) {
        at[d] = rest % m->shape[d];
        rest /= m->shape[d];
        to += at[d] * m->to_stride[d];
        from += at[d] * m->from_stride[d];
    }
    while (begin < end) {
        int64_t n = m->shape[last] - at[last];
        if (n > end - begin) n = end - begin;
        m->row(m->to + to * m->bytes, m->to_stride[last], m->from + from * m->bytes, m->from_stride[last], n, m->bytes);
        begin += n;
        to -= at[last] * m->to_stride[last]; /* back to the start of the row, then to the next row */
        from -= at[last] * m->from_stride[last];
        at[last] = 0;
        for (int d = last - 1; d >= 0; d--) {
            to += m->to_stride[d];
            from += m->from_stride[d];
            if (++at[d] < m->shape[d]) break;
            to -= m->to_stride[d] * m->shape[d];
            from -= m->from_stride[d] * m->shape[d];
            at[d] = 0;
        }
    }
}

void cn__move_run(const cn_kernel *k, const cn__move *m)
{
    int64_t n = 1;
    for (int d = 0; d < m->ndim; d++) n *= m->shape[d];
    if (n == 0) return;
    cn__move r = merged(m);
    cn_parallel(k, n, CN__MOVE_GRAIN, span, &r);
}

cn__move cn__move_of(const cn_kernel *k, int operand)
{
    cn__move m = { .to = k->out[0].data,
                   .from = k->in[operand].data,
                   .row = cn__move_row,
                   .ndim = k->in[operand].ndim,
                   .bytes = (int64_t)cn_dtype_size(k->out[0].dtype) };
    for (int d = 0; d < m.ndim; d++) {
        m.shape[d] = k->in[operand].shape[d];
        m.from_stride[d] = k->in[operand].stride[d];
        m.to_stride[d] = k->out[0].stride[d];
    }
    return m;
}

void cn__move_along(cn__move *m, int axis, int64_t by) { m->to += by * m->to_stride[axis] * m->bytes; }

static void zero(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k, (void)thread;
    memset((char *)user + begin, 0, (size_t)(end - begin));
}

void cn__zero_result(const cn_kernel *k)
{
    int64_t bytes = k->out[0].numel * (int64_t)cn_dtype_size(k->out[0].dtype);
    if (bytes) cn_parallel(k, bytes, 16 * CN__MOVE_GRAIN, zero, k->out[0].data);
}

/* ---- on the GPU ---- */

const char *cn__gpu_walk(cn_gpu_call *c, const char *name, int ndim, const int64_t *shape, const int64_t *stride)
{
    cn__move m = { .ndim = ndim };
    memcpy(m.shape, shape, sizeof *shape * (size_t)ndim);
    memcpy(m.to_stride, stride, sizeof *stride * (size_t)ndim);
    memcpy(m.from_stride, stride, sizeof *stride * (size_t)ndim);
    m = merged(&m);
    if (m.ndim == 1 && m.to_stride[0] == 1)
        return cn_gpu_part(c, cn__wgsl_walk, "same", CN_GPU_HOLES(CN_GPU_TEXT("name", name)));
    const int first = cn_gpu_params(c);
    for (int d = m.ndim - 1; d > 0; d--) {
        cn_gpu_param(c, m.shape[d]);
        cn_gpu_param(c, m.to_stride[d]);
    }
    cn_gpu_param(c, m.to_stride[0]);
    return cn_gpu_part(c, cn__wgsl_walk, "walk",
                       CN_GPU_HOLES(CN_GPU_TEXT("name", name), CN_GPU_NUMBER("first", first),
                                    CN_GPU_NUMBER("axes", m.ndim - 1)));
}

const char *cn__gpu_walk_array(cn_gpu_call *c, const char *name, const cn_array *x)
{
    return cn__gpu_walk(c, name, x->ndim, x->shape, x->stride);
}
