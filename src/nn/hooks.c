/* Hooks: functions of a program that are called before and after a module's forward, and in its backward. */
#include "nn/module.h"

typedef enum hook_kind { BEFORE, AFTER, RESULT_GRADIENT, OPERAND_GRADIENT } hook_kind;

/* An object of the context, because a graph that was made in a forward may call it when the module is gone. The module
   uses it, so that cn_close, which frees the newest objects first, destroys it after the module. */
typedef struct module_hook {
    cn__object object;
    cn_module *m; /* NULL: the hook was removed, or the module freed */
    hook_kind kind;
    int number;
    void *user;
    union {
        cn_forward_pre_hook before;
        cn_forward_hook after;
        cn_backward_hook gradient;
    };
} module_hook;

static const cn__object_type hook_type = { "hook", NULL };

static module_hook *hook_at(const cn_module *m, size_t i) { return ((module_hook **)m->hooks.v)[i]; }

static module_hook *add(cn_module *m, hook_kind kind, bool given, void *user, const char *who)
{
    CN__CALL call = cn__enter_object(m, &cn__module_type, who, true);
    if (!call.ctx) return NULL;
    if (!given) {
        cn__fail(call.ctx, CN_BAD_ARGUMENT, "%s: the function must not be NULL", cn__called(call.ctx, who));
        return NULL;
    }
    module_hook *h = cn__object_new(call.ctx, sizeof *h, &hook_type);
    if (!h) return NULL;
    h->m = m;
    h->kind = kind;
    h->user = user;
    h->number = m->last_hook + 1;
    if (cn__push(&call.ctx->memory, &m->hooks, &h, sizeof h)) return m->last_hook++, cn__object_use(h);
    cn__object_free(h);
    cn__no_memory(call.ctx, "module_hook");
    return NULL;
}

int cn_module_forward_pre_hook(cn_module *m, cn_forward_pre_hook hook, void *user)
{
    module_hook *h = add(m, BEFORE, hook != NULL, user, __func__);
    if (!h) return 0;
    h->before = hook;
    return h->number;
}

int cn_module_forward_hook(cn_module *m, cn_forward_hook hook, void *user)
{
    module_hook *h = add(m, AFTER, hook != NULL, user, __func__);
    if (!h) return 0;
    h->after = hook;
    return h->number;
}

static int add_gradient(cn_module *m, hook_kind kind, cn_backward_hook hook, void *user, const char *who)
{
    module_hook *h = add(m, kind, hook != NULL, user, who);
    if (!h) return 0;
    h->gradient = hook;
    return h->number;
}

int cn_module_backward_pre_hook(cn_module *m, cn_backward_hook hook, void *user)
{
    return add_gradient(m, RESULT_GRADIENT, hook, user, __func__);
}

int cn_module_backward_hook(cn_module *m, cn_backward_hook hook, void *user)
{
    return add_gradient(m, OPERAND_GRADIENT, hook, user, __func__);
}

/* The module does without the hook. A graph may still refer to one for gradients: that stays until cn_close. */
static void let_go(module_hook *h)
{
    h->m = NULL;
    if (h->kind == BEFORE || h->kind == AFTER) cn__object_free(h);
    cn__object_unuse(h);
}

bool cn_module_remove_hook(cn_module *m, int number)
{
    CN__CALL call = cn__call_object(m, &cn__module_type);
    if (!call.ctx) return false;
    for (size_t i = 0; i < m->hooks.n; i++) {
        if (hook_at(m, i)->number != number) continue;
        let_go(hook_at(m, i));
        module_hook **v = m->hooks.v;
        memmove(v + i, v + i + 1, sizeof *v * (--m->hooks.n - i));
        return true;
    }
    return cn__fail(call.ctx, CN_NOT_FOUND, "module_remove_hook: this %s has no hook %d", m->type->name, number);
}

void cn__hooks_free(cn_module *m)
{
    for (size_t i = 0; i < m->hooks.n; i++) let_go(hook_at(m, i));
    cn__vec_free(&m->object.ctx->memory, &m->hooks, sizeof(module_hook *));
}

/* ---- in a forward, which calls functions of the program anyway ---- */

static cn_tensor *pass_gradient(void *user, cn_tensor *grad)
{
    const module_hook *h = user;
    return h->m ? h->gradient(h->user, h->m, grad) : grad;
}

/* A view of t on which the hook waits for the gradient; t itself if it has none. */
static bool watch(cn_tensor **t, module_hook *h)
{
    if (!*t || !cn_requires_grad(*t) || !cn_grad_enabled((*t)->ctx)) return true;
    cn_tensor *seen = cn_reshape(*t, cn_shape(*t));
    if (seen && seen->ref.node == (*t)->ref.node) seen = cn_unsqueeze(seen, 0), seen = cn_squeeze(seen, CN_DIMS(0));
    if (!seen || !cn_add_hook(seen, pass_gradient, h)) return false;
    *t = seen;
    return true;
}

/* A hook may remove hooks, itself too: the list is looked at anew each time, by numbers. Hooks that it adds have numbers
   above `last`: they wait for the next forward, as in PyTorch. */
static module_hook *next_hook(const cn_module *m, int after, int last)
{
    for (size_t i = 0; i < m->hooks.n; i++)
        if (hook_at(m, i)->number > after) return hook_at(m, i)->number <= last ? hook_at(m, i) : NULL;
    return NULL;
}

bool cn__hooks_before(cn_module *m, cn_tensor **in, int n_in)
{
    const int last = m->last_hook;
    module_hook *h;
    for (int at = 0; (h = next_hook(m, at, last));) {
        CN__USE used = cn__object_use(h);
        at = h->number;
        if (h->kind == BEFORE) {
            if (!h->before(h->user, m, in, n_in)) return false;
            for (int i = 0; i < n_in; i++)
                if (!cn__of_context(m->object.ctx, in[i], m->type->name, "an operand from a hook")) return false;
        }
        if (h->kind == OPERAND_GRADIENT && !watch(&in[0], h)) return false;
    }
    return true;
}

bool cn__hooks_after(cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out)
{
    const int last = m->last_hook;
    module_hook *h;
    for (int at = 0; (h = next_hook(m, at, last));) {
        CN__USE used = cn__object_use(h);
        at = h->number;
        if (h->kind == AFTER) {
            if (!h->after(h->user, m, in, n_in, out, n_out)) return false;
            for (int i = 0; i < n_out; i++)
                if ((i == 0 || out[i]) && !cn__of_context(m->object.ctx, out[i], m->type->name, "a result from a hook"))
                    return false;
        }
        if (h->kind == RESULT_GRADIENT && n_out > 0 && !watch(&out[0], h)) return false;
    }
    return true;
}
