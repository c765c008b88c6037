/* The pool of threads.

   One atomic number, the door, synchronises caller and workers: [ number of the run | open bit | workers inside ]. The
   caller writes the job while the door is closed and no worker is inside. Then it opens the door, runs parts itself,
   closes the door, and waits until the last worker has left. A worker enters by adding 1 to an open door. A worker that
   wakes too late finds the door closed; the caller does not wait for it. */
#include "workers.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    SPINS = 16000,   /* how often a worker looks at the door before it sleeps: for about 400 microseconds */
    FEW_SPINS = 500, /* the same if there are more threads than cores, where spinning delays other threads */
    PATIENCE = 4000, /* how often the caller looks at the door before it yields its core, while workers finish */
};

#define INSIDE UINT64_C(0xffff)
#define OPEN   UINT64_C(0x10000)
#define RUN    UINT64_C(0x20000) /* adds 1 to the number of the run */

typedef struct seat {
    cn__workers *pool;
    pthread_t id;
    int index;
    _Atomic int64_t next; /* of the parts that this thread runs first: the next one to run */
    int64_t end;          /* the last of them plus 1 */
    char space[64];       /* the next seat is on another line of the cache */
} seat;

struct cn__workers {
    int count;   /* threads asked for, including the caller */
    int started; /* threads that exist, including the caller: 1 until the first run that needs more */
    int spins;
    bool tried; /* threads were started, or could not be */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    atomic_bool busy; /* during a run; a run that starts then comes from a body */

    /* The job: written while no worker is inside. */
    int64_t parts;
    int64_t ranges; /* seats that have parts */
    cn__work body;
    void *user;

    /* What several threads write, each on a cache line of its own. */
    char space0[64];
    _Atomic uint64_t door;
    char space1[64];
    atomic_int sleepers;
    atomic_bool stop;
    char space2[64];

    seat seats[]; /* by thread; 0 is the caller's */
};

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* A thread finds in its caches what it touched in the run before, and reads long stretches of memory: so it runs its
   own parts first, which are consecutive. Then it helps the others. */
static void run_parts(cn__workers *w, int thread)
{
    for (int64_t i = 0; i < w->ranges; i++) {
        seat *s = &w->seats[(thread + i) % w->ranges];
        int64_t part;
        while ((part = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < s->end)
            w->body(w->user, part, thread);
    }
}

/* Whether there is a run that the worker has not joined yet; `last` is the run it joined last. */
static bool invited(cn__workers *w, uint64_t last)
{
    const uint64_t door = atomic_load(&w->door);
    return (door & OPEN) && door / RUN != last;
}

/* Returns true if there is a run to join, false if the pool closes. */
static bool wait_for_work(cn__workers *w, uint64_t last)
{
    for (int i = 0; i < w->spins; i++) {
        if (invited(w, last)) return true;
        if (atomic_load_explicit(&w->stop, memory_order_relaxed)) return false;
        pause_briefly();
    }
    /* The caller opens the door, then looks for sleepers. A worker counts itself as a sleeper, then looks at the door.
       Both are sequentially consistent, so at least one of the two sees the other, and no wake-up is lost. */
    pthread_mutex_lock(&w->lock);
    atomic_fetch_add(&w->sleepers, 1);
    while (!invited(w, last) && !atomic_load(&w->stop)) pthread_cond_wait(&w->wake, &w->lock);
    atomic_fetch_sub(&w->sleepers, 1);
    pthread_mutex_unlock(&w->lock);
    return !atomic_load(&w->stop);
}

static void *worker(void *arg)
{
    const seat *s = arg;
    cn__workers *w = s->pool;
    uint64_t last = 0; /* runs count from 1 */
    while (wait_for_work(w, last)) {
        uint64_t door = atomic_load_explicit(&w->door, memory_order_relaxed);
        if (!(door & OPEN) || door / RUN == last) continue;
        if (!atomic_compare_exchange_strong_explicit(&w->door, &door, door + 1, memory_order_acquire,
                                                     memory_order_relaxed))
            continue;
        last = door / RUN;
        run_parts(w, s->index);
        atomic_fetch_sub_explicit(&w->door, 1, memory_order_release);
    }
    return NULL;
}

static void start_threads(cn__workers *w)
{
    w->tried = true;
    while (w->started < w->count) {
        seat *s = &w->seats[w->started];
        s->pool = w;
        s->index = w->started;
        if (pthread_create(&s->id, NULL, worker, s) != 0) return;
        w->started++;
    }
}

static void wake_sleepers(cn__workers *w)
{
    if (atomic_load(&w->sleepers) == 0) return;
    pthread_mutex_lock(&w->lock);
    if (w->parts > w->started / 2) {
        pthread_cond_broadcast(&w->wake);
    } else {
        for (int64_t i = 1; i < w->parts; i++) pthread_cond_signal(&w->wake);
    }
    pthread_mutex_unlock(&w->lock);
}

static void run_shared(cn__workers *w, int64_t parts, cn__work body, void *user)
{
    w->parts = parts;
    w->body = body;
    w->user = user;
    w->ranges = parts < w->started ? parts : w->started;
    for (int64_t i = 0; i < w->ranges; i++) {
        atomic_store_explicit(&w->seats[i].next, parts * i / w->ranges, memory_order_relaxed);
        w->seats[i].end = parts * (i + 1) / w->ranges;
    }
    const uint64_t run = atomic_load_explicit(&w->door, memory_order_relaxed) / RUN + 1;
    atomic_store(&w->door, run * RUN | OPEN);
    wake_sleepers(w);
    run_parts(w, 0);
    atomic_fetch_and_explicit(&w->door, ~OPEN, memory_order_relaxed);
    for (int i = 0; atomic_load_explicit(&w->door, memory_order_acquire) & INSIDE; i += i < PATIENCE) {
        if (i < PATIENCE) pause_briefly();
        else sched_yield();
    }
}

static void run_inline(int64_t parts, cn__work body, void *user, int thread)
{
    for (int64_t part = 0; part < parts; part++) body(user, part, thread);
}

/* The number of the calling thread, during a run. */
static int seat_of_self(const cn__workers *w)
{
    const pthread_t self = pthread_self();
    for (int i = 1; i < w->started; i++) {
        if (pthread_equal(w->seats[i].id, self)) return i;
    }
    return 0;
}

void cn__workers_run(cn__workers *w, int64_t parts, cn__work body, void *user)
{
    if (atomic_load_explicit(&w->busy, memory_order_relaxed)) {
        run_inline(parts, body, user, seat_of_self(w));
        return;
    }
    atomic_store_explicit(&w->busy, true, memory_order_relaxed);
    if (parts > 1 && w->count > 1 && !w->tried) start_threads(w);
    if (parts > 1 && w->started > 1) run_shared(w, parts, body, user);
    else run_inline(parts, body, user, 0);
    atomic_store_explicit(&w->busy, false, memory_order_relaxed);
}

/* ---- steps ---- */

/* How many steps of a part were taken by a thread, and how many are done. Each part has a cache line of its own. */
typedef struct progress {
    _Atomic int64_t taken, done;
    char space[64 - 2 * sizeof(int64_t)];
} progress;

typedef struct stepped {
    int64_t steps, parts;
    cn__step_work body;
    void *user;
    progress of[CN__MOST_STEP_PARTS];
} stepped;

static void wait_for_step(progress *p, int64_t step)
{
    for (int i = 0; atomic_load_explicit(&p->done, memory_order_acquire) <= step; i += i < PATIENCE) {
        if (i < PATIENCE) pause_briefly();
        else sched_yield();
    }
}

/* Runs parts that nobody has taken and waits for those that others have taken: they are running, so the wait ends even
   if there is one thread only. */
static void run_steps(void *user, int64_t part, int thread)
{
    stepped *j = user;
    (void)part; /* any thread may run any part of this run: it takes what it finds */
    for (int64_t step = 0; step < j->steps; step++) {
        for (int64_t i = 0; i < j->parts; i++) {
            const int64_t at = (thread + i) % j->parts;
            progress *p = &j->of[at];
            int64_t free = step;
            if (atomic_load_explicit(&p->taken, memory_order_relaxed) != step) continue;
            if (!atomic_compare_exchange_strong_explicit(&p->taken, &free, step + 1, memory_order_relaxed,
                                                         memory_order_relaxed))
                continue;
            j->body(j->user, step, at, thread);
            atomic_store_explicit(&p->done, step + 1, memory_order_release);
        }
        for (int64_t i = 0; i < j->parts; i++) wait_for_step(&j->of[i], step);
    }
}

void cn__workers_run_steps(cn__workers *w, int64_t steps, int64_t parts, cn__step_work body, void *user)
{
    stepped j = { .steps = steps, .parts = parts < CN__MOST_STEP_PARTS ? parts : CN__MOST_STEP_PARTS };
    j.body = body;
    j.user = user;
    cn__workers_run(w, j.parts, run_steps, &j);
}

int cn__workers_count(const cn__workers *w) { return w->count; }

cn__workers *cn__workers_open(int threads)
{
    const int count = threads < 1 ? 1 : threads > (int)INSIDE ? (int)INSIDE : threads;
    cn__workers *w = calloc(1, sizeof *w + (size_t)count * sizeof(seat));
    if (!w) return NULL;
    w->count = count;
    w->started = 1;
    w->spins = count <= sysconf(_SC_NPROCESSORS_ONLN) ? SPINS : FEW_SPINS;
    if (pthread_mutex_init(&w->lock, NULL) != 0) {
        free(w);
        return NULL;
    }
    if (pthread_cond_init(&w->wake, NULL) != 0) {
        pthread_mutex_destroy(&w->lock);
        free(w);
        return NULL;
    }
    return w;
}

void cn__workers_close(cn__workers *w)
{
    if (!w) return;
    pthread_mutex_lock(&w->lock);
    atomic_store(&w->stop, true);
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->lock);
    for (int i = 1; i < w->started; i++) pthread_join(w->seats[i].id, NULL);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
