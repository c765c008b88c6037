/* The pool of threads: every part runs once, the job is seen whole, what parts wrote is seen afterwards, sleepers are
   woken, threads keep to their parts and help each other, all with more threads than cores too. The thread sanitizer
   sees an order that is too weak; a hang is a failure. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"

/* Noise: threads pause at random before they touch what they share, so that rare orders become frequent. */
static bool noisy; /* changes only while no thread runs */

static void make_noise(void)
{
    static _Thread_local uint64_t state;
    if (!noisy) return;
    if (!state) state = (uint64_t)(uintptr_t)&state;
    state = state * 6364136223846793005u + 1442695040888963407u;
    if (state >> 62 == 0) sched_yield();
    for (volatile uint64_t i = 0; i < state >> 56 && state >> 62 == 1;) i = i + 1;
}

/* The source itself, with noise; a test also sets how often threads look before they sleep. */
#undef atomic_load
#undef atomic_store
#undef atomic_fetch_add
#define atomic_load(at)         (make_noise(), atomic_load_explicit(at, memory_order_seq_cst))
#define atomic_store(at, v)     (make_noise(), atomic_store_explicit(at, v, memory_order_seq_cst))
#define atomic_fetch_add(at, v) (make_noise(), atomic_fetch_add_explicit(at, v, memory_order_seq_cst))
#include "cpu/workers.c"

enum { PARTS = 64, LATE_SECONDS = 30, WATCHDOG_SECONDS = 400 };

static void hangs(int signal)
{
    (void)signal;
    static const char words[] = "FAILED a run of the pool did not end\n0 passed, 1 failed\n";
    if (write(1, words, sizeof words - 1)) _exit(1);
    _exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void spin_for(double seconds)
{
    for (double end = now() + seconds; now() < end;) continue;
}

static uint64_t state = 1;
static uint64_t draw(uint64_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
}

/* ---- every part once */

/* A job without atomics: threads see each other's writes because of the pool alone. */
typedef struct job {
    int64_t number; /* changes from run to run */
    int64_t written[PARTS];
    int threads[PARTS];
} job;

static void write_part(void *user, int64_t part, int thread)
{
    job *j = user;
    j->written[part] += j->number;
    j->threads[part] = thread;
}

/* Runs of many sizes, one at once after the other: the job of the next run is written where that of the last was
   read. */
static void runs_in_a_row(int threads, int runs)
{
    cn__workers *w = cn__workers_open(threads);
    job j = { 0 };
    int64_t expected[PARTS] = { 0 };
    int wrong = 0;
    for (int run = 1; run <= runs; run++) {
        const int64_t parts = run % 5 ? (int64_t)draw(PARTS + 1) : PARTS;
        j.number = run;
        cn__workers_run(w, parts, write_part, &j);
        for (int64_t i = 0; i < PARTS; i++) {
            if (i < parts) expected[i] += run;
            wrong += j.written[i] != expected[i] || j.threads[i] < 0 || j.threads[i] >= threads;
        }
        if (run % 64 == 0) spin_for(1e-6 * (double)draw(60));
    }
    check(wrong == 0, "%d threads: %d parts ran not once, or in no thread of the pool", threads, wrong);
    cn__workers_close(w);
}

/* ---- parts that wait for each other */

/* Each part waits until all are there: with as many threads as parts, this ends only if every thread that is needed
   comes. The caller waits as well: it cannot do the others' parts. */
typedef struct meeting {
    int64_t parts;
    _Atomic int64_t here;
    atomic_bool late;
} meeting;

static void meet(void *user, int64_t part, int thread)
{
    meeting *m = user;
    (void)part, (void)thread;
    atomic_fetch_add(&m->here, 1);
    for (double start = now(); atomic_load(&m->here) < m->parts && !atomic_load(&m->late);) {
        if (now() - start > LATE_SECONDS) atomic_store(&m->late, true);
        sched_yield();
    }
}

static bool all_meet(cn__workers *w, int64_t parts)
{
    meeting m = { .parts = parts };
    cn__workers_run(w, parts, meet, &m);
    return !atomic_load(&m.late);
}

/* Threads that have slept for a while are woken, as many as there are parts. */
static void sleepers_are_woken(int threads)
{
    cn__workers *w = cn__workers_open(threads);
    for (int64_t parts = 2; parts <= threads; parts++) {
        usleep(10000); /* all are asleep */
        if (!check(all_meet(w, parts), "%d sleeping threads, %lld parts: not all came", threads, (long long)parts))
            break;
    }
    cn__workers_close(w);
}

/* Runs begin at the moment when threads go to sleep: they either see the door open or are seen as sleepers. Threads that
   look only a few times before they sleep make this moment frequent. */
static void no_wake_up_is_lost(int threads, int spins, int runs)
{
    const double end = now() + 0.5;
    cn__workers *w = cn__workers_open(threads);
    w->spins = spins; /* before the threads start */
    for (int run = 0; run < runs && now() < end; run++) {
        spin_for(1e-9 * (double)draw(run % 3 ? 1000 : 8000));
        if (!check(all_meet(w, 2), "%d threads, %d spins, run %d: a wake-up was lost", threads, spins, run)) break;
    }
    cn__workers_close(w);
}

/* ---- steps */

/* Every part of a step adds up what all parts of the step before wrote, without atomics. */
typedef struct sums {
    int64_t parts, of[2][CN__MOST_STEP_PARTS], ran[CN__MOST_STEP_PARTS];
} sums;

static void add_sums(void *user, int64_t step, int64_t part, int thread)
{
    sums *s = user;
    (void)thread;
    make_noise();
    int64_t sum = 1;
    for (int64_t i = 0; i < s->parts; i++) sum += s->of[step % 2][i] * (i + 1) % 1009;
    s->of[(step + 1) % 2][part] = (sum + part) % 65521;
    s->ran[part]++;
    make_noise();
}

static void steps_follow_each_other(int threads, int64_t steps)
{
    cn__workers *w = cn__workers_open(threads), *one = cn__workers_open(1);
    for (int64_t parts = 1; parts <= CN__MOST_STEP_PARTS; parts += 1 + parts / 3) {
        sums a = { .parts = parts }, b = { .parts = parts };
        cn__workers_run_steps(w, steps, parts, add_sums, &a);
        cn__workers_run_steps(one, steps, parts, add_sums, &b);
        check(memcmp(&a, &b, sizeof a) == 0 && a.ran[0] == steps && a.ran[parts - 1] == steps,
              "%d threads, %lld parts: steps", threads, (long long)parts);
    }
    cn__workers_close(w), cn__workers_close(one);
}

/* ---- who runs which part */

/* Every part waits until each thread has run as many: threads go on side by side, and all run equally many parts. */
typedef struct march {
    int threads;
    atomic_int ran[4]; /* by thread */
    int by[PARTS];     /* by part: its thread */
    atomic_bool late;
} march;

static bool behind(march *m, int count)
{
    for (int i = 0; i < m->threads; i++)
        if (atomic_load(&m->ran[i]) < count) return true;
    return false;
}

static void march_on(void *user, int64_t part, int thread)
{
    march *m = user;
    m->by[part] = thread;
    const int count = atomic_fetch_add(&m->ran[thread], 1) + 1;
    for (double start = now(); behind(m, count) && !atomic_load(&m->late);) {
        if (now() - start > LATE_SECONDS) atomic_store(&m->late, true);
        sched_yield();
    }
}

static void threads_keep_to_their_parts(int threads)
{
    cn__workers *w = cn__workers_open(threads);
    for (int64_t each = 1; each <= PARTS / threads; each *= 2) {
        march m = { .threads = threads };
        cn__workers_run(w, each * threads, march_on, &m);
        int64_t right = 0;
        for (int64_t i = 0; i < each * threads; i++) right += m.by[i] == i / each;
        check(right == each * threads && !atomic_load(&m.late), "%d threads, %lld parts: %lld ran in their thread",
              threads, (long long)(each * threads), (long long)right);
    }
    cn__workers_close(w);
}

/* One part waits until all others are done: threads that are ready take over the rest of its thread's parts. */
typedef struct slow {
    int64_t parts, waits; /* waits: the part that waits */
    _Atomic int64_t done;
    atomic_bool late;
} slow;

static void wait_for_others(void *user, int64_t part, int thread)
{
    slow *s = user;
    (void)thread;
    for (double start = now(); part == s->waits && atomic_load(&s->done) < s->parts - 1 && !atomic_load(&s->late);) {
        if (now() - start > LATE_SECONDS) atomic_store(&s->late, true);
        sched_yield();
    }
    atomic_fetch_add(&s->done, 1);
}

static void others_help(int threads)
{
    cn__workers *w = cn__workers_open(threads);
    for (int64_t i = 0; i < threads; i++) {
        slow s = { .parts = PARTS, .waits = i * PARTS / threads };
        cn__workers_run(w, PARTS, wait_for_others, &s);
        check(!atomic_load(&s.late), "%d threads: part %lld was not helped", threads, (long long)s.waits);
    }
    cn__workers_close(w);
}

/* ---- other uses */

typedef struct nest {
    cn__workers *w;
    _Atomic int64_t sum;
    atomic_int wrong;
} nest;

typedef struct inner {
    nest *n;
    int thread;
} inner;

static void inner_part(void *user, int64_t part, int thread)
{
    inner *i = user;
    atomic_fetch_add(&i->n->sum, part);
    if (thread != i->thread) atomic_fetch_add(&i->n->wrong, 1);
}

static void outer_part(void *user, int64_t part, int thread)
{
    inner i = { user, thread };
    (void)part;
    cn__workers_run(i.n->w, 10, inner_part, &i);
}

static void a_run_inside_a_part_stays_in_its_thread(int threads)
{
    nest n = { .w = cn__workers_open(threads) };
    for (int run = 0; run < 50; run++) cn__workers_run(n.w, PARTS, outer_part, &n);
    check(atomic_load(&n.sum) == 50 * PARTS * 45 && atomic_load(&n.wrong) == 0,
          "%d threads: runs inside of parts: sum %lld, %d in another thread", threads, (long long)atomic_load(&n.sum),
          atomic_load(&n.wrong));
    cn__workers_close(n.w);
}

static void pools_that_close(int threads)
{
    job j = { .number = 1 };
    for (int i = 0; i < 30; i++) { /* never used, just used, asleep */
        cn__workers *w = cn__workers_open(threads);
        if (i % 3) cn__workers_run(w, PARTS, write_part, &j);
        if (i % 3 == 2) usleep(3000);
        cn__workers_close(w);
    }
    check(j.written[0] == 20 && j.written[PARTS - 1] == 20, "%d threads: pools that are closed soon", threads);
}

int main(void)
{
    signal(SIGALRM, hangs);
    alarm(WATCHDOG_SECONDS);
    const bool quick = test_is_quick();
    static const int threads[] = { 1, 2, 3, 4, 16 };
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        runs_in_a_row(threads[i], quick ? 400 : 3000);
        sleepers_are_woken(threads[i]);
        if (threads[i] <= 4) threads_keep_to_their_parts(threads[i]);
        if (threads[i] > 1) others_help(threads[i]);
        a_run_inside_a_part_stays_in_its_thread(threads[i]);
        pools_that_close(threads[i]);
        for (noisy = false;; noisy = true) {
            steps_follow_each_other(threads[i], quick ? 50 : 500);
            if (noisy) break;
        }
        noisy = false;
    }
    static const int spins[] = { 0, 3, 10, 50 };
    for (size_t i = 0; i < 2 * sizeof spins / sizeof *spins; i++) {
        noisy = i % 2;
        no_wake_up_is_lost(2, spins[i / 2], quick ? 500 : 30000);
        no_wake_up_is_lost(16, spins[i / 2], quick ? 100 : 500);
    }
    return finish();
}
