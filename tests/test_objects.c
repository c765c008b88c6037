/* Objects in every order of making, using, freeing and closing: what is freed before is an error, what another object
   uses stays, and nothing is left when the context is closed. Then calls that mix contexts or types, or lack arguments:
   each is an error of its own. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "cairn/dlpack.h"
#include "cairn/image.h"
#include "support/check.h"
#include "support/faulty.h"
#include "support/scratch.h"

/* ---- a world of objects ---- */

enum { MOST = 96, SIZE = 8 };

typedef struct thing {
    const struct kind *kind;
    void *p;
    bool freed;
} thing;

typedef struct world {
    cn_ctx *cn;
    uint32_t state; /* of the random numbers */
    thing things[MOST];
    int n;
    FILE *nowhere;
} world;

typedef struct kind {
    const char *name;
    void *(*make)(world *w);
    void (*use)(world *w, void *p);
    void (*free)(void *p);
} kind;

static uint32_t draw(world *w, uint32_t below)
{
    w->state = w->state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)w->state * below >> 32);
}

/* A living object of the kind, or NULL. */
static void *any(world *w, const char *kind)
{
    const int first = w->n ? (int)draw(w, (uint32_t)w->n) : 0;
    for (int i = 0; i < w->n; i++) {
        const thing *t = &w->things[(first + i) % w->n];
        if (!t->freed && strcmp(t->kind->name, kind) == 0) return t->p;
    }
    return NULL;
}

static void *make_dict(world *w) { return cn_dict_new(w->cn); }
static void use_dict(world *w, void *p)
{
    cn_module *m = any(w, "module");
    cn_dict_set_whole(p, "whole", 1);
    if (m) cn_module_save(m, p, "m.");
}
static void free_dict(void *p) { cn_dict_free(p); }

static void *make_module(world *w)
{
    cn_module *m = cn_nn_sequential(w->cn, cn_nn_linear(w->cn, SIZE, SIZE, NULL), cn_nn_relu(w->cn));
    cn_module *other = any(w, "module");
    if (other && draw(w, 2)) cn_module_share(m, "shared", cn_parameters(other).v[0]);
    return m;
}
static void use_module(world *w, void *p)
{
    cn_tensor *y = cn_forward(p, cn_randn(w->cn, CN_F32, CN_DIMS(2, SIZE)));
    if (y && draw(w, 2)) cn_eval(y);
    if (draw(w, 4) == 0) cn_module_append(p, cn_nn_tanh(w->cn));
}
static void free_module(void *p) { cn_module_free(p); }

static void *make_gpt(world *w)
{
    return cn_nn_gpt(w->cn, &(cn_gpt_desc){ .vocab = 11, .context = 8, .layers = 1, .heads = 2, .width = 8 });
}
static void use_gpt(world *w, void *p)
{
    int32_t tokens[3] = { 1, 2, 3 };
    cn_forward(p, cn_from(w->cn, CN_I32, CN_DIMS(1, 3), tokens));
}

static void *make_sampler(world *w)
{
    cn_module *gpt = any(w, "gpt");
    return gpt ? cn_sampler_new(gpt, &(cn_sampler_desc){ .seed = 1 }) : NULL;
}
static void use_sampler(world *w, void *p)
{
    (void)w;
    cn_sampler_feed(p, (int32_t[]){ 1, 2 }, 2);
    cn_sampler_next(p);
}
static void free_sampler(void *p) { cn_sampler_free(p); }

static void *make_optim(world *w)
{
    cn_module *m = any(w, "module");
    if (!m) return NULL;
    return draw(w, 2) ? cn_adamw(w->cn, cn_parameters(m), NULL) : cn_sgd(w->cn, cn_parameters(m), NULL);
}
static void use_optim(world *w, void *p)
{
    (void)w;
    cn_params all = cn_optim_params(p);
    if (all.n) cn_backward(cn_sum(cn_square(all.v[0]), CN_ALL, false));
    cn_step(p);
}
static void free_optim(void *p) { cn_optim_free(p); }

static void *make_schedule(world *w)
{
    cn_optim *opt = any(w, "optimizer");
    if (!opt) return NULL;
    if (draw(w, 2)) return cn_schedule_exponential(opt, 0.9);
    cn_schedule *parts[2] = { cn_schedule_exponential(opt, 0.9), cn_schedule_cosine(opt, 9, 0) };
    return cn_schedule_chained(opt, parts, 2);
}
static void use_schedule(world *w, void *p) { (void)w, cn_schedule_step(p); }
static void free_schedule(void *p) { cn_schedule_free(p); }

static void *make_ema(world *w)
{
    cn_module *m = any(w, "module");
    return m ? cn_ema_of(m, NULL) : NULL;
}
static void use_ema(world *w, void *p)
{
    (void)w;
    cn_ema_update(p);
    cn_ema_apply(p);
    cn_ema_restore(p);
}
static void free_ema(void *p) { cn_ema_free(p); }

static const float pixels[6 * 3 * 4 * 4];

static void *make_dataset(world *w)
{
    cn_dataset *d = any(w, "dataset"), *e = any(w, "dataset");
    cn_transform *t = any(w, "transform");
    const cn_field image = { CN_F32, CN_DIMS(3, 4, 4), 0 };
    const void *const data[] = { pixels };
    cn_tensor *x = cn_zeros(w->cn, CN_F32, CN_DIMS(4, 3, 4, 4));
    switch (draw(w, 6)) {
    case 0: return d ? cn_dataset_subset(d, (int64_t[]){ 0, 2, 1 }, 3) : NULL;
    case 1: return d && e ? cn_dataset_concat((cn_dataset *[]){ d, e }, 2) : NULL;
    case 2: return d && t ? cn_dataset_transform(d, t) : NULL;
    case 3:
        return d && t ? cn_dataset_map(
                            d, &(cn_map_desc){ .fn = cn_transform_map, .user = t, .fields = 1, .field = { image } })
                      : NULL;
    case 4: return cn_dataset_tensors(&x, 1);
    default: return cn_dataset_arrays(w->cn, 6, &image, data, 1);
    }
}
static void use_dataset(world *w, void *p)
{
    (void)w;
    cn_dataset_count(p);
    cn_dataset_field(p, 0);
}
static void free_dataset(void *p) { cn_dataset_free(p); }

static void *make_transform(world *w)
{
    cn_transform *t = cn_transform_new(w->cn);
    cn_transform_random_hflip(t, 0.5);
    return t;
}
static void use_transform(world *w, void *p) { cn_transform_apply(p, cn_zeros(w->cn, CN_F32, CN_DIMS(3, 4, 4)), 1); }
static void free_transform(void *p) { cn_transform_free(p); }

static void *make_order(world *w) { return cn_data_sampler_random(w->cn, 3, NULL); }
static void use_order(world *w, void *p)
{
    int64_t at[3];
    (void)w;
    cn_data_sampler_indices(p, 1, 0, at);
}
static void free_order(void *p) { cn_data_sampler_free(p); }

static void *make_loader(world *w)
{
    cn_dataset *d = any(w, "dataset");
    cn_data_sampler *s = draw(w, 2) ? any(w, "data sampler") : NULL;
    return d ? cn_loader_new(d,
                             &(cn_loader_desc){ .batch = 2, .workers = (int)draw(w, 2), .sampler = s, .shuffle = !s })
             : NULL;
}
static void use_loader(world *w, void *p)
{
    cn_batch b;
    if (cn_loader_next(p, &b) && draw(w, 2)) cn_keep(b.x);
}
static void free_loader(void *p) { cn_loader_free(p); }

static void *make_progress(world *w)
{
    return cn_progress_new(w->cn, &(cn_progress_desc){ .total = 1000, .out = w->nowhere, .tty = 1, .width = 60 });
}
static void use_progress(world *w, void *p) { (void)w, cn_progress_step(p, 1, "loss %d", 1); }
static void free_progress(void *p) { cn_progress_free(p); }

static void *make_logbook(world *w) { return cn_logbook_new(w->cn, "objects.csv", NULL); }
static void use_logbook(world *w, void *p) { (void)w, cn_logbook_scalar(p, 1, "loss", 1); }
static void free_logbook(void *p) { cn_logbook_free(p); }

static void *make_profile(world *w) { return any(w, "profile") ? NULL : cn_profile_begin(w->cn, NULL); }
static void use_profile(world *w, void *p)
{
    (void)w;
    char text[256];
    cn_profile_print(p, text, sizeof text);
}
static void free_profile(void *p) { cn_profile_free(p); }

static void *make_reading(world *w) { return cn_read_begin(cn_ones(w->cn, CN_F32, CN_DIMS(3))); }
static void use_reading(world *w, void *p) { (void)w, cn_read_done(p); }
static void free_reading(void *p) { cn_read_end(p, NULL, 0); }

static void *make_tokenizer(world *w) { return cn_tokenizer_bytes(w->cn); }
static void use_tokenizer(world *w, void *p)
{
    (void)w;
    int32_t ids[4];
    cn_encode(p, "text", 4, ids, 4);
}
static void free_tokenizer(void *p) { cn_tokenizer_free(p); }

static const kind kinds[] = {
    { "dict", make_dict, use_dict, free_dict },
    { "module", make_module, use_module, free_module },
    { "module", make_module, use_module, free_module },
    { "gpt", make_gpt, use_gpt, free_module },
    { "sampler", make_sampler, use_sampler, free_sampler },
    { "optimizer", make_optim, use_optim, free_optim },
    { "schedule", make_schedule, use_schedule, free_schedule },
    { "average", make_ema, use_ema, free_ema },
    { "dataset", make_dataset, use_dataset, free_dataset },
    { "dataset", make_dataset, use_dataset, free_dataset },
    { "transform", make_transform, use_transform, free_transform },
    { "data sampler", make_order, use_order, free_order },
    { "loader", make_loader, use_loader, free_loader },
    { "progress bar", make_progress, use_progress, free_progress },
    { "logbook", make_logbook, use_logbook, free_logbook },
    { "profile", make_profile, use_profile, free_profile },
    { "reading", make_reading, use_reading, free_reading },
    { "tokenizer", make_tokenizer, use_tokenizer, free_tokenizer },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void make(world *w)
{
    const kind *k = &kinds[draw(w, KINDS)];
    if (w->n == MOST) return;
    void *p = k->make(w);
    if (p) w->things[w->n++] = (thing){ k, p, false };
    check(!cn_failed(w->cn), "a %s is made: %s", k->name, cn_error(w->cn));
    cn_error_clear(w->cn);
}

/* A freed object is an error that names its kind. One that lives may be an error too: what it uses was freed. */
static void try_it(world *w, bool freeing)
{
    if (!w->n) return;
    thing *t = &w->things[draw(w, (uint32_t)w->n)];
    if (freeing) t->kind->free(t->p);
    else t->kind->use(w, t->p);
    if (t->freed)
        check(cn_error_code(w->cn) == CN_RELEASED && strstr(cn_error(w->cn), "freed before"), "a freed %s: %s",
              t->kind->name, cn_error(w->cn));
    else
        check(!cn_failed(w->cn) || (!freeing && cn_error_code(w->cn) == CN_RELEASED), "a living %s: %s", t->kind->name,
              cn_error(w->cn));
    cn_error_clear(w->cn);
    t->freed |= freeing;
}

enum { EXPORTS = 6 };

static DLManagedTensor *export_of(world *w, cn_tensor *t)
{
    return cn_to_dlpack(draw(w, 2) ? cn_transpose(t, 0, 1) : cn_mul_s(t, 1));
}

static void one_world(uint32_t seed)
{
    faulty f = { 0 };
    world w = { .state = seed, .nowhere = fopen("/dev/null", "w") };
    w.cn = cn_open(&(cn_desc){ .device = "cpu", .threads = 1, .seed = 5, .allocator = { faulty_resize, &f } });
    DLManagedTensor *exports[EXPORTS] = { 0 };
    cn_tensor *shared = cn_keep(cn_full(w.cn, CN_F32, CN_DIMS(5, 5), 2)),
              *large = cn_keep(cn_full(w.cn, CN_F32, CN_DIMS(60, 60), 2));
    for (int i = 0; i < 120; i++) {
        cn_scope s = cn_scope_begin(w.cn);
        const uint32_t what = draw(&w, 8);
        if (what < 4) make(&w);
        else if (what < 7) try_it(&w, what == 6);
        else {
            const uint32_t at = draw(&w, EXPORTS);
            if (exports[at]) exports[at]->deleter(exports[at]), exports[at] = NULL;
            else exports[at] = export_of(&w, draw(&w, 2) ? shared : large);
        }
        cn_scope_end(w.cn, s);
    }
    cn_close(w.cn);
    bool twos = true;
    for (int i = 0; i < EXPORTS; i++) {
        if (!exports[i]) continue;
        const DLTensor *t = &exports[i]->dl_tensor;
        for (int64_t k = 0; k < t->shape[0] * t->shape[1]; k++) twos &= ((float *)t->data)[k] == 2;
        exports[i]->deleter(exports[i]);
    }
    check(twos, "exports outlive their context");
    check(f.blocks == 0 && f.bytes == 0, "seed %u leaves %lld blocks of %zu bytes", seed, (long long)f.blocks, f.bytes);
    fclose(w.nowhere);
}

static void every_order(void)
{
    check_group("orders");
    const uint32_t n = test_is_quick() ? 30 : 300;
    for (uint32_t seed = 1; seed <= n; seed++) one_world(seed * 2654435761u);
}

/* ---- two contexts ---- */

typedef struct pair {
    cn_ctx *a, *b;
} pair;

/* The call failed, and both contexts have an error. */
static void both(pair p, bool failed, const char *what)
{
    check(failed && cn_failed(p.a) && cn_failed(p.b), "%s: \"%s\" and \"%s\"", what, cn_error(p.a), cn_error(p.b));
    cn_error_clear(p.a);
    cn_error_clear(p.b);
}

static cn_tensor *foreign; /* what the functions below return */
static cn_tensor *return_foreign(void *user, cn_tensor *const *in, int n)
{
    return (void)user, (void)in, (void)n, foreign;
}
static cn_tensor *forward_foreign(cn_module *m, cn_tensor *x) { return (void)m, (void)x, foreign; }
static cn_tensor *hook_foreign(void *user, cn_tensor *g) { return (void)user, (void)g, foreign; }
static void grad_foreign(void *user, cn_tensor *const *in, int n, cn_tensor *out, cn_tensor *g, cn_tensor **grads)
{
    (void)user, (void)in, (void)n, (void)out, (void)g;
    grads[0] = foreign;
}
static cn_tensor *same(void *user, cn_tensor *const *in, int n) { return (void)user, (void)n, cn_mul_s(in[0], 2); }

static void tensors_of_another(pair p)
{
    cn_tensor *x = cn_param(cn_ones(p.a, CN_F32, CN_DIMS(2, 2))), *y = cn_param(cn_ones(p.b, CN_F32, CN_DIMS(2, 2)));
    cn_tensor *loss = cn_sum(x, CN_ALL, false), *g = NULL;
    cn_module *m = cn_nn_linear(p.a, 2, 2, NULL);
    foreign = y;
    both(p, !cn_forward(m, y), "cn_forward");
    both(p, !cn_forward_all(m, &y, 1, &g, 1), "cn_forward_all");
    both(p, !cn_module_param(m, "p", y), "cn_module_param");
    both(p, !cn_module_share(m, "s", y), "cn_module_share");
    both(p, !cn_module_buffer(m, "b", y), "cn_module_buffer");
    both(p, !cn_mse_loss(x, y, NULL), "cn_mse_loss");
    both(p, !cn_prelu(x, y), "cn_prelu");
    both(p, !cn_dataset_tensors((cn_tensor *[]){ x, y }, 2), "cn_dataset_tensors");
    both(p, !cn_sgd(p.a, (cn_params){ &y, 1 }, NULL), "cn_sgd");
    both(p, !cn_ema_new(p.a, (cn_params){ &y, 1 }, NULL), "cn_ema_new");
    both(p, !cn_clip_grad_norm((cn_params){ (cn_tensor *[]){ x, y }, 2 }, 1, NULL), "cn_clip_grad_norm");
    both(p, !cn_clip_grad_value((cn_params){ (cn_tensor *[]){ x, y }, 2 }, 1), "cn_clip_grad_value");
    both(p, !cn_sgd_step((cn_tensor *[]){ x, y }, NULL, 2, &(cn_sgd_step_desc){ .lr = 1 }), "cn_sgd_step");
    both(p, !cn_grad(&loss, 1, &y, 1, &g, NULL), "cn_grad");
    both(p, !cn_backward_with(loss, &(cn_backward_desc){ .gradient = y }), "cn_backward_with");
    cn_tensor *f64[2] = { cn_cast(x, CN_F64), cn_cast(y, CN_F64) };
    both(p, !cn_gradcheck(same, NULL, f64, 2, NULL), "cn_gradcheck");
    both(p, !cn_checkpoint(same, NULL, (cn_tensor *[]){ x, y }, 2), "cn_checkpoint");
    both(p, !cn_checkpoint(return_foreign, NULL, &x, 1), "what a checkpoint's function returns");
    cn_custom custom = { return_foreign, grad_foreign, NULL };
    both(p, !cn_custom_apply(&custom, (cn_tensor *[]){ x, y }, 2), "cn_custom_apply");
    both(p, !cn_custom_apply(&custom, &x, 1), "what a custom forward returns");
    custom.forward = same;
    both(p, !cn_backward(cn_sum(cn_custom_apply(&custom, &x, 1), CN_ALL, false)), "what a custom backward returns");
    cn_add_hook(x, hook_foreign, NULL);
    both(p, !cn_backward(cn_sum(x, CN_ALL, false)), "what a hook returns");
    static const cn_module_type odd = { .name = "Odd", .forward = forward_foreign };
    both(p, !cn_forward(cn_module_new(p.a, &odd), x), "what a forward returns");
    cn_transform *t = cn_transform_new(p.a);
    both(p, !cn_transform_apply(t, y, 1), "cn_transform_apply");
}

static void objects_of_another(pair p)
{
    cn_module *m = cn_nn_linear(p.a, 2, 2, NULL), *n = cn_nn_linear(p.b, 2, 2, NULL);
    cn_dict *d = cn_dict_new(p.b);
    cn_optim *o = cn_sgd(p.a, cn_parameters(m), NULL), *q = cn_sgd(p.b, cn_parameters(n), NULL);
    cn_schedule *s = cn_schedule_exponential(o, 0.5), *r = cn_schedule_exponential(q, 0.5);
    cn_ema *e = cn_ema_of(m, NULL);
    const cn_field f = { CN_F32, CN_DIMS(3, 4, 4), 0 };
    const void *const data[] = { pixels };
    cn_dataset *x = cn_dataset_arrays(p.a, 6, &f, data, 1), *y = cn_dataset_arrays(p.b, 6, &f, data, 1);
    cn_loader *l = cn_loader_new(x, NULL);
    both(p, !cn_module_child(m, "child", n), "cn_module_child");
    both(p, !cn_nn_sequential(p.a, n), "cn_nn_sequential");
    both(p, !cn_nn_residual(p.a, n), "cn_nn_residual");
    both(p, !cn_module_save(m, d, ""), "cn_module_save");
    both(p, !cn_module_load(m, d, NULL), "cn_module_load");
    both(p, !cn_optim_save(o, d, ""), "cn_optim_save");
    both(p, !cn_optim_load(o, d, ""), "cn_optim_load");
    both(p, cn_optim_add_group(o, cn_parameters(n), NULL) < 0, "cn_optim_add_group");
    both(p, !cn_schedule_save(s, d, ""), "cn_schedule_save");
    both(p, !cn_schedule_load(s, d, ""), "cn_schedule_load");
    both(p, !cn_schedule_chained(o, &r, 1), "cn_schedule_chained");
    both(p, !cn_ema_save(e, d, ""), "cn_ema_save");
    both(p, !cn_ema_load(e, d, ""), "cn_ema_load");
    both(p, !cn_loader_save(l, d, ""), "cn_loader_save");
    both(p, !cn_loader_load(l, d, ""), "cn_loader_load");
    both(p, !cn_dataset_concat((cn_dataset *[]){ x, y }, 2), "cn_dataset_concat");
    both(p, !cn_dataset_transform(x, cn_transform_new(p.b)), "cn_dataset_transform");
    both(p, !cn_loader_new(x, &(cn_loader_desc){ .sampler = cn_data_sampler_sequential(p.b, 6) }), "cn_loader_new");
    both(p, !cn_random_save(p.a, d, ""), "cn_random_save");
    both(p, !cn_checkpoint_from(&(cn_training){ .model = m }, d), "cn_checkpoint_from");
    both(p, !cn_checkpoint_save(&(cn_training){ .model = m, .optim = q }, NULL, "/dev/null/x.safetensors"),
         "cn_checkpoint_save");
    both(p, !cn_gpt_from(p.a, d, NULL), "cn_gpt_from");
}

/* ---- arguments that are missing or out of range ---- */

/* The call failed with an error that contains the words. */
static void refused(cn_ctx *cn, bool failed, const char *words)
{
    check(failed && cn_failed(cn) && strstr(cn_error(cn), words), "\"%s\" was expected, not \"%s\"", words,
          cn_error(cn));
    cn_error_clear(cn);
}

static cn_tensor *return_null(cn_module *m, cn_tensor *x) { return (void)m, (void)x, NULL; }
static cn_tensor *return_stale(cn_module *m, cn_tensor *x)
{
    (void)m;
    cn_scope s = cn_scope_begin(cn_context(x));
    cn_tensor *y = cn_mul_s(x, 2);
    cn_scope_end(cn_context(x), s);
    return y;
}

static void missing(cn_ctx *cn)
{
    cn_module *m = cn_nn_linear(cn, 2, 2, NULL);
    cn_tensor *x = cn_param(cn_ones(cn, CN_F32, CN_DIMS(2, 2))), *out = NULL, *loss = cn_sum(x, CN_ALL, false);
    cn_dict *d = cn_dict_new(cn);
    cn_optim *o = cn_sgd(cn, cn_parameters(m), NULL);
    static const cn_module_type nothing = { .name = "Nothing", .forward = return_null },
                                stale = { .name = "Stale", .forward = return_stale };
    refused(cn, !cn_forward(m, NULL), "forward: x must not be NULL");
    refused(cn, !cn_forward(NULL, x), "forward: the module must not be NULL");
    refused(cn, !cn_forward_all(m, NULL, 1, &out, 1), "forward_all");
    refused(cn, !cn_forward_all(m, &x, 1, NULL, 1), "forward_all");
    refused(cn, !cn_forward_all(m, &x, -1, &out, 1), "forward_all: needs a list of 1 or more tensors");
    refused(cn, !cn_forward_all(m, (cn_tensor *[]){ x, NULL }, 2, &out, 1), "operand 1 must not be NULL");
    refused(cn, !cn_forward(cn_module_new(cn, &nothing), x), "Nothing: the tensor that its forward returns must not");
    refused(cn, !cn_forward(cn_module_new(cn, &stale), x), "this tensor was released");
    refused(cn, !cn_module_new(cn, NULL), "module_new");
    refused(cn, !cn_module_param(NULL, "p", x), "module_param: the module must not be NULL");
    refused(cn, !cn_module_save(NULL, d, ""), "module_save: the module must not be NULL");
    refused(cn, !cn_module_save(m, NULL, ""), "module_save: the dict must not be NULL");
    refused(cn, !cn_grad(&loss, 1, &x, 1, NULL, NULL), "grad: the list for the gradients must not be NULL");
    refused(cn, !cn_grad(&loss, -1, &x, 1, &out, NULL), "grad: there must be at least 1 output, got -1");
    refused(cn, !cn_custom_apply(NULL, &x, 1), "custom_apply: forward and backward must be functions");
    refused(cn, !cn_checkpoint(NULL, NULL, &x, 1), "checkpoint: fn must be a function");
    refused(cn, !cn_optim_set_lr(o, 0, NAN), "lr must be finite");
    refused(cn, !cn_optim_set_lr(o, 7, 1), "group must be from 0 to 0, got 7");
    refused(cn, !cn_sgd(cn, cn_parameters(m), &(cn_sgd_desc){ .dampening = NAN }), "dampening must be finite");
    refused(cn,
            !cn_schedule_cyclic(o, &(cn_schedule_cyclic_desc){ .base_lr = 1, .max_lr = 2, .mode = (cn_cyclic_mode)9 }),
            "mode must be from 0 to 2");
    refused(cn, !cn_schedule_sequential(o, NULL, INT32_MIN, NULL), "at least 1 part");
    refused(cn, !cn_nn_sequential_of(cn, NULL, -1), "n must be ≥ 0, got -1");
    refused(cn, !cn_nn_lstm(cn, 2, INT64_MAX, NULL), "in and hidden must be > 0 and at most");
    refused(cn, !cn_nn_lstm(cn, 2, 2, &(cn_rnn_desc){ .num_layers = INT32_MAX }), "num_layers must be from 0");
    refused(cn, !cn_nn_multihead_attention(cn, INT64_MAX, 1, NULL), "embed_dim");
    refused(cn, !cn_nn_gpt(cn, NULL), "GPT: the descriptor");
    refused(cn, !cn_save(d, NULL), "save: path must not be NULL");
    refused(cn, !cn_load(cn, NULL), "load: path must not be NULL");
    refused(cn, !cn_dataset_new(cn, NULL), "dataset_new");
    refused(cn, !cn_dataset_arrays(cn, 1, NULL, NULL, 1), "dataset_arrays");
    refused(cn, !cn_data_sampler_weighted(cn, NULL, 3, NULL), "weights must not be NULL");
    refused(cn, !cn_tokenizer_load(cn, NULL), "tokenizer_load: path must not be NULL");
    refused(cn, !cn_from_dlpack(cn, NULL), "from_dlpack");
    refused(cn, !cn_checkpoint_save(&(cn_training){ .model = m }, NULL, NULL), "checkpoint: path must not be NULL");
    refused(cn, cn_gpu_find(cn, NULL) < 0, "gpu_find: the device must not be NULL");
    cn_module *root = cn_nn_sequential_of(cn, NULL, 0), *inner = cn_nn_sequential_of(cn, NULL, 0);
    cn_module_append(root, inner);
    refused(cn, !cn_module_append(inner, root), "child \"0\" holds the module");
    cn_module_free(inner);
    refused(cn, true, "belongs to another module; free that one");
    cn_module_free((cn_module *)(void *)o);
    refused(cn, true, "module_free: needs a module, got a optimizer");
    check(!cn_forward(NULL, NULL) && !cn_step(NULL) && !cn_schedule_step(NULL) && !cn_loader_next(NULL, NULL) &&
              !cn_module_save(NULL, NULL, NULL) && !cn_ema_update(NULL) && !cn_dataset_subset(NULL, NULL, 0) &&
              !cn_grad(NULL, 0, NULL, 0, NULL, NULL) && !cn_custom_apply(NULL, NULL, 0) && !cn_failed(cn),
          "nothing at all has no context: %s", cn_error(cn));
}

int main(void)
{
    if (!enter_scratch()) return finish();
    every_order();
    pair p = { cn_open(&(cn_desc){ .threads = 1 }), cn_open(&(cn_desc){ .threads = 1 }) };
    check_group("tensors of another context");
    tensors_of_another(p);
    check_group("objects of another context");
    objects_of_another(p);
    check_group("missing");
    missing(p.a);
    cn_close(p.a);
    cn_close(p.b);
    return finish();
}
