/* Functions of the program that the library calls, and that use the context: they free the object that calls them,
   close the context, end scopes, compute, begin a backward, call the same function again. Each is an error or works;
   afterwards the context computes as before, and nothing is left when it is closed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/faulty.h"

/* ---- what a callback does ---- */

typedef enum deed {
    COMPUTE,
    END_SCOPES,
    CLOSE,
    BACKWARD,
    BACKWARD_SAME,
    FREE,
    RELEASE,
    AGAIN,
    MAKE_OBJECTS,
    UNBALANCE,
    EVALUATE_ALL,
    FAIL,
    DEEDS
} deed;

/* The call alone matters. */
static void let_be(const cn_tensor *t) { (void)t; }

static const char *const deed_names[DEEDS] = { "compute",       "end scopes", "close",        "backward",
                                               "same backward", "free",       "release",      "again",
                                               "make objects",  "unbalance",  "evaluate all", "fail" };

typedef struct scene {
    cn_ctx *cn;
    deed deed;
    cn_tensor *x;    /* kept by the program */
    cn_tensor *loss; /* of the graph in question */
    void *object;    /* that calls */
    void (*free)(void *object);
    void (*again)(struct scene *s); /* the call that leads to the callback */
    int depth, calls;
} scene;

static void compute(scene *s)
{
    cn_scope scope = cn_scope_begin(s->cn);
    cn_item(cn_sum(cn_mul_s(cn_ones(s->cn, CN_F32, CN_DIMS(7)), 3), CN_ALL, false));
    cn_scope_end(s->cn, scope);
}

static void backward(scene *s)
{
    cn_scope scope = cn_scope_begin(s->cn);
    cn_tensor *p = cn_param(cn_ones(s->cn, CN_F32, CN_DIMS(3)));
    cn_backward(cn_sum(cn_square(p), CN_ALL, false));
    cn_release(p);
    cn_scope_end(s->cn, scope);
}

static void make_objects(scene *s)
{
    cn_module *m = cn_nn_linear(s->cn, 3, 3, NULL);
    cn_optim *o = cn_sgd(s->cn, cn_parameters(m), NULL);
    cn_module_free(m);
    cn_optim_free(o);
    cn_dict_new(s->cn); /* freed with the context */
}

/* What the callbacks below do, besides their work. */
static void act(scene *s)
{
    s->calls++;
    if (s->depth) return; /* called again by AGAIN */
    s->depth++;
    switch (s->deed) {
    case COMPUTE: compute(s); break;
    case END_SCOPES:
        cn_scope_end(s->cn, (cn_scope){ 0 });
        check(cn_failed(s->cn), "a callback ends a scope that began outside it");
        break;
    case CLOSE: cn_close(s->cn); break;
    case BACKWARD: backward(s); break;
    case BACKWARD_SAME:
        if (s->loss) cn_backward(s->loss);
        break;
    case FREE:
        if (s->free) s->free(s->object), s->free(s->object);
        break;
    case RELEASE: cn_release(s->x), cn_release(s->x), cn_keep(s->x); break;
    case AGAIN:
        if (s->again) s->again(s);
        break;
    case MAKE_OBJECTS: make_objects(s); break;
    case UNBALANCE: cn_no_grad_end(s->cn), cn_no_grad_begin(s->cn), cn_no_grad_begin(s->cn); break;
    case EVALUATE_ALL: cn_eval_all(s->cn); break;
    case FAIL: let_be(cn_add(s->x, cn_ones(s->cn, CN_F32, CN_DIMS(3, 4, 5)))); break;
    case DEEDS: break;
    }
    s->depth--;
}

/* The context computes as before. */
static void sound(cn_ctx *cn, const char *where, deed d)
{
    cn_error_clear(cn);
    cn_scope scope = cn_scope_begin(cn);
    cn_tensor *p = cn_param(cn_full(cn, CN_F32, CN_DIMS(4), 2));
    bool ok = cn_grad_enabled(cn) && cn_backward(cn_sum(cn_square(p), CN_ALL, false)) &&
              cn_item(cn_sum(cn_grad_of(p), CN_ALL, false)) == 16;
    check(ok, "%s, %s: the context is sound: %s", where, deed_names[d], cn_error(cn));
    cn_release(p);
    cn_scope_end(cn, scope);
    cn_error_clear(cn);
}

/* ---- the callbacks ---- */

static cn_tensor *hook(void *user, cn_tensor *g)
{
    act(user);
    return g;
}

static void run_hook(scene *s)
{
    cn_tensor *y = cn_square(s->x);
    cn_add_hook(y, hook, s);
    s->loss = cn_sum(cn_exp(y), CN_ALL, false);
    cn_backward(s->loss);
}

static cn_tensor *doubled(void *user, cn_tensor *const *in, int n)
{
    (void)n;
    cn_tensor *y = cn_mul_s(in[0], 2);
    act(user);
    return y;
}
static void doubled_back(void *user, cn_tensor *const *in, int n, cn_tensor *out, cn_tensor *g, cn_tensor **grads)
{
    (void)in, (void)n, (void)out;
    grads[0] = cn_mul_s(g, 2);
    act(user);
}

static void run_custom(scene *s)
{
    cn_custom c = { doubled, doubled_back, s };
    cn_tensor *y = cn_custom_apply(&c, &s->x, 1);
    s->loss = cn_sum(cn_square(y), CN_ALL, false);
    cn_backward(s->loss);
}

static void run_checkpoint(scene *s)
{
    s->loss = cn_sum(cn_checkpoint(doubled, s, &s->x, 1), CN_ALL, false);
    cn_backward(s->loss);
}

static void run_gradcheck(scene *s)
{
    cn_tensor *x = cn_keep(cn_ones(s->cn, CN_F64, CN_DIMS(2)));
    cn_tensor *was = s->x;
    s->x = x;
    cn_gradcheck(doubled, s, &x, 1, NULL);
    s->x = was;
}

typedef struct with_scene {
    scene *s;
} with_scene;

static cn_tensor *forward(cn_module *m, cn_tensor *x)
{
    cn_tensor *y = cn_mul_s(x, 2);
    act(((with_scene *)cn_module_data(m))->s);
    return cn_add(y, x);
}
static void describe(const cn_module *m, char *out, size_t size)
{
    scene *s = ((with_scene *)cn_module_data(m))->s;
    snprintf(out, size, "a scene");
    if (s) act(s);
}
static void destroyed(cn_module *m) { act(((with_scene *)cn_module_data(m))->s); }
static const cn_module_type module_type = {
    .name = "Scene", .forward = forward, .data_bytes = sizeof(with_scene), .describe = describe
};
static const cn_module_type leaving_type = { .name = "Leaving",
                                             .data_bytes = sizeof(with_scene),
                                             .destroy = destroyed };

static void free_module(void *m) { cn_module_free(m); }

static void forward_again(scene *s) { cn_forward(s->object, s->x); }

static void run_module(scene *s)
{
    cn_module *m = cn_module_new(s->cn, &module_type);
    ((with_scene *)cn_module_data(m))->s = s;
    cn_module *all =
        cn_nn_sequential(s->cn, m, cn_nn_residual(s->cn, cn_nn_linear(s->cn, 3, 3, NULL)), cn_nn_relu(s->cn));
    s->object = all;
    s->free = free_module;
    s->again = forward_again;
    cn_tensor *y = cn_forward(all, s->x);
    if (y) cn_eval(y);
    char text[1024];
    s->depth = 0;
    cn_error_clear(s->cn);
    cn_summary(all, s->x, text, sizeof text);
}

static void run_destroy(scene *s)
{
    cn_module *m = cn_module_new(s->cn, &leaving_type), *kept = cn_module_new(s->cn, &leaving_type);
    ((with_scene *)cn_module_data(m))->s = s;
    ((with_scene *)cn_module_data(kept))->s = s; /* destroyed when the context is closed */
    s->object = m;
    s->free = free_module;
    cn_module_free(m);
}

static bool rename_it(void *user, const char *name, char *out, size_t size)
{
    act(user);
    snprintf(out, size, "%s", name);
    return true;
}
static void run_rename(scene *s)
{
    cn_module *m = cn_nn_linear(s->cn, 3, 3, NULL);
    cn_dict *d = cn_dict_new(s->cn);
    cn_module_save(m, d, "");
    s->object = m;
    s->free = free_module;
    cn_module_load(m, d, &(cn_module_load_desc){ .rename = rename_it, .user = s });
    cn_module_named(s->deed == FREE ? NULL : m);
}

static void borrowed_ends(void *user) { act(user); }
static void run_borrow(scene *s)
{
    static float memory[4];
    cn_scope scope = cn_scope_begin(s->cn);
    cn_tensor *t = cn_borrow(s->cn, CN_F32, CN_DIMS(4), memory, borrowed_ends, s);
    cn_eval(cn_add_s(t, 1));
    cn_scope_end(s->cn, scope);
    cn_keep(cn_borrow(s->cn, CN_F32, CN_DIMS(4), memory, borrowed_ends, s)); /* till the context is closed */
}

static double rate(void *user, int group, int64_t step)
{
    (void)group;
    act(user);
    return 1.0 / (double)(step + 1);
}
static void free_schedule(void *s) { cn_schedule_free(s); }
static void step_again(scene *s)
{
    check(!cn_schedule_step(s->object) && strstr(cn_error(s->cn), "midst"), "a step in a step: %s", cn_error(s->cn));
}
static void run_schedule(scene *s)
{
    cn_module *m = cn_nn_linear(s->cn, 3, 3, NULL);
    cn_optim *opt = cn_sgd(s->cn, cn_parameters(m), NULL);
    cn_schedule *schedule = cn_schedule_lambda(opt, rate, s);
    cn_error_clear(s->cn);
    s->object = schedule;
    s->free = free_schedule;
    s->again = step_again;
    cn_schedule_step(schedule);
    cn_error_clear(s->cn);
    s->object = opt;
    s->free = (void (*)(void *))cn_optim_free;
    s->again = NULL;
    if (s->deed != FREE) cn_schedule_step(schedule);
}

static bool get(void *user, int64_t index, cn_draw *random, void *const *fields, char *error, size_t size)
{
    (void)random, (void)error, (void)size;
    *(float *)fields[0] = (float)index;
    act(user);
    return true;
}
static bool sample(void *user, uint64_t seed, int64_t epoch, int64_t n, int64_t *indices)
{
    (void)seed, (void)epoch;
    for (int64_t i = 0; i < n; i++) indices[i] = i;
    act(user);
    return true;
}
static void user_ends(void *user) { act(user); }
static void free_loader(void *l) { cn_loader_free(l); }
static void next_again(scene *s)
{
    cn_batch b;
    const bool next = cn_loader_next(s->object, &b);
    check(!next && (strstr(cn_error(s->cn), "midst") || strstr(cn_error(s->cn), "freed before")),
          "a batch in a batch: %s", cn_error(s->cn));
    check(!cn_loader_reset(s->object, 0), "a reset in a batch");
}

static void run_data(scene *s, int workers)
{
    cn_dataset_desc desc = {
        .count = 9, .fields = 1, .field = { { CN_F32, CN_SCALAR, 0 } }, .get = get, .user = s, .free_user = user_ends
    };
    cn_dataset *d = cn_dataset_new(s->cn, &desc);
    cn_data_sampler *order = cn_data_sampler_new(s->cn, 9, sample, s);
    cn_loader *l = cn_loader_new(d, &(cn_loader_desc){ .batch = 2, .workers = workers, .sampler = order });
    s->object = l;
    s->free = free_loader;
    s->again = next_again;
    cn_batch b;
    for (int i = 0; i < 4; i++) {
        if (cn_loader_next(l, &b)) cn_item(cn_sum(b.x, CN_ALL, false));
        cn_error_clear(s->cn);
        if (workers == 0) s->depth = 0;
        if (s->deed == FREE) break;
    }
}
static void run_loader(scene *s) { run_data(s, 0); }

/* Only a worker calls, and it must not use the context. */
static bool get_in_worker(void *user, int64_t index, cn_draw *random, void *const *fields, char *error, size_t size)
{
    scene *s = user;
    (void)random, (void)error, (void)size;
    *(float *)fields[0] = (float)index;
    for (int i = 0; i < 20; i++) {
        let_be(cn_ones(s->cn, CN_F32, CN_DIMS(3)));
        cn_scope_end(s->cn, (cn_scope){ 0 });
        cn_loader_free(s->object);
        cn_close(s->cn);
    }
    return true;
}
static void run_workers(scene *s)
{
    cn_dataset_desc desc = {
        .count = 9, .fields = 1, .field = { { CN_F32, CN_SCALAR, 0 } }, .get = get_in_worker, .user = s
    };
    cn_dataset *d = cn_dataset_new(s->cn, &desc);
    cn_loader *l = s->object = cn_loader_new(d, &(cn_loader_desc){ .batch = 3, .workers = 2 });
    cn_batch b;
    cn_loader_next(l, &b);
    check(cn_failed(s->cn) && strstr(cn_error(s->cn), "worker"), "a worker uses the context: %s", cn_error(s->cn));
    cn_loader_free(l);
}

static double clock_now(void *user)
{
    act(user);
    return 1;
}
static void free_progress(void *p) { cn_progress_free(p); }
static void run_clock(scene *s)
{
    FILE *nowhere = fopen("/dev/null", "w");
    cn_progress *p = cn_progress_new(
        s->cn, &(cn_progress_desc){ .total = 9, .out = nowhere, .tty = 1, .width = 70, .clock = { clock_now, s } });
    s->object = p;
    s->free = free_progress;
    cn_progress_step(p, 1, "one");
    if (s->deed != FREE) cn_progress_finish(p);
    cn_error_clear(s->cn);
    cn_progress_free(p); /* the stream ends before the context */
    fclose(nowhere);
}

typedef struct caller {
    const char *name;
    void (*run)(scene *s);
} caller;
static const caller callers[] = {
    { "hook", run_hook },           { "custom", run_custom },   { "checkpoint", run_checkpoint },
    { "gradcheck", run_gradcheck }, { "module", run_module },   { "destroy", run_destroy },
    { "rename", run_rename },       { "borrow", run_borrow },   { "schedule", run_schedule },
    { "loader", run_loader },       { "workers", run_workers }, { "clock", run_clock },
};
enum { CALLERS = sizeof callers / sizeof *callers };

static void every_pair(void)
{
    for (int c = 0; c < CALLERS; c++) {
        check_group(callers[c].name);
        for (int d = 0; d < DEEDS; d++) {
            faulty f = { 0 };
            scene s = { .deed = (deed)d };
            s.cn = cn_open(&(cn_desc){ .device = "cpu", .threads = 1, .allocator = { faulty_resize, &f } });
            s.x = cn_param(cn_ones(s.cn, CN_F32, CN_DIMS(2, 3)));
            cn_keep(s.x);
            cn_scope scope = cn_scope_begin(s.cn);
            callers[c].run(&s);
            if (d == CLOSE && s.calls) check(cn_failed(s.cn) || c >= 7, "%s closes: no error", callers[c].name);
            sound(s.cn, callers[c].name, (deed)d);
            cn_scope_end(s.cn, scope);
            s.depth = 0;
            cn_close(s.cn);
            check(f.blocks == 0, "%s, %s: %lld blocks are left", callers[c].name, deed_names[d], (long long)f.blocks);
        }
    }
}

/* ---- the logger and the allocator ---- */

static void logger(void *user, const char *line)
{
    scene *s = user;
    (void)line;
    s->calls++;
    if (!s->cn) return;
    cn_eval_all(s->cn);
    let_be(cn_ones(s->cn, CN_F32, CN_DIMS(3)));
    cn_scope_end(s->cn, (cn_scope){ 0 });
    cn_close(s->cn);
}

static void *allocate(void *user, void *p, size_t old_bytes, size_t new_bytes)
{
    scene *s = user;
    (void)old_bytes;
    s->calls++;
    if (s->cn && s->calls % 3 == 0) {
        let_be(cn_ones(s->cn, CN_F32, CN_DIMS(3)));
        cn_scope_end(s->cn, (cn_scope){ 0 });
        cn_eval_all(s->cn);
        cn_close(s->cn);
    }
    if (new_bytes) return realloc(p, new_bytes);
    free(p);
    return NULL;
}

static void loggers_and_allocators(void)
{
    check_group("logger");
    scene s = { 0 };
    setenv("CAIRN_TRACE", "plan", 1);
    s.cn = cn_open(&(cn_desc){ .device = "cpu", .threads = 1, .logger = logger, .logger_user = &s });
    unsetenv("CAIRN_TRACE");
    const double two = cn_item(cn_sum(cn_ones(s.cn, CN_F32, CN_DIMS(2)), CN_ALL, false));
    check(two == 2 && s.calls > 0, "a logger does not disturb: %g", two);
    check(strstr(cn_error(s.cn), "logger"), "and is an error: %s", cn_error(s.cn));
    cn_ctx *cn = s.cn;
    s.cn = NULL; /* it has learnt */
    sound(cn, "logger", COMPUTE);
    cn_close(cn);

    check_group("allocator");
    s = (scene){ 0 };
    s.cn = cn_open(&(cn_desc){ .device = "cpu", .threads = 1, .allocator = { allocate, &s } });
    cn_module *m = cn_nn_linear(s.cn, 30, 30, NULL);
    cn_tensor *y = cn_forward(m, cn_ones(s.cn, CN_F32, CN_DIMS(40, 30)));
    if (y) cn_eval(y);
    check(strstr(cn_error(s.cn), "allocator"), "an allocator that uses the context: %s", cn_error(s.cn));
    cn = s.cn;
    s.cn = NULL;
    sound(cn, "allocator", COMPUTE);
    cn_close(cn);
}

int main(void)
{
    every_pair();
    loggers_and_allocators();
    return finish();
}
