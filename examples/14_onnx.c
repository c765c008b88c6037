/* 14: ONNX in, fine-tuning, ONNX out. A vision model arrives as an ONNX file: it reads the ten digits of a seven-segment
   display. Here it gets a new last layer and learns to read fourteen letters. Then it is written as an ONNX file, which
   onnxruntime, a browser or a phone can run.

   The first file is made from the checkpoint of example 09. Afterwards the program knows nothing but that file.

   Run it:  build/example_14_onnx [checkpoint [folder for its files]] */
#include <stdio.h>

#include "cairn/cairn.h"

enum { SIDE = 12, LETTERS = 14, COUNT = 1400, BATCH = 50, EPOCHS = 6 };

/* ---- somebody's model, as an ONNX file ---- */

static bool write_digits(cn_ctx *cn, const char *checkpoint, const char *path)
{
    cn_nn_conv_desc same = { .padding = 1 };
    cn_module *net = cn_nn_sequential(cn, cn_nn_conv2d(cn, 1, 8, 3, &same), cn_nn_batch_norm2d(cn, 8, NULL),
                                      cn_nn_relu(cn), cn_nn_max_pool2d(cn, 2, NULL), cn_nn_conv2d(cn, 8, 16, 3, &same),
                                      cn_nn_batch_norm2d(cn, 16, NULL), cn_nn_relu(cn), cn_nn_max_pool2d(cn, 2, NULL),
                                      cn_nn_flatten(cn, 1, -1), cn_nn_linear(cn, 144, 10, NULL));
    cn_dict *file = cn_load(cn, checkpoint);
    cn_tensor *x = cn_zeros(cn, CN_F32, CN_DIMS(1, 1, SIDE, SIDE));
    const bool ok =
        cn_module_load(net, file, &(cn_module_load_desc){ .prefix = "model." }) && cn_onnx_save(net, &x, 1, path, NULL);
    cn_module_free(net);
    cn_dict_free(file);
    return ok;
}

/* ---- the new task ---- */

/* The letters A b C d E F H J L n o P r U, shifted by up to a pixel, with noise. */
static bool draw_letter(void *user, int64_t index, cn_draw *random, void *const *fields, char *error, size_t size)
{
    static const char *const letters[LETTERS] = { "abcefg", "cdefg", "adef", "bcdeg", "adefg", "aefg", "bcefg",
                                                  "bcde",   "def",   "ceg",  "cdeg",  "abefg", "eg",   "bcdef" };
    static const struct bar {
        int row, col, rows, cols;
    } bars[] = { { 1, 3, 1, 4 }, { 2, 7, 3, 1 }, { 6, 7, 3, 1 }, { 9, 3, 1, 4 },
                 { 6, 2, 3, 1 }, { 2, 2, 3, 1 }, { 5, 3, 1, 4 } }; /* segments a to g */
    float(*x)[SIDE] = fields[0];
    *(int64_t *)fields[1] = index % LETTERS;
    for (int i = 0; i < SIDE * SIDE; i++) x[i / SIDE][i % SIDE] = (float)(0.4 * cn_draw_normal(random));
    const int64_t down = cn_draw_below(random, 3) - 1, right = cn_draw_below(random, 3) - 1;
    for (const char *c = letters[index % LETTERS]; *c; c++) {
        const struct bar *b = &bars[*c - 'a'];
        for (int i = 0; i < b->rows * b->cols; i++) x[down + b->row + i / b->cols][right + b->col + i % b->cols] += 1;
    }
    (void)user, (void)error, (void)size;
    return true;
}

static cn_loader *letters(cn_ctx *cn, int64_t batch, uint64_t seed)
{
    cn_dataset_desc desc = { .count = COUNT, .fields = 2, .get = draw_letter };
    desc.field[0] = (cn_field){ CN_F32, CN_DIMS(1, SIDE, SIDE), 0 };
    desc.field[1] = (cn_field){ CN_I64, CN_SCALAR, 0 };
    return cn_loader_new(cn_dataset_new(cn, &desc), &(cn_loader_desc){ .batch = batch, .shuffle = true, .seed = seed });
}

/* Letters that no training sees, and what they are: (COUNT,1,12,12), (COUNT). Another program can read them, too. */
static cn_dict *test_letters(cn_ctx *cn, const char *path)
{
    cn_batch b;
    cn_dict *d = cn_dict_new(cn);
    if (!cn_loader_next(letters(cn, COUNT, 2), &b)) return NULL;
    return cn_dict_set(d, "x", b.x) && cn_dict_set(d, "y", b.y) && cn_save(d, path) ? d : NULL;
}

/* ---- the model with a new last layer ---- */

typedef struct reader {
    cn_module *body, *head;
    const char *features; /* the value inside the graph that the old last layer reads */
} reader;

/* The body's own last layer is never computed, because nobody asks for its result. */
static cn_tensor *reader_forward(cn_module *m, cn_tensor *x)
{
    const reader *r = cn_module_data(m);
    cn_onnx_value in = { .tensor = x }, out = { .name = r->features };
    return cn_onnx_run(r->body, &in, 1, &out, 1) ? cn_forward(r->head, out.tensor) : NULL;
}

static const cn_module_type reader_type = { .name = "Reader", .forward = reader_forward, .data_bytes = sizeof(reader) };

static cn_module *reader_new(cn_ctx *cn, const char *path)
{
    cn_module *m = cn_module_new(cn, &reader_type);
    if (!m) return NULL;
    reader *r = cn_module_data(m);
    r->body = cn_module_child(m, "body", cn_onnx_load(cn, path));
    r->features = cn_onnx_reads(r->body, "9.weight");
    r->head = cn_module_child(m, "head", cn_nn_linear(cn, 144, LETTERS, NULL));
    return cn_module_made(m);
}

/* ---- training ---- */

/* How many of the letters are read right. */
static int right(cn_ctx *cn, cn_module *net, const cn_dict *test)
{
    cn_scope s = cn_scope_begin(cn);
    cn_module_train(net, false);
    cn_no_grad_begin(cn);
    cn_tensor *answers = cn_argmax(cn_forward(net, cn_dict_get(test, "x")), CN_DIMS(1), false);
    const double n = cn_item(cn_sum(cn_eq(answers, cn_dict_get(test, "y")), CN_ALL, false));
    cn_no_grad_end(cn);
    cn_scope_end(cn, s);
    return n >= 0 ? (int)n : 0; /* NaN after an error */
}

static void train(cn_ctx *cn, cn_module *net, cn_loader *loader, double rate)
{
    cn_optim *opt = cn_adam(cn, cn_parameters(net), &(cn_adam_desc){ .lr = rate });
    cn_batch b;
    cn_module_train(net, true);
    for (int e = 0; e < EPOCHS; e++) {
        double sum = 0;
        for (cn_scope s = cn_scope_begin(cn); cn_loader_next(loader, &b); cn_scope_end(cn, s)) {
            cn_tensor *loss = cn_cross_entropy(cn_forward(net, b.x), b.y, NULL);
            cn_backward(loss);
            cn_step(opt);
            sum += cn_item(loss);
        }
        printf("  epoch %d  loss %.3f\n", e, sum / (double)cn_loader_batches(loader));
    }
    cn_optim_free(opt);
}

int main(int argc, char **argv)
{
    const char *checkpoint = argc > 1 ? argv[1] : "examples/09_segments.safetensors";
    const char *folder = argc > 2 ? argv[2] : "build";
    char digits_path[512], letters_path[512], test_path[512], text[2048];
    snprintf(digits_path, sizeof digits_path, "%s/digits.onnx", folder);
    snprintf(letters_path, sizeof letters_path, "%s/letters.onnx", folder);
    snprintf(test_path, sizeof test_path, "%s/letters.npz", folder);
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1 });
    if (write_digits(cn, checkpoint, digits_path) && cn_onnx_print(cn, digits_path, text, sizeof text))
        printf("%s\n", text);

    cn_module *net = reader_new(cn, digits_path);
    cn_dict *test = net ? test_letters(cn, test_path) : NULL;
    if (!test) {
        printf("error: %s\n", cn_error(cn));
        cn_close(cn);
        return 1;
    }
    const int before = right(cn, net, test);

    /* First the new layer alone: frozen parameters have no gradients, so the optimizer skips them. Then all of it. */
    cn_loader *loader = letters(cn, BATCH, 1);
    cn_module_freeze(cn_module_find(net, "body"), true);
    printf("the new layer alone\n");
    train(cn, net, loader, 1e-2);
    const int alone = right(cn, net, test);
    cn_module_freeze(cn_module_find(net, "body"), false);
    printf("all layers\n");
    train(cn, net, loader, 3e-3);
    const int after = right(cn, net, test);

    cn_tensor *x = cn_narrow(cn_dict_get(test, "x"), 0, 0, 1);
    const bool saved = cn_onnx_save(net, &x, 1, letters_path, NULL); /* for one image, and for any number of them */
    cn_module *again = saved ? cn_onnx_load(cn, letters_path) : NULL;
    const int same = again ? right(cn, again, test) : 0;
    printf("letters read, of %d: %d with the new layer untrained, %d with it trained, %d with all layers trained\n"
           "%s, loaded again, reads %d; %s has the letters\n",
           COUNT, before, alone, after, letters_path, same, test_path);

    if (cn_failed(cn)) printf("error: %s\n", cn_error(cn));
    const bool ok = !cn_failed(cn) && before < COUNT / 4 && alone > COUNT / 2 && after > alone && same == after;
    cn_close(cn);
    return !ok;
}
