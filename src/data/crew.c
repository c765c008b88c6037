/* The worker threads of a loader and their queue. One lock protects both; a worker locks it once for several items. */
#include "data/loader.h"

typedef struct cn__seat {
    cn__crew *crew;
    pthread_t id;
    cn__fetch fetch;
} seat;

/* Some items of a parcel. A worker chooses them with the lock held and makes them without it. */
typedef struct portion {
    cn__parcel *parcel;
    int64_t first, n;
} portion;

static portion next_portion(cn__crew *c)
{
    cn__parcel *b = c->unassigned;
    portion p = { b, b->assigned, b->n - b->assigned };
    if (p.n > c->portion) p.n = c->portion;
    b->assigned += p.n;
    if (b->assigned == b->n) c->unassigned = b->next;
    c->busy++;
    return p;
}

static void note_failure(cn__parcel *b, int64_t i, const cn__fetch *f)
{
    if (b->code && b->failed_at < i) return;
    b->code = f->code ? f->code : CN_BAD_FILE;
    b->failed_at = i;
    memcpy(b->error, f->error, sizeof b->error);
}

/* The caller holds the lock; items are made without it. A failure ends the portion. */
static void make(cn__crew *c, portion p, cn__fetch *f)
{
    int64_t i = p.first;
    bool ok = true;
    pthread_mutex_unlock(&c->lock);
    for (; i < p.first + p.n && ok && !atomic_load_explicit(&c->cancel, memory_order_relaxed); i++)
        ok = cn__parcel_make(c->spec, p.parcel, i, f);
    pthread_mutex_lock(&c->lock);
    if (!ok) note_failure(p.parcel, i - 1, f);
    p.parcel->done += p.n;
    if (p.parcel->done == p.parcel->n && !atomic_load_explicit(&c->cancel, memory_order_relaxed)) {
        pthread_mutex_unlock(&c->lock);
        cn__parcel_finish(c->spec, p.parcel, f);
        pthread_mutex_lock(&c->lock);
        p.parcel->ready = true;
    }
    c->busy--;
    pthread_cond_broadcast(&c->done);
}

static void *work(void *user)
{
    seat *s = user;
    cn__crew *c = s->crew;
    cn__here = c->ctx;
    pthread_mutex_lock(&c->lock);
    while (!c->stop) {
        if (c->unassigned) make(c, next_portion(c), &s->fetch);
        else pthread_cond_wait(&c->work, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    cn__arena_free(&s->fetch.arena);
    return NULL;
}

bool cn__crew_open(cn__crew *c, cn_ctx *ctx, const cn__spec *s, int workers)
{
    c->ctx = ctx;
    c->spec = s;
    c->seat_count = c->wanted = workers;
    c->portion = workers ? s->batch / (4 * workers) : s->batch;
    if (c->portion < 1) c->portion = 1;
    atomic_init(&c->cancel, false);
    if (workers && !(c->seats = cn__alloc(ctx, (size_t)workers * sizeof *c->seats))) return false;
    if (pthread_mutex_init(&c->lock, NULL)) return cn__fail(ctx, CN_NO_MEMORY, "loader: cannot create a mutex");
    if (pthread_cond_init(&c->work, NULL)) goto no_work;
    if (pthread_cond_init(&c->done, NULL)) goto no_done;
    c->opened = true;
    return true;
no_done:
    pthread_cond_destroy(&c->work);
no_work:
    pthread_mutex_destroy(&c->lock);
    return cn__fail(ctx, CN_NO_MEMORY, "loader: cannot create a condition variable");
}

/* The system may refuse threads: the crew works with fewer, or without any in the calling thread. */
static void start(cn__crew *c)
{
    for (; c->started < c->wanted; c->started++) {
        seat *s = &c->seats[c->started];
        s->crew = c;
        if (pthread_create(&s->id, NULL, work, s)) break;
    }
    c->wanted = c->started;
}

void cn__crew_close(cn__crew *c, cn_ctx *ctx)
{
    if (c->opened) {
        pthread_mutex_lock(&c->lock);
        c->stop = true;
        pthread_cond_broadcast(&c->work);
        pthread_mutex_unlock(&c->lock);
        for (int i = 0; i < c->started; i++) pthread_join(c->seats[i].id, NULL);
        pthread_cond_destroy(&c->work);
        pthread_cond_destroy(&c->done);
        pthread_mutex_destroy(&c->lock);
    }
    cn__arena_free(&c->own.arena);
    cn__free(ctx, c->seats, (size_t)c->seat_count * sizeof *c->seats);
}

void cn__crew_push(cn__crew *c, cn__parcel *b)
{
    if (c->started < c->wanted) start(c);
    pthread_mutex_lock(&c->lock);
    if (c->last) c->last->next = b;
    else c->first = b;
    c->last = b;
    if (!c->unassigned) c->unassigned = b;
    c->queued++;
    pthread_cond_broadcast(&c->work);
    pthread_mutex_unlock(&c->lock);
}

cn__parcel *cn__crew_first(cn__crew *c)
{
    pthread_mutex_lock(&c->lock);
    cn__parcel *b = c->first;
    while (b && !b->ready) {
        if (c->started) pthread_cond_wait(&c->done, &c->lock);
        else make(c, next_portion(c), &c->own);
    }
    pthread_mutex_unlock(&c->lock);
    return b;
}

cn__parcel *cn__crew_ready(cn__crew *c)
{
    pthread_mutex_lock(&c->lock);
    cn__parcel *b = c->first && c->first->ready ? c->first : NULL;
    pthread_mutex_unlock(&c->lock);
    return b;
}

void cn__crew_pop(cn__crew *c)
{
    pthread_mutex_lock(&c->lock);
    c->first = c->first->next;
    if (!c->first) c->last = NULL;
    c->queued--;
    pthread_mutex_unlock(&c->lock);
}

cn__parcel *cn__crew_drain(cn__crew *c)
{
    if (!c->opened) return NULL;
    pthread_mutex_lock(&c->lock);
    c->unassigned = NULL;
    atomic_store_explicit(&c->cancel, true, memory_order_relaxed);
    while (c->busy) pthread_cond_wait(&c->done, &c->lock);
    atomic_store_explicit(&c->cancel, false, memory_order_relaxed);
    cn__parcel *chain = c->first;
    c->first = c->last = NULL;
    c->queued = 0;
    pthread_mutex_unlock(&c->lock);
    return chain;
}
