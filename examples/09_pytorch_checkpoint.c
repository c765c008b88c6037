/* 09: fine-tuning a network that PyTorch trained. The file beside this one holds a network that reads the ten digits of
   a seven-segment display. This program loads it and compares its results with PyTorch's. Then it freezes all layers
   but the last, trains that one to read ten letters, and saves the network for PyTorch.

   Python writes and reads such a file with

       from safetensors.torch import load_file, save_file
       save_file(model.state_dict(), "model.safetensors")
       model.load_state_dict(load_file("model.safetensors"))

   A file of torch.save(model.state_dict(), "model.pt") can be loaded, too.

   Run it:  build/example_09_pytorch_checkpoint [file [new file]] */
#include <stdio.h>

#include "cairn/cairn.h"

enum { SIDE = 12, SIGNS = 10, LETTERS = 1000, BATCH = 50, EPOCHS = 10 };

/* (N,1,12,12) -> (N,10). The order of PyTorch's nn.Sequential gives its names: "0.weight", "1.running_mean" */
static cn_module *model(cn_ctx *cn)
{
    cn_nn_conv_desc same = { .padding = 1 };
    return cn_nn_sequential(cn, cn_nn_conv2d(cn, 1, 8, 3, &same), cn_nn_batch_norm2d(cn, 8, NULL), cn_nn_relu(cn),
                            cn_nn_max_pool2d(cn, 2, NULL), cn_nn_conv2d(cn, 8, 16, 3, &same),
                            cn_nn_batch_norm2d(cn, 16, NULL), cn_nn_relu(cn), cn_nn_max_pool2d(cn, 2, NULL),
                            cn_nn_flatten(cn, 1, -1), cn_nn_linear(cn, 144, SIGNS, NULL));
}

/* The new task: the letters A b C d E F H L P U, shifted by up to a pixel, with noise. */
static bool draw_letter(void *user, int64_t index, cn_draw *random, void *const *fields, char *error, size_t size)
{
    static const char *const letters[SIGNS] = { "abcefg", "cdefg", "adef", "bcdeg", "adefg",
                                                "aefg",   "bcefg", "def",  "abefg", "bcdef" };
    static const struct bar {
        int row, col, rows, cols;
    } bars[] = { { 1, 3, 1, 4 }, { 2, 7, 3, 1 }, { 6, 7, 3, 1 }, { 9, 3, 1, 4 },
                 { 6, 2, 3, 1 }, { 2, 2, 3, 1 }, { 5, 3, 1, 4 } }; /* segments a to g */
    float(*x)[SIDE] = fields[0];
    *(int64_t *)fields[1] = index % SIGNS;
    for (int i = 0; i < SIDE * SIDE; i++) x[i / SIDE][i % SIDE] = (float)(0.3 * cn_draw_normal(random));
    int64_t down = cn_draw_below(random, 3) - 1, right = cn_draw_below(random, 3) - 1;
    for (const char *c = letters[index % SIGNS]; *c; c++) {
        const struct bar *b = &bars[*c - 'a'];
        for (int i = 0; i < b->rows * b->cols; i++) x[down + b->row + i / b->cols][right + b->col + i % b->cols] += 1;
    }
    (void)user, (void)error, (void)size;
    return true;
}

static double distance(cn_tensor *a, cn_tensor *b) { return cn_item(cn_max(cn_abs(cn_sub(a, b)), CN_ALL, false)); }

/* One pass over the letters: training, or a test if opt is NULL. Returns the share of right answers. */
static double epoch(cn_ctx *cn, cn_module *net, cn_loader *loader, cn_optim *opt)
{
    double right = 0;
    cn_batch b;
    for (cn_scope s = cn_scope_begin(cn); cn_loader_next(loader, &b); cn_scope_end(cn, s)) {
        cn_tensor *scores = cn_forward(net, b.x);
        cn_tensor *hits = cn_sum(cn_eq(cn_argmax(scores, CN_DIMS(1), false), b.y), CN_ALL, false);
        if (opt && cn_backward(cn_cross_entropy(scores, b.y, NULL))) cn_step(opt);
        right += cn_item(hits);
    }
    return right / LETTERS;
}

int main(int argc, char **argv)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1 });
    cn_dict *file = cn_load(cn, argc > 1 ? argv[1] : "examples/09_segments.safetensors");
    cn_module *net = model(cn);
    char text[4096];
    if (file && cn_dict_print(file, text, sizeof text)) printf("%s\n", text);

    /* Loading is strict: a missing name, an unknown name or another shape is an error, and then nothing is loaded. A
       plain state dict needs no prefix. This file has one, since it also holds a batch and PyTorch's results for it. */
    if (!cn_module_load(net, file, &(cn_module_load_desc){ .prefix = "model." })) {
        printf("error: %s\n", cn_error(cn));
        cn_close(cn);
        return 1;
    }
    cn_module_train(net, false); /* PyTorch's model.eval() */
    cn_tensor *x = cn_dict_get(file, "check.x"),
              *theirs = cn_dict_get(file, "check.logits"); /* (20,1,12,12), (20,10) */
    double far = distance(cn_forward(net, x), theirs);
    printf("the largest difference from PyTorch's logits is %.1e\n\n", far);

    /* Only the last layer learns: frozen parameters have no gradients, so the optimizer skips them. The running
       statistics do not change, because the network is in evaluation mode. */
    cn_module *last = cn_module_find(net, "9");
    cn_module_freeze(net, true);
    cn_module_freeze(last, false);
    cn_tensor *features = cn_keep(cn_clone(cn_module_get(net, "4.weight")));
    cn_dataset_desc desc = { .count = LETTERS, .fields = 2, .get = draw_letter };
    desc.field[0] = (cn_field){ CN_F32, CN_DIMS(1, SIDE, SIDE), 0 };
    desc.field[1] = (cn_field){ CN_I64, CN_SCALAR, 0 };
    cn_loader *loader = cn_loader_new(cn_dataset_new(cn, &desc), &(cn_loader_desc){ .batch = BATCH, .shuffle = true });
    cn_optim *opt = cn_adam(cn, cn_parameters(net), &(cn_adam_desc){ .lr = 1e-2 });
    double before = epoch(cn, net, loader, NULL); /* every epoch draws new letters */
    for (int e = 0; e < EPOCHS; e++) printf("epoch %d  right %5.1f %%\n", e, 100 * epoch(cn, net, loader, opt));
    double after = epoch(cn, net, loader, NULL);
    bool kept = distance(features, cn_module_get(net, "4.weight")) == 0;
    printf("letters read: %.1f %% before, %.1f %% after; %d of %d parameters were trained, the others %s\n",
           100 * before, 100 * after, (int)cn_module_count(last), (int)cn_module_count(net),
           kept ? "did not change" : "changed");

    /* The file has the names of the state dict, so PyTorch loads it. */
    const char *path = argc > 2 ? argv[2] : "build/letters.safetensors";
    cn_dict *out = cn_dict_new(cn);
    bool saved = cn_module_save(net, out, "") && cn_save(out, path);
    if (saved)
        printf("saved to %s: %d tensors, the last is %s\n", path, (int)cn_dict_count(out),
               cn_dict_name(out, cn_dict_count(out) - 1));

    if (cn_failed(cn)) printf("error: %s\n", cn_error(cn));
    bool ok = !cn_failed(cn) && far < 1e-4 && kept && saved && before < 0.5 && after > 0.9;
    cn_close(cn);
    return !ok;
}
