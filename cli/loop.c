/* The training loop for all models: steps, measurements, samples, checkpoints, and resuming. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* ---- interruptions: the first signal ends the loop after its step, the second ends the program ---- */

static volatile sig_atomic_t signal_seen;

static void remember_signal(int number) { signal_seen = number; }
int interrupted(void) { return signal_seen; }

static void watch_signals(void)
{
    struct sigaction a = { .sa_handler = remember_signal, .sa_flags = (int)SA_RESETHAND | SA_RESTART };
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

/* ---- output ---- */

void print_line(const job *j, const char *format, ...)
{
    if (flag_of(j->s, "quiet")) return;
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    const int n = vsnprintf(NULL, 0, format, list);
    char *line = need((size_t)(n < 0 ? 0 : n) + 1);
    if (n > 0) vsnprintf(line, (size_t)n + 1, format, again);
    va_end(again);
    va_end(list);
    if (j->bar) cn_progress_note(j->bar, "%s", line);
    else printf("%s\n", line), fflush(stdout);
    free(line);
}

/* ---- begin ---- */

static int read_checkpoint(job *j)
{
    const char *path = text_of(j->s, "resume"), *kind = strrchr(j->s->command->name, ' ') + 1;
    j->resumed = cn_load(j->cn, path);
    if (!j->resumed) return fail_in(j->cn);
    const char *model = cn_dict_text(j->resumed, "model");
    int64_t step;
    if (!cn_dict_whole(j->resumed, "step", &step) || !model)
        return fail("%s: not a checkpoint of a training run", path);
    if (strcmp(model, kind)) return fail("%s: the checkpoint is of a %.20s, not of a %s", path, model, kind);
    return load_settings(j->s, j->resumed);
}

int begin_job(job *j, settings *s)
{
    j->s = s;
    j->cn = open_context(s);
    if (!j->cn) return FAILED;
    if (!given(s, "resume")) return DONE;
    const int code = read_checkpoint(j);
    cn_seed(j->cn, (uint64_t)whole_of(s, "seed"));
    return code;
}

void end_job(job *j)
{
    cn_close(j->cn);
    free(j->out);
    free(j->file);
}

/* Two groups of parameters: matrices have weight decay; biases and norms have none. */
static cn_optim *new_optim(job *j)
{
    const cn_params all = cn_parameters(j->model);
    cn_tensor **list = need(((size_t)all.n + 1) * sizeof *list);
    int matrices = 0, others = 0;
    for (int i = 0; i < all.n; i++)
        if (cn_ndim(all.v[i]) > 1) list[matrices++] = all.v[i];
    for (int i = 0; i < all.n; i++)
        if (cn_ndim(all.v[i]) <= 1) list[matrices + others++] = all.v[i];
    const double decay = number_of(j->s, "decay");
    cn_adamw_desc desc = { .lr = number_of(j->s, "lr"),
                           .beta2 = number_of(j->s, "beta2"),
                           .weight_decay = decay > 0 ? decay : CN_ZERO };
    cn_optim *opt = cn_adamw(j->cn, (cn_params){ list, matrices }, &desc);
    if (opt && others) {
        cn_group_desc plain = { .weight_decay = CN_ZERO };
        if (cn_optim_add_group(opt, (cn_params){ list + matrices, others }, &plain) < 0) opt = NULL;
    }
    free(list);
    return opt;
}

static cn_schedule *new_schedule(job *j, cn_optim *opt)
{
    int64_t warmup = whole_of(j->s, "warmup");
    if (warmup > j->steps / 2) warmup = j->steps / 2;
    const double low = number_of(j->s, "min-lr");
    if (!warmup) return cn_schedule_cosine(opt, j->steps, low);
    cn_schedule_linear_desc rise = { .start_factor = 1 / (double)(warmup + 1), .total_iters = warmup };
    cn_schedule *parts[] = { cn_schedule_linear(opt, &rise), cn_schedule_cosine(opt, j->steps - warmup, low) };
    return cn_schedule_sequential(opt, parts, 2, &warmup);
}

const char *device_of(const job *j)
{
    const cn_params p = cn_parameters(j->model);
    return p.n ? cn_device(p.v[0]) : "cpu";
}

/* runs/MODEL-DEVICE, and the settings of the training that are not the default: runs/gpt-l4-h4-w128-c128-cpu-lr0.01. */
static char *default_folder(const job *j)
{
    char name[400];
    size_t n = (size_t)snprintf(name, sizeof name, "runs/%s", j->name);
    for (int i = 0; i < n_options && n < sizeof name; i++) {
        const option *o = &options[i];
        const struct setting *v = &j->s->of[i];
        const bool fits = !strcmp(o->group, "Training") || !strcmp(o->name, "dropout") || !strcmp(o->name, "seed");
        if (!(o->commands & j->s->command->bit) || o->here || !fits || !v->n || v->by == BY_DEFAULT) continue;
        if (o->initial && !strcmp(o->initial, v->item[0])) continue;
        n += (size_t)snprintf(name + n, sizeof name - n, "-%s%s", o->name, v->item[0]);
    }
    return copy_text(name);
}

/* A folder with the config file of a run is cairn's own. In any other, no file is overwritten. */
static int check_folder(const job *j, const char *config)
{
    if (check_runs(j) != DONE) return FAILED;
    if (is_config_of_run(config)) return DONE;
    static const char *const names[] = { "config.conf", "log.csv", "loss.svg", "loss.png", "tokenizer.json" };
    int code = may_write(j->s, j->file, false);
    for (size_t i = 0; i < sizeof names / sizeof *names && code == DONE; i++) {
        char *path = join_path(j->out, names[i]);
        code = may_write(j->s, path, false);
        free(path);
    }
    return code;
}

/* A resumed run continues in the folder of its checkpoint. */
int open_folder(job *j)
{
    const size_t n = strlen(j->name);
    snprintf(j->name + n, sizeof j->name - n, "-%s", device_of(j));
    for (char *c = j->name + n; *c; c++)
        if (*c == ':') *c = '-';
    j->out = given(j->s, "out") ? copy_text(text_of(j->s, "out"))
             : j->resumed       ? folder_of(text_of(j->s, "resume"))
                                : default_folder(j);
    if (make_folder(j->out) != DONE) return FAILED;
    char name[192];
    snprintf(name, sizeof name, "%s.safetensors", j->name);
    j->file = join_path(j->out, name);
    char *config = join_path(j->out, "config.conf");
    const int code = check_folder(j, config) == DONE ? write_config(j->s, config) : FAILED;
    free(config);
    return code;
}

static void introduce(const job *j, int64_t done)
{
    const int64_t threads = whole_of(j->s, "threads");
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    print_line(j, "%s on %s, %" PRId64 " threads: %" PRId64 " parameters", j->name, device_of(j),
               threads ? threads : (int64_t)cores, cn_module_count(j->model));
    if (j->baseline > 0)
        print_line(j, "%s: a loss of %.4f; a model below that has learned something", j->baseline_label, j->baseline);
    if (flag_of(j->s, "verbose")) print_settings(j->s, stdout);
    if (done) print_line(j, "resuming after step %" PRId64 " of %" PRId64, done, j->steps);
}

/* ---- steps ---- */

/* At the end of an epoch cn_loader_next returns false; the next call begins a new epoch. */
static bool next_batch(job *j, cn_batch *b)
{
    return cn_loader_next(j->train, b) || (!cn_failed(j->cn) && cn_loader_next(j->train, b));
}

/* The numbers of a step. They may arrive some steps later, so that nobody waits for a GPU. */
typedef struct step_result {
    int64_t step;
    double lr, others; /* others: sum of the losses of all batches but the last */
    cn_reading *loss, *norm;
} step_result;

enum { LATEST = 8 }; /* numbers arrive at most so many steps late */
typedef struct backlog {
    step_result of[LATEST + 1];
    int n;
    double loss; /* the last known loss, or NaN */
} backlog;

static void train_step(job *j, cn_training *t, step_result *out)
{
    const int64_t parts = whole_of(j->s, "accumulate");
    const double clip = number_of(j->s, "clip");
    *out = (step_result){ .step = t->step + 1, .lr = cn_optim_lr(t->optim, 0) };
    cn_scope all = cn_scope_begin(j->cn);
    for (int64_t i = 0; i < parts; i++) {
        cn_batch b;
        cn_scope s = cn_scope_begin(j->cn);
        if (!next_batch(j, &b)) break;
        cn_tensor *loss = j->loss(j->model, &b, NULL);
        cn_backward(parts > 1 ? cn_mul_s(loss, 1 / (double)parts) : loss);
        if (i + 1 < parts) {
            cn_eval_all(j->cn);
            out->others += cn_item(loss);
            cn_scope_end(j->cn, s);
            continue;
        }
        cn_tensor *size = clip > 0 ? cn_clip_grad_norm(cn_optim_params(t->optim), clip, NULL) : NULL;
        cn_step(t->optim);
        out->loss = cn_read_begin(loss);
        out->norm = size ? cn_read_begin(size) : NULL;
    }
    cn_scope_end(j->cn, all);
    cn_schedule_step(t->schedule);
}

static int note_step(job *j, const step_result *s, double *mean)
{
    float loss = NAN, norm = 0;
    cn_read_end(s->loss, &loss, sizeof loss);
    if (s->norm) cn_read_end(s->norm, &norm, sizeof norm);
    if (cn_failed(j->cn)) return fail_in(j->cn);
    *mean = (s->others + (double)loss) / (double)whole_of(j->s, "accumulate");
    if (!isfinite(*mean))
        return fail("step %" PRId64 ": the loss must be finite, got %g; a smaller --lr may help", s->step, *mean);
    j->last_loss = *mean;
    cn_logbook_scalar(j->log, s->step, "loss/train", *mean);
    cn_logbook_scalar(j->log, s->step, "grad_norm", norm);
    cn_logbook_scalar(j->log, s->step, "lr", s->lr);
    return DONE;
}

/* Reports all steps whose numbers have arrived, and waits for others until at most `left` are missing. */
static int catch_up(job *j, backlog *b, int left)
{
    while (b->n > left || (b->n && cn_read_done(b->of[0].loss) && cn_read_done(b->of[0].norm))) {
        const int code = note_step(j, &b->of[0], &b->loss);
        memmove(b->of, b->of + 1, (size_t)--b->n * sizeof *b->of);
        if (code != DONE) return code;
    }
    return DONE;
}

/* Measuring and sampling must not change the run: the state of the random numbers is saved, and restored after it. */
static cn_dict *save_random(job *j)
{
    cn_dict *d = cn_dict_new(j->cn);
    cn_random_save(j->cn, d, "");
    return d;
}

static void restore_random(job *j, cn_dict *d)
{
    if (!cn_failed(j->cn)) cn_random_load(j->cn, d, "");
    cn_dict_free(d);
}

static void show_sample(job *j, const char *title)
{
    if (!j->sample || flag_of(j->s, "quiet")) return;
    cn_dict *random = save_random(j);
    j->sample(j, title);
    restore_random(j, random);
}

static void report_metrics(const job *j, int64_t step, const metric *m, int n)
{
    char line[256];
    int at = snprintf(line, sizeof line, "step %" PRId64 ": held out:", step);
    for (int i = 0; i < n; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s/held_out", m[i].name);
        for (char *c = name; *c; c++)
            if (*c == ' ') *c = '_';
        cn_logbook_scalar(j->log, step, name, m[i].value);
        if (at > 0 && at < (int)sizeof line)
            at += snprintf(line + at, sizeof line - (size_t)at, "%s %s %.4f", i ? "," : "", m[i].name, m[i].value);
    }
    print_line(j, "%s", line);
}

static bool measure(job *j, int64_t step)
{
    if (!j->measure) return true;
    metric m[MOST_METRICS];
    int n = 0;
    cn_dict *random = save_random(j);
    cn_module_train(j->model, false);
    const bool ok = j->measure(j, m, &n);
    cn_module_train(j->model, true);
    restore_random(j, random);
    if (ok && !interrupted()) {
        report_metrics(j, step, m, n);
        memcpy(j->last, m, (size_t)n * sizeof *m);
        j->n_last = n;
    }
    return !cn_failed(j->cn);
}

static bool save(job *j, const cn_training *t)
{
    cn_dict *extra = cn_dict_new(j->cn);
    bool ok = save_settings(j->s, extra) && cn_dict_set_text(extra, "model", strrchr(j->s->command->name, ' ') + 1);
    ok = ok && j->describe(j, extra) && cn_checkpoint_save(t, extra, j->file);
    cn_dict_free(extra);
    return ok;
}

static bool due(int64_t every, int64_t step, int64_t last) { return every && step % every == 0 && step < last; }

static int steps(job *j, cn_training *t)
{
    int64_t last = j->steps;
    if (given(j->s, "stop-at") && whole_of(j->s, "stop-at") < last) last = whole_of(j->s, "stop-at");
    backlog late = { .loss = NAN };
    while (t->step < last && !interrupted()) {
        const bool profile = !given(j->s, "profile") && meter_due(j->meter, j->cn);
        if (profile && catch_up(j, &late, 0) != DONE) return FAILED;
        meter_begin(j->meter, j->cn, profile);
        train_step(j, t, &late.of[late.n++]);
        if (cn_failed(j->cn)) return fail_in(j->cn);
        t->step++;
        const bool looks = due(j->eval_every, t->step, last) || due(j->sample_every, t->step, last) ||
                           due(whole_of(j->s, "save-every"), t->step, last) || t->step == last;
        const int code = catch_up(j, &late, looks ? 0 : LATEST);
        meter_end(j->meter);
        if (code != DONE) return code;
        if (isnan(late.loss)) cn_progress_step(j->bar, 1, "waiting for the first loss");
        else
            cn_progress_step(j->bar, 1, "loss %.4f  %.0f %s/s", late.loss, cn_progress_rate(j->bar) * j->amount,
                             j->unit);
        if (interrupted()) break;
        if (due(j->eval_every, t->step, last) && !measure(j, t->step)) return fail_in(j->cn);
        if (due(j->sample_every, t->step, last)) show_sample(j, "sample");
        if (due(whole_of(j->s, "save-every"), t->step, last) && !save(j, t)) return fail_in(j->cn);
    }
    return catch_up(j, &late, 0);
}

static void quote(char *out, size_t size, const char *path)
{
    const bool plain = path[strcspn(path, " '\"$&;()<>|*?\\`\n\t")] == 0;
    snprintf(out, size, plain ? "%s" : "\"%s\"", path);
}

static void print_next(const job *j, const cn_training *t)
{
    char file[600], folder[600], line[800];
    quote(file, sizeof file, j->file);
    quote(folder, sizeof folder, j->out);
    const char *kind = j->s->command->name;
    if (t->step < j->steps) {
        print_line(j, "%s after step %" PRId64 " and saved. To continue:\n  %s %s --resume %s",
                   interrupted() ? "interrupted" : "stopped", t->step, program, kind, file);
        return;
    }
    snprintf(line, sizeof line, j->next, folder);
    print_line(j, "\nWritten to %s: %s.safetensors, log.csv, loss.svg, loss.png, config.conf\nTry next\n  %s %s",
               j->out, j->name, program, line);
    char *runs = runs_file(j);
    quote(line, sizeof line, runs);
    print_line(j, "  %s runs %s", program, line);
    free(runs);
    print_line(j, "  %s info %s\n  %s %s --resume %s --%s N     to train further", program, file, program, kind, file,
               find_option(j->s->command->bit, "steps", 5) ? "steps" : "epochs");
}

/* Saves, measures and draws after the last step, whatever the reason for the end. */
static int finish(job *j, cn_training *t)
{
    if (!save(j, t)) return fail_in(j->cn);
    if (!interrupted() && !measure(j, t->step)) return fail_in(j->cn);
    cn_logbook_flush(j->log);
    cn_progress_finish(j->bar);
    cn_progress_free(j->bar);
    j->bar = NULL;
    if (!interrupted()) show_sample(j, "sample, after");
    if (draw_losses(j, !flag_of(j->s, "quiet") && !interrupted()) != DONE) return FAILED;
    j->done = t->step;
    if (append_run(j) != DONE) return FAILED;
    print_meter(j, j->meter);
    print_next(j, t);
    return interrupted() ? 128 + interrupted() : DONE;
}

int check_trace(const settings *s)
{
    const char *file = given(s, "profile") ? text_of(s, "profile") : "";
    return *file ? may_write(s, file,
                             begins_with(file, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"version\":\"cairn "))
                 : DONE;
}

int end_profile(cn_ctx *cn, const settings *s, cn_profile *p, FILE *out)
{
    if (!p) return DONE;
    cn_profile_end(p);
    fputc('\n', out);
    cn_profile_show(p, out);
    const char *file = text_of(s, "profile");
    return *file && !cn_profile_trace(p, file) ? fail_in(cn) : DONE;
}

int run_job(job *j)
{
    cn_optim *opt = j->model ? new_optim(j) : NULL;
    cn_training t = {
        .model = j->model, .optim = opt, .schedule = opt ? new_schedule(j, opt) : NULL, .loader = j->train
    };
    if (!t.schedule || !t.loader) return fail_in(j->cn);
    if (j->resumed && !cn_checkpoint_from(&t, j->resumed)) return fail_in(j->cn);
    introduce(j, t.step);
    if (t.step >= j->steps) return print_line(j, "nothing to do: all %" PRId64 " steps are done", j->steps), DONE;
    cn_logbook_desc log = { .fresh = !j->resumed, .resume_step = j->resumed ? t.step + 1 : 0 };
    j->log = cn_logbook_new(j->cn, j->out, &log);
    if (!j->log) return fail_in(j->cn);
    if (!j->resumed) show_sample(j, "sample, before");
    cn_profile *profile = given(j->s, "profile") ? cn_profile_begin(j->cn, NULL) : NULL;
    watch_signals();
    cn_progress_desc bar = { .total = j->steps, .done = t.step, .label = "train", .out = stdout, .lines = 10 };
    if (!flag_of(j->s, "quiet")) j->bar = cn_progress_new(j->cn, &bar);
    meter spent = { 0 };
    j->meter = &spent;
    int code = !j->resumed && j->eval_every && !measure(j, 0) ? fail_in(j->cn) : steps(j, &t);
    if (code == DONE) code = finish(j, &t);
    const int shown = end_profile(j->cn, j->s, profile, stdout);
    return code == DONE ? shown : code;
}
