/* data/loader.h: how a loader makes batches.

   parcel  The memory of one batch, and the progress of the work on it. The context's thread creates the parcel, writes
           the indices of its items and pushes it to the queue. Workers make its items, a portion at a time. The worker
           that makes the last item collates the batch. The context's thread pops parcels in their order and returns
           tensors that borrow their memory.
   crew    The worker threads, the queue of parcels, and everything that threads share. */
#ifndef CN_DATA_LOADER_H
#define CN_DATA_LOADER_H

#include <pthread.h>
#include <stdatomic.h>

#include "data/data.h"

/* What workers read. It changes only while the queue is empty. */
typedef struct cn__spec {
    const cn_dataset *dataset;
    int64_t batch;
    uint64_t seed;
    cn_collate_fn collate;
    void *collate_user;
    int fields; /* of a batch */
    cn_field field[CN_MAX_FIELDS];
    cn__cursor *cursors;        /* (shards) of a stream; crew.c hands each to one worker at a time */
    int64_t shards;             /* 0: the dataset is no stream */
    bool direct[CN_MAX_FIELDS]; /* items are written straight into the batch; false: into a cn_room each */
} cn__spec;

typedef struct cn__parcel {
    struct cn__parcel_pool *pool;
    struct cn__parcel *next;
    size_t bytes;
    int refs; /* tensors that borrow its memory */
    int64_t epoch, number, n;
    int64_t shard;          /* of a stream, that its items come from */
    bool last;              /* the shard has ended: n is smaller than the batch, or 0 */
    int64_t assigned, done; /* number of items that workers have begun; have made */
    bool taken;             /* workers have begun all of its items */
    bool ready;
    cn_code code;      /* of the failed item that comes first in the batch */
    int64_t failed_at; /* its place in the batch; -1: collating failed */
    char error[256];
    void *data[CN_MAX_FIELDS]; /* the batch's memory for direct fields */
    int64_t *index;            /* (batch) */
    int n_rooms;
    cn_room *room; /* (dataset's fields, batch); NULL if every field is direct */
    cn_room out[CN_MAX_FIELDS];
    bool staged; /* its fields are on the device already, here: */
    struct cn__storage *ahead[CN_MAX_FIELDS];
} cn__parcel;

/* ---- parcel.c */

/* Parcels that can be used again. The pool outlives its loader while tensors borrow its parcels. */
typedef struct cn__parcel_pool {
    cn_ctx *ctx;
    cn__parcel *free;
    int64_t lent; /* parcels that tensors borrow */
    bool closed;
} cn__parcel_pool;

size_t cn__parcel_bytes(const cn__spec *s); /* SIZE_MAX: it overflows */
cn__parcel_pool *cn__parcel_pool_new(cn_ctx *ctx);
void cn__parcel_pool_close(cn__parcel_pool *p);
cn__parcel *cn__parcel_acquire(cn__parcel_pool *p, const cn__spec *s); /* NULL: no memory; sets no error */
void cn__parcel_recycle(cn__parcel *b);
/* True: the tensors own the parcel now; the last of them returns it to the pool. False: nothing has changed. */
bool cn__parcel_tensors(cn__parcel *b, const cn__spec *s, cn_batch *out);

/* Begins the upload of a finished batch to a device with memory of its own. It sets no error: if this fails, the batch
   is uploaded when its tensors are made. */
void cn__parcel_stage(cn__parcel *b, const cn__spec *s);

/* Called by workers. */
bool cn__parcel_make(const cn__spec *s, cn__parcel *b, int64_t i, cn__fetch *f); /* item i; false: f has the error */
void cn__parcel_finish(const cn__spec *s, cn__parcel *b, cn__fetch *f);          /* collates, when all items are made */

/* ---- crew.c */

typedef struct cn__crew {
    cn_ctx *ctx; /* workers must not use it */
    const cn__spec *spec;
    int seat_count, wanted, started;
    struct cn__seat *seats;
    int64_t portion; /* items a worker makes between two uses of the lock */
    cn__fetch own;   /* for work in the calling thread */
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    bool opened, stop;
    atomic_bool cancel;
    int busy;                              /* workers that make items now */
    cn__parcel *first, *last, *unassigned; /* the queue; its first parcel with items that no worker has begun */
    int64_t queued;
} cn__crew;

bool cn__crew_open(cn__crew *c, cn_ctx *ctx, const cn__spec *s, int workers); /* threads start with the first push */
void cn__crew_close(cn__crew *c, cn_ctx *ctx);                                /* the queue must be empty */
void cn__crew_push(cn__crew *c, cn__parcel *b);
cn__parcel *cn__crew_first(cn__crew *c); /* waits until the first parcel is ready; does not pop it */
cn__parcel *cn__crew_ready(cn__crew *c); /* the same without waiting: NULL if there is none that is ready */
void cn__crew_pop(cn__crew *c);
cn__parcel *cn__crew_drain(cn__crew *c); /* stops the work; returns the queue as a list */

#endif
