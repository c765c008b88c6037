/* Opens contexts, builds MLPs and CNNs or loads them from files, and computes losses and statistics of data. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

void print_device(cn_ctx *cn, const char *device, FILE *out)
{
    char why[800];
    cn_gpu_info gpu;
    const int number = cn_gpu_current(cn);
    if (!device) device = getenv("CAIRN_DEVICE");
    if (device && !strcmp(device, "auto")) {
        const int chosen = cn_gpu_auto(cn, why, sizeof why);
        fprintf(out, "device %s%s\n", why, chosen == number ? "" : "; but it cannot be opened, so the CPU computes");
    }
    if (number >= 0 && cn_gpu_describe(cn, number, &gpu))
        fprintf(out, "gpu:%d is \"%s\" (%s, %s, by %s)\n", number, gpu.name, gpu.kind, gpu.backend, gpu.implementation);
    fflush(out);
}

cn_ctx *open_context(const settings *s)
{
    const char *device = text_of(s, "device"); /* NULL: what CAIRN_DEVICE says */
    const bool train = s->command->bit & TRAIN;
    cn_desc desc = { .device = device,
                     .threads = (int)whole_of(s, "threads"),
                     .seed = train ? (uint64_t)whole_of(s, "seed") : 1 };
    cn_ctx *cn = cn_open(&desc);
    if (!device) device = getenv("CAIRN_DEVICE") ? getenv("CAIRN_DEVICE") : "cpu";
    if (!cn) fail("--device %s: no such device, or out of memory or threads", device);
    if (cn && !cn_failed(cn) && !flag_of(s, "quiet")) print_device(cn, device, train ? stdout : stderr);
    if (!cn || !cn_failed(cn)) return cn;
    fail("--device %s: %s", device, cn_error(cn)); /* the error has the remedy */
    cn_close(cn);
    return NULL;
}

settings *settings_in(const cn_dict *model, const char *name)
{
    for (int i = 0; i < n_commands; i++) {
        if (strcmp(commands[i].name, name)) continue;
        settings *s = need(sizeof *s);
        s->command = &commands[i];
        if (parse_options(s, 0, NULL) == DONE && load_settings(s, model) == DONE) return s;
        free_settings(s);
        free(s);
    }
    return NULL;
}

const char *model_kind(const cn_dict *file)
{
    const char *kind = cn_dict_text(file, "model");
    const bool gpt = cn_dict_get(file, "wte.weight") || cn_dict_get(file, "transformer.wte.weight");
    return kind ? kind : gpt ? "gpt" : NULL;
}

/* ---- tables ---- */

cn_dataset *csv_dataset(cn_ctx *cn, const settings *s, const char *path)
{
    const char *separator = text_of(s, "separator"), *target = text_of(s, "target");
    cn_csv_desc desc = { .separator = !strcmp(separator, "tab") ? '\t' : separator[0],
                         .no_header = flag_of(s, "no-header"),
                         .target = &target,
                         .targets = target ? 1 : 0,
                         .classes = flag_of(s, "classes") };
    return cn_dataset_csv(cn, path, &desc);
}

/* Normalises columns, or scales them back. */
typedef struct units {
    cn_tensor *mean, *std;
    bool back;
} units;

static cn_tensor *units_forward(cn_module *m, cn_tensor *x)
{
    const units *u = cn_module_data(m);
    return u->back ? cn_add(cn_mul(x, u->std), u->mean) : cn_div(cn_sub(x, u->mean), u->std);
}

static const cn_module_type units_type = { .name = "Units", .forward = units_forward, .data_bytes = sizeof(units) };

static cn_module *new_units(cn_ctx *cn, int64_t columns, bool back)
{
    cn_module *m = cn_module_new(cn, &units_type);
    if (!m) return NULL;
    units *u = cn_module_data(m);
    u->mean = cn_module_buffer(m, "mean", cn_zeros(cn, CN_F32, CN_DIMS(columns)));
    u->std = cn_module_buffer(m, "std", cn_ones(cn, CN_F32, CN_DIMS(columns)));
    u->back = back;
    return cn_module_made(m);
}

cn_module *new_mlp(cn_ctx *cn, const settings *s, int64_t inputs, int64_t outputs)
{
    int64_t hidden[8];
    const int n = sizes_of(s, "hidden", hidden, 8);
    const double dropout = number_of(s, "dropout");
    cn_module *m = cn_nn_sequential(cn, new_units(cn, inputs, false));
    for (int i = 0; i < n; i++) {
        cn_module_append(m, cn_nn_linear(cn, i ? hidden[i - 1] : inputs, hidden[i], NULL));
        cn_module_append(m, cn_nn_relu(cn));
        if (dropout > 0) cn_module_append(m, cn_nn_dropout(cn, dropout));
    }
    cn_module_append(m, cn_nn_linear(cn, hidden[n - 1], outputs, NULL));
    if (!flag_of(s, "classes")) cn_module_append(m, new_units(cn, outputs, true));
    return cn_failed(cn) ? NULL : m;
}

cn_tensor *mlp_buffer(cn_module *mlp, bool last, const char *name)
{
    char whole[32];
    snprintf(whole, sizeof whole, "%d.%s", last ? cn_module_children(mlp) - 1 : 0, name);
    return cn_module_get(mlp, whole);
}

/* ---- images ---- */

cn_module *new_cnn(cn_ctx *cn, const settings *s, cn_dims image, int64_t classes)
{
    int64_t c[2];
    sizes_of(s, "channels", c, 2);
    const int64_t hidden = whole_of(s, "hidden"), flat = c[1] * (image.v[1] / 4) * (image.v[2] / 4);
    if (flat < 1)
        return fail("images must have at least 4x4 pixels, got %" PRId64 "x%" PRId64, image.v[1], image.v[2]), NULL;
    const cn_nn_conv_desc same = { .padding = 1, .no_bias = true };
    return cn_nn_sequential(cn, cn_nn_conv2d(cn, image.v[0], c[0], 3, &same), cn_nn_batch_norm2d(cn, c[0], NULL),
                            cn_nn_relu(cn), cn_nn_max_pool2d(cn, 2, NULL), cn_nn_conv2d(cn, c[0], c[1], 3, &same),
                            cn_nn_batch_norm2d(cn, c[1], NULL), cn_nn_relu(cn), cn_nn_max_pool2d(cn, 2, NULL),
                            cn_nn_flatten(cn, 1, -1), cn_nn_linear(cn, flat, hidden, NULL), cn_nn_relu(cn),
                            cn_nn_dropout(cn, number_of(s, "dropout")), cn_nn_linear(cn, hidden, classes, NULL));
}

/* ---- from files ---- */

static bool same_name(void *user, const char *name, char *out, size_t size)
{
    (void)user;
    return snprintf(out, size, "%s", name) < (int)size;
}

/* A damaged file may name a model that is larger than all memory. The size of its tensors shows that. */
static bool plausible(const cn_dict *file, double weights)
{
    double numbers = 0;
    for (int64_t i = 0; i < cn_dict_count(file); i++) numbers += (double)cn_numel(cn_dict_at(file, i));
    return weights <= numbers || (fail("the model file has fewer weights than its settings need"), false);
}

static cn_module *loaded(cn_module *m, const cn_dict *file, cn_ctx *cn)
{
    if (m && cn_module_load(m, file, &(cn_module_load_desc){ .rename = same_name })) return m;
    if (cn_failed(cn)) fail_in(cn);
    return NULL;
}

static bool size_in(const cn_dict *file, const char *name, int64_t *size)
{
    if (cn_dict_whole(file, name, size) && *size > 0 && *size <= 100000000) return true;
    return fail("the model file does not have its number of %s", name), false;
}

cn_module *mlp_in(cn_ctx *cn, const cn_dict *file, const settings *s)
{
    int64_t inputs, outputs, hidden[8];
    if (!size_in(file, "inputs", &inputs) || !size_in(file, "outputs", &outputs)) return NULL;
    const int n = sizes_of(s, "hidden", hidden, 8);
    double weights = (double)hidden[n - 1] * (double)outputs;
    for (int i = 0; i < n; i++) weights += (double)(i ? hidden[i - 1] : inputs) * (double)hidden[i];
    return plausible(file, weights) ? loaded(new_mlp(cn, s, inputs, outputs), file, cn) : NULL;
}

cn_module *cnn_in(cn_ctx *cn, const cn_dict *file, const settings *s)
{
    cn_dims image = { .n = 3 };
    int64_t classes, c[2] = { 0, 0 };
    static const char *const names[] = { "channels", "height", "width" };
    for (int i = 0; i < 3; i++)
        if (!size_in(file, names[i], &image.v[i])) return NULL;
    if (!size_in(file, "outputs", &classes)) return NULL;
    sizes_of(s, "channels", c, 2);
    const double hidden = (double)whole_of(s, "hidden"), pixels = (double)(image.v[1] / 4) * (double)(image.v[2] / 4);
    const double weights =
        9.0 * (double)c[0] * (double)(image.v[0] + c[1]) + (double)c[1] * pixels * hidden + hidden * (double)classes;
    return plausible(file, weights) ? loaded(new_cnn(cn, s, image, classes), file, cn) : NULL;
}

/* ---- losses ---- */

cn_tensor *text_loss(cn_module *m, const cn_batch *b, cn_tensor **right)
{
    if (right) *right = NULL;
    return cn_gpt_loss(m, b->x, b->y);
}

cn_tensor *class_loss(cn_module *m, const cn_batch *b, cn_tensor **right)
{
    cn_tensor *logits = cn_forward(m, b->x); /* (n,classes) */
    if (right) *right = cn_sum(cn_eq(cn_argmax(logits, CN_DIMS(1), false), b->y), CN_ALL, false);
    return cn_cross_entropy(logits, b->y, NULL);
}

cn_tensor *value_loss(cn_module *m, const cn_batch *b, cn_tensor **right)
{
    if (right) *right = NULL;
    cn_tensor *off = cn_sub(cn_forward(m, b->x), b->y); /* (n,1) */
    return cn_mean(cn_square(cn_div(off, mlp_buffer(m, true, "std"))), CN_ALL, false);
}

bool score_all(cn_module *m, cn_loader *l, loss_fn loss, score *out)
{
    cn_ctx *cn = cn_module_context(m);
    double hits = 0;
    bool classes = false;
    cn_batch b;
    *out = (score){ 0 };
    cn_no_grad_begin(cn);
    cn_loader_reset(l, 0);
    for (cn_scope s = cn_scope_begin(cn); !interrupted() && cn_loader_next(l, &b); cn_scope_end(cn, s)) {
        cn_tensor *right;
        cn_tensor *mean = loss(m, &b, &right);
        cn_eval_all(cn);
        out->loss += cn_item(mean) * (double)b.n;
        classes = right;
        if (right) hits += cn_item(right);
        out->count += b.n;
    }
    cn_no_grad_end(cn);
    out->loss /= (double)(out->count ? out->count : 1);
    out->accuracy = classes && out->count ? hits / (double)out->count : NAN;
    return !cn_failed(cn);
}

/* ---- statistics of training data ---- */

enum { MOST_CLASSES = 100000 };

static bool count_classes(cn_ctx *cn, const cn_batch *b, survey *v)
{
    int64_t *y = grow(NULL, (size_t)b->n * sizeof *y);
    bool ok = cn_read(b->y, y, (size_t)b->n * sizeof *y);
    if (!ok) fail_in(cn);
    for (int64_t i = 0; i < b->n && ok; i++) {
        ok = y[i] >= 0 && y[i] < MOST_CLASSES;
        if (!ok) {
            fail("label %" PRId64 " is out of range; labels must be 0 to %d", y[i], MOST_CLASSES - 1);
            break;
        }
        if (y[i] >= v->classes) {
            v->of_class = grow(v->of_class, (size_t)(y[i] + 1) * sizeof *v->of_class);
            while (v->classes <= y[i]) v->of_class[v->classes++] = 0;
        }
        v->of_class[y[i]]++;
    }
    free(y);
    return ok;
}

/* Sums values and squares; finish_columns makes means and deviations of them. Subtracting the first row keeps
   precision. */
static bool add_columns(const cn_batch *b, double *row, double *shift, survey *v, bool y)
{
    const int64_t n = v->columns;
    if (!cn_read_f64(b->x, row, b->n * n)) return false;
    if (!v->count) memcpy(shift, row, (size_t)n * sizeof *shift);
    for (int64_t i = 0; i < b->n * n; i++) {
        const double d = row[i] - shift[i % n];
        v->mean[i % n] += d;
        v->std[i % n] += d * d;
    }
    if (!y) return true;
    if (!cn_read_f64(b->y, row, b->n)) return false;
    if (!v->count) shift[n] = row[0];
    for (int64_t i = 0; i < b->n; i++) {
        const double d = row[i] - shift[n];
        v->y_mean += d;
        v->y_std += d * d;
    }
    return true;
}

static void finish_column(double *mean, double *std, double shift, double count)
{
    const double m = *mean / count, variance = *std / count - m * m;
    *mean = m + shift;
    *std = variance > 1e-24 && isfinite(variance) ? sqrt(variance) : 1; /* 1 for a column that never changes */
}

bool survey_items(cn_ctx *cn, cn_dataset *d, bool classes, bool columns, survey *v)
{
    enum { ROWS = 256 };
    *v = (survey){ .columns = columns ? cn_dataset_field(d, 0).shape.v[0] : 0 };
    v->mean = need(((size_t)v->columns + 1) * sizeof(double));
    v->std = need(((size_t)v->columns + 1) * sizeof(double));
    double *row = need(ROWS * ((size_t)v->columns + 1) * sizeof(double)),
           *shift = need(((size_t)v->columns + 1) * sizeof(double));
    cn_loader *l = cn_loader_new(d, &(cn_loader_desc){ .batch = ROWS });
    cn_batch b;
    bool ok = l;
    for (cn_scope s = cn_scope_begin(cn); ok && cn_loader_next(l, &b); cn_scope_end(cn, s)) {
        if (columns) ok = add_columns(&b, row, shift, v, !classes) || (fail_in(cn), false);
        if (ok && classes) ok = count_classes(cn, &b, v);
        v->count += b.n;
    }
    for (int64_t i = 0; ok && i < v->columns; i++) finish_column(&v->mean[i], &v->std[i], shift[i], (double)v->count);
    if (ok && columns) finish_column(&v->y_mean, &v->y_std, shift[v->columns], (double)v->count);
    cn_loader_free(l);
    free(row), free(shift);
    if (ok && cn_failed(cn)) ok = (fail_in(cn), false);
    return ok || (!l && (fail_in(cn), false));
}

double class_entropy(const survey *v)
{
    double h = 0;
    for (int64_t i = 0; i < v->classes; i++) {
        const double p = (double)v->of_class[i] / (double)v->count;
        if (p > 0) h -= p * log(p);
    }
    return h;
}

void free_survey(survey *v) { free(v->of_class), free(v->mean), free(v->std); }
