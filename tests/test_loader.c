/* Loaders: the same batches for any number of workers, positions, errors, early ends, memory, time. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/faulty.h"
#include "support/samples.h"
#include "support/scratch.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void sleep_ms(double ms)
{
    struct timespec t = { (time_t)(ms / 1000), (long)((ms - 1000 * (double)(long)(ms / 1000)) * 1e6) };
    nanosleep(&t, NULL);
}

static int count_threads(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d));) n += e->d_name[0] != '.';
    if (d) closedir(d);
    return n;
}

/* ---- order */

static tape play(const sample_kind *k, cn_loader_desc desc, int epochs, int *batches)
{
    tape t = { 0 };
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 11, .threads = 1 });
    cn_dataset *d = k->make(cn);
    cn_loader *l = cn_loader_new(d, &desc);
    cn_dataset_free(d); /* the loader holds it */
    *batches = tape_epochs(&t, l, cn, epochs);
    check(!cn_failed(cn), "%s: %s", k->name, cn_error(cn));
    check(*batches == epochs * cn_loader_batches(l), "%s: %d batches, said %lld an epoch", k->name, *batches,
          (long long)cn_loader_batches(l));
    cn_close(cn);
    return t;
}

static void order_does_not_depend_on_workers(void)
{
    const int workers[] = { 1, 4 };
    for (int i = 0; i < sample_kinds_count; i++) {
        const sample_kind *k = &sample_kinds[i];
        check_group(k->name);
        for (int shuffle = 0; shuffle < 2; shuffle++) {
            int n, m;
            cn_loader_desc desc = { .batch = 3, .shuffle = shuffle, .drop_last = shuffle };
            tape plain = play(k, desc, 3, &n);
            check(n > 0 && plain.n > 0, "%s: there is something", k->name);
            for (int w = 0; w < 2; w++) {
                desc.workers = workers[w];
                desc.prefetch = w;
                tape other = play(k, desc, 3, &m);
                check(tapes_equal(&plain, &other), "%s: %d workers give what none do, shuffle %d", k->name, workers[w],
                      shuffle);
                tape_free(&other);
            }
            tape_free(&plain);
        }
    }
    check_group("");
}

/* Numbers of an epoch of 0 .. n - 1, in the order they come. */
static void read_indices(cn_loader *l, cn_ctx *cn, int64_t *out)
{
    cn_batch b;
    int64_t n = 0;
    for (cn_scope s = cn_scope_begin(cn); cn_loader_next(l, &b); cn_scope_end(cn, s), n += b.n)
        cn_read(b.x, out + n, (size_t)b.n * sizeof *out);
}

static bool get_index(void *user, int64_t index, cn_draw *random, void *const *fields, char *error, size_t size)
{
    (void)random;
    const int64_t *bad = user;
    if (bad && (index == bad[0] || index == bad[1])) {
        snprintf(error, size, "a leaf is missing");
        return false;
    }
    *(int64_t *)fields[0] = index;
    return true;
}

static cn_dataset *counting(cn_ctx *cn, int64_t n, const int64_t *bad)
{
    return cn_dataset_new(cn, &(cn_dataset_desc){ .count = n,
                                                  .fields = 1,
                                                  .field = { { .dtype = CN_I64 } },
                                                  .get = get_index,
                                                  .user = (void *)(uintptr_t)bad });
}

static void shuffles_are_permutations_and_differ(void)
{
    enum { N = 101 };
    int64_t epoch[3][N], again[N];
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 5, .threads = 1 });
    cn_loader *l =
        cn_loader_new(counting(cn, N, NULL), &(cn_loader_desc){ .batch = 10, .shuffle = true, .workers = 2 });
    for (int e = 0; e < 3; e++) {
        char seen[N] = { 0 };
        read_indices(l, cn, epoch[e]);
        int sum = 0;
        for (int i = 0; i < N; i++)
            if (epoch[e][i] >= 0 && epoch[e][i] < N) sum += !seen[epoch[e][i]]++;
        check(sum == N, "epoch %d has every item once: %d", e, sum);
    }
    check(memcmp(epoch[0], epoch[1], sizeof again) && memcmp(epoch[1], epoch[2], sizeof again), "epochs differ");
    cn_loader_reset(l, 1);
    read_indices(l, cn, again);
    check(!memcmp(again, epoch[1], sizeof again), "epoch 1 again is the same");
    cn_loader *other =
        cn_loader_new(counting(cn, N, NULL), &(cn_loader_desc){ .batch = 10, .shuffle = true, .seed = 6 });
    read_indices(other, cn, again);
    check(memcmp(again, epoch[0], sizeof again), "another seed, another order");
    check(cn_loader_epoch(other) == 1 && cn_loader_batches(other) == 11, "one epoch of 11 batches is over");
    cn_close(cn);
}

static void last_batches(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_dataset *d = counting(cn, 10, NULL);
    cn_loader *all = cn_loader_new(d, &(cn_loader_desc){ .batch = 4 });
    cn_loader *whole = cn_loader_new(d, &(cn_loader_desc){ .batch = 4, .drop_last = true });
    cn_loader *single = cn_loader_new(d, NULL);
    check(cn_loader_batches(all) == 3 && cn_loader_batches(whole) == 2 && cn_loader_batches(single) == 10,
          "numbers of batches");
    cn_batch b;
    int64_t sizes[3] = { 4, 4, 2 }, n = 0;
    while (cn_loader_next(all, &b)) {
        check(n < 3 && b.n == sizes[n] && cn_size(b.x, 0) == b.n && b.number == n && b.epoch == 0, "batch %lld",
              (long long)n);
        n++;
    }
    check(n == 3 && !b.x && !cn_failed(cn), "three, then an end that is no error");
    cn_loader *empty =
        cn_loader_new(counting(cn, 0, NULL), &(cn_loader_desc){ .batch = 4, .shuffle = true, .workers = 1 });
    check(empty && cn_loader_batches(empty) == 0 && !cn_loader_next(empty, &b) && !cn_failed(cn), "an empty dataset");
    cn_close(cn);
}

/* ---- position */

static void a_saved_position_resumes_exactly(void)
{
    for (int i = 0; i < sample_kinds_count; i++) {
        const sample_kind *k = &sample_kinds[i];
        cn_ctx *cn = cn_open(&(cn_desc){ .seed = 3, .threads = 1 });
        cn_dataset *d = k->make(cn);
        cn_loader_desc desc = { .batch = 4, .shuffle = true, .workers = 2, .seed = 21 };
        cn_loader *l = cn_loader_new(d, &desc);
        int64_t per_epoch = cn_loader_batches(l);
        for (int64_t stop = 0; stop <= 2 * per_epoch; stop += 1 + per_epoch / 3) {
            tape rest = { 0 }, resumed = { 0 };
            cn_batch b;
            cn_scope s = cn_scope_begin(cn);
            cn_loader_reset(l, 0);
            for (int64_t n = 0; n < stop;) n += cn_loader_next(l, &b);
            cn_dict *state = cn_dict_new(cn);
            check(cn_loader_save(l, state, "train."), "saved: %s", cn_error(cn));
            desc.workers = (int)(stop % 3);
            desc.seed = 99; /* the saved one counts */
            cn_loader *other = cn_loader_new(d, &desc);
            check(cn_loader_load(other, state, "train."), "loaded: %s", cn_error(cn));
            tape_epochs(&rest, l, cn, 3);
            tape_epochs(&resumed, other, cn, 3);
            check(rest.n > 0 && tapes_equal(&rest, &resumed), "%s: after %lld batches", k->name, (long long)stop);
            cn_scope_end(cn, s);
            cn_loader_free(other);
            cn_dict_free(state);
            tape_free(&rest);
            tape_free(&resumed);
        }
        cn_close(cn);
    }
}

/* The loader that loads a position has begun its own epoch, in the order of another seed or of the same one. */
static void a_loader_that_has_begun_takes_the_saved_order(void)
{
    enum { N = 37 };
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_dataset *d = counting(cn, N, NULL);
    for (int epoch = 0; epoch < 2; epoch++)
        for (uint64_t seed = 5; seed <= 6; seed++)
            for (int workers = 0; workers <= 2; workers += 2) {
                cn_loader_desc desc = { .batch = 5, .shuffle = true, .workers = workers, .seed = 5 };
                cn_loader *l = cn_loader_new(d, &desc);
                desc.seed = seed;
                cn_loader *begun = cn_loader_new(d, &desc);
                cn_batch b;
                cn_dict *state = cn_dict_new(cn);
                tape rest = { 0 }, resumed = { 0 };
                cn_loader_reset(l, epoch);
                check(cn_loader_next(l, &b) && cn_loader_save(l, state, ""), "saved: %s", cn_error(cn));
                for (int i = 0; i < 3; i++) check(cn_loader_next(begun, &b), "begun: %s", cn_error(cn));
                check(cn_loader_load(begun, state, ""), "loaded: %s", cn_error(cn));
                tape_epochs(&rest, l, cn, 2);
                tape_epochs(&resumed, begun, cn, 2);
                check(rest.n > 0 && tapes_equal(&rest, &resumed), "epoch %d, seed %d, %d workers: the saved order",
                      epoch, (int)seed, workers);
                tape_free(&rest);
                tape_free(&resumed);
                cn_dict_free(state);
                cn_loader_free(begun);
                cn_loader_free(l);
            }
    cn_close(cn);
}

static void bad_positions_are_refused(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_loader *l = cn_loader_new(counting(cn, 10, NULL), &(cn_loader_desc){ .batch = 4 });
    cn_loader *other = cn_loader_new(counting(cn, 11, NULL), &(cn_loader_desc){ .batch = 4 });
    cn_dict *d = cn_dict_new(cn);
    check(!cn_loader_load(l, d, "") && cn_error_code(cn) == CN_NOT_FOUND, "nothing saved: %s", cn_error(cn));
    cn_error_clear(cn);
    cn_loader_save(other, d, "");
    check(!cn_loader_load(l, d, "") && strstr(cn_error(cn), "11 items"), "another dataset: %s", cn_error(cn));
    cn_error_clear(cn);
    cn_loader_save(l, d, "");
    cn_dict_set_whole(d, "batch", 4);
    check(!cn_loader_load(l, d, NULL) && strstr(cn_error(cn), "batch 4"), "a batch too far: %s", cn_error(cn));
    cn_error_clear(cn);
    check(!cn_loader_reset(l, -1) && cn_error_code(cn) == CN_BAD_ARGUMENT, "no epoch -1");
    cn_close(cn);
}

/* ---- errors */

static void an_item_that_fails_is_an_error_of_its_batch(void)
{
    static const int64_t bad[2] = { 13, 14 };
    for (int workers = 0; workers <= 4; workers += 2) {
        cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
        cn_loader *l = cn_loader_new(counting(cn, 24, bad), &(cn_loader_desc){ .batch = 6, .workers = workers });
        cn_batch b;
        for (int epoch = 0; epoch < 2; epoch++) {
            check(cn_loader_next(l, &b) && cn_loader_next(l, &b), "two good ones");
            check(!cn_loader_next(l, &b) && !b.x, "the third is not");
            check(!strcmp(cn_error(cn), "loader: item 13: a leaf is missing"), "words: %s", cn_error(cn));
            check(!cn_loader_next(l, &b), "nothing while the error stands");
            cn_error_clear(cn);
            check(cn_loader_next(l, &b) && b.number == 3 && cn_get(b.x, CN_DIMS(0)) == 18, "then the fourth");
            check(!cn_loader_next(l, &b) && !cn_failed(cn), "and the end");
        }
        check(cn_loader_next(l, &b), "a third epoch");
        cn_loader_free(l);
        check(cn_get(b.x, CN_DIMS(5)) == 5, "a batch outlives its loader");
        cn_close(cn);
    }
}

/* Items 1 and 4 fail; each waits before it does. The error is that of item 1, whichever fails first. */
static bool get_late(void *user, int64_t index, cn_draw *random, void *const *fields, char *error, size_t size)
{
    (void)random;
    const double *ms = user;
    *(int64_t *)fields[0] = index;
    if (index != 1 && index != 4) return true;
    sleep_ms(ms[index == 4]);
    snprintf(error, size, "page %lld is torn", (long long)index);
    return false;
}

static void the_first_item_that_fails_is_named(void)
{
    static const double waits[][2] = { { 0, 0 }, { 60, 0 }, { 0, 60 } };
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        for (int workers = 0; workers <= 6; workers += 3) {
            cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
            cn_dataset *d = cn_dataset_new(cn, &(cn_dataset_desc){ .count = 6,
                                                                   .fields = 1,
                                                                   .field = { { .dtype = CN_I64 } },
                                                                   .get = get_late,
                                                                   .user = (void *)(uintptr_t)waits[i] });
            cn_loader *l = cn_loader_new(d, &(cn_loader_desc){ .batch = 6, .workers = workers });
            cn_batch b;
            check(!cn_loader_next(l, &b) && cn_error_code(cn) == CN_BAD_FILE &&
                      !strcmp(cn_error(cn), "loader: item 1: page 1 is torn"),
                  "%d workers, waits of %g and %g ms: %s", workers, waits[i][0], waits[i][1], cn_error(cn));
            cn_close(cn);
        }
}

static bool sample_wrong(void *user, uint64_t seed, int64_t epoch, int64_t n, int64_t *indices)
{
    (void)seed, (void)epoch;
    for (int64_t i = 0; i < n; i++) indices[i] = i * *(int64_t *)user;
    return *(int64_t *)user != 0;
}

static void descriptions_that_cannot_be(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_dataset *d = counting(cn, 10, NULL);
    cn_data_sampler *s = cn_data_sampler_sequential(cn, 11);
    const cn_loader_desc wrong[] = { { .batch = -1 },        { .workers = -1 }, { .workers = 100000 },
                                     { .prefetch = -1 },     { .sampler = s },  { .sampler = s, .shuffle = true },
                                     { .collate_fields = 1 } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        check(!cn_loader_new(d, &wrong[i]) && cn_failed(cn), "description %zu", i);
        cn_error_clear(cn);
    }
    cn_dataset *huge = cn_dataset_new(
        cn, &(cn_dataset_desc){
                .count = 10, .fields = 1, .get = get_index, .field = { { CN_F64, CN_DIMS(1 << 30, 1 << 25), 0 } } });
    check(huge && !cn_loader_new(huge, &(cn_loader_desc){ .batch = 200000000 }) && cn_error_code(cn) == CN_BAD_SHAPE,
          "a batch that overflows: %s", cn_error(cn));
    cn_error_clear(cn);
    cn_batch b;
    int64_t step = 2;
    cn_loader *l =
        cn_loader_new(d, &(cn_loader_desc){ .batch = 2, .sampler = cn_data_sampler_new(cn, 10, sample_wrong, &step) });
    check(!cn_loader_next(l, &b) && strstr(cn_error(cn), "index 10, but the dataset has 10 items"),
          "a sampler's index: %s", cn_error(cn));
    cn_error_clear(cn);
    step = 0;
    check(!cn_loader_next(l, &b) && cn_failed(cn), "a sampler that gives up: %s", cn_error(cn));
    cn_error_clear(cn);
    check(!cn_loader_new(NULL, NULL) && !cn_loader_next(NULL, &b) && !cn_loader_batches(NULL), "NULL in, nothing out");
    check(!cn_failed(cn), "without an error of its own");
    check(!cn_loader_next(l, NULL) && strstr(cn_error(cn), "batch must not be NULL"), "no batch: %s", cn_error(cn));
    cn_error_clear(cn);
    cn_close(cn);
}

/* ---- ends */

static bool get_slowly(void *user, int64_t index, cn_draw *random, void *const *fields, char *error, size_t size)
{
    (void)random, (void)error, (void)size;
    sleep_ms(*(double *)user);
    *(int64_t *)fields[0] = index;
    return true;
}

static cn_dataset *slow(cn_ctx *cn, int64_t n, double *ms)
{
    return cn_dataset_new(
        cn,
        &(cn_dataset_desc){ .count = n, .fields = 1, .field = { { .dtype = CN_I64 } }, .get = get_slowly, .user = ms });
}

static void leaving_early(void)
{
    double ms = 1;
    int before = count_threads();
    for (int how = 0; how < 4; how++) {
        cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
        cn_loader *l =
            cn_loader_new(slow(cn, 400, &ms), &(cn_loader_desc){ .batch = 8, .workers = 4, .shuffle = how == 3 });
        cn_batch b;
        check(cn_loader_next(l, &b) && cn_loader_next(l, &b), "two batches");
        cn_keep(b.x);
        if (how == 1) cn_loader_free(l);
        if (how == 2) {
            check(cn_loader_reset(l, 7) && cn_loader_next(l, &b) && b.epoch == 7 && b.number == 0, "reset to epoch 7");
            check(cn_get(b.x, CN_DIMS(0)) == 0, "its first item");
            cn_loader_free(l);
        }
        if (how == 3) check(cn_loader_reset(l, 1) && cn_loader_reset(l, 2), "reset twice");
        cn_close(cn); /* with work under way and a batch kept */
    }
    sleep_ms(20);
    check(count_threads() == before, "threads: %d before, %d after", before, count_threads());
}

static void tensors_hold_their_memory(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_loader *l = cn_loader_new(counting(cn, 64, NULL), &(cn_loader_desc){ .batch = 4, .workers = 2 });
    cn_tensor *kept[16];
    cn_batch b;
    int n = 0;
    for (cn_scope s = cn_scope_begin(cn); cn_loader_next(l, &b); cn_scope_end(cn, s), n++)
        kept[n] = cn_keep(n % 2 ? b.x : cn_add_s(b.x, 1000)); /* a batch, or something pending that needs it */
    cn_loader_free(l);
    bool right = n == 16;
    for (int i = 0; i < n; i++) right = right && cn_get(kept[i], CN_DIMS(3)) == 4 * i + 3 + (i % 2 ? 0 : 1000);
    check(right, "every batch kept has its own numbers");
    cn_close(cn);
}

/* ---- collate */

static bool pack(void *user, int64_t n, cn_draw *random, const cn_room *const *items, cn_room *out, char *error,
                 size_t size)
{
    (void)random;
    int64_t total = 0, *lengths = cn_room_take(&out[1], CN_DIMS(n));
    for (int64_t i = 0; i < n; i++) total += items[0][i].shape.v[0];
    double *x = cn_room_take(&out[0], CN_DIMS(total));
    if (!x || !lengths) return false;
    for (int64_t i = 0; i < n; i++) {
        lengths[i] = items[0][i].shape.v[0];
        if (*(int64_t *)items[1][i].data != lengths[i]) {
            snprintf(error, size, "lengths differ");
            return false;
        }
        for (int64_t k = 0; k < lengths[i]; k++) *x++ = (double)((int64_t *)items[0][i].data)[2 * k];
    }
    return user == NULL || snprintf(error, size, "as asked") < 0;
}

static void collating(void)
{
    const sample_kind *varying = NULL;
    for (int i = 0; i < sample_kinds_count; i++)
        if (!strcmp(sample_kinds[i].name, "varying")) varying = &sample_kinds[i];
    cn_loader_desc desc = {
        .batch = 5, .collate = pack, .collate_fields = 2, .collate_field = { { .dtype = CN_F64 }, { .dtype = CN_I64 } }
    };
    int n, m;
    tape plain = play(varying, desc, 2, &n);
    desc.workers = 3;
    tape other = play(varying, desc, 2, &m);
    check(n == 12 && tapes_equal(&plain, &other), "a collate function in workers");
    tape_free(&plain);
    tape_free(&other);

    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 11, .threads = 1 });
    cn_dataset *d = varying->make(cn);
    cn_loader *packed = cn_loader_new(d, &desc), *padded = cn_loader_new(d, &(cn_loader_desc){ .batch = 5 });
    cn_batch p, q;
    check(cn_loader_next(packed, &p) && cn_loader_next(padded, &q), "both: %s", cn_error(cn));
    int64_t longest = cn_size(q.x, 1), at = 0;
    check(cn_ndim(q.x) == 3 && cn_size(q.x, 0) == 5 && cn_size(q.x, 2) == 2 && cn_size(p.x, 0) > longest, "shapes");
    for (int64_t i = 0; i < 5; i++) {
        int64_t length = (int64_t)cn_get(q.y, CN_DIMS(i));
        check(cn_get(p.y, CN_DIMS(i)) == (double)length && length <= longest, "length of %lld", (long long)i);
        for (int64_t k = 0; k < longest; k++) {
            double want = k < length ? (double)(i * 100 + 2 * k) : -7, want1 = k < length ? want + 1 : -7;
            check(cn_get(q.x, CN_DIMS(i, k, 0)) == want && cn_get(q.x, CN_DIMS(i, k, 1)) == want1,
                  "padded [%lld, %lld]", (long long)i, (long long)k);
            if (k < length)
                check(cn_get(p.x, CN_DIMS(at++)) == want, "packed [%lld, %lld]", (long long)i, (long long)k);
        }
    }
    desc.collate_user = cn;
    cn_loader *failing = cn_loader_new(d, &desc);
    check(!cn_loader_next(failing, &p) && !strcmp(cn_error(cn), "loader: batch 0: as asked"), "its error: %s",
          cn_error(cn));
    cn_close(cn);
}

static bool get_random(void *user, int64_t index, cn_draw *random, void *const *fields, char *error, size_t size)
{
    (void)user, (void)index, (void)error, (void)size;
    *(double *)fields[0] = cn_draw_unit(random);
    return true;
}

/* The item's number, and one of the batch. */
static bool collate_random(void *user, int64_t n, cn_draw *random, const cn_room *const *items, cn_room *out,
                           char *error, size_t size)
{
    (void)user, (void)error, (void)size;
    double *x = cn_room_take(&out[0], CN_DIMS(n, 2)), own = cn_draw_unit(random);
    for (int64_t i = 0; i < n; i++) x[2 * i] = *(double *)items[0][i].data, x[2 * i + 1] = own;
    return true;
}

/* Numbers are drawn for each item, epoch and batch: all differ, and come back with their epoch. */
static void random_numbers_of_items_and_batches(void)
{
    enum { N = 12, BATCH = 4, EPOCHS = 3 };
    for (int workers = 0; workers <= 2; workers += 2) {
        cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1, .seed = 4 });
        cn_dataset *d = cn_dataset_new(
            cn, &(cn_dataset_desc){ .count = N, .fields = 1, .field = { { .dtype = CN_F64 } }, .get = get_random });
        cn_loader *l = cn_loader_new(d, &(cn_loader_desc){ .batch = BATCH,
                                                           .workers = workers,
                                                           .collate = collate_random,
                                                           .collate_fields = 1,
                                                           .collate_field = { { CN_F64, CN_DIMS(2), 0 } } });
        double item[EPOCHS + 1][N][2];
        for (int e = 0; e <= EPOCHS; e++) { /* the last time epoch 1 again */
            if (e == EPOCHS) cn_loader_reset(l, 1);
            cn_batch b;
            for (int64_t at = 0; cn_loader_next(l, &b); at += b.n) cn_read(b.x, item[e][at], (size_t)b.n * 16);
        }
        check(!memcmp(item[EPOCHS], item[1], sizeof item[1]), "%d workers: an epoch has its own numbers", workers);
        int same = 0;
        for (int i = 0; i < EPOCHS * N; i++)
            for (int k = 0; k < i; k++) {
                same += item[i / N][i % N][0] == item[k / N][k % N][0];
                same += item[i / N][i % N][1] == item[k / N][k % N][1] && i / BATCH != k / BATCH;
            }
        check(same == 0, "%d workers: %d pairs of items or batches have the same numbers; %s", workers, same,
              cn_error(cn));
        cn_close(cn);
    }
}

/* ---- memory */

static void memory_does_not_grow(void)
{
    for (int workers = 0; workers <= 2; workers++) {
        faulty f = { 0 };
        cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1, .allocator = { faulty_resize, &f } });
        cn_loader *l = cn_loader_new(counting(cn, 1000, NULL),
                                     &(cn_loader_desc){ .batch = 10, .workers = workers, .shuffle = true });
        tape t = { 0 };
        tape_epochs(&t, l, cn, 1);
        int64_t calls = f.calls;
        tape_epochs(&t, l, cn, 4);
        check(!REUSES_HANDLES || f.calls == calls, "%d workers: no allocation after the first epoch: %lld", workers,
              (long long)(f.calls - calls));
        tape_free(&t);
        cn_close(cn);
        check(f.blocks == 0 && f.bytes == 0, "%d workers: nothing leaks", workers);
    }
}

/* All there is to do with a loader. False: something failed, and an error stands. */
static bool use_loader(cn_ctx *cn, const sample_kind *k, int workers)
{
    cn_dataset *d = k->make(cn), *parts[2] = { 0 };
    cn_dict *state = cn_dict_new(cn);
    if (!d || !state || !cn_dataset_split(d, CN_LIST(double, 0.5, 0.5), 1, parts)) return false;
    cn_loader *l = cn_loader_new(parts[0], &(cn_loader_desc){ .batch = 3, .workers = workers, .shuffle = true });
    cn_batch b;
    int64_t n = 0;
    for (int epoch = 0; epoch < 2; epoch++)
        for (cn_scope s = cn_scope_begin(cn); cn_loader_next(l, &b); cn_scope_end(cn, s)) n += b.n;
    return !cn_failed(cn) && n == 2 * cn_dataset_count(parts[0]) && cn_loader_save(l, state, "a.") &&
           cn_loader_load(l, state, "a.");
}

static void every_allocation_fails_once(void)
{
    int64_t total = 0;
    for (int i = 0; i < sample_kinds_count; i++) {
        for (int workers = 0; workers <= 2; workers += 2) {
            for (int64_t n = 1;; n++) {
                faulty f = { 0 };
                cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1, .allocator = { faulty_resize, &f } });
                f.calls = 0;
                f.fail_at = n;
                bool ok = use_loader(cn, &sample_kinds[i], workers), reached = f.calls >= n;
                f.fail_at = 0;
                check(ok || (reached && cn_error_code(cn) == CN_NO_MEMORY), "%s, %d workers, allocation %lld: %s",
                      sample_kinds[i].name, workers, (long long)n, cn_error(cn));
                cn_error_clear(cn);
                if (n % 5 == 1)
                    check(use_loader(cn, &sample_kinds[i], workers), "%s: it goes on: %s", sample_kinds[i].name,
                          cn_error(cn));
                cn_close(cn);
                check(f.blocks == 0 && f.bytes == 0, "%s, allocation %lld: nothing leaks", sample_kinds[i].name,
                      (long long)n);
                total++;
                if (!reached) break;
                check(n < 2000, "an end is in sight");
            }
        }
    }
    printf("%lld allocations made to fail, one at a time\n", (long long)total);
}

/* ---- time */

static double time_epoch(int workers, double item_ms, double step_ms, int64_t *items)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_loader *l = cn_loader_new(slow(cn, 160, &item_ms), &(cn_loader_desc){ .batch = 8, .workers = workers });
    cn_batch b;
    *items = 0;
    double start = now();
    for (cn_scope s = cn_scope_begin(cn); cn_loader_next(l, &b); cn_scope_end(cn, s), *items += b.n) sleep_ms(step_ms);
    double seconds = now() - start;
    cn_close(cn);
    return seconds;
}

/* 20 batches of 8 items of 2 ms, and steps of 20 ms: 720 ms one after the other, a little over 400 with workers. */
static void loading_hides_behind_the_step(void)
{
    double with = 1e9, without = 1e9;
    int64_t n, m;
    for (int attempt = 0; attempt < 3 && with > 0.85 * without; attempt++) {
        with = time_epoch(4, 2, 20, &n);
        without = time_epoch(0, 2, 20, &m);
        check(n == 160 && m == 160, "every item came");
    }
    printf("an epoch whose steps take 400 ms and items 320 ms: no workers %.0f ms, four %.0f ms\n", 1e3 * without,
           1e3 * with);
    check(without > 0.7, "without workers the times add up: %.3f s", without);
    check(with < 0.85 * without, "with workers they do not: %.3f s against %.3f s", with, without);
}

int main(void)
{
    if (!enter_scratch()) return finish();
    write_samples();
    order_does_not_depend_on_workers();
    shuffles_are_permutations_and_differ();
    last_batches();
    a_saved_position_resumes_exactly();
    a_loader_that_has_begun_takes_the_saved_order();
    bad_positions_are_refused();
    an_item_that_fails_is_an_error_of_its_batch();
    the_first_item_that_fails_is_named();
    descriptions_that_cannot_be();
    leaving_early();
    tensors_hold_their_memory();
    collating();
    random_numbers_of_items_and_batches();
    memory_does_not_grow();
    every_allocation_fails_once();
    loading_hides_behind_the_step();
    return finish();
}
