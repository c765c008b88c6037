/* What rules use: inputs, results, attributes, numbers that are known. */
#include <stdarg.h>
#include <stdio.h>

#include "core/handle.h"
#include "onnx/rules.h"

bool(cn__onnx_wrong)(onnx_call *c, cn_code code, const char *message, ...)
{
    char text[400];
    va_list list;
    va_start(list, message);
    vsnprintf(text, sizeof text, message, list);
    va_end(list);
    return cn__fail(c->run->model->ctx, code, "%s", text);
}

/* ---- inputs and results ---- */

bool cn__onnx_has(const onnx_call *c, int i) { return i < c->n_in && c->in[i]->kind != ONNX_NOTHING; }

cn_tensor *cn__onnx_in(onnx_call *c, int i)
{
    onnx_model *m = c->run->model;
    if (!HAS(i)) return NULL;
    if (c->in[i]->kind != ONNX_TENSOR) {
        FAIL(CN_BAD_ARGUMENT, "input %d must be a tensor, got a sequence", i);
        return NULL;
    }
    return c->ctx == m->host ? c->in[i]->known->host : cn__onnx_data(m, c->in[i]);
}

bool cn__onnx_give(onnx_call *c, int i, cn_tensor *t)
{
    if (!t) return false;
    if (i >= c->n_out) return true;
    if (t->ctx != c->run->model->host) c->out[i] = (onnx_value){ .kind = ONNX_TENSOR, .data = t };
    else {
        onnx_known *k = cn__onnx_known_new(c->run, t);
        if (!k) return false;
        c->out[i] = (onnx_value){ .kind = ONNX_TENSOR, .known = k };
    }
    return true;
}

bool cn__onnx_give_value(onnx_call *c, int i, onnx_value v)
{
    if (i < c->n_out) c->out[i] = v;
    return true;
}

bool cn__onnx_wanted(const onnx_call *c, int i) { return i < c->n_out && c->node->to[i] >= 0; }

/* ---- attributes ---- */

static const onnx_attr *find(const onnx_attr *v, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(v[i].name, name)) return &v[i];
    return NULL;
}

/* An attribute that refers to one of the calling function is looked up in the call, then among the function's
   defaults. Graphs are not handed on like this: the names in them are those of the place where they stand. */
static const onnx_attr *attr_of(const onnx_node *node, const onnx_frame *f, const char *name)
{
    const onnx_attr *a = find(node->attr, node->n_attr, name);
    const bool own = a && !a->ref;
    while (a && a->ref) {
        const onnx_frame *function = f;
        while (function && !function->graph->defaults && function->outer) function = function->outer;
        if (!function || !function->caller) return NULL;
        const onnx_attr *passed = find(function->caller->attr, function->caller->n_attr, a->ref);
        f = function->caller_frame;
        a = passed ? passed : find(function->graph->defaults, function->graph->n_defaults, a->ref);
        if (!passed) break;
    }
    return a && a->g && !own ? NULL : a;
}

const onnx_attr *cn__onnx_attr(const onnx_call *c, const char *name) { return attr_of(c->node, c->frame, name); }

int64_t cn__onnx_int(const onnx_call *c, const char *name, int64_t usual)
{
    const onnx_attr *a = cn__onnx_attr(c, name);
    return a ? a->i : usual;
}

double cn__onnx_float(const onnx_call *c, const char *name, double usual)
{
    const onnx_attr *a = cn__onnx_attr(c, name);
    return a ? (double)a->f : usual;
}

const char *cn__onnx_string(const onnx_call *c, const char *name, const char *usual)
{
    const onnx_attr *a = cn__onnx_attr(c, name);
    return a ? a->s.v : usual;
}

static bool too_many(onnx_call *c, int64_t n)
{
    return FAIL(CN_UNSUPPORTED, "a list of %lld numbers is too long; at most %d are allowed", (long long)n,
                CN__ONNX_INTS);
}

bool cn__onnx_attr_ints(onnx_call *c, const char *name, onnx_ints *out)
{
    const onnx_attr *a = cn__onnx_attr(c, name);
    out->n = a ? a->n_ints : -1;
    if (out->n > CN__ONNX_INTS) return too_many(c, out->n);
    for (int i = 0; i < out->n; i++) out->v[i] = a->ints[i];
    return true;
}

/* ---- numbers of inputs ---- */

static cn_tensor *readable(onnx_call *c, int i)
{
    if (c->in[i]->kind != ONNX_TENSOR) {
        FAIL(CN_BAD_ARGUMENT, "input %d must be a tensor, got a sequence", i);
        return NULL;
    }
    cn_tensor *t = c->in[i]->known ? c->in[i]->known->host : c->in[i]->data;
    if (t && cn_numel(t) > CN__ONNX_INTS) return too_many(c, cn_numel(t)), NULL;
    return t;
}

bool cn__onnx_floats(onnx_call *c, int i, onnx_floats *out)
{
    out->n = -1;
    if (!HAS(i)) return true;
    cn_tensor *t = readable(c, i);
    if (!t) return false;
    out->n = (int)cn_numel(t);
    return cn_read_f64(t, out->v, out->n) || cn__onnx_checked(c->run->model);
}

bool cn__onnx_ints(onnx_call *c, int i, onnx_ints *out)
{
    out->n = -1;
    if (!HAS(i)) return true;
    cn_tensor *t = readable(c, i);
    if (!t) return false;
    if (cn_dtype_is_float(cn_type(t))) return FAIL(CN_BAD_DTYPE, "input %d must have whole numbers", i);
    out->n = (int)cn_numel(t);
    cn_scope s = cn_scope_begin(t->ctx);
    const bool ok = cn_read(cn_type(t) == CN_I64 ? t : cn_cast(t, CN_I64), out->v, sizeof *out->v * (size_t)out->n);
    cn_scope_end(t->ctx, s);
    return ok || cn__onnx_checked(c->run->model);
}

bool cn__onnx_ints_of(onnx_call *c, const char *name, int since, int i, onnx_ints *out)
{
    return c->version < since ? cn__onnx_attr_ints(c, name, out) : cn__onnx_ints(c, i, out);
}

/* ---- axes, shapes, types ---- */

int cn__onnx_axis(onnx_call *c, int64_t axis, int n)
{
    const int64_t a = axis < 0 ? axis + n : axis;
    if (a >= 0 && a < n) return (int)a;
    FAIL(CN_BAD_ARGUMENT, "axis must be in [%d, %d), got %lld", -n, n, (long long)axis);
    return -1;
}

bool cn__onnx_axes(onnx_call *c, const onnx_ints *v, int n, cn_dims *out)
{
    *out = CN_ALL;
    if (v->n <= 0) return true;
    if (v->n > CN_MAX_DIMS) return too_many(c, v->n);
    out->n = v->n;
    for (int i = 0; i < v->n; i++)
        if ((out->v[i] = cn__onnx_axis(c, v->v[i], n)) < 0) return false;
    return true;
}

bool cn__onnx_dims(onnx_call *c, const onnx_ints *v, cn_dims *out)
{
    *out = CN_SCALAR;
    if (v->n > CN_MAX_DIMS)
        return FAIL(CN_UNSUPPORTED, "a shape of %d axes; at most %d are allowed", v->n, CN_MAX_DIMS);
    for (out->n = 0; out->n < v->n; out->n++) out->v[out->n] = v->v[out->n];
    return true;
}

cn_tensor *cn__onnx_whole(onnx_call *c, const int64_t *v, int n) { return cn_from(c->ctx, CN_I64, CN_DIMS(n), v); }

cn_tensor *cn__onnx_real(onnx_call *c, cn_dtype dtype, cn_dims shape, const double *v)
{
    int64_t n = 1;
    for (int i = 0; i < shape.n; i++) n *= shape.v[i];
    if (dtype == CN_F64) return cn_from(c->ctx, CN_F64, shape, v);
    float *copy = cn__onnx_run_new(c->run, (size_t)n, sizeof *copy);
    if (!copy) return NULL;
    for (int64_t i = 0; i < n; i++) copy[i] = (float)v[i];
    cn_tensor *t = cn_from(c->ctx, CN_F32, shape, copy);
    return dtype == CN_F32 ? t : cn_cast(t, dtype);
}

bool cn__onnx_cast_to(onnx_call *c, int64_t type, cn_dtype *out)
{
    if (type >= 0 && type < 1000 && cn__onnx_dtype((int)type, out)) return true;
    return FAIL(CN_UNSUPPORTED, "elements %s (%lld) are not supported",
                type >= 0 && type < 1000 ? cn__onnx_type_name((int)type) : "of an unknown type", (long long)type);
}

cn_tensor *cn__onnx_wide(cn_tensor *x)
{
    if (!x) return NULL;
    const cn_dtype t = cn_type(x);
    return t == CN_F32 || t == CN_F64 ? x : cn_cast(x, CN_F32);
}
