/* workers.h: a small pool of threads that shares numbered parts of a piece of work.
 *
 *     cn__workers *w = cn__workers_open(4);
 *     cn__workers_run(w, 100, body, &job);      // body(&job, part, thread) once for every part in [0, 100)
 *     cn__workers_close(w);
 *
 * The caller cuts the work into parts without looking at the number of threads; which thread runs a part is left open.
 * So results do not depend on the number of threads as long as parts do not depend on each other.
 * One run at a time: a pool belongs to one caller. A run from within a body is done by the thread that asks for it.
 * Nothing here fails after opening: where the system gives fewer threads, fewer do the work. */
#ifndef CN_CPU_WORKERS_H
#define CN_CPU_WORKERS_H

#include <stdint.h>

typedef struct cn__workers cn__workers;

/* thread in [0, count) is the worker that runs the part, for scratch memory per thread; 0 is the caller of run. */
typedef void (*cn__work)(void *user, int64_t part, int thread);

/* threads includes the caller; less than 1 counts as 1. NULL when out of memory.
 * Threads start at the first run that needs them. */
cn__workers *cn__workers_open(int threads);
void cn__workers_close(cn__workers *w);

/* The number asked for, also where the system gave fewer. */
int cn__workers_count(const cn__workers *w);

/* Calls body for every part in [0, parts) and returns when all are done. */
void cn__workers_run(cn__workers *w, int64_t parts, cn__work body, void *user);

#endif
