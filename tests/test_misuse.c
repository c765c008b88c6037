/* Every exported function is called with nonsense in every place: NULL, tensors whose scope has ended, freed objects,
   objects of another context, numbers and enumerations out of range, and each of these in each field of a descriptor.
   All other arguments are valid. Nothing may crash. A call that cannot be right returns NULL, false or 0 and leaves an
   error that names the function. Afterwards the context computes as before.

       test_misuse                     all functions in this process
       test_misuse NAME                only functions whose name contains NAME; prints every call
       test_misuse --fork [NAME]       each function in a process of its own: a crash is a failed check

   tools/make_misuse.py writes the table of functions from the headers. */
#include <float.h>
#include <fnmatch.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cairn/cairn.h"
#include "cairn/kernel.h"
#include "cairn/op_cases.h"
#include "cairn/signature.h"
#include "support/check.h"
#include "support/scratch.h"

/* ---- the table of functions ---- */

typedef enum kind {
    K_CTX,
    K_TENSOR,
    K_MODULE,
    K_OPTIM,
    K_DICT,
    K_EMA,
    K_SCHEDULE,
    K_DATASET,
    K_DATA_SAMPLER,
    K_LOADER,
    K_TRANSFORM,
    K_TOKENIZER,
    K_SAMPLER,
    K_PROGRESS,
    K_LOGBOOK,
    K_METRIC,
    K_PROFILE,
    K_READING, /* objects up to here */
    K_LIST,    /* an array of objects */
    K_OUT,     /* memory that the function writes */
    K_ARRAY,   /* memory that it reads */
    K_TEXT,
    K_FILE,
    K_FUNCTION,
    K_STRUCT,
    K_WHOLE,
    K_BOOL,
    K_NUMBER,
    K_ENUM,
    K_DIMS,
    K_PARAMS,
    K_SCOPE,
    K_FIELD,
} kind;

typedef union value {
    void *p;
    int64_t i;
    double f;
    void (*fn)(void);
    cn_dims dims;
    cn_params params;
    cn_scope scope;
    cn_field field;
} value;

typedef struct field {
    const char *name;
    kind kind;
    size_t offset, bytes; /* bytes: of one element */
    int values;           /* of an enumeration */
} field;
typedef struct structure {
    const char *name;
    size_t bytes;
    const field *fields;
} structure;
typedef struct parameter {
    const char *name, *type;
    kind kind;
    int detail; /* of an enumeration: its values; of a list: the kind of its elements; of an array: their type */
    const structure *structure;
    size_t bytes;
} parameter;

typedef enum result_kind { R_NOTHING, R_POINTER, R_OBJECT, R_TRUTH, R_COUNT, R_REAL } result_kind;
typedef struct outcome {
    const void *p;
    int64_t i;
    double f;
} outcome;
typedef struct function {
    const char *name;
    void (*call)(const value *v, outcome *r);
    result_kind result;
    kind object; /* that it returns */
    int n;
    const parameter *parameters;
} function;

#include "misuse.inc"

enum { FUNCTIONS = sizeof functions / sizeof *functions, MOST = 16, BUFFER = 1 << 13, LIST = 2 };

/* ---- what is allowed: misuse_allowed.def ---- */

typedef enum nonsense { NULLED = 1, STALE = 2, FREED = 4, OTHER = 8, RANGE = 16, EVERYTHING = 31 } nonsense;

typedef struct exception {
    const char *function, *parameter; /* patterns */
    int nonsense;
    const char *why;
} exception;

static const exception exceptions[] = {
#include "misuse_allowed.def"
};

static bool is_allowed(const char *function, const char *parameter, nonsense what)
{
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
        if (exceptions[i].nonsense & what && !fnmatch(exceptions[i].function, function, 0) &&
            !fnmatch(exceptions[i].parameter, parameter, 0))
            return true;
    return false;
}

/* ---- valid arguments ---- */

typedef struct world {
    cn_ctx *cn;
    size_t bytes; /* allocated */
    FILE *nowhere;
    cn_profile *profile; /* that runs */
    cn_optim *optim;     /* the last one */
    char out[MOST][BUFFER];
    void *list[MOST][LIST];
    char structure[MOST][8192];
} world;

static world worlds[2];

/* At most 64 MB: a call that would need more fails, as on a small machine. */
static void *resize(void *user, void *p, size_t old_bytes, size_t new_bytes)
{
    world *w = user;
    if (new_bytes > old_bytes && new_bytes - old_bytes > ((size_t)64 << 20) - w->bytes) return NULL;
    w->bytes += new_bytes - old_bytes;
    if (new_bytes) return realloc(p, new_bytes);
    free(p);
    return NULL;
}

static double half(void *user, double x)
{
    (void)user;
    return x / 2;
}
static void ignore(void *user) { (void)user; }
static cn_tensor *first_of(void *user, cn_tensor *const *in, int n)
{
    (void)user;
    return n > 0 ? cn_mul_s(in[0], 2) : NULL;
}
static void no_backward(void *user, cn_tensor *const *in, int n, cn_tensor *out, cn_tensor *grad, cn_tensor **grads)
{
    (void)user, (void)in, (void)out;
    for (int i = 0; i < n; i++) grads[i] = grad;
}
static cn_tensor *same(void *user, cn_tensor *grad)
{
    (void)user;
    return grad;
}
static double one(void *user, int group, int64_t step)
{
    (void)user, (void)group, (void)step;
    return 1;
}
static bool item(void *user, int64_t index, cn_draw *random, void *const *fields, char *error, size_t size)
{
    (void)user, (void)random, (void)error, (void)size;
    *(float *)fields[0] = (float)index;
    return true;
}
static bool copy_item(void *user, const cn_map_call *call)
{
    (void)user;
    memcpy(call->out[0], call->in[0], sizeof(float));
    return true;
}
static bool indices(void *user, uint64_t seed, int64_t epoch, int64_t n, int64_t *out)
{
    (void)user, (void)seed, (void)epoch;
    for (int64_t i = 0; i < n; i++) out[i] = 0;
    return true;
}
static int64_t single(void *user, uint64_t seed, int64_t epoch, int64_t n, int64_t *out, int64_t *sizes)
{
    (void)user, (void)seed, (void)epoch, (void)n;
    out[0] = 0;
    sizes[0] = 1;
    return 1;
}
static void *open_stream(void *user, const cn_shard *shard, char *error, size_t size)
{
    (void)user, (void)shard, (void)size;
    return error;
}
static cn_stream_result end_stream(void *cursor, cn_draw *random, void *const *fields, char *error, size_t size)
{
    (void)cursor, (void)random, (void)fields, (void)error, (void)size;
    return CN_STREAM_END;
}
static void body(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k, (void)user, (void)begin, (void)end, (void)thread;
}

static bool keep_operands(void *user, cn_module *m, cn_tensor **in, int n_in)
{
    (void)user, (void)m, (void)in, (void)n_in;
    return true;
}
static bool keep_results(void *user, cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out)
{
    (void)user, (void)m, (void)in, (void)n_in, (void)out, (void)n_out;
    return true;
}
static cn_tensor *keep_gradient(void *user, cn_module *m, cn_tensor *grad)
{
    (void)user, (void)m;
    return grad;
}
static void ignore_module(void *user, cn_module *m) { (void)user, (void)m; }
static cn_tensor *no_loss(void *user)
{
    (void)user;
    return NULL;
}

static const struct {
    const char *type;
    void (*fn)(void);
} callbacks[] = {
    { "ended", (void (*)(void))ignore },
    { "free_fn", (void (*)(void))ignore },       { "cn_hook", (void (*)(void))same },
    { "cn_function", (void (*)(void))first_of }, { "fn", (void (*)(void))cn_relu },
    { "cn_schedule_fn", (void (*)(void))one },   { "cn_sample_fn", (void (*)(void))indices },
    { "cn_body", (void (*)(void))body },         { "derivative", (void (*)(void))sin },
    { "cn_closure", (void (*)(void))no_loss },
    { "cn_forward_pre_hook", (void (*)(void))keep_operands },
    { "cn_forward_hook", (void (*)(void))keep_results },
    { "cn_backward_hook", (void (*)(void))keep_gradient },
    { "cn_apply_fn", (void (*)(void))ignore_module },
    { "cn_sample_batches_fn", (void (*)(void))single },
};

static cn_tensor *square(world *w) { return cn_full(w->cn, CN_F32, CN_DIMS(3, 3), 0.5); }

/* Tensors that are not f32 (3,3), by function and parameter. */
static cn_tensor *make_tensor(world *w, const function *f, const char *name)
{
    static const struct {
        const char *function, *parameter;
        cn_dtype dtype;
        int ndim;
        double value;
    } special[] = {
        { "cn_gradcheck", "*", CN_F64, 2, 0.5 },
        { "cn_gradgradcheck", "*", CN_F64, 2, 0.5 },
        { "cn_ctc_loss", "log_probs", CN_F32, 3, -1 },
        { "cn_ctc_loss", "*_lengths", CN_I64, 1, 2 },
        { "cn_transform_apply", "image", CN_F32, 3, 0.5 },
        { "cn_image_write", "image", CN_F32, 3, 0.5 },
        { "cn_image_grid", "images", CN_F32, 4, 0.5 },
        { "cn_image_resize", "image", CN_U8, 3, 5 },
        { "cn_multi_margin_loss", "target", CN_I64, 1, 1 },
        { "cn_nll_loss", "target", CN_I64, 1, 1 },
        { "cn_cosine_embedding_loss", "target", CN_F32, 1, 1 },
        { "cn_gpt_loss", "*", CN_I64, 2, 1 },
        { "cn_ctc_loss", "targets", CN_I64, 2, 1 },
        { "cn_embedding", "indices", CN_I64, 2, 1 },
        { "cn_index_put", "indices", CN_I64, 1, 1 },
        { "cn_index_put", "values", CN_F32, 1, 1 },
        { "cn_index_select", "index", CN_I64, 1, 1 },
        { "cn_index_add", "index", CN_I64, 1, 1 },
        { "cn_one_hot", "input", CN_I64, 1, 1 },
        { "*", "index", CN_I64, 2, 1 },
        { "cn_masked_*", "mask", CN_BOOL, 2, 1 },
        { "cn_bitwise_*", "*", CN_I32, 2, 3 },
        { "cn_logical_*", "*", CN_BOOL, 2, 1 },
        { "cn_linear", "bias", CN_F32, 1, 1 },
        { "cn_conv*1d", "bias", CN_F32, 1, 1 },
        { "cn_conv*1d", "*", CN_F32, 3, 1 },
        { "cn_conv*2d", "bias", CN_F32, 1, 1 },
        { "cn_conv*2d", "*", CN_F32, 4, 1 },
        { "cn_conv3d", "bias", CN_F32, 1, 1 },
        { "cn_conv3d", "*", CN_F32, 5, 1 },
        { "cn_*pool2d", "*", CN_F32, 3, 1 },
        { "cn_interpolate*", "*", CN_F32, 4, 1 },
        { "cn_dot", "*", CN_F32, 1, 1 },
        { "cn_outer", "*", CN_F32, 1, 1 },
        { "cn_*norm", "weight", CN_F32, 1, 1 },
        { "cn_*norm", "bias", CN_F32, 1, 1 },
        { "cn_batch_norm", "running*", CN_F32, 1, 1 },
        { "cn_scaled_dot*", "*", CN_F32, 3, 1 },
        { "cn_cross_entropy", "target", CN_I64, 1, 1 },
        { "cn_attention_forward", "*", CN_F32, 2, 1 },
        { "cn_rnn_forward", "lengths", CN_I64, 1, 1 },
        { "cn_rnn_forward", "?0", CN_F32, 3, 1 },
        { "cn_rnn_forward", "x", CN_F32, 3, 1 },
        { "cn_backward", "loss", CN_F32, 0, 1 },
        { "cn_item*", "t", CN_F32, 0, 1 },
    };
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        if (fnmatch(special[i].function, f->name, 0) || fnmatch(special[i].parameter, name, 0)) continue;
        cn_dims shape = { special[i].ndim, { 3, 3, 3, 3, 3 } };
        cn_tensor *t = cn_full(w->cn, special[i].dtype, shape, special[i].value);
        return strcmp(f->name, "cn_backward") ? t : cn_param(t);
    }
    const bool leaf = strstr(f->name, "init_") || strstr(f->name, "grad") || strstr(f->name, "_step");
    return leaf ? cn_param(square(w)) : square(w);
}

static cn_module *make_module(world *w, const function *f)
{
    if (strstr(f->name, "gpt") || strstr(f->name, "sampler"))
        return cn_nn_gpt(w->cn, &(cn_gpt_desc){ .vocab = 8, .context = 8, .layers = 1, .heads = 1, .width = 4 });
    if (!strcmp(f->name, "cn_attention_forward")) return cn_nn_multihead_attention(w->cn, 3, 1, NULL);
    if (!strcmp(f->name, "cn_rnn_forward")) return cn_nn_lstm(w->cn, 3, 3, &(cn_rnn_desc){ .num_layers = 3 });
    const cn_transformer_desc small = { .dim_feedforward = 4, .num_layers = 1 };
    if (!strcmp(f->name, "cn_encoder_forward")) return cn_nn_transformer_encoder(w->cn, 3, 1, &small);
    if (!strcmp(f->name, "cn_decoder_forward")) return cn_nn_transformer_decoder(w->cn, 3, 1, &small);
    if (!strcmp(f->name, "cn_transformer_forward")) return cn_nn_transformer(w->cn, 3, 1, &small);
    if (!strcmp(f->name, "cn_module_append") || !strcmp(f->name, "cn_module_at"))
        return cn_nn_sequential(w->cn, cn_nn_linear(w->cn, 3, 3, NULL));
    return cn_nn_linear(w->cn, 3, 3, NULL);
}

static cn_params make_params(world *w) { return cn_parameters(cn_nn_linear(w->cn, 3, 3, NULL)); }
static cn_optim *make_optim(world *w) { return cn_sgd(w->cn, make_params(w), NULL); }

static cn_dataset *make_dataset(world *w)
{
    cn_tensor *t = cn_full(w->cn, CN_F32, CN_DIMS(4, 3, 5, 5), 0.5);
    return cn_dataset_tensors(CN_TENSORS(t));
}

static cn_dict *make_dict(world *w)
{
    cn_dict *d = cn_dict_new(w->cn);
    cn_dict_set(d, "name", square(w));
    cn_dict_set_text(d, "text", "1");
    return d;
}

static cn_transform *make_transform(world *w)
{
    cn_transform *t = cn_transform_new(w->cn);
    cn_transform_random_hflip(t, 0.5);
    return t;
}

static cn_sampler *make_sampler(world *w)
{
    cn_gpt_desc d = { .vocab = 8, .context = 8, .layers = 1, .heads = 1, .width = 4 };
    cn_sampler *s = cn_sampler_new(cn_nn_gpt(w->cn, &d), NULL);
    cn_sampler_feed(s, (int32_t[]){ 1, 2 }, 2);
    return s;
}

static void *make_object(world *w, kind k, const function *f, const char *name)
{
    switch (k) {
    case K_CTX: return w->cn;
    case K_TENSOR: return make_tensor(w, f, name);
    case K_MODULE: return make_module(w, f);
    case K_OPTIM: return w->optim = make_optim(w);
    case K_DICT: return make_dict(w);
    case K_EMA: return cn_ema_of(cn_nn_linear(w->cn, 3, 3, NULL), NULL);
    case K_SCHEDULE:
        if (strncmp(f->name, "cn_schedule_", 12)) w->optim = make_optim(w);
        return cn_schedule_exponential(w->optim ? w->optim : make_optim(w), 0.9);
    case K_DATASET: return make_dataset(w);
    case K_DATA_SAMPLER: return cn_data_sampler_sequential(w->cn, 4);
    case K_LOADER: return cn_loader_new(make_dataset(w), NULL);
    case K_TRANSFORM: return make_transform(w);
    case K_TOKENIZER: return cn_tokenizer_bytes(w->cn);
    case K_SAMPLER: return make_sampler(w);
    case K_PROGRESS: return cn_progress_new(w->cn, &(cn_progress_desc){ .out = fopen("progress", "w"), .tty = -1 });
    case K_LOGBOOK: return cn_logbook_new(w->cn, "log.csv", NULL);
    case K_METRIC: return cn_metric_mse(w->cn);
    case K_PROFILE: cn_profile_end(w->profile); return w->profile = cn_profile_begin(w->cn, NULL);
    case K_READING: return cn_read_begin(cn_sum(square(w), CN_ALL, false));
    default: return NULL;
    }
}

static void free_object(kind k, void *p)
{
    switch (k) {
    case K_MODULE: cn_module_free(p); break;
    case K_OPTIM: cn_optim_free(p); break;
    case K_DICT: cn_dict_free(p); break;
    case K_EMA: cn_ema_free(p); break;
    case K_SCHEDULE: cn_schedule_free(p); break;
    case K_DATASET: cn_dataset_free(p); break;
    case K_DATA_SAMPLER: cn_data_sampler_free(p); break;
    case K_LOADER: cn_loader_free(p); break;
    case K_TRANSFORM: cn_transform_free(p); break;
    case K_TOKENIZER: cn_tokenizer_free(p); break;
    case K_SAMPLER: cn_sampler_free(p); break;
    case K_PROGRESS: cn_progress_free(p); break;
    case K_LOGBOOK: cn_logbook_free(p); break;
    case K_METRIC: cn_metric_free(p); break;
    case K_PROFILE:
        cn_profile_free(p);
        worlds[0].profile = NULL;
        break;
    case K_READING: cn_read_end(p, NULL, 0); break;
    default: break;
    }
}

static const cn_op *find_op(const char *name)
{
    int n;
    const cn_op *const *ops = cn_ops(&n);
    for (int i = 0; i < n; i++)
        if (!strcmp(ops[i]->name, name)) return ops[i];
    return NULL;
}

static const double two[] = { 1, 2 };
static const cn_field one_float = { CN_F32, { 0, { 0 } }, 0 };

/* Descriptors are zeros, the default, except for these. */
static void fill_structure(world *w, const function *f, const char *name, void *at)
{
    if (!strcmp(name, "cn_gpt_desc") && strcmp(f->name, "cn_gpt_from"))
        *(cn_gpt_desc *)at = (cn_gpt_desc){ .vocab = 8, .context = 8, .layers = 1, .heads = 1, .width = 4 };
    else if (!strcmp(name, "cn_dataset_desc"))
        *(cn_dataset_desc *)at = (cn_dataset_desc){ .count = 2, .fields = 1, .field = { one_float }, .get = item };
    else if (!strcmp(name, "cn_stream_desc"))
        *(cn_stream_desc *)at =
            (cn_stream_desc){ .fields = 1, .field = { one_float }, .open = open_stream, .next = end_stream };
    else if (!strcmp(name, "cn_map_desc")) ((cn_map_desc *)at)->fn = copy_item;
    else if (!strcmp(name, "cn_tokens_desc")) ((cn_tokens_desc *)at)->context = 1;
    else if (!strcmp(name, "cn_records_desc"))
        *(cn_records_desc *)at = (cn_records_desc){ .fields = 1, .field = { one_float } };
    else if (!strcmp(name, "cn_pool_desc"))
        *(cn_pool_desc *)at = (cn_pool_desc){ .kernel_size = { 2, 2, 2 } };
    else if (!strcmp(name, "cn_unpool_desc"))
        *(cn_unpool_desc *)at = (cn_unpool_desc){ .kernel_size = { 2, 2, 2 } };
    else if (!strcmp(name, "cn_unfold_desc")) *(cn_unfold_desc *)at = (cn_unfold_desc){ .kernel_size = { 2, 2 } };
    else if (!strcmp(name, "cn_interpolate_desc")) ((cn_interpolate_desc *)at)->scale_factor[0] = 2;
    else if (!strcmp(name, "cn_custom")) *(cn_custom *)at = (cn_custom){ first_of, no_backward, NULL };
    else if (!strcmp(name, "cn_module_type")) ((cn_module_type *)at)->name = "Own";
    else if (!strcmp(name, "cn_training")) ((cn_training *)at)->model = cn_nn_linear(w->cn, 3, 3, NULL);
    else if (!strcmp(name, "cn_decoder")) ((cn_decoder *)at)->tokenizer = cn_tokenizer_bytes(w->cn);
    else if (!strcmp(name, "cn_nn_upsample_desc")) ((cn_nn_upsample_desc *)at)->scale = 2;
    else if (!strcmp(name, "cn_schedule_one_cycle_desc"))
        *(cn_schedule_one_cycle_desc *)at = (cn_schedule_one_cycle_desc){ .max_lr = 1, .total_steps = 10 };
    else if (!strcmp(name, "cn_schedule_cyclic_desc"))
        *(cn_schedule_cyclic_desc *)at = (cn_schedule_cyclic_desc){ .base_lr = 0.1, .max_lr = 1 };
    else if (!strcmp(name, "cn_field")) *(cn_field *)at = one_float;
    else if (!strcmp(name, "cn_op")) *(cn_op *)at = *find_op("add");
    else if (!strcmp(name, "cn_case")) *(cn_case *)at = *find_op("add")->cases;
    else if (!strcmp(name, "cn_profile_desc")) ((cn_profile_desc *)at)->events = 10;
    else if (!strcmp(name, "cn_infer")) *(cn_infer *)at = (cn_infer){ .ctx = w->cn, .op = find_op("add") };
    else if (!strcmp(name, "cn_batch_norm_desc")) ((cn_batch_norm_desc *)at)->training = true;
    else if (!strcmp(name, "cn_clip_desc") || !strcmp(name, "cn_sgd_step_desc")) return;
    else if (!strcmp(name, "cn_adam_step_desc")) *(cn_adam_step_desc *)at = (cn_adam_step_desc){ .lr = 0.1, .step = 1 };
    else if (!strcmp(name, "cn_room")) ((cn_room *)at)->field = one_float;
    else if (!strcmp(name, "cn_series")) *(cn_series *)at = (cn_series){ .name = "a", .y = two, .n = 2 };
}

static void *make_array(world *w, int place, int type)
{
    char *at = w->out[place];
    for (int i = 0; i < 8 && type; i++) {
        if (type == 1) ((int64_t *)at)[i] = i + 1;
        if (type == 2) ((double *)at)[i] = 0.5;
        if (type == 3) ((float *)at)[i] = 0.5f;
        if (type == 4) ((int32_t *)at)[i] = i + 1;
    }
    return at;
}

static const char *text_for(const function *f, const char *name)
{
    if (!strcmp(name, "equation")) return "ij,jk->ik";
    if (!strcmp(name, "device")) return "cpu";
    if (!strcmp(name, "nonlinearity")) return "relu";
    if (!strcmp(name, "call")) return "relu(Tensor input) -> Tensor";
    if (!strcmp(name, "path") && (strstr(f->name, "curve_png") || strstr(f->name, "image_write"))) return "a.png";
    if (!strcmp(name, "path") && !strcmp(f->name, "cn_save")) return "a.safetensors";
    return strstr(f->name, "dict") && strstr(f->name, "text") ? "text" : "name";
}

static int64_t whole_for(const function *f, int place)
{
    const char *name = f->parameters[place].name;
    if (strstr(name, "dim") || strstr(name, "axis") || !strcmp(name, "index") || !strcmp(name, "group")) return 0;
    if (!strcmp(name, "bytes") || !strcmp(name, "size")) return strstr(f->name, "read_end") ? 4 : 36;
    if (!strcmp(name, "count") && !strcmp(f->name, "cn_read_f64")) return 9;
    if (!strcmp(name, "vocab_size")) return 260;
    if (!strcmp(name, "i") || !strcmp(name, "id") || !strcmp(name, "start")) return 0;
    if (!strcmp(name, "high") || !strcmp(name, "width") || !strcmp(name, "height")) return 2;
    for (int k = 0; k < place; k++)
        if (f->parameters[k].kind == K_LIST || f->parameters[k].kind == K_ARRAY) return LIST;
    return 1;
}

static void make_valid(world *w, const function *f, int place, value *v)
{
    const parameter *p = &f->parameters[place];
    memset(v, 0, sizeof *v);
    memset(w->out[place], 0, BUFFER);
    if (p->kind <= K_READING) {
        v->p = make_object(w, p->kind, f, p->name);
        return;
    }
    switch (p->kind) {
    case K_LIST:
        for (int i = 0; i < LIST; i++) w->list[place][i] = make_object(w, (kind)p->detail, f, p->name);
        v->p = w->list[place];
        break;
    case K_ARRAY: v->p = make_array(w, place, p->detail); break;
    case K_OUT: v->p = w->out[place]; break;
    case K_TEXT: v->p = (void *)text_for(f, p->name); break;
    case K_FILE: v->p = w->nowhere = w->nowhere ? w->nowhere : fopen("/dev/null", "w"); break;
    case K_FUNCTION:
        for (size_t i = 0; i < sizeof callbacks / sizeof *callbacks; i++)
            if (!strcmp(callbacks[i].type, p->type)) v->fn = callbacks[i].fn;
        if (!strncmp(f->name, "cn_map", 6))
            v->fn = (void (*)(void))(strstr(f->name, "user") ? (void (*)(void))half : (void (*)(void))sin);
        check(v->fn != NULL, "%s: no valid function for %s", f->name, p->type);
        break;
    case K_STRUCT:
        check(p->structure->bytes <= sizeof w->structure[place], "%s is large", p->structure->name);
        memset(w->structure[place], 0, sizeof w->structure[place]);
        fill_structure(w, f, p->structure->name, w->structure[place]);
        v->p = w->structure[place];
        break;
    case K_WHOLE: v->i = whole_for(f, place); break;
    case K_NUMBER: v->f = 0.5; break;
    case K_ENUM: v->i = p->detail > 7 ? CN_F32 : 0; break;
    case K_DIMS:
        v->dims = strstr(f->name, "pad") ? CN_DIMS(1, 1) : strstr(p->name, "dim") ? CN_DIMS(0) : CN_DIMS(3, 3);
        break;
    case K_PARAMS: v->params = make_params(w); break;
    case K_SCOPE: v->scope = cn_scope_begin(w->cn); break;
    case K_FIELD: v->field = (cn_field){ CN_U8, CN_DIMS(3, 4, 4), 0 }; break;
    default: break;
    }
}

/* ---- nonsense ---- */

enum { VARIANTS = 8, BAD_COUNTS = 3 };

static bool tensor_is_stale(world *w, const function *f, const char *name, void **p)
{
    cn_scope s = cn_scope_begin(w->cn);
    *p = make_object(w, K_TENSOR, f, name);
    while (*p && strstr(f->name, "cn_") && cn_requires_grad(*p)) { /* parameters outlive scopes */
        cn_release(*p);
        break;
    }
    cn_scope_end(w->cn, s);
    return *p != NULL;
}

/* Writes variant i of the nonsense of an object. 0: there is none. */
static nonsense wrong_object(kind k, const function *f, const char *name, int i, void **p)
{
    world *w = &worlds[0];
    *p = NULL;
    if (i == 0) return NULLED;
    if (i == 1 && k == K_TENSOR) return tensor_is_stale(w, f, name, p) ? STALE : 0;
    if (i == 1 && k != K_CTX) {
        *p = make_object(w, k, f, name);
        free_object(k, *p);
        return *p ? FREED : 0;
    }
    if (i == 2) {
        *p = make_object(&worlds[1], k, f, name);
        return *p ? OTHER : 0;
    }
    return 0;
}

static nonsense wrong_value(kind k, int detail, int i, size_t bytes, bool counts, bool is_unsigned, value *v)
{
    static const int64_t wholes[] = { -1, INT_MIN, INT64_MIN, 0, INT_MAX, INT64_MAX, (int64_t)1 << 40 };
    static const double numbers[] = { -1, 0, 1e300, -1e300, 0, 0 };
    static const int64_t sizes[][3] = { { -5, 1, 1 },
                                        { 9, 1, 1 },
                                        { 1000, 1, 1 },
                                        { 2, -7, 3 },
                                        { 2, INT64_MAX, INT64_MAX },
                                        { 2, INT64_MIN, 1 },
                                        { 2, (int64_t)1 << 31, (int64_t)1 << 33 } };
    switch (k) {
    case K_WHOLE:
        if (i >= (counts ? 4 : 7)) return 0;
        if (counts && is_unsigned && i) return 0;
        v->i = counts && is_unsigned ? 0 : wholes[i];
        if (bytes == 4) v->i = v->i > INT_MAX ? INT_MAX : v->i < INT_MIN ? INT_MIN : v->i;
        return RANGE;
    case K_NUMBER:
        if (i >= 6) return 0;
        v->f = i == 4 ? (double)NAN : i == 5 ? (double)INFINITY : numbers[i];
        return RANGE;
    case K_ENUM:
        if (i >= 3) return 0;
        v->i = i == 0 ? -1 : i == 1 ? detail : INT_MAX;
        return RANGE;
    case K_DIMS:
        if (i >= 7) return 0;
        v->dims = (cn_dims){ (int)sizes[i][0], { sizes[i][1], sizes[i][2], 1, 1, 1, 1, 1, 1 } };
        return RANGE;
    default: return 0;
    }
}

/* A count of the caller's own memory cannot be checked: larger numbers than there is memory are not tried. */
static bool counts_memory(const function *f, int place)
{
    for (int k = 0; k < f->n; k++) {
        const kind other = f->parameters[k].kind;
        if (k != place && (other == K_LIST || other == K_ARRAY || other == K_OUT || other == K_TEXT)) return true;
    }
    return false;
}

static nonsense wrong_argument(const function *f, int place, int i, value *v)
{
    const parameter *p = &f->parameters[place];
    world *w = &worlds[0];
    if (p->kind <= K_READING) return wrong_object(p->kind, f, p->name, i, &v->p);
    switch (p->kind) {
    case K_LIST:
        if (i == 0) v->p = NULL;
        return i == 0 ? NULLED : wrong_object((kind)p->detail, f, p->name, i - 1, &w->list[place][1]);
    case K_PARAMS:
        if (i == 0) v->params.v = NULL;
        if (i == 1) v->params.n = -1;
        if (i < 2) return i == 0 ? NULLED : RANGE;
        w->list[place][0] = v->params.v[0];
        v->params = (cn_params){ (cn_tensor *const *)w->list[place], 2 };
        return wrong_object(K_TENSOR, f, p->name, i - 2, &w->list[place][1]);
    case K_OUT:
    case K_ARRAY:
    case K_TEXT:
    case K_STRUCT:
    case K_FILE: v->p = NULL; return i == 0 ? NULLED : 0;
    case K_FUNCTION: v->fn = NULL; return i == 0 ? NULLED : 0;
    case K_SCOPE: v->scope.mark = i == 0 ? SIZE_MAX : 0; return i < 2 ? RANGE : 0;
    case K_FIELD:
        if (i < 3)
            return wrong_value(K_ENUM, CN_DTYPES, i, 4, false, false, v) ? (v->field.dtype = (cn_dtype)v->i, RANGE) : 0;
        return wrong_value(K_DIMS, 0, i - 3, 0, false, false, v) ? RANGE : 0;
    default:
        return wrong_value(p->kind, p->detail, i, p->bytes, counts_memory(f, place), !strcmp(p->type, "size_t"), v);
    }
}

/* Nonsense in a field of a descriptor. */
static nonsense wrong_field(const function *f, int place, const field *field, int i)
{
    char *at = worlds[0].structure[place] + field->offset;
    value v = { 0 };
    if (field->kind <= K_READING) {
        if (i == 0) return 0; /* NULL is a default, or tried by the function's own checks */
        return wrong_object(field->kind, f, field->name, i, (void **)at);
    }
    nonsense n = wrong_value(field->kind, field->values, i, field->bytes, false, false, &v);
    if (!n) return 0;
    if (field->kind == K_NUMBER && field->bytes == 4) *(float *)at = (float)v.f;
    else if (field->kind == K_NUMBER) *(double *)at = v.f;
    else if (field->kind == K_DIMS) *(cn_dims *)at = v.dims;
    else memcpy(at, &v.i, field->bytes);
    return n;
}

/* ---- calls ---- */

static struct {
    int calls, errors, allowed, valid, fine;
    bool traced;
} count;

static bool failed_value(const function *f, const outcome *r)
{
    switch (f->result) {
    case R_POINTER:
    case R_OBJECT: return !r->p;
    case R_TRUTH: return !r->i;
    case R_COUNT: return r->i <= 0;
    case R_REAL: return isnan(r->f) || r->f == 0;
    default: return true;
    }
}

/* The message begins with the function's name. A macro that counts a list calls NAME_of. */
static bool names(const function *f, const char *message)
{
    const char *name = f->name + 3, *of = strstr(name, "_of");
    size_t n = strlen(name);
    if (!strncmp(message, name, n) && message[n] == ':') return true;
    if (n > 1 && name[n - 1] == '_' && !strncmp(message, name, n - 1) && message[n - 1] == ':') return true;
    return of && !of[3] && !strncmp(message, name, n - 3) && message[n - 3] == ':';
}

static bool has_context(const function *f, int without)
{
    for (int k = 0; k < f->n; k++) {
        const kind kd = f->parameters[k].kind;
        if (k != without && (kd <= K_READING || kd == K_LIST || kd == K_PARAMS)) return true;
    }
    return false;
}

/* The first argument that has a context: it stands for the call. */
static bool is_subject(const function *f, int place)
{
    for (int k = 0; k < place; k++)
        if (f->parameters[k].kind <= K_PARAMS && (f->parameters[k].kind <= K_LIST || f->parameters[k].kind == K_PARAMS))
            return false;
    return f->parameters[place].kind <= K_LIST || f->parameters[place].kind == K_PARAMS;
}

static bool must_fail(const function *f, kind k, nonsense what, int variant, int place)
{
    if (what == OTHER) return has_context(f, place);
    if (what == NULLED && is_subject(f, place)) return false; /* its context is not known */
    return what != RANGE || k == K_ENUM || (k == K_DIMS && variant < BAD_COUNTS);
}

static void expect(const function *f, const char *where, kind k, nonsense what, int variant, const outcome *r,
                   int place)
{
    static const char *const texts[] = {
        [NULLED] = "NULL", [STALE] = "stale", [FREED] = "freed", [OTHER] = "other context", [RANGE] = "out of range"
    };
    cn_ctx *cn = worlds[0].cn;
    char label[160];
    snprintf(label, sizeof label, "%s(%s: %s %d)", f->name, where, texts[what], variant);
    const bool failed = cn_failed(cn), allowed = is_allowed(f->name, where, what);
    count.errors += failed;
    if (allowed) {
        count.allowed++;
        return;
    }
    if (failed) {
        check(failed_value(f, r), "%s: an error stands (%s), but the result is not NULL, false or 0", label,
              cn_error(cn));
        check(names(f, cn_error(cn)) || strstr(cn_error(cn), "out of memory") || is_allowed(f->name, "error", what),
              "%s: the error must name the function: %s", label, cn_error(cn));
    }
    if (!must_fail(f, k, what, variant, place)) return;
    if (!has_context(f, what == NULLED ? place : -1)) {
        check(failed_value(f, r), "%s: no failure", label);
        return;
    }
    check(failed, "%s: no error", label);
    if (failed && (what == STALE || what == FREED))
        check(cn_error_code(cn) == CN_RELEASED, "%s: the error must be CN_RELEASED: %s", label, cn_error(cn));
}

/* What a caller would do with the result. */
static void use_result(const function *f, const outcome *r)
{
    DLManagedTensor *exported = !strcmp(f->name, "cn_to_dlpack") ? (DLManagedTensor *)r->p : NULL;
    if (exported) exported->deleter(exported);
    if (!r->p || f->result != R_OBJECT) return;
    if (!strcmp(f->name, "cn_open")) cn_close((cn_ctx *)r->p);
    if (f->object == K_TENSOR) cn_eval((cn_tensor *)r->p);
    if (f->object == K_MODULE && !strncmp(f->name, "cn_nn_", 6)) {
        cn_tensor *y = cn_forward((cn_module *)r->p, square(&worlds[0]));
        if (y) cn_eval(y);
    }
    if (f->object == K_LOADER) {
        cn_batch b;
        cn_loader_next((cn_loader *)r->p, &b);
    }
    if (f->object == K_SCHEDULE) cn_schedule_step((cn_schedule *)r->p);
    if (f->object == K_DATASET) {
        cn_loader *l = cn_loader_new((cn_dataset *)r->p, NULL);
        cn_batch b;
        if (l) cn_loader_next(l, &b);
    }
}

static bool computes(world *w)
{
    cn_error_clear(w->cn);
    while (w->cn && !cn_grad_enabled(w->cn)) cn_no_grad_end(w->cn);
    cn_scope s = cn_scope_begin(w->cn);
    cn_tensor *x = cn_arange(w->cn, CN_F32, 0, 6, 1);
    double sum = cn_item(cn_sum(cn_matmul(cn_reshape(x, CN_DIMS(2, 3)), cn_reshape(x, CN_DIMS(3, 2))), CN_ALL, false));
    cn_scope_end(w->cn, s);
    return sum == 10 + 13 + 28 + 40;
}

static void open_worlds(void)
{
    for (int i = 0; i < 2; i++) worlds[i].profile = NULL, worlds[i].optim = NULL;
    for (int i = 0; i < 2; i++)
        worlds[i].cn = cn_open(&(cn_desc){ .seed = 1, .threads = 1, .allocator = { resize, &worlds[i] } });
}

static void close_worlds(const function *f)
{
    for (int i = 0; i < 2; i++) {
        cn_close(worlds[i].cn);
        check(worlds[i].bytes == 0, "%s: %zu bytes are lost", f->name, worlds[i].bytes);
        worlds[i].bytes = 0;
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Functions that end the context, or that only kernels call, with what the library gave them. */
static bool is_left_out(const function *f) { return is_allowed(f->name, "", RANGE); }

/* One call: everything is valid except for one argument, or for one field of it. False: there is no such variant. */
static bool call_once(const function *f, int place, const field *field, int variant)
{
    world *w = &worlds[0];
    cn_scope s = cn_scope_begin(w->cn);
    value v[MOST];
    outcome r = { 0 };
    for (int k = 0; k < f->n; k++) make_valid(w, f, k, &v[k]);
    check(!cn_failed(w->cn), "%s: a valid argument: %s", f->name, cn_error(w->cn));
    cn_error_clear(w->cn);
    nonsense what = place < 0 ? (nonsense)0
                    : field   ? wrong_field(f, place, field, variant)
                              : wrong_argument(f, place, variant, &v[place]);
    if (place >= 0 && !what) {
        cn_scope_end(w->cn, s);
        return false;
    }
    const char *where = place < 0 ? "valid" : field ? field->name : f->parameters[place].name;
    if (count.traced) printf("%s %s %d\n", f->name, where, variant), fflush(stdout);
    if (!strcmp(f->name, "cn_profile_free") && v[0].p == w->profile) w->profile = NULL;
    f->call(v, &r);
    count.calls++;
    if (place < 0) {
        count.valid++;
        count.fine += !cn_failed(w->cn);
        if (count.traced && cn_failed(w->cn)) printf("    %s\n", cn_error(w->cn));
    } else {
        if (count.traced && cn_failed(w->cn)) printf("    %s\n", cn_error(w->cn));
        expect(f, where, field ? field->kind : f->parameters[place].kind, what, variant, &r, place);
    }
    cn_error_clear(w->cn);
    use_result(f, &r);
    cn_error_clear(w->cn);
    cn_scope_end(w->cn, s);
    for (int i = 0; i < 2; i++)
        check(computes(&worlds[i]), "%s(%s %d): the context does not compute: %s", f->name, where, variant,
              cn_error(worlds[i].cn));
    return true;
}

/* The other structs are records of operators and modules, which are code, or what the library fills in. */
static bool is_description(const structure *s)
{
    return strstr(s->name, "_desc") || strstr(s->name, "_masks") || !strcmp(s->name, "cn_training");
}

static void try_function(const function *f)
{
    if (is_left_out(f)) return;
    const double begin = now();
    check_group(f->name);
    open_worlds();
    call_once(f, -1, NULL, 0);
    for (int place = 0; place < f->n; place++) {
        for (int i = 0; i < VARIANTS; i++) call_once(f, place, NULL, i);
        if (f->parameters[place].kind != K_STRUCT || !is_description(f->parameters[place].structure)) continue;
        for (const field *field = f->parameters[place].structure->fields; field->name; field++)
            for (int i = 0; i < VARIANTS; i++) call_once(f, place, field, i);
    }
    close_worlds(f);
    const double seconds = now() - begin;
    check(seconds < 60, "%s: the calls took %.0f s", f->name, seconds);
}

/* Whether it neither crashed, nor hung, nor failed. */
static bool try_apart(const function *f)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        try_function(f);
        _exit(finish());
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) printf("%s: %s\n", f->name, strsignal(WTERMSIG(status)));
    return WIFEXITED(status) && !WEXITSTATUS(status);
}

/* What kernels and shape rules call gets its first argument from the library. NULL in its place does nothing. */
static void nothing_for_kernels(void)
{
    cn_spec operands[CN_MAX_IN];
    cn_parallel(NULL, 3, 1, NULL, NULL);
    cn_kernel_done(NULL, 0, 1, 0);
    cn_kernel_fault(NULL, 0, 1);
    cn_gpu_param(NULL, 1);
    cn_gpu_param_f32(NULL, 1);
    cn_gpu_params_clear(NULL);
    cn_gpu_scratch(NULL, 1);
    cn_case_args(NULL, NULL);
    check(cn_threads(NULL) == 1 && cn_gpu_params(NULL) == 0 && cn_case_operands(NULL, NULL, operands) == 0, "counts");
    check(!cn_gpu_run(NULL, NULL) && !cn_gpu_part(NULL, NULL, NULL, NULL) && !cn_gpu_join(NULL, "a", "b"), "launches");
    check(!cn_gpu_in_place(NULL) && !cn_infer_fail(NULL, CN_BAD_SHAPE, "no rule") && !cn_infer_map(NULL) &&
              !cn_infer_map_bool(NULL) && !cn_map_scratch(NULL, 8) && !cn_transform_map(NULL, NULL) &&
              !cn_room_take(NULL, CN_DIMS(2)),
          "rules and items");
}

int main(int argc, char **argv)
{
    const bool apart = argc > 1 && !strcmp(argv[1], "--fork");
    const char *only = argc > 1 + apart ? argv[1 + apart] : NULL;
    count.traced = only != NULL;
    if (!enter_scratch()) return finish();
    int tried = 0, bad = 0;
    for (int i = 0; i < FUNCTIONS; i++) {
        if (only && !strstr(functions[i].name, only)) continue;
        tried++;
        if (apart) bad += !try_apart(&functions[i]);
        else try_function(&functions[i]);
    }
    check(!bad, "%d functions", bad);
    nothing_for_kernels();
    check(only || apart || count.fine * 20 > count.valid * 17, "most calls without nonsense must succeed");
    printf("%d functions: %d calls, %d errors, %d allowed; %d of %d calls without nonsense succeed\n", tried,
           count.calls, count.errors, count.allowed, count.fine, count.valid);
    return finish();
}
