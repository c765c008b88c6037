/* The room "bend": a network of a few layers that tells two kinds of points in the plane apart. */
#include "room.h"

#include <stdlib.h>

enum { CLASSES = 2, MOST_LAYERS = 8 };

static cn_tensor *next_loss(room *r) { return cn_cross_entropy(cn_forward(r->net, r->points), r->classes, NULL); }

static bool describe(room *r, cn_dict *d)
{
    return cn_dict_set_text(d, "model", "plane") && cn_dict_set_whole(d, "layers", cn_module_children(r->net) / 2);
}

static cn_module *activation_of(cn_ctx *cn, int number)
{
    switch (number) {
    case 0: return cn_nn_tanh(cn);
    case 1: return cn_nn_relu(cn);
    case 2: return cn_nn_gelu(cn);
    case 3: return cn_nn_sigmoid(cn);
    default: return cn_nn_function(cn, cn_sin);
    }
}

static cn_module *model(cn_ctx *cn, const int *widths, int layers, int activation)
{
    cn_module *m = cn_nn_sequential_of(cn, NULL, 0);
    int64_t in = 2;
    for (int i = 0; i < layers; in = widths[i++]) {
        cn_module_append(m, cn_nn_linear(cn, in, widths[i], NULL));
        cn_module_append(m, activation_of(cn, activation));
    }
    cn_module_append(m, cn_nn_linear(cn, in, CLASSES, NULL));
    return cn_failed(cn) ? NULL : m;
}

/* points: (n,2) */
bool room_bend_new(room *r, const float *points, const uint8_t *classes, int n, const int *widths, int layers,
                   int activation)
{
    int64_t *numbers = layers <= MOST_LAYERS ? malloc((size_t)n * sizeof *numbers) : NULL;
    if (!numbers) return room_fail(r, "There is not enough memory.");
    for (int i = 0; i < n; i++) numbers[i] = classes[i];
    r->points = cn_keep(cn_from(r->cn, CN_F32, CN_DIMS(n, 2), points));
    r->classes = cn_keep(cn_from(r->cn, CN_I64, CN_DIMS(n), numbers));
    free(numbers);
    r->net = model(r->cn, widths, layers, activation);
    r->loss = next_loss;
    r->describe = describe;
    return r->points && r->classes && room_begin(r, 0);
}

bool room_bend_load(room *r, const char *path)
{
    cn_dict *file = cn_load(r->cn, path);
    const bool ok = file && room_resume(r, file);
    cn_dict_free(file);
    return ok;
}

/* Rows from top (y = reach) to bottom. */
bool room_bend_field(room *r, float *out, int side, double reach)
{
    const int64_t n = side;
    cn_scope s = cn_scope_begin(r->cn);
    cn_no_grad_begin(r->cn);
    cn_tensor *across = cn_linspace(r->cn, CN_F32, -reach, reach, n), *down = cn_neg(across);
    cn_tensor *x = cn_expand(cn_reshape(across, CN_DIMS(1, n)), CN_DIMS(n, n));
    cn_tensor *y = cn_expand(cn_reshape(down, CN_DIMS(n, 1)), CN_DIMS(n, n));
    cn_tensor *grid = cn_reshape(cn_stack(CN_TENSORS(x, y), 2), CN_DIMS(n * n, 2));
    cn_tensor *p = cn_select(cn_softmax(cn_forward(r->net, grid), 1), 1, 1); /* (n·n) */
    const bool ok = cn_read(p, out, (size_t)(n * n) * sizeof *out);
    cn_no_grad_end(r->cn);
    cn_scope_end(r->cn, s);
    return ok;
}
