/* Modules: a tree of named parameters, buffers and children, and the functions that walk it. */
#include <stdarg.h>
#include <stdio.h>

#include "nn/module.h"

static slot *slot_at(const cn__vec *v, size_t i) { return (slot *)v->v + i; }

/* ---- making and freeing ---- */

static void destroy(void *self)
{
    cn_module *m = self;
    cn_ctx *ctx = m->object.ctx;
    cn__outside out = cn__go_out(ctx);
    if (m->type->destroy) m->type->destroy(m);
    cn__come_back(ctx, out);
    cn__hooks_free(m);
    for (size_t i = 0; i < m->slots.n; i++) {
        slot *s = slot_at(&m->slots, i);
        cn__free_text(ctx, s->name);
        cn__release(s->tensor);
        cn__object_free(s->child);
    }
    cn__vec_free(&ctx->memory, &m->slots, sizeof(slot));
    cn__names_free(&ctx->memory, &m->slot_names);
    cn__vec_free(&ctx->memory, &m->children, sizeof(cn_module *));
    cn__vec_free(&ctx->memory, &m->params, sizeof(cn_tensor *));
    cn__vec_free(&ctx->memory, &m->named, sizeof(cn_named));
    cn__bump_free(&ctx->memory, &m->names);
    cn__free(ctx, m->data, m->type->data_bytes);
}

const cn__object_type cn__module_type = { "module", destroy };

cn_module *cn_module_new(cn_ctx *ctx, const cn_module_type *type)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (!type || !type->name) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "module_new: the type must %s", type ? "have a name" : "not be NULL");
        return NULL;
    }
    cn_module *m = cn__object_new(ctx, sizeof *m, &cn__module_type);
    if (!m) return NULL;
    m->type = type;
    m->training = true;
    m->slot_names.key = &ctx->hash_key;
    m->data = cn__alloc(ctx, type->data_bytes);
    if (m->data || type->data_bytes == 0) return m;
    m->type = &(const cn_module_type){ 0 };
    cn__object_free(m);
    return NULL;
}

void cn_module_free(cn_module *m) { cn__free_by_program(m, &cn__module_type, __func__); }

cn_module *cn_module_made(cn_module *m)
{
    CN__CALL call = cn__call_object(m, &cn__module_type);
    if (!call.ctx) return NULL;
    if (!cn_failed(m->object.ctx)) return m;
    cn_module_free(m);
    return NULL;
}

/* A module's own functions, and its destroy, may ask for these also when the module was freed but still exists. */
static bool exists(const cn_module *m, const char *who)
{
    return m && (m->object.type == &cn__module_type || cn__object_unfit(m, &cn__module_type, who));
}

void *cn_module_data(const cn_module *m) { return exists(m, __func__) ? m->data : NULL; }
const cn_module_type *cn_module_type_of(const cn_module *m) { return exists(m, __func__) ? m->type : NULL; }
cn_ctx *cn_module_context(const cn_module *m) { return exists(m, __func__) ? m->object.ctx : NULL; }

/* ---- slots ---- */

static slot *find_slot(const cn_module *m, const char *name, size_t n)
{
    int64_t i = cn__names_find(&m->slot_names, &m->slots, sizeof(slot), name, n);
    return i < 0 ? NULL : slot_at(&m->slots, (size_t)i);
}

/* A new slot of this name, or NULL with an error. */
static slot *add_slot(cn_module *m, const char *name)
{
    cn_ctx *ctx = m->object.ctx;
    if (find_slot(m, name, strlen(name))) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: names must differ, got \"%s\" a second time", m->type->name, name);
        return NULL;
    }
    if (!cn__vec_reserve(&ctx->memory, &m->slots, m->slots.n + 1, sizeof(slot)) ||
        !cn__names_reserve(&ctx->memory, &m->slot_names, &m->slots, sizeof(slot))) {
        cn__no_memory(ctx, m->type->name);
        return NULL;
    }
    char *copy = cn__copy_text(ctx, name);
    if (!copy) return NULL;
    slot *s = slot_at(&m->slots, m->slots.n++);
    *s = (slot){ .name = copy };
    cn__names_add(&m->slot_names, &m->slots, sizeof(slot));
    return s;
}

static slot *new_slot(cn_module *m, const char *name)
{
    if (name && *name && !strchr(name, '.')) return add_slot(m, name);
    cn__fail(m->object.ctx, CN_BAD_ARGUMENT, "%s: a name must not be empty nor contain a dot, got \"%s\"",
             m->type->name, name ? name : "");
    return NULL;
}

static void pop_slot(cn_module *m)
{
    cn__names_take_last(&m->slot_names, &m->slots, sizeof(slot));
    cn__free_text(m->object.ctx, slot_at(&m->slots, --m->slots.n)->name);
}

/* Begins a call with a module and a tensor. An error also if only one of them is NULL; of two contexts, in both. */
static cn__call enter_both(const cn_module *m, const cn_tensor *t, const char *who, bool names)
{
    if (m || !cn__alive_in(t, who)) return cn__enter_object(m, &cn__module_type, who, names);
    cn__object_of(t->ctx, m, &cn__module_type, who);
    return (cn__call){ NULL, false };
}

static cn_tensor *fill_slot(cn_module *m, slot *s, cn_tensor *t, slot_kind kind)
{
    s->kind = kind;
    s->tensor = kind == SLOT_PARAM ? cn__take_keep(cn_param(t)) : cn__keep(t);
    if (s->tensor) return cn_name(s->tensor, s->name);
    pop_slot(m);
    return NULL;
}

static cn_tensor *add_tensor(cn_module *m, const char *name, cn_tensor *t, slot_kind kind, const char *who)
{
    if (!t) return NULL;
    CN__CALL call = enter_both(m, t, who, true);
    if (!call.ctx || !cn__of_context(call.ctx, t, who, "the tensor")) return NULL;
    slot *s = new_slot(m, name);
    return s ? fill_slot(m, s, t, kind) : NULL;
}

cn_tensor *cn__module_tensor(cn_module *m, const char *name, cn_tensor *t, bool trained)
{
    slot *s = add_slot(m, name);
    return s ? fill_slot(m, s, t, trained ? SLOT_PARAM : SLOT_BUFFER) : NULL;
}

cn_tensor *cn_module_param(cn_module *m, const char *name, cn_tensor *initial)
{
    return add_tensor(m, name, initial, SLOT_PARAM, __func__);
}
cn_tensor *cn_module_buffer(cn_module *m, const char *name, cn_tensor *initial)
{
    return add_tensor(m, name, initial, SLOT_BUFFER, __func__);
}
cn_tensor *cn_module_share(cn_module *m, const char *name, cn_tensor *param)
{
    return add_tensor(m, name, param, SLOT_SHARED, __func__);
}

static slot *own_param(cn_module *m, const char *name)
{
    slot *s = name ? find_slot(m, name, strlen(name)) : NULL;
    if (s && s->kind == SLOT_PARAM) return s;
    cn__fail(m->object.ctx, CN_BAD_ARGUMENT, "%s: \"%s\" must be a parameter of this module itself", m->type->name,
             name ? name : "");
    return NULL;
}

cn_tensor *cn__own_param(cn_module *m, const char *name)
{
    const slot *s = own_param(m, name);
    return s ? s->tensor : NULL;
}

cn_tensor *cn__computed(cn_module *m, const char *name)
{
    slot *s = own_param(m, name);
    if (!s) return NULL;
    s->kind = SLOT_COMPUTED;
    cn_zero_grad(s->tensor);
    return s->tensor;
}

void cn__set_computed(cn_tensor *computed, cn_tensor *value) { cn__handle_rebind(computed, value->ref); }

/* Whether m is below `above`: then adding `above` to m would close a circle. */
static bool holds(const cn_module *above, const cn_module *m)
{
    for (size_t i = 0; i < above->children.n; i++) {
        const cn_module *child = ((cn_module **)above->children.v)[i];
        if (child == m || holds(child, m)) return true;
    }
    return false;
}

cn_module *cn_module_child(cn_module *m, const char *name, cn_module *child)
{
    if (!child) return NULL;
    CN__CALL call = cn__call_object(m ? m : child, &cn__module_type);
    if (!call.ctx || !cn__object_of(call.ctx, m, &cn__module_type, __func__) ||
        !cn__object_of(call.ctx, child, &cn__module_type, __func__))
        return NULL;
    if (child == m || child->object.adopted || (m->object.adopted && holds(child, m))) {
        cn__fail(m->object.ctx, CN_BAD_ARGUMENT,
                 "%s: a child must be another module, without a parent; child \"%s\" %s", m->type->name,
                 name ? name : "",
                 child == m              ? "is the module itself"
                 : child->object.adopted ? "has a parent"
                                         : "holds the module");
        return NULL;
    }
    if (!cn__vec_reserve(&m->object.ctx->memory, &m->children, m->children.n + 1, sizeof child)) {
        cn__no_memory(m->object.ctx, m->type->name);
        return NULL;
    }
    slot *s = new_slot(m, name);
    if (!s) return NULL;
    cn__object_adopt(child);
    s->kind = SLOT_CHILD;
    s->child = child;
    ((cn_module **)m->children.v)[m->children.n++] = child;
    return child;
}

int cn_module_children(const cn_module *m) { return cn__is(m, &cn__module_type) ? (int)m->children.n : 0; }

cn_module *cn_module_at(const cn_module *m, int i)
{
    CN__CALL call = cn__call_object(m, &cn__module_type);
    return call.ctx && i >= 0 && (size_t)i < m->children.n ? ((cn_module **)m->children.v)[i] : NULL;
}

cn_module *cn_module_find(cn_module *m, const char *name)
{
    CN__CALL call = cn__call_object(m, &cn__module_type);
    if (!call.ctx) return NULL;
    while (m && name && *name) {
        size_t n = strcspn(name, ".");
        slot *s = find_slot(m, name, n);
        m = s ? s->child : NULL;
        name += n + (name[n] == '.');
    }
    return m;
}

cn_tensor *cn_module_get(cn_module *m, const char *name)
{
    CN__CALL call = cn__call_object(m, &cn__module_type);
    if (!call.ctx || !name) return NULL;
    for (size_t n; (n = strcspn(name, ".")), name[n] == '.'; name += n + 1) {
        slot *whole = find_slot(m, name, strlen(name));
        if (whole) return whole->tensor;
        slot *s = find_slot(m, name, n);
        if (!s || !s->child) return NULL;
        m = s->child;
    }
    slot *s = find_slot(m, name, strlen(name));
    return s ? s->tensor : NULL;
}

/* ---- walking the tree: a module's own tensors come before its children's, as in PyTorch's state_dict ---- */

typedef bool visit(void *user, const char *name, slot *s);

static bool walk(cn_module *m, char *name, size_t used, size_t room, visit *fn, void *user)
{
    for (int children = 0; children < 2; children++)
        for (size_t i = 0; i < m->slots.n; i++) {
            slot *s = slot_at(&m->slots, i);
            if ((s->child != NULL) != children || s->kind == SLOT_COMPUTED) continue;
            size_t n = strlen(s->name);
            if (used + n + 2 > room)
                return cn__fail(m->object.ctx, CN_BAD_ARGUMENT,
                                "module: a full name must be shorter than %zu bytes, got \"%.40s...\"", room, name);
            memcpy(name + used, s->name, n + 1);
            if (!s->child) {
                if (!fn(user, name, s)) return false;
                continue;
            }
            memcpy(name + used + n, ".", 2);
            if (!walk(s->child, name, used + n + 1, room, fn, user)) return false;
        }
    return true;
}

static bool walk_all(cn_module *m, visit *fn, void *user)
{
    char name[512] = "";
    return walk(m, name, 0, sizeof name, fn, user);
}

static bool add_param(void *user, const char *name, slot *s)
{
    cn_module *root = user;
    (void)name;
    if (s->kind == SLOT_BUFFER) return true;
    if (cn__push(&root->object.ctx->memory, &root->params, &s->tensor, sizeof s->tensor)) return true;
    return cn__no_memory(root->object.ctx, "parameters");
}

/* A tied weight is listed once, at its first place: a hash table by address finds the others. */
static bool drop_tied(cn_module *m)
{
    cn_ctx *ctx = m->object.ctx;
    cn_tensor **v = m->params.v;
    size_t slots = 16, kept = 0;
    while (slots < 2 * m->params.n) slots *= 2;
    cn_tensor **seen = cn__block_new(&ctx->memory, slots * sizeof *seen);
    if (!seen) return cn__no_memory(ctx, "parameters");
    memset(seen, 0, slots * sizeof *seen);
    for (size_t i = 0; i < m->params.n; i++) {
        size_t at = cn__hash_number(&ctx->hash_key, (uintptr_t)v[i]) & (slots - 1);
        while (seen[at] && seen[at] != v[i]) at = (at + 1) & (slots - 1);
        if (!seen[at]) v[kept++] = seen[at] = v[i];
    }
    m->params.n = kept;
    cn__block_free(&ctx->memory, seen, slots * sizeof *seen);
    return true;
}

cn_params cn_parameters(cn_module *m)
{
    CN__CALL call = cn__call_object(m, &cn__module_type);
    if (!call.ctx) return (cn_params){ NULL, 0 };
    m->params.n = 0;
    if (!walk_all(m, add_param, m) || !drop_tied(m)) return (cn_params){ NULL, 0 };
    return (cn_params){ m->params.v, (int)m->params.n };
}

static bool add_named(void *user, const char *name, slot *s)
{
    cn_module *root = user;
    cn__memory *memory = &root->object.ctx->memory;
    size_t bytes = strlen(name) + 1;
    char *copy = cn__bump_new(memory, &root->names, bytes);
    if (!copy || !cn__vec_reserve(memory, &root->named, root->named.n + 1, sizeof(cn_named)))
        return cn__no_memory(root->object.ctx, "module_named");
    memcpy(copy, name, bytes);
    ((cn_named *)root->named.v)[root->named.n++] = (cn_named){ copy, s->tensor, s->kind == SLOT_BUFFER };
    return true;
}

cn_named_list cn_module_named(cn_module *m)
{
    CN__CALL call = cn__call_object(m, &cn__module_type);
    if (!call.ctx) return (cn_named_list){ NULL, 0 };
    m->named.n = 0;
    cn__bump_free(&m->object.ctx->memory, &m->names);
    if (!walk_all(m, add_named, m)) return (cn_named_list){ NULL, 0 };
    return (cn_named_list){ m->named.v, (int)m->named.n };
}

int64_t cn_module_count(cn_module *m)
{
    CN__CALL call = cn__call_object(m, &cn__module_type);
    if (!call.ctx) return 0;
    cn_params p = cn_parameters(m);
    int64_t n = 0;
    for (int i = 0; i < p.n; i++) n += cn_numel(p.v[i]);
    return n;
}

/* ---- modes, gradients, device, default dtype ---- */

void cn_module_train(cn_module *m, bool on)
{
    CN__CALL call = cn__call_object(m, &cn__module_type);
    if (!call.ctx) return;
    m->training = on;
    for (size_t i = 0; i < m->children.n; i++) cn_module_train(((cn_module **)m->children.v)[i], on);
}

bool cn_module_training(const cn_module *m) { return exists(m, __func__) && m->training; }

bool cn_module_freeze(cn_module *m, bool on)
{
    CN__CALL call = cn__call_object(m, &cn__module_type);
    if (!call.ctx) return false;
    cn_params p = cn_parameters(m);
    for (int i = 0; i < p.n; i++)
        if (!cn_set_requires_grad(p.v[i], !on)) return false;
    return true;
}

void cn_module_zero_grad(cn_module *m)
{
    CN__CALL call = cn__call_object(m, &cn__module_type);
    if (!call.ctx) return;
    cn_params p = cn_parameters(m);
    for (int i = 0; i < p.n; i++) cn_zero_grad(p.v[i]);
}

void cn_module_apply(cn_module *m, cn_apply_fn fn, void *user)
{
    CN__CALL call = cn__call_object(m, &cn__module_type);
    if (!call.ctx) return;
    if (!fn) {
        cn__fail(call.ctx, CN_BAD_ARGUMENT, "module_apply: the function must not be NULL");
        return;
    }
    CN__USE module = cn__object_use(m);
    for (size_t i = 0; i < m->children.n; i++) cn_module_apply(((cn_module **)m->children.v)[i], fn, user);
    const cn__outside out = cn__go_out(call.ctx);
    fn(user, m);
    cn__come_back(call.ctx, out);
}

/* A parameter or buffer with another dtype: its handle stays, and whether it requires a gradient. */
static bool cast_tensor(cn_tensor *t, cn_dtype dtype)
{
    if (!cn_dtype_is_float(cn_type(t)) || cn_type(t) == dtype) return true;
    const bool needs = cn_requires_grad(t);
    cn_tensor *p = cn_param(cn_cast(cn_detach(t), dtype));
    if (!p || !cn_eval(p)) return false;
    cn_zero_grad(t);
    cn__handle_rebind(t, p->ref);
    p->ref.node->owner = t;
    cn_release(p);
    return cn_set_requires_grad(t, needs);
}

bool cn_module_cast(cn_module *m, cn_dtype dtype)
{
    CN__CALL call = cn__call_object(m, &cn__module_type);
    if (!call.ctx) return false;
    if ((unsigned)dtype >= CN_DTYPES || !cn_dtype_is_float(dtype))
        return cn__fail(call.ctx, CN_BAD_DTYPE, "module_cast: the dtype must be a floating type, got %s",
                        cn_dtype_name(dtype));
    if (!cn_eval_all(call.ctx)) return false;
    cn_named_list named = cn_module_named(m);
    bool ok = !cn_failed(call.ctx);
    cn_scope s = cn_scope_begin(call.ctx);
    for (int i = 0; i < named.n && ok; i++) ok = cast_tensor(named.v[i].tensor, dtype);
    cn_scope_end(call.ctx, s);
    return ok;
}

/* "gpu" matches any card the context is on, "gpu:1" that one only. The first card is called "gpu" or "gpu:0". */
static bool is_device(const char *device, const char *here)
{
    size_t kind = strcspn(here, ":");
    if (strcspn(device, ":") != kind || strncmp(device, here, kind) != 0) return false;
    return !device[kind] || !strcmp(device + kind, here[kind] ? here + kind : ":0");
}

bool cn_module_to(cn_module *m, const char *device)
{
    CN__CALL call = cn__call_object(m, &cn__module_type);
    if (!call.ctx) return false;
    const char *here = m->object.ctx->device->name;
    if (device && is_device(device, here)) return true;
    return cn__fail(m->object.ctx, CN_BAD_DEVICE,
                    "module_to: device must be that of the module's context, \"%s\", got \"%s\"; "
                    "for another device open a context there, make the module in it and load its state",
                    here, device ? device : "");
}

bool cn_set_default_dtype(cn_ctx *ctx, cn_dtype t)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return false;
    if ((unsigned)t >= CN_DTYPES || !cn_dtype_is_float(t))
        return cn__fail(ctx, CN_BAD_DTYPE, "set_default_dtype: the dtype must be a floating type, got %s",
                        cn_dtype_name(t));
    ctx->default_dtype = t;
    return true;
}

cn_dtype cn_default_dtype(const cn_ctx *ctx) { return ctx ? ctx->default_dtype : CN_F32; }

/* ---- forward ---- */

/* One forward: while it runs, the module cannot be destroyed and x cannot be released. */
typedef struct passage {
    cn_module *m;
    cn_tensor *x;
    cn__outside outside;
    bool no_error_yet;
} passage;

static passage begin_forward(cn_module *m, cn_tensor *x)
{
    cn__object_use(m);
    cn__hold(x);
    return (passage){ m, x, cn__go_out(m->object.ctx), !cn_failed(m->object.ctx) };
}

/* Puts the layer before the message of an error that its forward raised: "Linear(6, 5): linear: ...". */
static void name_layer(cn_module *m)
{
    cn_ctx *ctx = m->object.ctx;
    char head[256], options[128] = "";
    if (cn_module_children(m) > 0 || strncmp(ctx->message, m->type->name, strlen(m->type->name)) == 0) return;
    cn__outside out = cn__go_out(ctx);
    if (m->type->describe) m->type->describe(m, options, sizeof options);
    cn__come_back(ctx, out);
    if (*options) snprintf(head, sizeof head, "%s(%s): ", m->type->name, options);
    else snprintf(head, sizeof head, "%s: ", m->type->name);
    const size_t n = strlen(head), room = sizeof ctx->message - n - 1, length = strlen(ctx->message);
    const size_t kept = length < room ? length : room;
    memmove(ctx->message + n, ctx->message, kept);
    memcpy(ctx->message, head, n);
    ctx->message[n + kept] = 0;
}

/* Checks the n tensors that the module's forward returned. An element that it did not set is NULL, but not the
   first. */
static bool end_forward(passage p, cn_tensor **out, int n, bool ok)
{
    cn_module *m = p.m;
    cn_ctx *ctx = m->object.ctx;
    cn__come_back(ctx, p.outside);
    for (int i = 0; i < n && ok; i++)
        ok = (i > 0 && !out[i]) || cn__of_context(ctx, out[i], m->type->name, "the tensor that its forward returns");
    for (int i = 0; i < n && !ok; i++) out[i] = NULL;
    if (!ok) cn__fail(ctx, CN_BAD_ARGUMENT, "%s: its forward failed and set no error", m->type->name);
    if (p.no_error_yet && cn_failed(ctx)) name_layer(m);
    if (ok && n > 0) m->out_shape = cn_shape(out[0]);
    cn__unhold(p.x);
    cn__object_unuse(m);
    return ok;
}

cn__call cn__enter_forward(const cn_module *m, cn_tensor *const *t, int n, const char *const *what, const char *who)
{
    cn__call call = enter_both(m, t[0], who, false);
    bool ok = true;
    for (int i = 0; call.ctx && i < n && ok; i++) ok = cn__of_context(call.ctx, t[i], who, what[i]);
    if (ok) return call;
    cn__leave(&call);
    return (cn__call){ NULL, false };
}

cn_tensor *cn_forward(cn_module *m, cn_tensor *x)
{
    CN__CALL call = cn__enter_forward(m, &x, 1, (const char *[]){ "x" }, __func__);
    if (!call.ctx) return NULL;
    passage p = begin_forward(m, x);
    cn_tensor *y = NULL;
    bool ok = cn__hooks_before(m, &x, 1);
    if (!ok) y = NULL;
    else if (m->type->forward) y = m->type->forward(m, x);
    else if (m->type->forward_all) ok = m->type->forward_all(m, &x, 1, &y, 1);
    else
        ok =
            cn__fail(call.ctx, CN_BAD_ARGUMENT, "%s: this module has no forward; it only holds modules", m->type->name);
    if (ok && y) ok = cn__hooks_after(m, &x, 1, &y, 1);
    return end_forward(p, &y, 1, ok) ? y : NULL;
}

static bool check_lists(cn_ctx *ctx, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out)
{
    if (!in || n_in < 1 || n_out < 0 || (n_out && !out))
        return cn__fail(ctx, CN_BAD_ARGUMENT,
                        "forward_all: needs a list of 1 or more tensors and one for 0 or more results, got %d%s "
                        "and %d%s",
                        n_in, in ? "" : " (NULL)", n_out, out || !n_out ? "" : " (NULL)");
    for (int i = 0; i < n_in; i++) {
        char what[32];
        snprintf(what, sizeof what, "operand %d", i);
        if (!cn__of_context(ctx, in[i], "forward_all", what)) return false;
    }
    return true;
}

static bool forward_all(cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out)
{
    if (m->type->forward_all) return m->type->forward_all(m, in, n_in, out, n_out);
    if (n_in != 1 || n_out > 1 || !m->type->forward)
        return cn__fail(
            m->object.ctx, CN_BAD_ARGUMENT, "%s: forward accepts %s; got %d operands and %d results", m->type->name,
            m->type->forward ? "one tensor and returns one" : "nothing: it only holds modules", n_in, n_out);
    cn_tensor *y = m->type->forward(m, in[0]);
    if (n_out == 1) out[0] = y;
    return y != NULL;
}

/* Hooks may replace operands: they get a copy of the list. */
static bool forward_with_hooks(cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out)
{
    cn_tensor *copy[CN_MAX_IN];
    if (n_in > CN_MAX_IN)
        return cn__fail(m->object.ctx, CN_BAD_ARGUMENT, "%s: a module with hooks accepts at most %d operands, got %d",
                        m->type->name, CN_MAX_IN, n_in);
    memcpy(copy, in, sizeof *copy * (size_t)n_in);
    return cn__hooks_before(m, copy, n_in) && forward_all(m, copy, n_in, out, n_out) &&
           cn__hooks_after(m, copy, n_in, out, n_out);
}

bool cn_forward_all(cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out)
{
    for (int i = 0; i < n_out && out; i++) out[i] = NULL;
    CN__CALL call = enter_both(m, in && n_in > 0 ? in[0] : NULL, __func__, false);
    if (!call.ctx || !check_lists(call.ctx, in, n_in, out, n_out)) return false;
    passage p = begin_forward(m, in[0]);
    const bool ok = m->hooks.n ? forward_with_hooks(m, in, n_in, out, n_out) : forward_all(m, in, n_in, out, n_out);
    return end_forward(p, out, n_out, ok);
}
