/* workloads.h: the reference workloads and the extra ones, timed: for bench_workloads and for `cairn bench`.

       bench_run(&(bench_options){ .only = "gpt-mini,mlp", .device = "cpu", .threads = 2, .seconds = 4 });

   prints a line for each workload, as the peers do: `name median_ms peak_rss_mb`. On a GPU each step is waited for, and
   the line goes on: `first_step_ms dispatches submissions pipelines fallbacks`. The first step includes the compilation
   of shaders; the other four are counts per step. */
#ifndef BENCH_WORKLOADS_H
#define BENCH_WORKLOADS_H

#include <stdbool.h>

struct cn_ctx;

typedef struct bench_options {
    const char *only;   /* names with commas between them, from both lists; NULL: the whole of one list */
    const char *device; /* as cn_desc has it; NULL: its default */
    int threads;
    double seconds; /* for each workload */
    bool extra;     /* the extra workloads instead of the reference ones */
    bool plan;      /* print the plan of the second step */
    bool turns;     /* prints `name ready`, then the workload's line for every line that comes in */
    bool work;      /* the line goes on: what a step multiplies, reads and writes, and how fast */
    void (*opened)(struct cn_ctx *cn, const char *device); /* called with the context of the first workload; or NULL */
} bench_options;

void bench_list(void);                 /* names and shapes of both lists */
int bench_run(const bench_options *o); /* 0: all ran; otherwise an exit status */
/* The workloads on each device of a list ("cpu,gpu") in one table; on the second and later ones, from which size on they
   are faster than the first. `only` may also name "matmul-sizes" and "batch-sizes". Status as above. */
int bench_compare(const bench_options *o, const char *devices);

#endif
