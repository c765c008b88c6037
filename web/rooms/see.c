/* The room "see": a convolutional network that reads digits. Its files are those of `cairn train cnn`. */
#include <math.h>
#include <string.h>

#include "room.h"

enum { FIRST = 8, SECOND = 16, HIDDEN = 64, CLASSES = 10, SHIFT = 2 };

/* (N,1,side,side) -> (N,10), as `cairn train cnn --channels 8,16 --hidden 64` */
static cn_module *model(cn_ctx *cn, int64_t side)
{
    const cn_nn_conv_desc same = { .padding = 1, .no_bias = true };
    const int64_t flat = SECOND * (side / 4) * (side / 4);
    return cn_nn_sequential(cn, cn_nn_conv2d(cn, 1, FIRST, 3, &same), cn_nn_batch_norm2d(cn, FIRST, NULL),
                            cn_nn_relu(cn), cn_nn_max_pool2d(cn, 2, NULL), cn_nn_conv2d(cn, FIRST, SECOND, 3, &same),
                            cn_nn_batch_norm2d(cn, SECOND, NULL), cn_nn_relu(cn), cn_nn_max_pool2d(cn, 2, NULL),
                            cn_nn_flatten(cn, 1, -1), cn_nn_linear(cn, flat, HIDDEN, NULL), cn_nn_relu(cn),
                            cn_nn_dropout(cn, 0.25), cn_nn_linear(cn, HIDDEN, CLASSES, NULL));
}

static bool describe(room *r, cn_dict *d)
{
    return cn_dict_set_text(d, "model", "cnn") && cn_dict_set_whole(d, "channels", 1) &&
           cn_dict_set_whole(d, "height", r->side) && cn_dict_set_whole(d, "width", r->side) &&
           cn_dict_set_whole(d, "outputs", CLASSES) && cn_dict_set_text(d, "option/channels", "8,16") &&
           cn_dict_set_text(d, "option/hidden", "64") && cn_dict_set_text(d, "option/dropout", "0.25");
}

/* One image as numbers from 0 to 1, moved by (down,right) pixels. */
static void move(const uint8_t *from, float *to, int64_t side, int64_t down, int64_t right)
{
    for (int64_t y = 0; y < side; y++)
        for (int64_t x = 0; x < side; x++) {
            const int64_t fy = y - down, fx = x - right;
            const bool inside = fy >= 0 && fy < side && fx >= 0 && fx < side;
            to[y * side + x] = inside ? (float)from[fy * side + fx] / 255 : 0;
        }
}

/* Every image is moved a little, so that few images teach more. */
static bool get_moved(void *user, int64_t i, cn_draw *random, void *const *fields, char *error, size_t size)
{
    (void)error, (void)size;
    const room *r = user;
    const int64_t down = cn_draw_below(random, 2 * SHIFT + 1) - SHIFT,
                  right = cn_draw_below(random, 2 * SHIFT + 1) - SHIFT;
    move(r->images + i * r->side * r->side, fields[0], r->side, down, right);
    *(int64_t *)fields[1] = r->labels[i];
    return true;
}

static bool get_test(void *user, int64_t i, cn_draw *random, void *const *fields, char *error, size_t size)
{
    (void)random, (void)error, (void)size;
    const room *r = user;
    move(r->images + (r->n_train + i) * r->side * r->side, fields[0], r->side, 0, 0);
    *(int64_t *)fields[1] = r->labels[r->n_train + i];
    return true;
}

static cn_dataset *digits(room *r, int64_t count, cn_get_fn get)
{
    const cn_dataset_desc desc = { .count = count,
                                   .fields = 2,
                                   .get = get,
                                   .user = r,
                                   .field = { { .dtype = CN_F32, .shape = CN_DIMS(1, r->side, r->side) },
                                              { .dtype = CN_I64, .shape = CN_SCALAR } } };
    return cn_dataset_new(r->cn, &desc);
}

static cn_tensor *next_loss(room *r)
{
    cn_batch b;
    return room_next_batch(r, r->train, &b) ? cn_cross_entropy(cn_forward(r->net, b.x), b.y, NULL) : NULL;
}

bool room_see_new(room *r, const uint8_t *images, const uint8_t *labels, int train, int test, int side, int batch)
{
    r->images = images;
    r->labels = labels;
    r->side = side;
    r->n_train = train;
    r->loss = next_loss;
    r->describe = describe;
    r->warm = 10;
    r->settle = 600;
    const cn_loader_desc shuffled = { .batch = batch, .shuffle = true, .drop_last = true };
    cn_dataset *parts[2] = { digits(r, train, get_moved), digits(r, test, get_test) };
    r->train = parts[0] ? cn_loader_new(parts[0], &shuffled) : NULL;
    r->held_out = parts[1] ? cn_loader_new(parts[1], &(cn_loader_desc){ .batch = 100 }) : NULL;
    r->net = model(r->cn, side);
    return r->train && r->held_out && room_begin(r, 0.01);
}

bool room_see_load(room *r, const char *path)
{
    cn_dict *file = cn_load(r->cn, path);
    const bool ok = file && room_resume(r, file);
    cn_dict_free(file);
    return ok;
}

/* Begins and ends what does not train: no gradients, running statistics, no dropout. */
static cn_scope look(room *r)
{
    cn_module_train(r->net, false);
    cn_no_grad_begin(r->cn);
    return cn_scope_begin(r->cn);
}

static void look_end(room *r, cn_scope s)
{
    cn_scope_end(r->cn, s);
    cn_no_grad_end(r->cn);
    cn_module_train(r->net, true);
}

double room_see_accuracy(room *r)
{
    double right = 0, n = 0;
    cn_batch b;
    cn_scope all = look(r);
    cn_loader_reset(r->held_out, 0);
    for (cn_scope s = cn_scope_begin(r->cn); cn_loader_next(r->held_out, &b); cn_scope_end(r->cn, s)) {
        cn_tensor *answer = cn_argmax(cn_forward(r->net, b.x), CN_DIMS(1), false);
        right += cn_item(cn_sum(cn_cast(cn_eq(answer, b.y), CN_F32), CN_ALL, false));
        n += (double)b.n;
    }
    look_end(r, all);
    return n > 0 && !cn_failed(r->cn) ? right / n : NAN;
}

bool room_see_read(room *r, const uint8_t *image, float *probabilities, float *seen)
{
    const size_t pixels = (size_t)(r->side * r->side);
    cn_scope s = look(r);
    cn_tensor *x = cn_from(r->cn, CN_U8, CN_DIMS(1, 1, r->side, r->side), image);
    x = cn_div_s(cn_cast(x, CN_F32), 255);
    cn_tensor *first = x; /* (1,8,side,side) after convolution, norm and ReLU */
    for (int i = 0; i < 3; i++) first = cn_forward(cn_module_at(r->net, i), first);
    cn_tensor *answer = cn_softmax(cn_forward(r->net, x), 1);
    const bool ok =
        cn_read(answer, probabilities, CLASSES * sizeof(float)) && cn_read(first, seen, FIRST * pixels * sizeof(float));
    look_end(r, s);
    return ok;
}

bool room_see_filters(room *r, float *weights)
{
    return cn_read(cn_module_get(r->net, "0.weight"), weights, FIRST * 9 * sizeof *weights);
}
