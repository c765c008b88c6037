/* data/loader.h: how a batch comes about.

   parcel  the memory of one batch and the work on it. The context's thread makes it, fills in the indices and puts it
           into the queue; workers take items of it, a few at a time; whoever makes the last one puts the batch
           together. In their order, the context's thread takes parcels off the queue and gives tensors out that borrow
           them.
   crew    the threads and the queue, and all that is shared between threads. */
#ifndef CN_DATA_LOADER_H
#define CN_DATA_LOADER_H

#include <pthread.h>
#include <stdatomic.h>

#include "data/data.h"

/* What workers know. Changes only while nothing is in the queue. */
typedef struct cn__spec {
    const cn_dataset *dataset;
    int64_t batch;
    uint64_t seed;
    cn_collate_fn collate;
    void *collate_user;
    int fields; /* of a batch */
    cn_field field[CN_MAX_FIELDS];
    bool
        direct[CN_MAX_FIELDS]; /* the dataset's field is written straight into the batch; else into a room of its own */
} cn__spec;

typedef struct cn__parcel {
    struct cn__parcel_pool *pool;
    struct cn__parcel *next;
    size_t bytes;
    int refs; /* tensors that borrow it */
    int64_t epoch, number, n;
    int64_t handed, done; /* items taken by workers; made */
    bool ready;
    cn_code code; /* of the first item that failed, in the batch's order */
    int64_t failed_at;
    char error[256];
    void *data[CN_MAX_FIELDS]; /* of direct fields */
    int64_t *index;            /* (batch) */
    int n_rooms;
    cn_room *room; /* (dataset's fields, batch), or NULL */
    cn_room out[CN_MAX_FIELDS];
} cn__parcel;

/* ---- parcel.c */

/* Parcels to use again. It outlives its loader while tensors borrow parcels of it. */
typedef struct cn__parcel_pool {
    cn_ctx *ctx;
    cn__parcel *free;
    int64_t lent;
    bool closed;
} cn__parcel_pool;

size_t cn__parcel_bytes(const cn__spec *s); /* SIZE_MAX: more than can be */
cn__parcel_pool *cn__parcel_pool_new(cn_ctx *ctx);
void cn__parcel_pool_close(cn__parcel_pool *p);
cn__parcel *cn__parcel_take(cn__parcel_pool *p, const cn__spec *s); /* NULL: no memory, no error set */
void cn__parcel_put(cn__parcel *b);
/* True: the tensors have the parcel now, and put it back when the last of them is gone. False: nothing has changed. */
bool cn__parcel_tensors(cn__parcel *b, const cn__spec *s, cn_batch *out);

/* By workers. */
bool cn__parcel_make(const cn__spec *s, cn__parcel *b, int64_t i, cn__fetch *f); /* item i of it; false: f says why */
void cn__parcel_finish(const cn__spec *s, cn__parcel *b, cn__fetch *f);          /* when all are made */

/* ---- crew.c */

typedef struct cn__crew {
    const cn__spec *spec;
    int seat_count, wanted, started;
    struct cn__seat *seats;
    int64_t portion; /* items a worker takes at a time */
    cn__fetch own;   /* for work in the calling thread */
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    bool opened, stop;
    atomic_bool cancel;
    int busy;                        /* workers that make items */
    cn__parcel *first, *last, *hand; /* the queue; the first that has items left to take */
    int64_t queued;
} cn__crew;

bool cn__crew_open(cn__crew *c, cn_ctx *ctx, const cn__spec *s, int workers); /* threads start with the first parcel */
void cn__crew_close(cn__crew *c, cn_ctx *ctx);                                /* the queue must be empty */
void cn__crew_push(cn__crew *c, cn__parcel *b);
cn__parcel *cn__crew_first(cn__crew *c); /* waits until it is ready; it stays in the queue */
void cn__crew_pop(cn__crew *c);
cn__parcel *cn__crew_drain(cn__crew *c); /* no more work; what was queued, chained */

#endif
