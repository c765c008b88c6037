/* A loader whose context is on a GPU: while workers make batches, the upload of the next one begins with the step of this
   one. Counted: bytes, submissions, readbacks. Skipped where there is no GPU, real or software (scripts/gpu.sh). */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cairn/cairn.h"
#include "support/check.h"

enum { ITEMS = 64, BATCH = 8, WIDTH = 100, STEPS = 2 * ITEMS / BATCH };
enum { BATCH_BYTES = BATCH * (WIDTH + 1) * 4 }; /* on the GPU: f32, and i64 as i32 */

static float rows[ITEMS][WIDTH];
static int64_t labels[ITEMS];

static cn_dataset *dataset(cn_ctx *cn)
{
    for (int i = 0; i < ITEMS; i++) {
        labels[i] = i % 3;
        for (int k = 0; k < WIDTH; k++) rows[i][k] = (float)((i * 7 + k * 13) % 11) - 5;
    }
    const cn_field fields[] = { { CN_F32, CN_DIMS(WIDTH), 0 }, { CN_I64, CN_SCALAR, 0 } };
    return cn_dataset_arrays(cn, ITEMS, fields, (const void *const[]){ rows, labels }, 2);
}

typedef struct record {
    float loss[STEPS];
    int64_t bytes[STEPS]; /* uploaded before the step's own work */
    int64_t submissions, readbacks, all_bytes;
} record;

static bool next(cn_loader *l, cn_batch *b) { return cn_loader_next(l, b) || cn_loader_next(l, b); }

/* Trains for two epochs. patient: waits before each batch, so that workers have made the next ones. */
static record train(int workers, bool patient)
{
    record r = { 0 };
    cn_ctx *cn = cn_open(&(cn_desc){ .device = "gpu", .seed = 3 });
    cn_module *net = cn_nn_linear(cn, WIDTH, 3, NULL);
    cn_optim *opt = cn_sgd(cn, cn_parameters(net), &(cn_sgd_desc){ .lr = 0.01 });
    cn_loader *l = cn_loader_new(dataset(cn), &(cn_loader_desc){ .batch = BATCH, .shuffle = true, .workers = workers });
    cn_eval_all(cn);
    const cn_gpu_counters first = cn_gpu_counted(cn);
    cn_reading *late[STEPS];
    for (int step = 0; step < STEPS; step++) {
        cn_scope s = cn_scope_begin(cn);
        cn_batch b;
        if (patient) nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
        check(next(l, &b), "batch %d: %s", step, cn_error(cn));
        r.bytes[step] = cn_gpu_counted(cn).uploaded_bytes - first.uploaded_bytes;
        cn_tensor *loss = cn_cross_entropy(cn_forward(net, b.x), b.y, NULL);
        cn_backward(loss);
        cn_step(opt);
        late[step] = cn_read_begin(loss);
        cn_scope_end(cn, s);
    }
    const cn_gpu_counters last = cn_gpu_counted(cn);
    r.submissions = last.submissions - first.submissions;
    r.readbacks = last.readbacks - first.readbacks;
    r.all_bytes = last.uploaded_bytes - first.uploaded_bytes;
    for (int step = 0; step < STEPS; step++) cn_read_end(late[step], &r.loss[step], sizeof(float));
    check(!cn_failed(cn), "workers %d: %s", workers, cn_error(cn));
    cn_loader_free(l);
    cn_close(cn);
    return r;
}

/* A batch is uploaded once, whether ahead or not, and never past the end of an epoch. */
static void test_counts(void)
{
    const record plain = train(0, false), ahead = train(2, true);
    int begun = 0;
    for (int step = 0; step < STEPS; step++) {
        const bool ends = (step + 1) % (ITEMS / BATCH) == 0;
        check(plain.bytes[step] == (step + 1) * BATCH_BYTES, "step %d: %lld bytes", step, (long long)plain.bytes[step]);
        check(ahead.bytes[step] == (step + 1) * BATCH_BYTES || ahead.bytes[step] == (step + 2) * BATCH_BYTES,
              "step %d, ahead: %lld bytes", step, (long long)ahead.bytes[step]);
        begun += ahead.bytes[step] == (step + 2) * BATCH_BYTES;
        check(!ends || ahead.bytes[step] == (step + 1) * BATCH_BYTES, "step %d: nothing after the epoch", step);
    }
    printf("%d of %d batches were on the GPU before their step\n", begun, STEPS);
    check(begun >= STEPS / 2, "%d batches were uploaded before their step", begun);
    check(ahead.all_bytes == STEPS * BATCH_BYTES && plain.all_bytes == ahead.all_bytes, "%lld bytes, %lld ahead",
          (long long)plain.all_bytes, (long long)ahead.all_bytes);
    check(ahead.submissions == plain.submissions && ahead.submissions == STEPS, "%lld submissions, %lld ahead",
          (long long)plain.submissions, (long long)ahead.submissions);
    check(ahead.readbacks == 0 && plain.readbacks == 0, "%lld readbacks", (long long)ahead.readbacks);
    check(!memcmp(plain.loss, ahead.loss, sizeof plain.loss), "the same losses");
}

/* A batch that was uploaded ahead and is not used: the loader is reset, or freed. */
static void test_unused(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .device = "gpu", .seed = 3 });
    cn_loader *l = cn_loader_new(dataset(cn), &(cn_loader_desc){ .batch = BATCH, .workers = 2 });
    for (int round = 0; round < 3; round++) {
        cn_scope s = cn_scope_begin(cn);
        cn_batch b;
        nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
        check(cn_loader_next(l, &b), "%s", cn_error(cn));
        nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
        check(cn_loader_next(l, &b) && b.number == 1, "%s", cn_error(cn));
        float x[BATCH][WIDTH];
        check(cn_read(b.x, x, sizeof x) && !memcmp(x, rows[BATCH], sizeof x), "round %d: other values", round);
        check(cn_loader_reset(l, round), "%s", cn_error(cn));
        cn_scope_end(cn, s);
    }
    cn_loader_free(l);
    check(!cn_failed(cn), "%s", cn_error(cn));
    cn_close(cn);
}

/* A value that a GPU cannot hold is an error of its own batch, not of the one before. */
static void test_bad_value(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .device = "gpu", .seed = 3 });
    cn_dataset *d = dataset(cn);
    labels[BATCH + 1] = INT64_MAX;
    cn_loader *l = cn_loader_new(d, &(cn_loader_desc){ .batch = BATCH, .workers = 1 });
    cn_batch b;
    nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
    check(cn_loader_next(l, &b) && !cn_failed(cn), "the batch before: %s", cn_error(cn));
    check(!cn_loader_next(l, &b) && strstr(cn_error(cn), "32 bits"), "the batch: %s", cn_error(cn));
    cn_close(cn);
}

int main(void)
{
    cn_ctx *cn = cn_open(NULL);
    if (!cn_gpu_available(cn)) {
        printf("skipped: %s\n", cn_gpu_why_not(cn));
        skip();
    } else {
        test_counts();
        test_unused();
        test_bad_value();
    }
    cn_close(cn);
    return finish();
}
