/* cpu/workers.h: a small pool of threads that runs the numbered parts of a piece of work.

       cn__workers *w = cn__workers_open(4);
       cn__workers_run(w, 100, body, &job);      body(&job, part, thread) runs once for every part in [0, 100)
       cn__workers_close(w);

   The caller divides the work into parts without looking at the number of threads. Any thread may run any part. So
   results do not depend on the number of threads, as long as parts do not depend on each other. A thread begins with
   consecutive parts of its own, the same in every run with as many parts: number parts in the order of the memory that
   they touch, and a thread finds in its caches what it wrote in the run before. Then it helps the other threads.
   A pool belongs to one caller, who starts one run at a time. If a body starts a run, its own thread runs all parts.
   Nothing fails after opening: if the system refuses threads, fewer threads do the work. */
#ifndef CN_CPU_WORKERS_H
#define CN_CPU_WORKERS_H

#include <stdint.h>

typedef struct cn__workers cn__workers;

/* `thread`, in [0, count), is the thread that runs the part: it selects scratch memory. 0 is the caller of run. */
typedef void (*cn__work)(void *user, int64_t part, int thread);

/* `threads` includes the caller; values below 1 mean 1. NULL: no memory. Threads start at the first run that needs
   them. */
cn__workers *cn__workers_open(int threads);
void cn__workers_close(cn__workers *w);

/* The number of threads asked for, even if the system refused some. */
int cn__workers_count(const cn__workers *w);

/* Calls body for every part in [0, parts) and returns when all are done. */
void cn__workers_run(cn__workers *w, int64_t parts, cn__work body, void *user);

/* Work in steps: every part of a step may read what all parts of the step before wrote. Calls body for every part in
   [0, parts) of step 0, then of step 1, and so on. Threads do not leave the run between steps, which would take longer
   than a short step. A thread prefers the part with its own number, so that the part's data stay in its caches; a part
   whose thread does not come is taken by another one. */
enum { CN__MOST_STEP_PARTS = 16 };
typedef void (*cn__step_work)(void *user, int64_t step, int64_t part, int thread);
void cn__workers_run_steps(cn__workers *w, int64_t steps, int64_t parts, cn__step_work body, void *user);

#endif
