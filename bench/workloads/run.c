/* run.c: runs workloads and prints their times. Each has its own process, so that its memory is counted separately. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/workloads/model.h"
#include "bench/workloads/workloads.h"

/* ---- timing ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* What the GPU did in steps, without reading the gate after each step. */
typedef struct work {
    int64_t dispatches, submissions, pipelines, fallbacks;
} work;

static void add_work(work *sum, cn_gpu_counters from, cn_gpu_counters to)
{
    sum->dispatches += to.dispatches - from.dispatches;
    sum->submissions += to.submissions - from.submissions;
    sum->pipelines += to.pipelines - from.pipelines;
    sum->fallbacks += to.fallbacks - from.fallbacks;
}

/* gate: a tensor on the GPU; reading it waits for everything before it. NULL: on the CPU, where nothing is pending. */
static double one_step(cn_ctx *cn, const workload *w, void *user, cn_tensor *gate, work *sum)
{
    cn_scope s = cn_scope_begin(cn);
    cn_gpu_counters before = cn_gpu_counted(cn);
    double t = now();
    w->step(user);
    add_work(sum, before, cn_gpu_counted(cn));
    if (gate) cn_item(gate);
    t = now() - t;
    cn_scope_end(cn, s);
    return t;
}

enum { NO_DEVICE = 3, MOST_TIMES = 1 << 20 };
#define SLOW 1.0 /* seconds; a step that takes longer is repeated less often */

typedef struct timing {
    void *user;           /* of the workload */
    double median, first; /* seconds */
    work sum;             /* of the steps that are timed */
    int n;
    bool gpu;
} timing;

static cn_ctx *open_device(const bench_options *o)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .device = o->device, .seed = 1, .threads = o->threads });
    if (cn && !cn_failed(cn)) return cn;
    fprintf(stderr, "cairn: --device %s: %s\n", o->device ? o->device : "(by CAIRN_DEVICE)",
            cn ? cn_error(cn) : "no such device, or out of memory");
    return NULL;
}

/* A workload, ready to be timed. */
typedef struct runner {
    cn_ctx *cn;
    const workload *w;
    void *user;
    cn_tensor *gate; /* see one_step */
    double first;    /* seconds of the first step */
    bool slow;
} runner;

static runner prepare(cn_ctx *cn, const workload *w)
{
    runner r = { .cn = cn, .w = w, .user = w->make(cn) };
    cn_tensor *one = cn_keep(cn_ones(cn, CN_F32, CN_DIMS(1)));
    r.gate = cn_gpu_current(cn) < 0 ? NULL : one;
    cn_eval_all(cn);
    if (r.gate) cn_item(r.gate);
    work warm = { 0 };
    r.first = one_step(cn, w, r.user, r.gate, &warm);
    r.slow = one_step(cn, w, r.user, r.gate, &warm) > SLOW;
    if (!r.slow) one_step(cn, w, r.user, r.gate, &warm);
    return r;
}

/* Steps for so many seconds, but `least` of them at the least. */
static bool time_steps(const runner *r, double seconds, int least, timing *out)
{
    static double times[MOST_TIMES];
    *out = (timing){ .first = r->first, .gpu = r->gate };
    int n = 0;
    for (double end = now() + seconds; (now() < end || n < least) && n < MOST_TIMES && !cn_failed(r->cn);)
        times[n++] = one_step(r->cn, r->w, r->user, r->gate, &out->sum);
    qsort(times, (size_t)n, sizeof *times, by_value);
    out->n = n;
    out->median = times[n / 2];
    return !cn_failed(r->cn);
}

static bool time_once(const runner *r, double seconds, timing *out)
{
    return time_steps(r, seconds, r->slow ? 3 : 5, out);
}

/* In a turn other programs have used the caches before: a fifth of the time brings the workload's data back. */
static bool time_turn(const runner *r, double seconds, timing *out)
{
    return (r->slow || time_steps(r, seconds / 5, 1, out)) && time_steps(r, seconds, 1, out);
}

/* What kernels do in one more step, and how fast that is if a step takes so many seconds. */
static void print_work(const runner *r, double seconds)
{
    double flops = 0, bytes = 0;
    cn_profile *p = cn_profile_begin(r->cn, &(cn_profile_desc){ .events = -1 });
    one_step(r->cn, r->w, r->user, r->gate, &(work){ 0 });
    cn_profile_end(p);
    for (int i = 0; i < cn_profile_rows(p); i++) {
        cn_profile_row row;
        if (!cn_profile_row_at(p, i, &row)) continue;
        flops += row.flops;
        bytes += row.bytes;
    }
    cn_profile_free(p);
    printf(" %.3f GFLOP %.1f MB: %.0f GFLOP/s %.1f GB/s", flops * 1e-9, bytes * 1e-6, flops / seconds * 1e-9,
           bytes / seconds * 1e-9);
}

static void print_line(const runner *r, const bench_options *o, const timing *t)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%s %.4f %.0f", r->w->name, t->median * 1e3, (double)usage.ru_maxrss / 1024);
    if (t->gpu)
        printf(" %.1f %.1f %.1f %.1f %.1f", t->first * 1e3, (double)t->sum.dispatches / t->n,
               (double)t->sum.submissions / t->n, (double)t->sum.pipelines / t->n, (double)t->sum.fallbacks / t->n);
    if (o->work) print_work(r, t->median);
    printf("\n");
    fflush(stdout);
}

/* Tells that the workload is ready, then times it whenever a line comes in. */
static bool take_turns(const runner *r, const bench_options *o)
{
    char line[16];
    timing t;
    printf("%s ready\n", r->w->name);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (!time_turn(r, o->seconds, &t)) return false;
        print_line(r, o, &t);
    }
    return true;
}

static int run(const workload *w, const bench_options *o, bool first_of_all)
{
    timing t;
    cn_ctx *cn = open_device(o);
    if (!cn) return NO_DEVICE;
    if (o->opened && first_of_all) o->opened(cn, o->device);
    const runner r = prepare(cn, w);
    const bool good = o->turns ? take_turns(&r, o) : time_once(&r, o->seconds, &t);
    if (!good) printf("%s FAILED %s\n", w->name, cn_error(cn));
    else if (!o->turns) print_line(&r, o, &t);
    cn_close(cn);
    return good ? 0 : 1;
}

/* In the child: sends the time through the pipe. */
static int send_time(const workload *w, const bench_options *o, int to)
{
    timing t;
    cn_ctx *cn = open_device(o);
    if (!cn) return NO_DEVICE;
    if (o->opened) o->opened(cn, o->device);
    const runner r = prepare(cn, w);
    if (!time_once(&r, o->seconds, &t)) {
        fprintf(stderr, "cairn: %s on %s: %s\n", w->name, o->device, cn_error(cn));
        return 1;
    }
    return write(to, &t.median, sizeof t.median) == sizeof t.median ? 0 : 1;
}

int bench_time(const workload *w, const bench_options *o, double *seconds)
{
    int ends[2];
    fflush(stdout);
    if (pipe(ends)) return 1;
    pid_t child = fork();
    if (child == 0) _exit(send_time(w, o, ends[1]));
    close(ends[1]);
    const bool got = read(ends[0], seconds, sizeof *seconds) == sizeof *seconds;
    close(ends[0]);
    int status = 1;
    if (child > 0) waitpid(child, &status, 0);
    return got && status == 0 ? 0 : WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : 1;
}

bool bench_chosen(const char *name, const char *only, bool list)
{
    size_t n = strlen(name);
    for (const char *at = only; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (!strncmp(at, name, n) && (at[n] == 0 || at[n] == ',')) return true;
    return !only && list;
}

static void print_list(const workload *w, int n)
{
    for (int k = 0; k < n; k++) printf("%-15s %s\n", w[k].name, w[k].text);
}

/* ran: how many workloads ran before. A process that has opened a GPU must not fork, so only children open contexts. */
static int run_list(const workload *w, int n, bool list, const bench_options *o, int *ran)
{
    int bad = 0;
    for (int k = 0; k < n; k++) {
        if (!bench_chosen(w[k].name, o->only, list)) continue;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            int code = run(&w[k], o, *ran == 0);
            fflush(stdout);
            _exit(code);
        }
        int status = 1;
        if (child > 0) waitpid(child, &status, 0);
        else status = run(&w[k], o, *ran == 0); /* a system without fork: in this process */
        ++*ran;
        bad |= status != 0;
        if (WIFEXITED(status) && WEXITSTATUS(status) == NO_DEVICE) break;
    }
    return bad;
}

void bench_list(void)
{
    print_list(reference_workloads, n_reference_workloads);
    printf("\n");
    print_list(extra_workloads, n_extra_workloads);
    printf(
        "\n%-15s matrix products of 16x16 to 1024x1024; for --compare\n%-15s training steps of batches of 1 to 4096; for "
        "--compare\n",
        "matmul-sizes", "batch-sizes");
}

int bench_run(const bench_options *o)
{
    model_print_plans(o->plan);
    int ran = 0, bad = run_list(reference_workloads, n_reference_workloads, !o->extra, o, &ran);
    return run_list(extra_workloads, n_extra_workloads, o->extra, o, &ran) | bad;
}
