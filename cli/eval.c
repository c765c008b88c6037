/* cairn eval: measures a model on other data. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

typedef struct exam {
    const settings *s; /* of this command */
    cn_ctx *cn;
    const char *path;
    cn_dict *file;
    cn_module *model;
} exam;

static int measure(exam *e, cn_dataset *d, loss_fn loss, score *out)
{
    cn_loader *l = d ? cn_loader_new(d, &(cn_loader_desc){ .batch = whole_of(e->s, "batch") }) : NULL;
    if (!l) return fail_in(e->cn);
    cn_module_train(e->model, false);
    return score_all(e->model, l, loss, out) ? DONE : fail_in(e->cn);
}

/* ---- texts ---- */

static int eval_windows(exam *e, const int32_t *ids, int64_t n, size_t bytes)
{
    const cn_gpt_desc *config = cn_gpt_config(e->model);
    if (n <= config->context)
        return fail("the text must have more tokens than the context of the model: it has %" PRId64
                    ", at least %" PRId64 " are needed",
                    n, config->context + 1);
    const cn_tokens_desc windows = { .type = CN_TOKEN_I32, .context = config->context, .vocab = config->vocab };
    score s;
    if (measure(e, cn_dataset_token_array(e->cn, ids, n, &windows), text_loss, &s) != DONE) return FAILED;
    printf("loss %.4f nats/token, perplexity %.3f, %.4f bits per byte, over %" PRId64 " tokens\n", s.loss, exp(s.loss),
           s.loss / log(2) * (double)n / (double)bytes, s.count * config->context);
    return DONE;
}

static int eval_gpt(exam *e)
{
    text t = { 0 };
    int32_t *ids = NULL;
    int64_t n = 0;
    int code = read_texts(e->s, &t);
    if (code == DONE) {
        cn_gpt_desc desc = { .heads = given(e->s, "heads")             ? whole_of(e->s, "heads")
                                      : cn_dict_text(e->file, "heads") ? 0
                                                                       : heads_beside(e->path) };
        e->model = cn_gpt_from(e->cn, e->file, &desc);
        cn_tokenizer *tokenizer = e->model ? find_tokenizer(e->cn, e->s, e->path, e->file) : NULL;
        if (!tokenizer) code = cn_failed(e->cn) ? fail_in(e->cn) : FAILED;
        else if (!encode_text(e->cn, tokenizer, t.bytes, t.n, &ids, &n)) code = fail_in(e->cn);
    }
    if (code == DONE) code = eval_windows(e, ids, n, t.n);
    free(t.bytes), free(ids);
    return code;
}

/* ---- tables ---- */

/* The model's number for each class of the table: the table may have classes in another order. */
typedef struct renumber {
    int64_t *to;
} renumber;

static bool copy_renumbered(void *user, const cn_map_call *call)
{
    const renumber *r = user;
    const cn_field x = call->in_field[0];
    memcpy(call->out[0], call->in[0], (size_t)x.shape.v[0] * sizeof(float));
    *(int64_t *)call->out[1] = r->to[*(const int64_t *)call->in[1]];
    return true;
}

static int match_classes(const exam *e, const cn_dataset *d, int64_t outputs, renumber *r)
{
    const int n = cn_dataset_classes(d);
    r->to = need(((size_t)n + 1) * sizeof *r->to);
    for (int i = 0; i < n; i++) {
        r->to[i] = -1;
        for (int64_t k = 0; k < outputs && r->to[i] < 0; k++) {
            char name[40];
            snprintf(name, sizeof name, "class/%" PRId64, k);
            const char *known = cn_dict_text(e->file, name);
            if (known && !strcmp(known, cn_dataset_class(d, i))) r->to[i] = k;
        }
        if (r->to[i] < 0) return fail("the model has no class '%.80s'", cn_dataset_class(d, i));
    }
    return DONE;
}

static int eval_rows(exam *e, const settings *trained, const char *path)
{
    const bool classes = flag_of(trained, "classes");
    e->model = mlp_in(e->cn, e->file, trained);
    cn_dataset *d = e->model ? csv_dataset(e->cn, trained, path) : NULL;
    if (!d) return cn_failed(e->cn) ? fail_in(e->cn) : FAILED;
    int64_t inputs = 0, outputs = 0;
    cn_dict_whole(e->file, "inputs", &inputs);
    cn_dict_whole(e->file, "outputs", &outputs);
    const int64_t columns = cn_dataset_field(d, 0).shape.v[0];
    if (columns != inputs)
        return fail("%s: there are %" PRId64 " columns beside the target; the model needs %" PRId64, path, columns,
                    inputs);
    renumber r = { 0 };
    int code = classes ? match_classes(e, d, outputs, &r) : DONE;
    score s;
    if (code == DONE && classes) d = cn_dataset_map(d, &(cn_map_desc){ .fn = copy_renumbered, .user = &r });
    if (code == DONE) code = measure(e, d, classes ? class_loss : value_loss, &s);
    if (code == DONE && classes)
        printf("accuracy %.4f, loss %.4f, over %" PRId64 " rows\n", s.accuracy, s.loss, s.count);
    if (code == DONE && !classes)
        printf("R2 %.4f, loss %.6f of the variance, over %" PRId64 " rows\n", 1 - s.loss, s.loss, s.count);
    free(r.to);
    return code;
}

static int eval_mlp(exam *e)
{
    char **paths;
    const int n = items_of(e->s, "data", &paths);
    if (n != 1) return usage("one table is needed, got %d: --data FILE.csv", n);
    settings *trained = settings_in(e->file, "train mlp");
    if (!trained) return FAILED;
    const int code = eval_rows(e, trained, paths[0]);
    free_settings(trained);
    free(trained);
    return code;
}

/* ---- images ---- */

static int eval_images(exam *e, const settings *trained)
{
    const char *images = text_of(e->s, "images"), *labels = text_of(e->s, "labels");
    e->model = cnn_in(e->cn, e->file, trained);
    cn_dataset *d = e->model ? cn_dataset_idx(e->cn, images, labels) : NULL;
    if (!d) return cn_failed(e->cn) ? fail_in(e->cn) : FAILED;
    int64_t outputs = 0, size[2] = { 0, 0 };
    cn_dict_whole(e->file, "outputs", &outputs);
    cn_dict_whole(e->file, "height", &size[0]);
    cn_dict_whole(e->file, "width", &size[1]);
    const cn_dims image = cn_dataset_field(d, 0).shape;
    if (image.n != 3 || image.v[1] != size[0] || image.v[2] != size[1])
        return fail("%s: the images must have %" PRId64 "x%" PRId64 " pixels, as the model needs them", images, size[0],
                    size[1]);
    survey v;
    bool ok = survey_items(e->cn, d, true, false, &v);
    if (ok && v.classes > outputs)
        ok = (fail("%s: label %" PRId64 " is too large; the model has %" PRId64 " classes", labels, v.classes - 1,
                   outputs),
              false);
    free_survey(&v);
    score s;
    if (!ok || measure(e, d, class_loss, &s) != DONE) return FAILED;
    printf("accuracy %.4f, loss %.4f, over %" PRId64 " images\n", s.accuracy, s.loss, s.count);
    return DONE;
}

static int eval_cnn(exam *e)
{
    if (!given(e->s, "images") || !given(e->s, "labels"))
        return usage("images are needed: --images FILE --labels FILE");
    settings *trained = settings_in(e->file, "train cnn");
    if (!trained) return FAILED;
    const int code = eval_images(e, trained);
    free_settings(trained);
    free(trained);
    return code;
}

/* ---- the kind of the model ---- */

static int eval_kind(exam *e)
{
    const char *kind = model_kind(e->file);
    if (!kind) return fail("%s: the file does not name the kind of its model (gpt, mlp or cnn)", e->path);
    if (!strcmp(kind, "gpt")) return eval_gpt(e);
    if (!strcmp(kind, "mlp")) return eval_mlp(e);
    if (!strcmp(kind, "cnn")) return eval_cnn(e);
    return fail("%s: the kind of the model must be gpt, mlp or cnn, got '%.20s'", e->path, kind);
}

int evaluate(settings *s)
{
    char *path = find_model(s->argument);
    exam e = { .s = s, .path = path, .cn = path ? open_context(s) : NULL };
    int code = e.cn ? DONE : FAILED;
    if (e.cn) e.file = cn_load(e.cn, path);
    if (e.cn && !e.file) code = fail_in(e.cn);
    cn_profile *p = code == DONE && given(s, "profile") ? cn_profile_begin(e.cn, NULL) : NULL;
    if (code == DONE) code = eval_kind(&e);
    if (code == DONE) code = end_profile(e.cn, s, p, stderr);
    cn_close(e.cn);
    free(path);
    return code;
}
