/* The layers above operators in a context on the GPU: transfers, datasets and loaders, modules, a GPT, files and
   checkpoints, against the same on the CPU. Skipped where there is no GPU, real or software
   (scripts/gpu.sh). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cairn/cairn.h"
#include "gpu/backend.h"
#include "gpu/variants.h"
#include "support/check.h"
#include "support/scratch.h"

static cn_ctx *open_on(const char *device) { return cn_open(&(cn_desc){ .device = device, .seed = 5, .threads = 2 }); }

static double difference(const float *a, const float *b, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)a[i] - b[i]));
    return most;
}

/* ---- memory ---- */

static void count_calls(void *user) { ++*(int *)user; }

static void borrowed(cn_ctx *cn)
{
    check_group("borrow");
    float v[6] = { 1, 2, 3, 4, 5, 6 }, back[6] = { 0 };
    int calls = 0;
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *x = cn_borrow(cn, CN_F32, CN_DIMS(2, 3), v, count_calls, &calls);
    check(x && calls == 0 && cn_item(cn_sum(x, CN_ALL, false)) == 21, "borrowed: %s", cn_error(cn));
    check(cn_read(cn_transpose(x, 0, 1), back, sizeof back) && back[1] == 4 && back[4] == 3, "read back");
    check(cn_data(x) == NULL && cn_error_code(cn) == CN_BAD_DEVICE, "no memory to look at: %s", cn_error(cn));
    cn_error_clear(cn);
    cn_scope_end(cn, s);
    check(calls == 1, "given back %d times", calls);
    unsigned char bools[3] = { 0, 7, 1 };
    s = cn_scope_begin(cn);
    check(cn_item(cn_sum(cn_cast(cn_borrow(cn, CN_BOOL, CN_DIMS(3), bools, NULL, NULL), CN_F32), CN_ALL, false)) == 2,
          "any byte but 0 is true");
    cn_tensor *none = cn_borrow(cn, CN_F32, CN_DIMS(0, 4), v, NULL, NULL);
    check(none && cn_item(cn_sum(none, CN_ALL, false)) == 0, "nothing: %s", cn_error(cn));
    cn_scope_end(cn, s);
}

static void exchanged(cn_ctx *cn)
{
    check_group("dlpack");
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *x = cn_reshape(cn_arange(cn, CN_F32, 0, 12, 1), CN_DIMS(3, 4));
    DLManagedTensor *m = cn_to_dlpack(cn_transpose(x, 0, 1));
    if (check(m != NULL, "out: %s", cn_error(cn))) {
        const float *v = (const float *)((const char *)m->dl_tensor.data + m->dl_tensor.byte_offset);
        const int64_t *st = m->dl_tensor.strides;
        check(m->dl_tensor.device.device_type == 1 && v[1 * st[0] + 2 * st[1]] == 9, "element (1, 2) of the transpose");
        cn_tensor *y = cn_from_dlpack(cn, m);
        check(y && cn_get(y, CN_DIMS(3, 1)) == 7, "and in again: %s", cn_error(cn));
    }
    float back[4], v[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    int64_t shape[2] = { 2, 2 }, strides[2] = { -4, 2 }; /* from element 4 on: 4 6 / 0 2 */
    DLManagedTensor given = { .dl_tensor = { .data = v,
                                             .device = { 1, 0 },
                                             .ndim = 2,
                                             .dtype = { 2, 32, 1 },
                                             .shape = shape,
                                             .strides = strides,
                                             .byte_offset = 4 * sizeof(float) } };
    cn_tensor *z = cn_from_dlpack(cn, &given);
    check(z && cn_read(z, back, sizeof back) && back[0] == 4 && back[1] == 6 && back[2] == 0 && back[3] == 2,
          "strides that go backwards: %s, %g %g %g %g", cn_error(cn), back[0], back[1], back[2], back[3]);
    cn_scope_end(cn, s);
}

static void printed(cn_ctx *cpu, cn_ctx *gpu)
{
    check_group("print");
    char text[2][400];
    cn_ctx *contexts[2] = { cpu, gpu };
    for (int i = 0; i < 2; i++) {
        cn_scope s = cn_scope_begin(contexts[i]);
        cn_print(cn_transpose(cn_reshape(cn_arange(contexts[i], CN_I64, 0, 6, 1), CN_DIMS(2, 3)), 0, 1), text[i],
                 sizeof text[i]);
        cn_scope_end(contexts[i], s);
    }
    check(text[0][0] && strcmp(text[0], text[1]) == 0, "\"%s\" and \"%s\"", text[0], text[1]);
}

static void masked(cn_ctx *cn)
{
    check_group("mask");
    float v[5] = { 1, -2, 3, -4, 5 };
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *x = cn_from(cn, CN_F32, CN_DIMS(5), v);
    cn_tensor *some = cn_masked_select(x, cn_gt_s(x, 0));
    check(cn_numel(some) == 3 && cn_item(cn_sum(some, CN_ALL, false)) == 9, "selected: %s", cn_error(cn));
    cn_tensor *where = cn_nonzero(cn_lt_s(x, 0));
    check(cn_numel(where) == 2 && cn_get(where, CN_DIMS(1, 0)) == 3, "where: %s", cn_error(cn));
    cn_scope_end(cn, s);
}

/* ---- late reads ---- */

static void read_later(cn_ctx *cn, bool gpu)
{
    check_group(gpu ? "reading" : "reading, cpu");
    float v[6] = { 1, 2, 3, 4, 5, 6 }, w[6] = { 0 }, back[6] = { 0 };
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *x = cn_keep(cn_from(cn, CN_F32, CN_DIMS(2, 3), v));
    cn_tensor *y = cn_keep(cn_contiguous(cn_mul_s(cn_transpose(x, 0, 1), 2)));
    cn_eval_all(cn);
    cn_gpu_counters before = cn_gpu_counted(cn);
    cn_reading *r = cn_read_begin(x), *q = cn_read_begin(y);
    check(r && q && cn_gpu_counted(cn).submissions == before.submissions, "begun without a submission: %s",
          cn_error(cn));
    check(cn_read_done(r) == !gpu, "there at once on the CPU only");
    check(cn_write(x, w, sizeof w) && cn_write(y, w, sizeof w), "written over");
    cn_tensor *z = cn_add_s(x, 1);
    check(cn_eval(z) && cn_gpu_counted(cn).submissions == before.submissions + gpu,
          "they go with the next submission: %lld", (long long)(cn_gpu_counted(cn).submissions - before.submissions));
    check(cn_read_end(r, back, sizeof back) && difference(back, v, 6) == 0, "what it was: %s", cn_error(cn));
    check(cn_read_end(q, back, sizeof back) && back[0] == 2 && back[1] == 8 && back[5] == 12, "of a view: %s",
          cn_error(cn));
    check(cn_gpu_counted(cn).submissions == before.submissions + gpu, "ending causes none");
    cn_release(x);
    cn_release(y);
    cn_scope_end(cn, s);
}

static void read_kinds(cn_ctx *cn)
{
    check_group("reading");
    cn_scope s = cn_scope_begin(cn);
    int64_t whole[3];
    unsigned char bools[3];
    double real;
    cn_tensor *i = cn_arange(cn, CN_I64, -1, 2, 1);
    cn_reading *a = cn_read_begin(i), *b = cn_read_begin(cn_gt_s(i, 0)), *c = cn_read_begin(cn_scalar(cn, CN_F64, 2.5));
    int looks = 0;
    while (!cn_read_done(a) && looks < 100000000) looks++; /* read_done submits the read */
    check(cn_read_done(a), "done after %d looks", looks);
    check(cn_read_end(a, whole, sizeof whole) && whole[0] == -1 && whole[2] == 1, "whole numbers: %s", cn_error(cn));
    check(cn_read_end(b, bools, sizeof bools) && !bools[1] && bools[2] == 1, "bools: %s", cn_error(cn));
    check(cn_read_end(c, &real, sizeof real) && real == 2.5, "a number: %s", cn_error(cn));
    check(!cn_read_end(cn_read_begin(i), whole, 4) && cn_error_code(cn) == CN_BAD_ARGUMENT, "too few bytes: %s",
          cn_error(cn));
    cn_error_clear(cn);
    check(cn_read_end(cn_read_begin(i), NULL, 0), "not wanted");
    check(!cn_read_begin(NULL) && cn_read_done(NULL) && !cn_read_end(NULL, whole, 24) && !cn_failed(cn), "nothing");
    cn_tensor *none = cn_zeros(cn, CN_F32, CN_DIMS(0));
    check(cn_read_end(cn_read_begin(none), whole, 0), "no elements: %s", cn_error(cn));
    cn_read_begin(i); /* the context frees it */
    cn_scope_end(cn, s);
}

/* Two halves share a word: a part may begin in the middle of one. */
static void read_parts(cn_ctx *cn)
{
    check_group("reading parts");
    static const cn_dtype dtypes[] = { CN_F16, CN_BF16, CN_U8, CN_BOOL, CN_I64, CN_F32 };
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (int64_t from = 0; from < 4; from++) {
            cn_scope s = cn_scope_begin(cn);
            cn_tensor *all =
                cn_cast(cn_remainder_s(cn_arange(cn, CN_F32, 0, 9, 1), dtypes[d] == CN_BOOL ? 2 : 9), dtypes[d]);
            cn_eval(cn_keep(all));
            cn_tensor *part = cn_slice(all, 0, from, from + 5, 1);
            double now[5], later[5];
            unsigned char bytes[40];
            const size_t size = cn_dtype_size(dtypes[d]);
            cn_read_f64(part, now, 5);
            check(cn_read_end(cn_read_begin(part), bytes, 5 * size), "%s", cn_error(cn));
            cn_read_f64(cn_from(cn, dtypes[d], CN_DIMS(5), bytes), later, 5);
            const double first = dtypes[d] == CN_BOOL ? (double)(from % 2) : (double)from;
            check(now[0] == first && !memcmp(now, later, sizeof now), "%s from element %d: %g at once, %g later",
                  cn_dtype_name(dtypes[d]), (int)from, now[0], later[0]);
            cn_release(all);
            cn_scope_end(cn, s);
        }
}

/* Freed neighbours are one piece of memory again, in whatever order they are freed. */
static void memory_is_joined(cn_ctx *cn)
{
    check_group("heap");
    static const int orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
    enum { PIECE = 1 << 16 };
    cn__gpu_heap *h = &((cn__gpu_device *)cn->device)->heap;
    for (int i = 0; i < 6; i++) {
        cn__gpu_block *b[4];
        for (int k = 0; k < 4; k++) b[k] = cn__gpu_block_new(h, PIECE);
        if (!check(b[0] && b[1] && b[2] && b[3], "four blocks")) return;
        const bool row = b[1]->word == b[0]->word + PIECE / 4 && b[2]->word == b[1]->word + PIECE / 4;
        const uint32_t word = b[0]->word;
        for (int k = 0; k < 3; k++) cn__gpu_block_free(h, b[orders[i][k]]);
        cn__gpu_block *whole = cn__gpu_block_new(h, 3 * PIECE);
        check(row && whole && whole->word <= word, "order %d: three pieces are not one: word %u, now %u", i, word,
              whole ? whole->word : 0);
        cn__gpu_block_free(h, whole);
        cn__gpu_block_free(h, b[3]);
    }
}

/* Steps that differ in an attribute alone, here the dtype of a cast or the width of a triangle, are not one kernel. */
static void attributes_differ(cn_ctx *cn)
{
    check_group("attributes");
    cn_scope s = cn_scope_begin(cn);
    static const cn_dtype dtypes[] = { CN_I32, CN_U8, CN_F16, CN_BF16, CN_BOOL };
    enum { CASTS = sizeof dtypes / sizeof *dtypes };
    cn_tensor *from[CASTS], *to[CASTS], *t[2];
    for (int i = 0; i < CASTS; i++) from[i] = cn_keep(cn_full(cn, CN_F32, CN_DIMS(8), 300.3)), cn_eval(from[i]);
    for (int i = 0; i < CASTS; i++) to[i] = cn_keep(cn_cast(from[i], dtypes[i]));
    for (int i = 0; i < 2; i++) t[i] = cn_keep(cn_tril(cn_ones(cn, CN_F32, i ? CN_DIMS(5, 3) : CN_DIMS(3, 5)), 0));
    check(cn_eval_all(cn), "%s", cn_error(cn));
    static const double expected[] = { 300, 44, 300.25, 300, 1 };
    for (int i = 0; i < CASTS; i++)
        check(cn_get(to[i], CN_DIMS(7)) == expected[i], "300.3 as %s: %g", cn_dtype_name(dtypes[i]),
              cn_get(to[i], CN_DIMS(7)));
    for (int i = 0; i < 15; i++)
        check(cn_get(t[0], CN_DIMS(i / 5, i % 5)) == (i % 5 <= i / 5) &&
                  cn_get(t[1], CN_DIMS(i / 3, i % 3)) == (i % 3 <= i / 3),
              "element %d of two triangles", i);
    for (int i = 0; i < CASTS; i++) cn_release(from[i]), cn_release(to[i]);
    cn_release(t[0]), cn_release(t[1]);
    cn_scope_end(cn, s);
}

/* ---- forms of kernels ---- */

static int form(int preferred)
{
    cn_ctx *cn = open_on("gpu");
    int choice = cn__gpu_variant(cn, "matmul", preferred);
    cn_close(cn);
    return choice;
}

static void write_verdict(cn_ctx *cn, const char *words)
{
    char path[1024];
    check(cn_gpu_verdict_path(cn, path, sizeof path) && strstr(path, "/cairn/doctor-"), "a place for the verdict: %s",
          path);
    FILE *f = fopen(path, "w");
    if (check(f != NULL, "%s", path)) fputs(words, f), fclose(f);
}

static void quarantine(cn_ctx *cn)
{
    check_group("variants");
    enum { PLAIN, TILED, DIRECT };
    char folder[1100], cwd[1024];
    if (!getcwd(cwd, sizeof cwd)) return;
    snprintf(folder, sizeof folder, "%s/cairn", cwd);
    mkdir(folder, 0777);
    const char *cache = getenv("XDG_CACHE_HOME");
    char *kept = cache ? strdup(cache) : NULL;
    setenv("XDG_CACHE_HOME", cwd, 1);
    unsetenv("CAIRN_GPU_MATMUL");
    write_verdict(cn, "PASS all\n");
    check(form(TILED) == TILED && form(DIRECT) == DIRECT, "what is preferred");
    write_verdict(
        cn, "FAIL some\nquarantine matmul tiled\nquarantine matmul plain\nquarantine other tiled\nquarantine matmul\n");
    check(form(TILED) == PLAIN, "the safe one instead of one in quarantine: %d", form(TILED));
    check(form(DIRECT) == DIRECT && form(PLAIN) == PLAIN, "others stay, and the safe one");
    setenv("CAIRN_GPU_MATMUL", "tiled", 1);
    check(form(DIRECT) == TILED, "what the environment says");
    setenv("CAIRN_GPU_MATMUL", "nonsense", 1);
    check(form(DIRECT) == DIRECT, "if it says something");
    unsetenv("CAIRN_GPU_MATMUL");
    char path[8];
    check(!cn_gpu_verdict_path(cn, path, sizeof path), "no room for the path");
    write_verdict(cn, "");
    if (kept) setenv("XDG_CACHE_HOME", kept, 1); /* drivers cache compiled shaders there */
    else unsetenv("XDG_CACHE_HOME");
    free(kept);
}

/* ---- profiles ---- */

static void profiled(cn_ctx *cn)
{
    check_group("profile");
    cn_gpu_info card;
    check(cn_gpu_describe(cn, cn_gpu_find(cn, "gpu"), &card), "described");
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *x = cn_keep(cn_rand(cn, CN_F32, CN_DIMS(512, 512)));
    cn_eval(x);
    cn_profile *p = cn_profile_begin(cn, NULL);
    enum { EVALUATIONS = 3 };
    for (int i = 0; i < EVALUATIONS; i++) {
        cn_tensor *y = cn_sum(cn_exp(cn_mul_s(cn_add_s(x, i), 0.5)), CN_DIMS(1), false);
        cn_eval(y);
    }
    cn_profile_end(p);
    cn_gpu_counters c = cn_profile_gpu(p);
    check(c.dispatches >= EVALUATIONS && c.submissions >= EVALUATIONS, "%lld dispatches, %lld submissions",
          (long long)c.dispatches, (long long)c.submissions);
    check(cn_profile_gpu_timed(p) == card.timestamps, "timed by the GPU if it has a clock");
    double kernels = 0, share = 0;
    int64_t calls = 0;
    for (int k = 0; k < CN_PROFILE_CLASSES; k++) {
        const cn_profile_row r = cn_profile_total(p, (cn_profile_class)k);
        share += r.share;
        if (k < CN_PROFILE_TRANSFER) kernels += r.seconds, calls += r.calls;
    }
    check(calls == cn_profile_kernels(p) && calls >= EVALUATIONS, "%lld kernels", (long long)calls);
    check(kernels > 0 && kernels < cn_profile_seconds(p) && fabs(share - 1) < 1e-6,
          "%g s in kernels, shares add up to %g", kernels, share);
    char text[8000];
    cn_profile_print(p, text, sizeof text);
    check(strstr(text, "dispatches") && strstr(text, "submissions"), "shown: %s", text);
    cn_profile_free(p);
    cn_release(x);
    cn_scope_end(cn, s);
    check(!cn_failed(cn), "%s", cn_error(cn));
}

/* ---- files ---- */

static void files(cn_ctx *cpu, cn_ctx *gpu)
{
    static const char *const names[] = { "t.safetensors", "t.npz" };
    static const cn_dtype types[] = { CN_F32, CN_F64, CN_F16, CN_I64, CN_U8, CN_BOOL, CN_BF16 };
    check_group("files");
    for (int f = 0; f < 2; f++) {
        cn_scope s = cn_scope_begin(gpu), c = cn_scope_begin(cpu);
        cn_dict *out = cn_dict_new(gpu);
        int n = f == 1 ? 6 : 7; /* NumPy has no bf16 */
        for (int i = 0; i < n; i++) {
            cn_tensor *x = cn_cast(cn_reshape(cn_arange(gpu, CN_F32, 0, 12, 1), CN_DIMS(3, 4)), types[i]);
            cn_dict_set(out, cn_dtype_name(types[i]), cn_transpose(x, 0, 1));
        }
        check(cn_save(out, names[f]), "%s saved: %s", names[f], cn_error(gpu));
        cn_dict *a = cn_load(cpu, names[f]), *b = cn_load(gpu, names[f]);
        for (int i = 0; i < n && check(a && b, "loaded: %s%s", cn_error(cpu), cn_error(gpu)); i++) {
            cn_tensor *x = cn_dict_get(a, cn_dtype_name(types[i])), *y = cn_dict_get(b, cn_dtype_name(types[i]));
            double p[12], q[12];
            bool ok = cn_read_f64(x, p, 12) && cn_read_f64(y, q, 12) && cn_type(y) == types[i];
            for (int k = 0; k < 12 && ok; k++) {
                double expected = k % 3 * 4 + k / 3;
                if (types[i] == CN_BOOL) expected = expected != 0;
                ok = p[k] == expected && q[k] == expected;
            }
            check(ok, "%s: %s of %s", names[f], cn_dtype_name(types[i]), cn_error(gpu));
        }
        cn_scope_end(gpu, s);
        cn_scope_end(cpu, c);
    }
}

/* ---- data ---- */

static void datasets(cn_ctx *cn)
{
    check_group("datasets");
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *x = cn_reshape(cn_arange(cn, CN_F32, 0, 40, 1), CN_DIMS(10, 4));
    cn_tensor *y = cn_arange(cn, CN_I64, 0, 10, 1);
    cn_dataset *d = cn_dataset_tensors(CN_TENSORS(x, y));
    cn_loader *l = cn_loader_new(d, &(cn_loader_desc){ .batch = 4, .workers = 1 });
    cn_batch b;
    double sum = 0, labels = 0;
    int64_t batches = 0;
    for (cn_scope step = cn_scope_begin(cn); cn_loader_next(l, &b); cn_scope_end(cn, step), batches++) {
        sum += cn_item(cn_sum(b.x, CN_ALL, false));
        labels += cn_item(cn_sum(b.y, CN_ALL, false));
    }
    check(batches == 3 && sum == 780 && labels == 45, "%lld batches, %g, %g: %s", (long long)batches, sum, labels,
          cn_error(cn));
    cn_transform *t = cn_transform_new(cn);
    cn_transform_normalize(t, (float[]){ 1 }, (float[]){ 2 }, 1);
    cn_tensor *image = cn_transform_apply(t, cn_reshape(cn_arange(cn, CN_F32, 0, 6, 1), CN_DIMS(1, 2, 3)), 1);
    check(image && fabs(cn_get(image, CN_DIMS(0, 1, 2)) - 2) < 1e-6, "transformed: %s", cn_error(cn));
    cn_loader_free(l);
    cn_dataset_free(d);
    cn_scope_end(cn, s);
}

/* ---- an MLP, trained on both ---- */

enum { ITEMS = 96, FEATURES = 8, CLASSES = 3, STEPS = 12 };

typedef struct training {
    cn_ctx *cn;
    cn_module *model;
    cn_training c;
    double loss[STEPS];
} training;

static void fill_items(float *x, int64_t *y)
{
    for (int i = 0; i < ITEMS; i++) {
        y[i] = i % CLASSES;
        for (int k = 0; k < FEATURES; k++)
            x[i * FEATURES + k] = sinf((float)(i * 7 + k * 3)) + (k % CLASSES == y[i] ? 1.5f : 0);
    }
}

static void train_mlp(training *t, const char *device)
{
    static float x[ITEMS * FEATURES];
    static int64_t y[ITEMS];
    fill_items(x, y);
    cn_ctx *cn = t->cn = open_on(device);
    t->model = cn_nn_sequential(cn, cn_nn_linear(cn, FEATURES, 16, NULL), cn_nn_batch_norm1d(cn, 16, NULL),
                                cn_nn_relu(cn), cn_nn_dropout(cn, 0.1), cn_nn_linear(cn, 16, CLASSES, NULL));
    cn_field fields[2] = { { .dtype = CN_F32, .shape = CN_DIMS(FEATURES) }, { .dtype = CN_I64, .shape = CN_SCALAR } };
    cn_dataset *d = cn_dataset_arrays(cn, ITEMS, fields, CN_LIST(const void *, x, y));
    cn_optim *opt = cn_adamw(cn, cn_parameters(t->model), &(cn_adamw_desc){ .lr = 1e-2 });
    t->c = (cn_training){ .model = t->model,
                          .optim = opt,
                          .loader = cn_loader_new(d, &(cn_loader_desc){ .batch = 16, .shuffle = true, .workers = 1 }) };
    for (int i = 0; i < STEPS && !cn_failed(cn); i++) {
        cn_scope s = cn_scope_begin(cn);
        cn_batch b;
        if (!cn_loader_next(t->c.loader, &b)) cn_loader_next(t->c.loader, &b);
        cn_tensor *loss = cn_cross_entropy(cn_forward(t->model, b.x), b.y, NULL);
        cn_backward(loss);
        cn_step(opt);
        t->loss[i] = cn_item(loss);
        t->c.step++;
        cn_scope_end(cn, s);
    }
    check(!cn_failed(cn), "%s: %s", device, cn_error(cn));
}

static void logits_of(cn_ctx *cn, cn_module *m, float *out)
{
    static float x[ITEMS * FEATURES];
    static int64_t y[ITEMS];
    fill_items(x, y);
    cn_scope s = cn_scope_begin(cn);
    cn_module_train(m, false);
    check(
        cn_read(cn_forward(m, cn_from(cn, CN_F32, CN_DIMS(ITEMS, FEATURES), x)), out, sizeof(float) * ITEMS * CLASSES),
        "logits: %s", cn_error(cn));
    cn_module_train(m, true);
    cn_scope_end(cn, s);
}

static void mlp(void)
{
    check_group("mlp");
    static training on_cpu, on_gpu;
    static float a[ITEMS * CLASSES], b[ITEMS * CLASSES], c[ITEMS * CLASSES];
    train_mlp(&on_cpu, "cpu");
    train_mlp(&on_gpu, "gpu");
    for (int i = 0; i < STEPS; i++)
        check(fabs(on_cpu.loss[i] - on_gpu.loss[i]) < 1e-3, "step %d: loss %g and %g", i, on_cpu.loss[i],
              on_gpu.loss[i]);
    check(on_gpu.loss[STEPS - 1] < on_gpu.loss[0] * 0.9, "it learns: %g to %g", on_gpu.loss[0], on_gpu.loss[STEPS - 1]);
    logits_of(on_cpu.cn, on_cpu.model, a);
    logits_of(on_gpu.cn, on_gpu.model, b);
    check(difference(a, b, ITEMS * CLASSES) < 5e-2, "logits differ by %g", difference(a, b, ITEMS * CLASSES));
    check(cn_checkpoint_save(&on_gpu.c, NULL, "mlp.safetensors"), "saved: %s", cn_error(on_gpu.cn));
    check(cn_checkpoint_load(&on_cpu.c, "mlp.safetensors") && on_cpu.c.step == STEPS, "loaded: %s",
          cn_error(on_cpu.cn));
    logits_of(on_cpu.cn, on_cpu.model, c);
    check(difference(b, c, ITEMS * CLASSES) < 1e-4, "loaded logits differ by %g", difference(b, c, ITEMS * CLASSES));
    check(cn_module_to(on_gpu.model, "gpu") && cn_module_to(on_cpu.model, "cpu"), "where they are");
    check(!cn_module_to(on_gpu.model, "cpu") && strstr(cn_error(on_gpu.cn), "\"gpu\""), "not elsewhere: %s",
          cn_error(on_gpu.cn));
    cn_close(on_cpu.cn);
    cn_close(on_gpu.cn);
}

/* ---- a GPT ---- */

enum { TOKENS = 300, GPT_STEPS = 6, VOCAB = 31 };

static bool gpt_open(training *t, const char *device)
{
    static int32_t tokens[TOKENS];
    for (int i = 0; i < TOKENS; i++) tokens[i] = (i * 7 + i / 13) % VOCAB;
    cn_ctx *cn = t->cn = open_on(device);
    cn_gpt_desc shape = { .vocab = VOCAB, .context = 12, .layers = 2, .heads = 2, .width = 16, .dropout = 0.1 };
    t->model = cn_nn_gpt(cn, &shape);
    cn_optim *opt = cn_adamw(cn, cn_parameters(t->model), &(cn_adamw_desc){ .lr = 3e-3 });
    cn_tokens_desc windows = { .type = CN_TOKEN_I32, .context = 12, .stride = 3 };
    cn_dataset *d = cn_dataset_token_array(cn, tokens, TOKENS, &windows);
    t->c = (cn_training){ .model = t->model,
                          .optim = opt,
                          .schedule = cn_schedule_cosine(opt, 200, 1e-4),
                          .loader = cn_loader_new(d, &(cn_loader_desc){ .batch = 8, .shuffle = true, .workers = 1 }) };
    return check(!cn_failed(cn), "%s: %s", device, cn_error(cn));
}

static void gpt_steps(training *t, int n)
{
    for (int i = 0; i < n && !cn_failed(t->cn); i++) {
        cn_scope s = cn_scope_begin(t->cn);
        cn_batch b;
        if (!cn_loader_next(t->c.loader, &b) && !cn_failed(t->cn)) cn_loader_next(t->c.loader, &b);
        cn_tensor *loss = cn_gpt_loss(t->model, b.x, b.y);
        cn_backward(loss);
        cn_clip_grad_norm(cn_parameters(t->model), 1.0, NULL);
        cn_step(t->c.optim);
        cn_schedule_step(t->c.schedule);
        t->loss[t->c.step++ % STEPS] = cn_item(loss);
        cn_scope_end(t->cn, s);
    }
    check(!cn_failed(t->cn), "training: %s", cn_error(t->cn));
}

static void compare_samplers(training *a, training *b)
{
    const int32_t prompt[5] = { 0, 7, 14, 21, 28 };
    cn_sampler *s = cn_sampler_new(a->model, &(cn_sampler_desc){ .greedy = true });
    cn_sampler *t = cn_sampler_new(b->model, &(cn_sampler_desc){ .greedy = true });
    check(cn_sampler_feed(s, prompt, 5) && cn_sampler_feed(t, prompt, 5), "fed: %s%s", cn_error(a->cn),
          cn_error(b->cn));
    const float *x = cn_sampler_logits(s), *y = cn_sampler_logits(t);
    if (check(x && y, "logits: %s", cn_error(b->cn)))
        check(difference(x, y, VOCAB) < 1e-2, "next token's logits differ by %g", difference(x, y, VOCAB));
    for (int i = 0; i < 3; i++) check(cn_sampler_next(t) >= 0, "token %d: %s", i, cn_error(b->cn));
    cn_sampler_free(s);
    cn_sampler_free(t);
}

static void gpt(void)
{
    check_group("gpt");
    static training on_cpu, on_gpu, resumed;
    if (!gpt_open(&on_cpu, "cpu") || !gpt_open(&on_gpu, "gpu") || !gpt_open(&resumed, "gpu")) return;
    gpt_steps(&on_cpu, GPT_STEPS);
    gpt_steps(&on_gpu, GPT_STEPS);
    for (int i = 0; i < GPT_STEPS; i++)
        check(fabs(on_cpu.loss[i] - on_gpu.loss[i]) < 2e-3, "step %d: loss %g and %g", i, on_cpu.loss[i],
              on_gpu.loss[i]);
    compare_samplers(&on_cpu, &on_gpu);
    check(cn_checkpoint_save(&on_gpu.c, NULL, "gpt.safetensors"), "saved: %s", cn_error(on_gpu.cn));
    check(cn_checkpoint_load(&resumed.c, "gpt.safetensors") && resumed.c.step == GPT_STEPS, "loaded: %s",
          cn_error(resumed.cn));
    gpt_steps(&on_gpu, 3);
    gpt_steps(&resumed, 3);
    for (int i = GPT_STEPS; i < GPT_STEPS + 3; i++)
        check(fabs(on_gpu.loss[i] - resumed.loss[i]) < 1e-5, "resumed, step %d: loss %g and %g", i, on_gpu.loss[i],
              resumed.loss[i]);
    cn_close(on_cpu.cn);
    cn_close(on_gpu.cn);
    cn_close(resumed.cn);
}

int main(void)
{
    if (!enter_scratch()) return finish();
    cn_ctx *cpu = open_on("cpu"), *gpu = open_on("gpu");
    if (!cpu || !gpu) return 1;
    if (cn_gpu_available(gpu)) {
        check(!cn_failed(gpu), "open: %s", cn_error(gpu));
        borrowed(gpu);
        exchanged(gpu);
        printed(cpu, gpu);
        masked(gpu);
        files(cpu, gpu);
        datasets(gpu);
        read_later(gpu, true);
        read_later(cpu, false);
        read_kinds(gpu);
        read_kinds(cpu);
        read_parts(gpu);
        read_parts(cpu);
        memory_is_joined(gpu);
        attributes_differ(gpu);
        attributes_differ(cpu);
        quarantine(gpu);
        profiled(gpu);
        check(!cn_failed(gpu) && !cn_failed(cpu), "an error is left: %s%s", cn_error(gpu), cn_error(cpu));
        mlp();
        gpt();
    } else {
        printf("no GPU: %s\n", cn_gpu_why_not(gpu));
        skip();
    }
    cn_close(cpu);
    cn_close(gpu);
    return finish();
}
