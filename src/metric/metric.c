/* What all metrics share: updates that stay on the device, values that are read back, reset. */
#include <math.h>
#include <stdio.h>

#include "core/host.h"
#include "metric/metric.h"

enum { CARRY = 64 }; /* updates */

static void forget(cn_metric *m)
{
    cn_tensor **seen = m->seen.v;
    for (size_t i = 0; i < m->seen.n; i++) cn__release(seen[i]);
    cn__vec_free(&m->object.ctx->memory, &m->seen, sizeof *seen);
    m->seen = (cn__vec){ 0 };
    cn__release(m->state);
    m->state = NULL;
    m->carried[0] = m->carried[1] = 0;
}

static void destroy(void *self) { forget(self); }

static const cn__object_type metric_type = { "metric", destroy };

cn_metric *cn__metric_new(cn_ctx *ctx, const cn__metric_kind *kind, const cn_metric_desc *desc)
{
    CN__CALL call = cn__enter(ctx, kind->name);
    if (!call.ctx) return NULL;
    cn_metric_desc d = desc ? *desc : (cn_metric_desc){ 0 };
    if (d.classes < 0 || d.classes == 1 || d.classes > 1 << 20) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: classes must be 0 (binary) or 2 to 2^20, got %lld", kind->name,
                 (long long)d.classes);
        return NULL;
    }
    if ((unsigned)d.average > CN_PER_CLASS || (d.average == CN_PER_CLASS && !d.classes)) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: average must be 0 to %d, and only classes have values of their own; got %d",
                 kind->name, CN_PER_CLASS, (int)d.average);
        return NULL;
    }
    if (!d.top_k) d.top_k = 1;
    if (d.top_k < 1 || (d.top_k > 1 && d.top_k >= d.classes)) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: top_k must be ≥ 1 and below classes, got %lld of %lld", kind->name,
                 (long long)d.top_k, (long long)d.classes);
        return NULL;
    }
    if (!isfinite(d.threshold)) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: threshold must be finite, got %g", kind->name, d.threshold);
        return NULL;
    }
    if (d.threshold == 0) d.threshold = 0.5;
    if (!d.has_ignore) d.ignore_index = -100;
    cn_metric *m = cn__object_new(ctx, sizeof *m, &metric_type);
    if (!m) return NULL;
    m->kind = kind;
    m->desc = d;
    m->count = 1;
    return m;
}

void cn_metric_free(cn_metric *m) { cn__free_by_program(m, &metric_type, __func__); }
int64_t cn_metric_count(const cn_metric *m) { return cn__is(m, &metric_type) ? m->count : 0; }

bool cn_metric_reset(cn_metric *m)
{
    CN__CALL call = cn__call_object(m, &metric_type);
    if (!call.ctx) return false;
    forget(m);
    return true;
}

/* ---- operands */

bool cn__metric_is_ignored(const cn_metric *m, double target) { return target == (double)m->desc.ignore_index; }

cn_tensor *cn__metric_counts(const cn_metric *m, cn_tensor *targets)
{
    return cn_ne_s(targets, (double)m->desc.ignore_index);
}

bool cn__metric_whole(const cn_metric *m, cn_tensor *targets)
{
    return !cn_dtype_is_float(cn_type(targets)) ||
           cn__fail(m->object.ctx, CN_BAD_DTYPE, "metric_update: targets must be whole numbers, got %s",
                    cn_dtype_name(cn_type(targets)));
}

static const char *shape_text(cn_dims s, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "(");
    for (int i = 0; i < s.n && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, i ? ",%lld" : "%lld", (long long)s.v[i]);
    if (n < size) snprintf(out + n, size - n, ")");
    return out;
}

static bool refuse_shapes(const cn_metric *m, cn_tensor *predictions, cn_tensor *targets, const char *rule)
{
    char p[200], t[200];
    return cn__fail(m->object.ctx, CN_BAD_SHAPE, "metric_update: %s; got predictions %s and targets %s", rule,
                    shape_text(cn_shape(predictions), p, sizeof p), shape_text(cn_shape(targets), t, sizeof t));
}

bool cn__metric_same_shape(const cn_metric *m, cn_tensor *predictions, cn_tensor *targets)
{
    const cn_dims p = cn_shape(predictions), t = cn_shape(targets);
    if (p.n == t.n && !memcmp(p.v, t.v, (size_t)p.n * sizeof *p.v)) return true;
    return refuse_shapes(m, predictions, targets, "predictions and targets must have one shape");
}

cn_tensor *cn__metric_scores(const cn_metric *m, cn_tensor *predictions, cn_tensor *targets)
{
    const cn_dims p = cn_shape(predictions), t = cn_shape(targets);
    bool fits = p.n == t.n + 1 && t.n >= 1 && p.v[0] == t.v[0] && p.v[1] == m->desc.classes;
    for (int i = 1; i < t.n && fits; i++) fits = p.v[i + 1] == t.v[i];
    if (!fits || !cn_dtype_is_float(cn_type(predictions))) {
        refuse_shapes(m, predictions, targets,
                      "predictions must be scores (N, classes, ...) in floating point, or classes in the shape of "
                      "targets (N, ...)");
        return NULL;
    }
    return cn_reshape(cn_movedim(predictions, CN_DIMS(1), CN_DIMS(-1)), CN_DIMS(-1, m->desc.classes));
}

/* ---- update and value */

/* What the last update left pending is computed first: a loop that reads nothing holds one batch, not all of them. */
static bool finish_last(cn_metric *m)
{
    cn_tensor **seen = m->seen.v;
    for (size_t i = m->seen.n >= 2 ? m->seen.n - 2 : 0; i < m->seen.n; i++)
        if (!cn_eval(seen[i])) return false;
    return !m->state || cn_eval(m->state);
}

/* A GPU adds in f32, which rounds sums of many batches. So now and then its sums are read and added up here. */
static bool carry(cn_metric *m)
{
    double sum[2];
    if (m->dtype != CN_F64 || ++m->updates % CARRY || cn__host_device(m->object.ctx)) return true;
    if (!cn_read_f64(m->state, sum, 2) || !cn_assign(m->state, cn_zeros(m->object.ctx, m->dtype, m->shape)))
        return false;
    for (int i = 0; i < 2; i++) m->carried[i] += sum[i];
    return true;
}

static bool update(cn_metric *m, cn_tensor *predictions, cn_tensor *targets)
{
    cn_ctx *ctx = m->object.ctx;
    if (!finish_last(m)) return false;
    if (!m->state && m->shape.n) m->state = cn__keep(cn_zeros(ctx, m->dtype, m->shape));
    if (!m->state && m->shape.n) return false;
    if (!carry(m)) return false;
    cn_tensor *state = m->kind->update(m, predictions, targets);
    return m->shape.n ? state && cn_assign(m->state, state) : state != NULL;
}

bool cn_metric_update(cn_metric *m, cn_tensor *predictions, cn_tensor *targets)
{
    CN__CALL call = cn__enter(m ? m->object.ctx : predictions ? predictions->ctx : NULL, __func__);
    cn_ctx *ctx = call.ctx;
    if (!ctx || !cn__object_of(ctx, m, &metric_type, __func__) || cn_failed(ctx)) return false;
    if (!cn__of_context(ctx, predictions, __func__, "predictions")) return false;
    if ((targets || !m->kind->optional_targets) && !cn__of_context(ctx, targets, __func__, "targets")) return false;
    if (cn_numel(predictions) == 0) return true;
    cn_scope s = cn_scope_begin(ctx);
    cn_no_grad_begin(ctx);
    const bool ok = update(m, predictions, targets);
    cn_no_grad_end(ctx);
    cn_scope_end(ctx, s);
    return ok;
}

/* Values of the metric into out (count). */
static bool read_values(cn_metric *m, const char *who, double *out)
{
    cn_ctx *ctx = m->object.ctx;
    int64_t n = m->state ? cn_numel(m->state) : 0;
    double *state = cn__alloc(ctx, (size_t)n * sizeof *state);
    bool ok = (m->state || m->seen.n) && (state || !n);
    if (ok && n) ok = cn_read_f64(m->state, state, n);
    if (ok) ok = m->kind->values(m, state, out);
    cn__free(ctx, state, (size_t)n * sizeof *state);
    if (!ok && !cn_failed(ctx))
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: nothing was seen: cn_metric_update comes first", who);
    return ok;
}

double cn_metric_value(cn_metric *m)
{
    double value = NAN;
    CN__CALL call = cn__call_object(m, &metric_type);
    if (!call.ctx || cn_failed(call.ctx)) return NAN;
    if (m->count == 1) return read_values(m, "metric_value", &value) ? value : (double)NAN;
    cn__fail(call.ctx, CN_BAD_ARGUMENT, "metric_value: the metric has %lld values: cn_metric_values reads them",
             (long long)m->count);
    return NAN;
}

bool cn_metric_values(cn_metric *m, double *out, int64_t count)
{
    CN__CALL call = cn__call_object(m, &metric_type);
    if (!call.ctx || cn_failed(call.ctx)) return false;
    if (!out || count != m->count)
        return cn__fail(call.ctx, CN_BAD_ARGUMENT, "metric_values: out must have room for %lld values, got %s%lld",
                        (long long)m->count, out ? "" : "NULL and ", (long long)count);
    return read_values(m, "metric_values", out);
}
