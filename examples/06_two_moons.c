/* 06: modules. The two half moons of 03 again, now with layers, an optimizer, a loader of batches, a progress bar, and
   a test on points that the network has never seen.

   Run it:  build/example_06_two_moons [epochs] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cairn/cairn.h"

enum { TRAIN = 512, TEST = 256, BATCH = 64, ROWS = 18, COLS = 36 };
typedef char picture[ROWS][COLS + 1];

typedef struct points {
    cn_tensor *x, *y; /* (n, 2): places; (n): the moon of each, 0 or 1 */
} points;

static points moons(cn_ctx *cn, int n, uint64_t stream)
{
    float place[TRAIN][2];
    int64_t moon[TRAIN];
    cn_draw draw = { .seed = 7, .stream = stream };
    for (int i = 0; i < n; i++) {
        double t = cn_draw_uniform(&draw, 0, 3.14159265);
        moon[i] = i % 2;
        place[i][0] = (float)((moon[i] ? 1 - cos(t) : cos(t)) + 0.15 * cn_draw_normal(&draw));
        place[i][1] = (float)((moon[i] ? 0.5 - sin(t) : sin(t)) + 0.15 * cn_draw_normal(&draw));
    }
    return (points){ cn_keep(cn_from(cn, CN_F32, CN_DIMS(n, 2), place)),
                     cn_keep(cn_from(cn, CN_I64, CN_DIMS(n), moon)) };
}

static double accuracy(cn_ctx *cn, cn_module *net, points p)
{
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *right = cn_eq(cn_argmax(cn_forward(net, p.x), CN_DIMS(1), false), p.y);
    double share = cn_item(cn_mean(cn_cast(right, CN_F32), CN_ALL, false));
    cn_scope_end(cn, s);
    return share;
}

/* Draws the plane from (-1.5, -1) to (2.5, 1.5): the probability of moon 1, with the points on top. */
static void draw(cn_ctx *cn, cn_module *net, points p, picture out)
{
    static float grid[ROWS * COLS][2];
    static double probability[ROWS * COLS], place[TEST][2], moon[TEST];
    for (int i = 0; i < ROWS * COLS; i++) {
        grid[i][0] = -1.5f + 4.0f * (float)(i % COLS) / (COLS - 1);
        grid[i][1] = 1.5f - 2.5f * (float)(i / COLS) / (ROWS - 1);
    }
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *scores = cn_forward(net, cn_from(cn, CN_F32, CN_DIMS(ROWS * COLS, 2), grid)); /* (n, 2) */
    cn_read_f64(cn_select(cn_softmax(scores, 1), 1, 1), probability, ROWS * COLS);
    cn_read_f64(p.x, *place, TEST * 2);
    cn_read_f64(p.y, moon, TEST);
    cn_scope_end(cn, s);
    for (int i = 0; i < ROWS * COLS; i++) out[i / COLS][i % COLS] = " -=%"[(int)fmin(probability[i] * 4, 3)];
    for (int i = 0; i < TEST; i++) {
        long c = lround((place[i][0] + 1.5) / 4 * (COLS - 1)), r = lround((1.5 - place[i][1]) / 2.5 * (ROWS - 1));
        if (r >= 0 && r < ROWS && c >= 0 && c < COLS) out[r][c] = moon[i] > 0 ? '1' : '0';
    }
}

int main(int argc, char **argv)
{
    int epochs = argc > 1 ? atoi(argv[1]) : 40;
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1 });
    points train = moons(cn, TRAIN, 0), test = moons(cn, TEST, 1);

    /* cn_parameters lists the module's parameters; the optimizer updates them, and keeps Adam's means for each. */
    cn_module *net = cn_nn_sequential(cn, cn_nn_linear(cn, 2, 32, NULL), cn_nn_relu(cn), cn_nn_linear(cn, 32, 32, NULL),
                                      cn_nn_relu(cn), cn_nn_linear(cn, 32, 2, NULL));
    cn_optim *opt = cn_adamw(cn, cn_parameters(net), &(cn_adamw_desc){ .lr = 1e-2 });
    cn_loader *loader = cn_loader_new(cn_dataset_tensors(CN_TENSORS(train.x, train.y)),
                                      &(cn_loader_desc){ .batch = BATCH, .shuffle = true });
    char table[2048];
    cn_summary(net, test.x, table, sizeof table);
    printf("%s\n", table);

    static picture before, after;
    draw(cn, net, test, before);
    double untrained = accuracy(cn, net, test);

    /* A bar in a terminal; in a file a line for every quarter. */
    int64_t steps = epochs * cn_loader_batches(loader);
    cn_progress *bar = cn_progress_new(cn, &(cn_progress_desc){ .total = steps, .out = stdout, .lines = 25 });
    cn_batch b;
    for (int epoch = 0; epoch < epochs; epoch++)
        for (cn_scope s = cn_scope_begin(cn); cn_loader_next(loader, &b); cn_scope_end(cn, s)) {
            cn_tensor *loss = cn_cross_entropy(cn_forward(net, b.x), b.y, NULL);
            cn_backward(loss);
            cn_step(opt); /* new parameters; the gradients are cleared */
            cn_progress_step(bar, 1, "epoch %d  loss %.3f", epoch + 1, cn_item(loss));
        }
    cn_progress_finish(bar);

    draw(cn, net, test, after);
    double trained = accuracy(cn, net, test);
    printf("\n    %-*s        %s\n", COLS, "before training", "after");
    for (int r = 0; r < ROWS; r++) printf("    %s        %s\n", before[r], after[r]);
    printf("\nDarker places are more likely moon 1. Of %d new points %.1f %% are right; before training %.1f %%.\n",
           TEST, 100 * trained, 100 * untrained);
    if (cn_failed(cn)) printf("error: %s\n", cn_error(cn));
    bool ok = !cn_failed(cn) && (epochs < 20 || (trained > 0.97 && trained > untrained));
    cn_close(cn);
    return !ok;
}
