/* Streams: datasets whose items come one after the other. A loader has a cursor for each shard; a worker that reads
   items of a shard hands its cursor to the dataset by way of the fetch. */
#include <stdio.h>

#include "data/data.h"

enum { MAX_SHARDS = 1 << 16 };

typedef struct stream {
    cn_dataset base;
    cn_stream_desc desc;
} stream;

static bool stream_get(const cn_dataset *d, int64_t index, cn__fetch *f, void *const *fields)
{
    cn__cursor *c = f->cursor;
    (void)index;
    if (!c) return cn__fetch_fail(f, CN_BAD_INDEX, "the items of a stream have no numbers");
    f->error[0] = 0;
    const cn_stream_result r = ((const stream *)d)->desc.next(c->at, &f->random, fields, f->error, sizeof f->error);
    if (r == CN_STREAM_ITEM) return true;
    if (r == CN_STREAM_END) {
        c->ended = true;
        return false;
    }
    f->code = CN_BAD_FILE;
    if (!f->error[0]) cn__fetch_fail(f, CN_BAD_FILE, "the stream's next function failed without a message");
    return false;
}

static void stream_close(cn_dataset *d)
{
    const cn_stream_desc *desc = &((stream *)d)->desc;
    if (desc->free_user) cn__call_free(d->object.ctx, desc->free_user, desc->user);
}

int64_t cn__stream_shards(const cn_dataset *d) { return d->stream ? ((const stream *)d->stream)->desc.shards : 0; }

bool cn__cursor_open(const cn_dataset *d, cn__cursor *c, const cn_shard *shard, cn__fetch *f)
{
    const cn_stream_desc *desc = &((const stream *)d->stream)->desc;
    f->error[0] = 0;
    c->at = desc->open(desc->user, shard, f->error, sizeof f->error);
    c->items = 0;
    c->ended = !c->at;
    c->opened = true;
    if (c->at) return true;
    f->code = CN_BAD_FILE;
    if (!f->error[0]) cn__fetch_fail(f, CN_BAD_FILE, "the stream's open function returned NULL and no message");
    return false;
}

void cn__cursor_close(const cn_dataset *d, cn__cursor *c)
{
    const cn_stream_desc *desc = &((const stream *)d->stream)->desc;
    if (c->at && desc->close) cn__call_free(d->object.ctx, desc->close, c->at);
    *c = (cn__cursor){ 0 };
}

cn_dataset *cn_dataset_stream(cn_ctx *ctx, const cn_stream_desc *desc)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (!desc || !desc->open || !desc->next || desc->shards < 0 || desc->shards > MAX_SHARDS) {
        cn__fail(ctx, CN_BAD_ARGUMENT,
                 "dataset_stream: open and next must be functions and shards 0 to %d, got %s and %lld", MAX_SHARDS,
                 desc && desc->open && desc->next ? "functions" : "NULL", (long long)(desc ? desc->shards : 0));
        return NULL;
    }
    if (!cn__check_fields(ctx, "dataset_stream", desc->field, desc->fields, true)) return NULL;
    stream *s = (stream *)cn__dataset_new(ctx, sizeof *s, -1, desc->field, desc->fields);
    if (!s) return NULL;
    s->base.get = stream_get;
    s->base.close = stream_close;
    s->base.stream = &s->base;
    s->desc = *desc;
    if (!s->desc.shards) s->desc.shards = 1;
    return &s->base;
}
