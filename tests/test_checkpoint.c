/* A run that stops and goes on gives the bits of one that does not stop; a process killed while it saves loses nothing. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/scratch.h"

/* A small GPT with dropout, learning to count upwards, with everything that has a state. */
typedef struct run {
    cn_ctx *cn;
    cn_training c;
    int32_t tokens[600];
} run;

static bool run_open(run *r, uint64_t seed)
{
    for (int i = 0; i < 600; i++) r->tokens[i] = (i * 7 + i / 13) % 31;
    cn_ctx *cn = r->cn = cn_open(&(cn_desc){ .seed = seed, .threads = 2 });
    cn_module *m = cn_nn_gpt(
        cn, &(cn_gpt_desc){ .vocab = 31, .context = 12, .layers = 2, .heads = 2, .width = 16, .dropout = 0.1 });
    cn_optim *opt = cn_adamw(cn, cn_parameters(m), &(cn_adamw_desc){ .lr = 3e-3 });
    cn_dataset *d = cn_dataset_token_array(cn, r->tokens, 600,
                                           &(cn_tokens_desc){ .type = CN_TOKEN_I32, .context = 12, .stride = 3 });
    r->c = (cn_training){ .model = m,
                          .optim = opt,
                          .schedule = cn_schedule_cosine(opt, 200, 1e-4),
                          .loader = cn_loader_new(d, &(cn_loader_desc){ .batch = 8, .shuffle = true, .workers = 2 }) };
    return check(!cn_failed(cn), "%s", cn_error(cn));
}

static void steps(run *r, int n)
{
    for (int i = 0; i < n && !cn_failed(r->cn); i++) {
        cn_scope s = cn_scope_begin(r->cn);
        cn_batch b;
        if (!cn_loader_next(r->c.loader, &b) && !cn_failed(r->cn)) cn_loader_next(r->c.loader, &b);
        cn_backward(cn_gpt_loss(r->c.model, b.x, b.y));
        cn_clip_grad_norm(cn_parameters(r->c.model), 1.0, NULL);
        cn_step(r->c.optim);
        cn_schedule_step(r->c.schedule);
        r->c.step++;
        cn_scope_end(r->cn, s);
    }
    check(!cn_failed(r->cn), "training: %s", cn_error(r->cn));
}

static void same_models(run *a, run *b, const char *what)
{
    cn_named_list x = cn_module_named(a->c.model), y = cn_module_named(b->c.model);
    for (int i = 0; i < x.n; i++) {
        const size_t bytes = (size_t)cn_numel(x.v[i].tensor) * sizeof(float);
        check(memcmp(cn_data(x.v[i].tensor), cn_data(y.v[i].tensor), bytes) == 0, "%s: %s differs", what, x.v[i].name);
    }
}

static void resumed_runs_are_equal(void)
{
    check_group("resume");
    const int half = test_is_quick() ? 15 : 100;
    static run whole, first, second;
    if (!run_open(&whole, 5) || !run_open(&first, 5) || !run_open(&second, 99)) return;
    steps(&whole, 2 * half);
    steps(&first, half);
    check(cn_checkpoint_save(&first.c, NULL, "run.safetensors"), "saved: %s", cn_error(first.cn));
    steps(&first, half);
    same_models(&whole, &first, "saving changes nothing");
    steps(&second, 3); /* of another seed, and a little way on: all of it is replaced */
    check(cn_checkpoint_load(&second.c, "run.safetensors") && second.c.step == half, "loaded at %lld: %s",
          (long long)second.c.step, cn_error(second.cn));
    steps(&second, half);
    same_models(&whole, &second, "resumed");
    check(second.c.step == 2 * half, "step %lld", (long long)second.c.step);
    check(cn_checkpoint_save(&whole.c, NULL, "a.safetensors") && cn_checkpoint_save(&second.c, NULL, "b.safetensors"),
          "both saved");
    cn_dict *a = cn_load(whole.cn, "a.safetensors"), *b = cn_load(whole.cn, "b.safetensors");
    check(cn_dict_count(a) == cn_dict_count(b) && cn_dict_count(a) >= 3 * cn_module_named(whole.c.model).n,
          "optimizer state is there");
    for (int64_t i = 0; i < cn_dict_texts(a); i++) {
        const char *name = cn_dict_text_name(a, i), *x = cn_dict_text(a, name), *y = cn_dict_text(b, name);
        check(y && strcmp(x, y) == 0, "%s is %s and %s", name, x, y ? y : "missing");
    }
    cn_close(whole.cn), cn_close(first.cn), cn_close(second.cn);
}

static void refusals(void)
{
    check_group("refusals");
    static run r;
    if (!run_open(&r, 1)) return;
    cn_dict *d = cn_dict_new(r.cn);
    cn_module_save(r.c.model, d, "");
    check(cn_save(d, "model.safetensors"), "a model alone");
    check(!cn_checkpoint_load(&r.c, "model.safetensors") && cn_error_code(r.cn) == CN_BAD_FILE, "is no checkpoint: %s",
          cn_error(r.cn));
    cn_error_clear(r.cn);
    check(!cn_checkpoint_load(&r.c, "nothing.safetensors") && cn_failed(r.cn), "no file: %s", cn_error(r.cn));
    cn_error_clear(r.cn);
    cn_dict *extra = cn_dict_new(r.cn);
    cn_dict_set_text(extra, "step", "3");
    check(!cn_checkpoint_save(&r.c, extra, "x.safetensors") && cn_failed(r.cn), "a name twice: %s", cn_error(r.cn));
    cn_error_clear(r.cn);
    cn_training no_optim = { .model = r.c.model, .step = 4 };
    check(cn_checkpoint_save(&no_optim, NULL, "part.safetensors"), "a part of it");
    check(!cn_checkpoint_load(&r.c, "part.safetensors") && cn_failed(r.cn), "is not enough: %s", cn_error(r.cn));
    cn_error_clear(r.cn);
    check(cn_checkpoint_load(&no_optim, "part.safetensors") && no_optim.step == 4, "but enough for that part");
    cn_close(r.cn);
}

/* Saves for ever, each time other values: every parameter is the number of the save. */
static void save_for_ever(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_module *m = cn_nn_sequential(cn, cn_nn_linear(cn, 300, 300, NULL), cn_nn_linear(cn, 300, 300, NULL));
    cn_training c = { .model = m };
    for (c.step = 1;; c.step++) {
        cn_scope s = cn_scope_begin(cn);
        cn_no_grad_begin(cn);
        cn_params p = cn_parameters(m);
        for (int i = 0; i < p.n; i++) cn_assign(p.v[i], cn_full_like(p.v[i], (double)c.step));
        cn_no_grad_end(cn);
        if (!cn_checkpoint_save(&c, NULL, "killed.safetensors")) _exit(1);
        cn_scope_end(cn, s);
    }
}

static void nothing_is_lost(int round)
{
    pid_t child = fork();
    if (child == 0) save_for_ever();
    while (access("killed.safetensors", R_OK) != 0) nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    nanosleep(&(struct timespec){ .tv_nsec = 3000000 + (round * 7919 % 40) * 1000000 + round * 123457 }, NULL);
    kill(child, SIGKILL);
    int status;
    waitpid(child, &status, 0);
    check(WIFSIGNALED(status), "round %d: it saved until it was killed", round);
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_training c = { .model =
                          cn_nn_sequential(cn, cn_nn_linear(cn, 300, 300, NULL), cn_nn_linear(cn, 300, 300, NULL)) };
    check(cn_checkpoint_load(&c, "killed.safetensors") && c.step > 0, "round %d: %s", round, cn_error(cn));
    cn_params p = cn_parameters(c.model);
    for (int i = 0; i < p.n; i++) {
        check(cn_item(cn_max(p.v[i], CN_ALL, false)) == (double)c.step &&
                  cn_item(cn_min(p.v[i], CN_ALL, false)) == (double)c.step,
              "round %d: parameter %d is of one save", round, i);
    }
    cn_close(cn);
}

int main(void)
{
    if (!enter_scratch()) return finish();
    resumed_runs_are_equal();
    refusals();
    check_group("kill -9");
    for (int round = 0; round < 20; round++) nothing_is_lost(round);
    return finish();
}
