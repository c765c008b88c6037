/* Datasets without a count, and samplers of whole batches: the same batches for any number of workers, positions,
   errors. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/samples.h"

/* ---- a stream of the numbers 0 .. total - 1: every shards-th one */

typedef struct source {
    int64_t total;
    int64_t bad, closed_shard; /* an item that fails, a shard that cannot be opened; -1: none */
    bool varies;               /* item i has i % 4 numbers */
    atomic_int open, opened;
} source;

typedef struct reader {
    source *from;
    int64_t at, step, epoch;
    atomic_bool in_use;
} reader;

static void *open_reader(void *user, const cn_shard *shard, char *error, size_t size)
{
    source *s = user;
    reader *r = shard->shard == s->closed_shard ? NULL : calloc(1, sizeof *r);
    if (!r) {
        snprintf(error, size, "shard %d is closed", (int)shard->shard);
        return NULL;
    }
    r->from = s;
    r->at = shard->shard;
    r->step = shard->shards;
    r->epoch = shard->epoch;
    s->open++;
    s->opened++;
    return r;
}

static atomic_int met; /* how often two threads read a shard at once; workers do not call check */

static cn_stream_result read_next(void *cursor, cn_draw *random, void *const *fields, char *error, size_t size)
{
    reader *r = cursor;
    if (atomic_exchange(&r->in_use, true)) atomic_fetch_add(&met, 1);
    const int64_t i = r->at;
    r->at += r->step;
    cn_stream_result result = CN_STREAM_ITEM;
    if (i >= r->from->total) result = CN_STREAM_END;
    else if (i == r->from->bad) {
        snprintf(error, size, "a stone in the stream");
        result = CN_STREAM_ERROR;
    } else if (r->from->varies) {
        int64_t *to = cn_room_take(fields[0], CN_DIMS(i % 4));
        for (int64_t k = 0; k < i % 4; k++) to[k] = i;
        *(float *)fields[1] = (float)cn_draw_unit(random);
    } else {
        *(int64_t *)fields[0] = i + 1000 * r->epoch;
        *(float *)fields[1] = (float)cn_draw_unit(random);
    }
    atomic_store(&r->in_use, false);
    return result;
}

static void close_reader(void *cursor)
{
    ((reader *)cursor)->from->open--;
    free(cursor);
}

static cn_dataset *streaming(cn_ctx *cn, source *s, int64_t shards)
{
    return cn_dataset_stream(cn, &(cn_stream_desc){ .fields = 2,
                                                    .field = { { CN_I64, s->varies ? CN_DIMS(-1) : CN_SCALAR, -1 },
                                                               { CN_F32, CN_SCALAR, 0 } },
                                                    .shards = shards,
                                                    .open = open_reader,
                                                    .next = read_next,
                                                    .close = close_reader,
                                                    .user = s });
}

static void one_shard_comes_in_order(void)
{
    source s = { .total = 10, .bad = -1, .closed_shard = -1 };
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1, .threads = 1 });
    cn_loader *l = cn_loader_new(streaming(cn, &s, 0), &(cn_loader_desc){ .batch = 4 });
    check(cn_loader_batches(l) == -1, "nobody knows how many");
    cn_batch b;
    for (int64_t epoch = 0; epoch < 2; epoch++) {
        int64_t x[4], n = 0, seen = 0;
        for (; cn_loader_next(l, &b); n++) {
            check(b.number == n && b.epoch == epoch && b.n == (n == 2 ? 2 : 4), "batch %d has %d", (int)n, (int)b.n);
            cn_read(b.x, x, (size_t)b.n * sizeof *x);
            for (int64_t i = 0; i < b.n; i++, seen++) check(x[i] == seen + 1000 * epoch, "item %d", (int)seen);
        }
        check(seen == 10 && n == 3 && !cn_failed(cn), "an epoch ends: %s", cn_error(cn));
    }
    l = cn_loader_new(streaming(cn, &s, 0), &(cn_loader_desc){ .batch = 4, .drop_last = true });
    int n = 0;
    while (cn_loader_next(l, &b)) n += (int)b.n;
    check(n == 8, "drop_last: %d items", n);
    cn_close(cn);
    check(s.open == 0 && s.opened > 0, "every shard is closed: %d", s.open);
}

static void shards_take_turns(void)
{
    source s = { .total = 11, .bad = -1, .closed_shard = -1 };
    /* shards 0 3 6 9, 1 4 7 10, 2 5 8 in batches of 3 */
    static const int64_t want[] = { 0, 3, 6, 1, 4, 7, 2, 5, 8, 9, 10 };
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1, .threads = 1 });
    cn_loader *l = cn_loader_new(streaming(cn, &s, 3), &(cn_loader_desc){ .batch = 3, .workers = 2 });
    cn_batch b;
    int64_t n = 0, x[3];
    while (cn_loader_next(l, &b)) {
        cn_read(b.x, x, (size_t)b.n * sizeof *x);
        for (int64_t i = 0; i < b.n; i++, n++) check(n < 11 && x[i] == want[n], "item %d is %d", (int)n, (int)x[i]);
    }
    check(n == 11, "all of them: %d", (int)n);
    cn_close(cn);
}

static tape play(source *s, int64_t shards, cn_loader_desc desc, int epochs)
{
    tape t = { 0 };
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 4, .threads = 1 });
    cn_dataset *d = streaming(cn, s, shards);
    cn_loader *l = cn_loader_new(d, &desc);
    cn_dataset_free(d); /* the loader holds it */
    tape_epochs(&t, l, cn, epochs);
    check(!cn_failed(cn), "%s", cn_error(cn));
    cn_close(cn);
    return t;
}

static bool collate(void *user, int64_t n, cn_draw *random, const cn_room *const *items, cn_room *out, char *error,
                    size_t size)
{
    (void)user, (void)error, (void)size;
    double *to = cn_room_take(&out[0], CN_DIMS(n));
    for (int64_t i = 0; i < n; i++) to[i] = cn_draw_unit(random) + (double)items[0][i].shape.v[0];
    return to;
}

static void batches_do_not_depend_on_workers(void)
{
    static const int64_t shards[] = { 1, 2, 5, 7 };
    for (int variant = 0; variant < 3; variant++) /* plain, of varying shape, collated */
        for (int i = 0; i < 4; i++) {
            source s = { .total = 83, .bad = -1, .closed_shard = -1, .varies = variant > 0 };
            cn_loader_desc desc = { .batch = 4 };
            if (variant == 2) {
                desc.collate = collate;
                desc.collate_fields = 1;
                desc.collate_field[0] = (cn_field){ .dtype = CN_F64 };
            }
            tape plain = play(&s, shards[i], desc, 2);
            for (int w = 1; w <= 4; w += 3) {
                desc.workers = w;
                desc.prefetch = w;
                tape other = play(&s, shards[i], desc, 2);
                check(plain.n > 0 && tapes_equal(&plain, &other), "variant %d, %d shards, %d workers", variant,
                      (int)shards[i], w);
                tape_free(&other);
            }
            check(s.open == 0, "every shard is closed");
            tape_free(&plain);
        }
}

static bool doubled(void *user, const cn_map_call *call)
{
    (void)user;
    *(int64_t *)call->out[0] = 2 * *(const int64_t *)call->in[0];
    *(float *)call->out[1] = 0;
    return true;
}

static void streams_are_mapped(void)
{
    source s = { .total = 9, .bad = -1, .closed_shard = -1 };
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_dataset *d = cn_dataset_map(streaming(cn, &s, 2), &(cn_map_desc){ .fn = doubled });
    check(cn_dataset_count(d) == -1, "a mapped stream has no count either");
    cn_loader *l = cn_loader_new(d, &(cn_loader_desc){ .batch = 9, .workers = 1 });
    cn_batch b;
    check(cn_loader_next(l, &b) && b.n == 5 && cn_get(b.x, CN_DIMS(1)) == 4, "mapped: %s", cn_error(cn));
    int64_t zero = 0;
    double halves[2] = { 0.5, 0.5 };
    cn_dataset *parts[2];
    check(!cn_dataset_subset(d, &zero, 1) && strstr(cn_error(cn), "dataset_subset: the items of a stream"), "%s",
          cn_error(cn));
    cn_error_clear(cn);
    check(!cn_dataset_split(d, halves, 2, 1, parts) && strstr(cn_error(cn), "dataset_split: the items of a stream"),
          "%s", cn_error(cn));
    cn_error_clear(cn);
    check(!cn_dataset_concat(&d, 1) && strstr(cn_error(cn), "dataset_concat: the items of a stream"), "%s",
          cn_error(cn));
    cn_error_clear(cn);
    check(!cn_loader_new(d, &(cn_loader_desc){ .shuffle = true }) && strstr(cn_error(cn), "an order of its own"), "%s",
          cn_error(cn));
    cn_error_clear(cn);
    cn_close(cn);
}

static void positions(void)
{
    source s = { .total = 41, .bad = 17, .closed_shard = -1 };
    for (int stop = 0; stop <= 12; stop += 3) {
        tape rest = { 0 }, resumed = { 0 };
        cn_ctx *cn = cn_open(&(cn_desc){ .seed = 3, .threads = 1 });
        cn_loader *l = cn_loader_new(streaming(cn, &s, 3), &(cn_loader_desc){ .batch = 4, .workers = 2 });
        cn_batch b;
        for (int n = 0; n < stop; n++) {
            cn_loader_next(l, &b);
            cn_error_clear(cn);
        }
        cn_dict *state = cn_dict_new(cn);
        check(cn_loader_save(l, state, NULL), "saved: %s", cn_error(cn));
        cn_loader *other = cn_loader_new(streaming(cn, &s, 3), &(cn_loader_desc){ .batch = 4, .seed = 9 });
        cn_loader_next(other, &b);
        check(cn_loader_load(other, state, NULL), "loaded: %s", cn_error(cn));
        for (int n = 0; n < 20; n++) {
            const bool a = cn_loader_next(l, &b);
            if (a) tape_batch(&rest, &b);
            cn_error_clear(cn);
            const bool c = cn_loader_next(other, &b);
            if (c) tape_batch(&resumed, &b);
            cn_error_clear(cn);
            check(a == c, "both or none, %d after %d", n, stop);
        }
        check(rest.n > 0 && tapes_equal(&rest, &resumed), "resumed after %d", stop);
        cn_loader_reset(l, 0);
        check(cn_loader_next(l, &b) && b.epoch == 0 && b.number == 0 && cn_get(b.x, CN_DIMS(0)) == 0, "from the start");
        cn_loader *wrong = cn_loader_new(streaming(cn, &s, 2), &(cn_loader_desc){ .batch = 4 });
        check(!cn_loader_load(wrong, state, NULL) && cn_failed(cn), "another number of shards");
        cn_close(cn);
        tape_free(&rest);
        tape_free(&resumed);
    }
    check(s.open == 0, "every shard is closed");
}

static void errors(void)
{
    for (int workers = 0; workers < 3; workers += 2) {
        source s = { .total = 20, .bad = 5, .closed_shard = 2 };
        cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
        cn_loader *l = cn_loader_new(streaming(cn, &s, 4), &(cn_loader_desc){ .batch = 2, .workers = workers });
        cn_batch b;
        int items = 0, failed = 0;
        bool stone = false, closed = false;
        for (int i = 0; i < 40; i++) {
            if (cn_loader_next(l, &b)) items += (int)b.n;
            else if (!cn_failed(cn)) break;
            else {
                failed++;
                stone = stone || strstr(cn_error(cn), "a stone in the stream");
                closed = closed || strstr(cn_error(cn), "shard 2 is closed");
                cn_error_clear(cn);
            }
        }
        check(failed == 2 && stone && closed && items == 13, "%d items, %d failures", items, failed);
        cn_close(cn);
        check(s.open == 0, "every shard is closed");
    }
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_stream_desc bad = { .fields = 1, .open = open_reader, .next = read_next, .shards = -1 };
    check(!cn_dataset_stream(cn, &bad) && strstr(cn_error(cn), "shards 0 to"), "%s", cn_error(cn));
    cn_error_clear(cn);
    bad = (cn_stream_desc){ .fields = 1, .open = open_reader };
    check(!cn_dataset_stream(cn, &bad) && strstr(cn_error(cn), "must be functions"), "%s", cn_error(cn));
    cn_close(cn);
}

/* ---- samplers of batches */

enum { N = 103 };

static bool get_number(void *user, int64_t index, cn_draw *random, void *const *fields, char *error, size_t size)
{
    (void)user, (void)random, (void)error, (void)size;
    *(int64_t *)fields[0] = index;
    return true;
}

static cn_dataset *counting(cn_ctx *cn, int64_t n)
{
    return cn_dataset_new(
        cn, &(cn_dataset_desc){ .count = n, .fields = 1, .field = { { .dtype = CN_I64 } }, .get = get_number });
}

/* Reads an epoch: the indices, the size of each batch. Returns the number of batches. */
static int read_epoch(cn_loader *l, int64_t *index, int64_t *size)
{
    cn_batch b;
    int n = 0;
    for (; cn_loader_next(l, &b); n++) {
        cn_read(b.x, index, (size_t)b.n * sizeof *index);
        index += b.n;
        size[n] = b.n;
    }
    return n;
}

static int64_t spread(const int64_t *length, const int64_t *index, const int64_t *size, int batches)
{
    int64_t sum = 0;
    for (int i = 0; i < batches; index += size[i++]) {
        int64_t low = INT64_MAX, high = 0;
        for (int64_t k = 0; k < size[i]; k++) {
            if (length[index[k]] < low) low = length[index[k]];
            if (length[index[k]] > high) high = length[index[k]];
        }
        sum += high - low;
    }
    return sum;
}

static void buckets(void)
{
    int64_t length[N], index[3][N], size[3][N], other[N], other_size[N];
    for (int i = 0; i < N; i++) length[i] = (i * 37) % 50;
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 2, .threads = 1 });
    cn_dataset *d = counting(cn, N);
    cn_data_sampler *s = cn_data_sampler_buckets(cn, length, N, &(cn_buckets_desc){ .batch = 8, .pool = 4 });
    check(cn_data_sampler_count(s) == N, "every item");
    cn_loader *l = cn_loader_new(d, &(cn_loader_desc){ .sampler = s });
    check(cn_loader_batches(l) == 13, "13 batches: %d", (int)cn_loader_batches(l));
    for (int e = 0; e < 3; e++) {
        char seen[N] = { 0 };
        int sum = 0, small = 0;
        check(read_epoch(l, index[e], size[e]) == 13, "batches of epoch %d: %s", e, cn_error(cn));
        for (int i = 0; i < N; i++) sum += !seen[index[e][i]]++;
        for (int i = 0; i < 13; i++) small += size[e][i] != 8;
        check(sum == N && small == 1, "every item once, one small batch");
        check(spread(length, index[e], size[e], 13) < 13 * 20, "similar lengths: %d",
              (int)spread(length, index[e], size[e], 13));
    }
    check(memcmp(index[0], index[1], sizeof other), "epochs differ");
    l = cn_loader_new(d, &(cn_loader_desc){ .sampler = s, .workers = 3 });
    read_epoch(l, other, other_size);
    check(!memcmp(other, index[0], sizeof other), "workers do not matter");
    check(cn_data_sampler_indices(s, 2, 0, other) && !memcmp(other, index[0], sizeof other), "as a list: %s",
          cn_error(cn));
    s = cn_data_sampler_buckets(cn, length, N, &(cn_buckets_desc){ .batch = 8, .in_order = true, .drop_last = true });
    int n = read_epoch(cn_loader_new(d, &(cn_loader_desc){ .sampler = s }), other, other_size);
    bool sorted = n == 12 && cn_data_sampler_count(s) == 96;
    for (int i = 1; i < 96; i++)
        sorted = sorted && (length[other[i - 1]] < length[other[i]] ||
                            (length[other[i - 1]] == length[other[i]] && other[i - 1] < other[i]));
    check(sorted, "in order, without the incomplete one");
    check(!cn_data_sampler_buckets(cn, length, N, &(cn_buckets_desc){ .batch = -1 }) && cn_failed(cn), "words: %s",
          cn_error(cn));
    cn_error_clear(cn);
    check(!cn_loader_new(d, &(cn_loader_desc){ .sampler = s, .batch = 4 }) && strstr(cn_error(cn), "makes batches"),
          "words: %s", cn_error(cn));
    cn_close(cn);
}

/* Batches of 1, 2, 3, ... items; in epoch e without the last e batches. *user: how it fails. */
static int64_t growing(void *user, uint64_t seed, int64_t epoch, int64_t n, int64_t *index, int64_t *sizes)
{
    const int fault = user ? *(int *)user : 0;
    (void)seed;
    int64_t batches = 0, done = 0;
    for (int64_t size = 1; done + size <= n; done += size++) sizes[batches++] = size;
    for (int64_t i = 0; i < done; i++) index[i] = n - 1 - i;
    if (fault == 1) return -1;
    if (fault == 2) sizes[1] = 0;
    if (fault == 3) sizes[1] = 100;
    if (fault == 4) index[2] = n;
    return fault == 5 ? n + 1 : batches - epoch;
}

static void own_batches(void)
{
    int64_t index[N], size[N];
    int fault = 0;
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_dataset *d = counting(cn, 30);
    cn_data_sampler *s = cn_data_sampler_batches(cn, 30, 7, growing, &fault);
    cn_loader *l = cn_loader_new(d, &(cn_loader_desc){ .sampler = s, .workers = 2 });
    check(cn_loader_batches(l) == -1, "not known yet");
    check(read_epoch(l, index, size) == 7 && size[0] == 1 && size[6] == 7 && index[0] == 29 && index[27] == 2,
          "seven batches: %s", cn_error(cn));
    cn_batch b;
    cn_loader_next(l, &b);
    check(b.epoch == 1 && b.n == 1 && cn_loader_batches(l) == 6, "known now: %d", (int)cn_loader_batches(l));
    cn_dict *state = cn_dict_new(cn);
    cn_loader_next(l, &b);
    cn_loader_save(l, state, NULL);
    cn_loader *other = cn_loader_new(d, &(cn_loader_desc){ .sampler = s });
    check(cn_loader_load(other, state, NULL) && read_epoch(other, index, size) == 4 && size[0] == 3 && index[0] == 26,
          "resumed: %s", cn_error(cn));
    static const char *const words[] = { NULL,
                                         "its function failed for epoch 0",
                                         "a batch of 0 items",
                                         "a batch of 100 items",
                                         "returned index 30",
                                         "31 batches of 30 items" };
    for (fault = 1; fault <= 5; fault++) {
        check(!cn_loader_next(cn_loader_new(d, &(cn_loader_desc){ .sampler = s }), &b) &&
                  strstr(cn_error(cn), words[fault]),
              "fault %d: %s", fault, cn_error(cn));
        cn_error_clear(cn);
    }
    check(!cn_data_sampler_batches(cn, 30, 0, growing, NULL) && strstr(cn_error(cn), "batch ≥ 1"), "%s", cn_error(cn));
    cn_close(cn);
}

int main(void)
{
    one_shard_comes_in_order();
    shards_take_turns();
    batches_do_not_depend_on_workers();
    streams_are_mapped();
    positions();
    errors();
    buckets();
    own_batches();
    check(atomic_load(&met) == 0, "one thread at a time reads a shard");
    return finish();
}
