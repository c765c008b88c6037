/* Containers (Sequential, ModuleList, Residual), and modules made of a function: Function, Flatten. */
#include <stdio.h>

#include "nn/nn.h"

/* ---- lists ---- */

static cn_tensor *sequential_forward(cn_module *m, cn_tensor *x)
{
    const int n = cn_module_children(m);
    for (int i = 0; i < n; i++) x = cn_forward(cn_module_at(m, i), x);
    return x;
}

static const cn_module_type sequential_type = { .name = "Sequential", .forward = sequential_forward };
static const cn_module_type list_type = { .name = "ModuleList" };

bool cn_module_append(cn_module *list, cn_module *child)
{
    CN__CALL call = cn__call_object(list ? list : child, &cn__module_type);
    if (!call.ctx || !cn__object_of(call.ctx, list, &cn__module_type, __func__) ||
        !cn__object_of(call.ctx, child, &cn__module_type, __func__))
        return false;
    const cn_module_type *type = cn_module_type_of(list);
    if (type != &sequential_type && type != &list_type)
        return cn__fail(cn_module_context(list), CN_BAD_ARGUMENT,
                        "module_append: the module must be a Sequential or a ModuleList, got a %s", type->name);
    char name[16];
    snprintf(name, sizeof name, "%d", cn_module_children(list));
    return cn_module_child(list, name, child) != NULL;
}

static cn_module *list_of(cn_ctx *ctx, const cn_module_type *type, cn_module *const *modules, int n, const char *who)
{
    CN__CALL call = cn__enter(ctx, who);
    if (!call.ctx) return NULL;
    if (n < 0 || (n > 0 && !modules)) {
        cn__fail(ctx, CN_BAD_ARGUMENT, n < 0 ? "%s: n must be ≥ 0, got %d" : "%s: modules must not be NULL, n is %d",
                 cn__called(ctx, who), n);
        return NULL;
    }
    cn_module *m = cn_module_new(ctx, type);
    bool ok = m != NULL;
    for (int i = 0; i < n; i++) {
        if (!modules[i] && m)
            cn__fail(ctx, CN_BAD_ARGUMENT, "%s: modules must not be NULL, but module %d of %d is", cn__called(ctx, who),
                     i, n);
        ok = cn_module_append(m, modules[i]) && ok;
    }
    if (ok || !m) return m;
    cn_module_free(m);
    return NULL;
}

cn_module *cn_nn_sequential_of(cn_ctx *ctx, cn_module *const *modules, int n)
{
    return list_of(ctx, &sequential_type, modules, n, "nn_sequential");
}

cn_module *cn_nn_list_of(cn_ctx *ctx, cn_module *const *modules, int n)
{
    return list_of(ctx, &list_type, modules, n, "nn_list");
}

/* ---- dicts, and lists of parameters ---- */

static const cn_module_type dict_type = { .name = "ModuleDict" };
static const cn_module_type parameter_list_type = { .name = "ParameterList" };
static const cn_module_type parameter_dict_type = { .name = "ParameterDict" };

/* A new holder of n members, or NULL with an error. */
static cn_module *holder(cn_ctx *ctx, const cn_module_type *type, const void *names, bool has_names,
                         const void *members, int n)
{
    if (n < 0 || (n > 0 && (!members || (has_names && !names)))) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: n must be ≥ 0 and the lists not NULL, got %d", type->name, n);
        return NULL;
    }
    return cn_module_new(ctx, type);
}

/* The module if all its members were added; else it is freed. */
static cn_module *filled(cn_module *m, bool ok)
{
    if (ok || !m) return m;
    cn_module_free(m);
    return NULL;
}

cn_module *cn_nn_dict(cn_ctx *ctx, const char *const *names, cn_module *const *modules, int n)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    cn_module *m = holder(ctx, &dict_type, names, true, modules, n);
    bool ok = true;
    for (int i = 0; i < n && m && ok; i++) ok = cn__object_of(ctx, modules[i], &cn__module_type, "ModuleDict");
    for (int i = 0; i < n && m && ok; i++) ok = cn_module_child(m, names[i], modules[i]) != NULL;
    return filled(m, ok);
}

static cn_module *parameters(cn_ctx *ctx, const cn_module_type *type, const char *const *names,
                             cn_tensor *const *values, int n)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    cn_module *m = holder(ctx, type, names, type == &parameter_dict_type, values, n);
    bool ok = true;
    for (int i = 0; i < n && m && ok; i++) ok = cn__of_context(ctx, values[i], type->name, "a value");
    for (int i = 0; i < n && m && ok; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        ok = cn_module_param(m, names ? names[i] : number, values[i]) != NULL;
    }
    return filled(m, ok);
}

cn_module *cn_nn_parameter_list(cn_ctx *ctx, cn_tensor *const *values, int n)
{
    return parameters(ctx, &parameter_list_type, NULL, values, n);
}

cn_module *cn_nn_parameter_dict(cn_ctx *ctx, const char *const *names, cn_tensor *const *values, int n)
{
    return parameters(ctx, &parameter_dict_type, names, values, n);
}

/* ---- residual ---- */

static cn_tensor *residual_forward(cn_module *m, cn_tensor *x) { return cn_add(x, cn_forward(cn_module_at(m, 0), x)); }
static const cn_module_type residual_type = { .name = "Residual", .forward = residual_forward };

cn_module *cn_nn_residual(cn_ctx *ctx, cn_module *inner)
{
    CN__CALL call = cn__enter(ctx ? ctx : cn_module_context(inner), NULL);
    if (!call.ctx || !cn__object_of(call.ctx, inner, &cn__module_type, "Residual")) return NULL;
    cn_module *m = cn_module_new(ctx, &residual_type);
    cn_module_child(m, "inner", inner);
    return cn_module_made(m);
}

/* ---- functions ---- */

typedef struct function {
    cn_tensor *(*fn)(cn_tensor *x);
} function;

static cn_tensor *function_forward(cn_module *m, cn_tensor *x) { return ((function *)cn_module_data(m))->fn(x); }
static const cn_module_type function_type = { .name = "Function",
                                              .forward = function_forward,
                                              .data_bytes = sizeof(function) };

cn_module *cn_nn_function(cn_ctx *ctx, cn_tensor *(*fn)(cn_tensor *x))
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (call.ctx && !fn) cn__fail(ctx, CN_BAD_ARGUMENT, "nn_function: fn must be a function, got NULL");
    if (!call.ctx || !fn) return NULL;
    cn_module *m = cn_module_new(ctx, &function_type);
    if (m) ((function *)cn_module_data(m))->fn = fn;
    return m;
}

typedef struct flatten {
    int64_t from, to;
} flatten;

static cn_tensor *flatten_forward(cn_module *m, cn_tensor *x)
{
    const flatten *f = cn_module_data(m);
    return cn_flatten(x, f->from, f->to);
}

static void flatten_describe(const cn_module *m, char *out, size_t size)
{
    const flatten *f = cn_module_data(m);
    snprintf(out, size, "axes %lld to %lld", (long long)f->from, (long long)f->to);
}

static const cn_module_type flatten_type = {
    .name = "Flatten", .forward = flatten_forward, .data_bytes = sizeof(flatten), .describe = flatten_describe
};

cn_module *cn_nn_flatten(cn_ctx *ctx, int64_t from, int64_t to)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    if (from < -CN_MAX_DIMS || from >= CN_MAX_DIMS || to < -CN_MAX_DIMS || to >= CN_MAX_DIMS) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "Flatten: axes must be from %d to %d, got %lld and %lld", -CN_MAX_DIMS,
                 CN_MAX_DIMS - 1, (long long)from, (long long)to);
        return NULL;
    }
    cn_module *m = cn_module_new(ctx, &flatten_type);
    if (m) *(flatten *)cn_module_data(m) = (flatten){ from, to };
    return m;
}
