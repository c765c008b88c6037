/* Saves a module's state to a dict and loads it. Loading checks all values before it assigns the first. */
#include <stdio.h>

#include "core/layout.h"
#include "nn/module.h"

bool cn__same_name(void *user, const char *name, char *out, size_t size)
{
    (void)user;
    snprintf(out, size, "%s", name);
    return true;
}

bool cn_module_save(cn_module *m, cn_dict *d, const char *prefix)
{
    CN__CALL call = cn__call_object(m, &cn__module_type);
    if (!m && d) cn__object_of(cn_dict_context(d), m, &cn__module_type, __func__);
    if (!call.ctx || !cn__object_of(call.ctx, d, &cn__dict_type, __func__)) return false;
    cn_named_list named = cn_module_named(m);
    for (int i = 0; i < named.n; i++) {
        char name[512];
        int n = snprintf(name, sizeof name, "%s%s", prefix ? prefix : "", named.v[i].name);
        if (n >= (int)sizeof name)
            return cn__fail(m->object.ctx, CN_BAD_ARGUMENT,
                            "module_save: a name with its prefix must be shorter than %zu bytes, got %d", sizeof name,
                            n);
        if (!cn_dict_set(d, name, named.v[i].tensor)) return false;
    }
    return !cn_failed(m->object.ctx);
}

/* The dict's value for a parameter or buffer. NULL if the dict has none: an error, unless lenient. */
static cn_tensor *value_for(cn_module *m, const cn_dict *d, const cn_module_load_desc *desc, const cn_named *to)
{
    char name[512], renamed[400];
    const char *own = to->name;
    if (desc->rename) {
        cn__outside out = cn__go_out(m->object.ctx);
        const bool has = desc->rename(desc->user, to->name, renamed, sizeof renamed);
        cn__come_back(m->object.ctx, out);
        if (!has) return NULL;
        renamed[sizeof renamed - 1] = 0;
        own = renamed;
    }
    snprintf(name, sizeof name, "%s%s", desc->prefix ? desc->prefix : "", own);
    cn_tensor *from = cn_dict_get(d, name);
    if (!from) {
        if (!desc->lenient) cn__fail(m->object.ctx, CN_NOT_FOUND, "module_load: the dict has no \"%s\"", name);
        return NULL;
    }
    cn_dims a = cn_shape(from), b = cn_shape(to->tensor);
    if (a.n == b.n && memcmp(a.v, b.v, (size_t)a.n * sizeof *a.v) == 0) return from;
    char from_text[128], to_text[128];
    cn__shape_text(&cn__result_of(from)->meta->layout, from_text, sizeof from_text);
    cn__shape_text(&cn__result_of(to->tensor)->meta->layout, to_text, sizeof to_text);
    cn__fail(m->object.ctx, CN_BAD_SHAPE, "module_load: \"%s\" must be %s, as in the module, got %s from the dict",
             name, to_text, from_text);
    return NULL;
}

/* Fails if the dict has a name with this prefix that the module does not have. used: the names that were found. */
static bool all_used(cn_module *m, const cn_dict *d, const char *prefix, int64_t used)
{
    int64_t n = 0;
    const size_t length = prefix ? strlen(prefix) : 0;
    for (int64_t i = 0; i < cn_dict_count(d); i++) n += strncmp(cn_dict_name(d, i), prefix ? prefix : "", length) == 0;
    if (n <= used) return true;
    for (int64_t i = 0; i < cn_dict_count(d); i++) {
        const char *name = cn_dict_name(d, i);
        if (strncmp(name, prefix ? prefix : "", length) == 0 && !cn_module_get(m, name + length))
            return cn__fail(m->object.ctx, CN_NOT_FOUND,
                            "module_load: the dict has \"%s\", which this %s does not have", name, m->type->name);
    }
    return true;
}

static bool load_all(cn_module *m, const cn_dict *d, const cn_module_load_desc *desc, cn_named_list named,
                     cn_tensor **to, cn_tensor **value)
{
    int n = 0;
    for (int i = 0; i < named.n; i++) {
        cn_tensor *v = value_for(m, d, desc, &named.v[i]);
        if (cn_failed(m->object.ctx)) return false;
        if (!v) continue;
        to[n] = named.v[i].tensor;
        value[n++] = v;
    }
    if (!desc->lenient && !desc->rename && !all_used(m, d, desc->prefix, n)) return false;
    cn_no_grad_begin(m->object.ctx);
    bool ok = cn__assign_all(m->object.ctx, to, value, n) && cn_eval_all(m->object.ctx);
    cn_no_grad_end(m->object.ctx);
    return ok;
}

static bool load(cn_module *m, const cn_dict *d, const cn_module_load_desc *desc)
{
    cn_ctx *ctx = m->object.ctx;
    cn_named_list named = cn_module_named(m);
    cn__vec list = m->named; /* desc->rename may ask for the module's list again */
    cn__bump names = m->names;
    m->named = (cn__vec){ 0 };
    m->names = (cn__bump){ 0 };
    const size_t bytes = (size_t)named.n * 2 * sizeof(cn_tensor *);
    cn_tensor **room = cn__alloc(ctx, bytes);
    bool ok = named.n == 0 && !cn_failed(ctx);
    if (room) {
        cn_scope s = cn_scope_begin(ctx);
        ok = load_all(m, d, desc ? desc : &(const cn_module_load_desc){ 0 }, named, room, room + named.n);
        cn_scope_end(ctx, s);
    }
    cn__free(ctx, room, bytes);
    cn__vec_free(&ctx->memory, &list, sizeof(cn_named));
    cn__bump_free(&ctx->memory, &names);
    return ok;
}

/* desc->rename may free either. */
bool cn_module_load(cn_module *m, const cn_dict *d, const cn_module_load_desc *desc)
{
    CN__CALL call = cn__call_object(m, &cn__module_type);
    if (!m && d) cn__object_of(cn_dict_context(d), m, &cn__module_type, __func__);
    if (!call.ctx || !cn__object_of(call.ctx, d, &cn__dict_type, __func__) || cn_failed(m->object.ctx)) return false;
    CN__USE module = cn__object_use(m);
    CN__USE dict = cn__object_use((cn_dict *)d);
    return load(m, d, desc);
}
