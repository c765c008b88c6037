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

static cn__cursor *cursor_of(const cn__crew *c, const cn__parcel *b)
{
    return c->spec->shards ? &c->spec->cursors[b->shard] : NULL;
}

/* The parcel is NULL if there is nothing to do now. A parcel of a stream is one portion; it waits while a worker reads
   its shard. */
static portion next_portion(cn__crew *c)
{
    cn__parcel *b = c->unassigned;
    cn__cursor *shard = NULL;
    for (; b; b = b->next) {
        shard = cursor_of(c, b);
        if (!b->taken && !(shard && shard->busy)) break;
    }
    if (!b) return (portion){ 0 };
    portion p = { b, b->assigned, b->n - b->assigned };
    if (shard) shard->busy = true;
    else if (p.n > c->portion) p.n = c->portion;
    b->assigned += p.n;
    b->taken = b->assigned == b->n;
    while (c->unassigned && c->unassigned->taken) c->unassigned = c->unassigned->next;
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

/* Makes the items of a portion. Returns how many it began; a failure ends the portion. */
static int64_t make_items(cn__crew *c, portion p, cn__fetch *f, bool *ok)
{
    int64_t i = p.first;
    for (; i < p.first + p.n && *ok && !atomic_load_explicit(&c->cancel, memory_order_relaxed); i++) {
        if (f->cursor) p.parcel->index[i] = p.parcel->shard + c->spec->shards * f->cursor->items++;
        *ok = cn__parcel_make(c->spec, p.parcel, i, f);
    }
    return i - p.first;
}

/* Makes the items of a parcel of a stream, from where its shard is. *n becomes their number, which is smaller at the
   end of the shard. Returns the place of the item that failed, -1 for the shard itself. */
static int64_t make_of_stream(cn__crew *c, portion p, cn__fetch *f, bool *ok, int64_t *n)
{
    cn__parcel *b = p.parcel;
    const cn_shard shard = { b->shard, c->spec->shards, b->epoch, c->spec->seed };
    int64_t begun = 0;
    f->code = CN_OK;
    if (!f->cursor->opened) *ok = cn__cursor_open(c->spec->dataset, f->cursor, &shard, f);
    if (*ok && f->cursor->ended) *n = 0;
    else if (*ok) begun = make_items(c, p, f, ok);
    if (!*ok && f->cursor->ended && !f->code) {
        *n = begun - 1;
        *ok = true;
    }
    b->last = f->cursor->ended;
    return begun - 1;
}

/* The caller holds the lock; items are made without it. */
static void make(cn__crew *c, portion p, cn__fetch *f)
{
    cn__parcel *b = p.parcel;
    int64_t n = p.n;
    bool ok = true;
    f->cursor = cursor_of(c, b);
    pthread_mutex_unlock(&c->lock);
    const int64_t at = f->cursor ? make_of_stream(c, p, f, &ok, &n) : p.first + make_items(c, p, f, &ok) - 1;
    pthread_mutex_lock(&c->lock);
    if (!ok) note_failure(b, at, f);
    if (f->cursor) {
        f->cursor->busy = false;
        b->assigned = b->done = b->n = n;
        pthread_cond_broadcast(&c->work);
    } else b->done += p.n;
    if (b->done == b->n && !atomic_load_explicit(&c->cancel, memory_order_relaxed)) {
        pthread_mutex_unlock(&c->lock);
        cn__parcel_finish(c->spec, b, f);
        pthread_mutex_lock(&c->lock);
        b->ready = true;
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
        portion p = next_portion(c);
        if (p.parcel) make(c, p, &s->fetch);
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
