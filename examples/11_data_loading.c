/* 11: loading data. A dataset of your own, which draws shapes on demand; transforms; worker threads that prepare
   batches; and a loader's position, saved in the middle of an epoch.

   Run it:  build/example_11_data_loading */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "cairn/cairn.h"
#include "cairn/image.h"

enum { SIDE = 12, SHAPES = 3, ITEMS = 600, BATCH = 30 };

/* Draws item `index`, a disc, a frame or a cross of random place and size, into the batch's memory. Several threads
   call it at the same time: it writes to its fields only, and its random numbers come from `random` only. */
static bool draw_shape(void *user, int64_t index, cn_draw *random, void *const *fields, char *error, size_t error_size)
{
    const struct timespec *delay = user; /* imitates a slow disk */
    float *x = fields[0];
    int64_t shape = *(int64_t *)fields[1] = index % SHAPES;
    double row = cn_draw_uniform(random, 4, 7), col = cn_draw_uniform(random, 4, 7),
           size = cn_draw_uniform(random, 2.5, 4);
    for (int i = 0; i < SIDE * SIDE; i++) {
        double r = fabs(i / SIDE - row), c = fabs(i % SIDE - col), far = fmax(r, c);
        bool frame = far < size && far > size - 1.2, cross = fmin(r, c) < 0.8 && far < size;
        bool inside = shape == 0 ? hypot(r, c) < size : shape == 1 ? frame : cross;
        x[i] = (float)((inside ? 0.8 : 0.1) + 0.1 * cn_draw_normal(random));
    }
    (void)error, (void)error_size; /* a function that returns false writes its message here */
    return !delay->tv_nsec || !nanosleep(delay, NULL);
}

static void show(const cn_batch *b)
{
    for (int64_t r = 0; r < SIDE; r++, putchar('\n'))
        for (int64_t n = 0; n < 5; n++, printf("   "))
            for (int64_t c = 0; c < SIDE; c++)
                putchar(" .:+#"[(int)fmin(fmax(cn_get(b->x, CN_DIMS(n, 0, r, c)) * 2 + 2, 0), 4)]);
}

static double train_epoch(cn_ctx *cn, cn_loader *loader, cn_module *net, cn_optim *opt)
{
    cn_batch b;
    double right = 0;
    /* A batch belongs to the current scope. The end of the scope, after each step, returns its memory to the loader. */
    for (cn_scope s = cn_scope_begin(cn); cn_loader_next(loader, &b); cn_scope_end(cn, s)) {
        cn_tensor *scores = cn_forward(net, b.x);
        cn_tensor *hits = cn_sum(cn_eq(cn_argmax(scores, CN_DIMS(1), false), b.y), CN_ALL, false);
        cn_backward(cn_cross_entropy(scores, b.y, NULL));
        cn_step(opt);
        right += cn_item(hits);
    }
    return right / ITEMS;
}

static void time_epoch(cn_ctx *cn, cn_dataset *data, int workers)
{
    cn_loader *l = cn_loader_new(data, &(cn_loader_desc){ .batch = BATCH, .workers = workers });
    struct timespec a, z;
    double sum = 0;
    cn_batch b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (cn_scope s = cn_scope_begin(cn); cn_loader_next(l, &b); cn_scope_end(cn, s))
        sum += cn_item(cn_sum(b.x, CN_ALL, false));
    clock_gettime(CLOCK_MONOTONIC, &z);
    double ms = 1e3 * (double)(z.tv_sec - a.tv_sec) + 1e-6 * (double)(z.tv_nsec - a.tv_nsec);
    printf("%d workers: an epoch of slow items takes %3.0f ms; the sum of all pixels is %.3f\n", workers, ms, sum);
    cn_loader_free(l);
}

int main(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 4 });
    struct timespec delay = { 0, 0 };
    cn_dataset_desc desc = { .count = ITEMS, .fields = 2, .get = draw_shape, .user = &delay };
    desc.field[0] = (cn_field){ CN_F32, CN_DIMS(1, SIDE, SIDE), 0 };
    desc.field[1] = (cn_field){ CN_I64, CN_SCALAR, 0 };
    cn_transform *t = cn_transform_new(cn); /* applied to every image, in the worker threads */
    cn_transform_random_crop(t, SIDE, SIDE, 1);
    cn_transform_random_hflip(t, 0.5);
    cn_transform_normalize(t, (float[]){ 0.4f }, (float[]){ 0.4f }, 1);
    cn_dataset *data = cn_dataset_transform(cn_dataset_new(cn, &desc), t);
    cn_loader *loader = cn_loader_new(data, &(cn_loader_desc){ .batch = BATCH, .shuffle = true, .workers = 2 });

    cn_batch b, c;
    if (cn_loader_next(loader, &b)) show(&b);
    cn_loader_reset(loader, 0);
    cn_module *net = cn_nn_sequential(cn, cn_nn_flatten(cn, 1, -1), cn_nn_linear(cn, SIDE * SIDE, 32, NULL),
                                      cn_nn_relu(cn), cn_nn_linear(cn, 32, SHAPES, NULL));
    cn_optim *opt = cn_adamw(cn, cn_parameters(net), &(cn_adamw_desc){ .lr = 5e-3 });
    double right = 0;
    for (int e = 0; e < 9; e++)
        printf("epoch %d  right %5.1f %%\n", e, 100 * (right = train_epoch(cn, loader, net, opt)));

    delay.tv_nsec = 500000; /* half a millisecond for each item: four workers wait at the same time */
    time_epoch(cn, data, 0);
    time_epoch(cn, data, 4);
    delay.tv_nsec = 0;

    /* Save the loader's position and resume there later, even in another process: a dict can be saved to a file. */
    for (int i = 0; i < 7; i++) cn_loader_next(loader, &b);
    cn_dict *state = cn_dict_new(cn);
    cn_loader_save(loader, state, "loader.");
    cn_loader *later = cn_loader_new(data, &(cn_loader_desc){ .batch = BATCH, .shuffle = true });
    cn_loader_load(later, state, "loader.");
    bool same =
        cn_loader_next(loader, &b) && cn_loader_next(later, &c) && cn_item(cn_sum(cn_ne(b.x, c.x), CN_ALL, false)) == 0;
    printf("resumed: batch %d of epoch %d has %s numbers\n", (int)c.number, (int)c.epoch, same ? "the same" : "other");

    if (cn_failed(cn)) printf("error: %s\n", cn_error(cn));
    bool ok = !cn_failed(cn) && same && right > 0.8;
    cn_close(cn);
    return !ok;
}
