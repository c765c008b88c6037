/* cairn train gpt: trains a language model on texts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

typedef struct corpus {
    text text;
    cn_tokenizer *tokenizer;
    int32_t *train, *held_out;
    int64_t n_train, n_held_out;
    size_t bytes_held_out;
    double entropy; /* of single tokens, in nats */
    char hash[24];  /* of the text */
} corpus;

/* ---- text to tokens ---- */

static cn_tokenizer *new_tokenizer(cn_ctx *cn, const settings *s, const char *bytes, size_t n)
{
    const char *kind = text_of(s, "tokenizer");
    if (!strcmp(kind, "bytes")) return cn_tokenizer_bytes(cn);
    if (!strcmp(kind, "chars")) return cn_tokenizer_characters(cn, bytes, n, NULL);
    if (!strcmp(kind, "bpe")) return cn_bpe_train(cn, bytes, n, whole_of(s, "vocab"), NULL);
    return cn_tokenizer_load(cn, kind);
}

/* The tokenizer of a resumed run is beside its checkpoint. */
static cn_tokenizer *pick_tokenizer(const job *j, const corpus *c, size_t n)
{
    if (!j->resumed) return new_tokenizer(j->cn, j->s, c->text.bytes, n);
    char *folder = folder_of(text_of(j->s, "resume")), *path = join_path(folder, "tokenizer.json");
    cn_tokenizer *t = is_file(path) ? cn_tokenizer_load(j->cn, path) : new_tokenizer(j->cn, j->s, c->text.bytes, n);
    free(folder), free(path);
    return t;
}

static double entropy(const corpus *c, int64_t vocab)
{
    int64_t *count = need((size_t)vocab * sizeof *count);
    for (int64_t i = 0; i < c->n_train; i++) count[c->train[i]]++;
    for (int64_t i = 0; i < c->n_held_out; i++) count[c->held_out[i]]++;
    const double all = (double)(c->n_train + c->n_held_out);
    double h = 0;
    for (int64_t i = 0; i < vocab; i++)
        if (count[i]) h -= (double)count[i] / all * log((double)count[i] / all);
    free(count);
    return h;
}

static int check_length(const job *j, const char *which, int64_t tokens, const char *advice)
{
    const int64_t context = whole_of(j->s, "context");
    if (tokens > context) return DONE;
    return fail("the %s has %" PRId64 " tokens, but needs at least %" PRId64 ": use %s", which, tokens, context + 1,
                advice);
}

static int read_corpus(job *j, corpus *c)
{
    const int code = read_texts(j->s, &c->text);
    if (code != DONE) return code;
    size_t cut = (size_t)((double)c->text.n * (1 - number_of(j->s, "val")));
    while (cut < c->text.n && ((unsigned char)c->text.bytes[cut] & 0xc0) == 0x80) cut++; /* do not split a character */
    c->bytes_held_out = c->text.n - cut;
    c->tokenizer = pick_tokenizer(j, c, cut);
    if (!c->tokenizer || !encode_text(j->cn, c->tokenizer, c->text.bytes, cut, &c->train, &c->n_train) ||
        !encode_text(j->cn, c->tokenizer, c->text.bytes + cut, c->bytes_held_out, &c->held_out, &c->n_held_out))
        return fail_in(j->cn);
    c->entropy = entropy(c, cn_token_count(c->tokenizer));
    print_line(j,
               "text: %" PRId64 " files, %zu bytes, %" PRId64 " tokens of %" PRId64 " kinds; %" PRId64 " are held out",
               c->text.files, c->text.n, c->n_train + c->n_held_out, cn_token_count(c->tokenizer), c->n_held_out);
    if (check_length(j, "text", c->n_train, "more text, or a smaller --context") != DONE) return FAILED;
    return number_of(j->s, "val") > 0
               ? check_length(j, "held-out part", c->n_held_out, "a smaller --context, or --val 0")
               : DONE;
}

/* FNV-1a: detects that a resumed run has another text. */
static int check_text(const job *j, corpus *c)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < c->text.n; i++) h = (h ^ (unsigned char)c->text.bytes[i]) * 0x100000001b3u;
    snprintf(c->hash, sizeof c->hash, "%016" PRIx64, h);
    const char *then = j->resumed ? cn_dict_text(j->resumed, "text") : NULL;
    if (!then || !strcmp(then, c->hash)) return DONE;
    return fail("%s was trained on another text: the files of --data have changed", text_of(j->s, "resume"));
}

/* ---- loaders ---- */

/* Windows anywhere in the text. Their positions are drawn for 1,000 batches at a time. */
static cn_loader *train_loader(const job *j, const corpus *c)
{
    const int64_t batch = whole_of(j->s, "batch"), drawn = batch > 10000 ? 10 : 1000;
    const cn_tokens_desc windows = { .type = CN_TOKEN_I32, .context = whole_of(j->s, "context"), .stride = 1 };
    cn_dataset *d = cn_dataset_token_array(j->cn, c->train, c->n_train, &windows);
    cn_random_desc anywhere = { .replacement = true, .samples = batch * drawn };
    cn_data_sampler *order = cn_data_sampler_random(j->cn, cn_dataset_count(d), &anywhere);
    cn_loader_desc desc = { .batch = batch,
                            .sampler = order,
                            .workers = (int)whole_of(j->s, "workers"),
                            .seed = (uint64_t)whole_of(j->s, "seed") + 1 };
    return d && order ? cn_loader_new(d, &desc) : NULL;
}

/* At most --eval-windows windows, spread evenly. */
static cn_loader *held_out_loader(const job *j, const corpus *c)
{
    const cn_tokens_desc windows = { .type = CN_TOKEN_I32, .context = whole_of(j->s, "context") };
    cn_dataset *d = cn_dataset_token_array(j->cn, c->held_out, c->n_held_out, &windows);
    const int64_t all = d ? cn_dataset_count(d) : 0, most = whole_of(j->s, "eval-windows"), n = all < most ? all : most;
    int64_t *pick = need((size_t)(n + 1) * sizeof *pick);
    for (int64_t i = 0; i < n; i++) pick[i] = (int64_t)((double)i * (double)all / (double)n);
    if (d) d = cn_dataset_subset(d, pick, n);
    free(pick);
    return d ? cn_loader_new(d, &(cn_loader_desc){ .batch = whole_of(j->s, "batch") }) : NULL;
}

/* ---- callbacks of the loop ---- */

static bool measure(job *j, metric *m, int *n)
{
    const corpus *c = j->user;
    score s;
    if (!score_all(j->model, j->held_out, text_loss, &s)) return false;
    m[0] = (metric){ "loss", s.loss };
    m[1] = (metric){ "bits per byte", s.loss / log(2) * (double)c->n_held_out / (double)c->bytes_held_out };
    *n = 2;
    return true;
}

static void print_sample(const job *j, const char *title, const text *t)
{
    char *clean = clean_text(t->bytes, t->n);
    print_line(j, "%s:", title);
    for (char *at = clean; *at;) {
        const size_t n = strcspn(at, "\n");
        const bool more = at[n] == '\n';
        print_line(j, "    %.*s", (int)n, at);
        at += n + more;
    }
    free(clean);
}

static void draw_tokens(const job *j, cn_sampler *sampler, const cn_tokenizer *tokenizer, text *t)
{
    cn_decoder decoder = { .tokenizer = tokenizer };
    for (int64_t i = 0; i < whole_of(j->s, "tokens") && !interrupted(); i++) {
        char word[1024];
        const int64_t id = cn_sampler_next(sampler);
        if (id < 0) return;
        const int64_t got = cn_decode_next(&decoder, (int32_t)id, word, sizeof word);
        if (got <= 0 || got > (int64_t)sizeof word) continue;
        t->bytes = grow(t->bytes, t->n + (size_t)got);
        memcpy(t->bytes + t->n, word, (size_t)got);
        t->n += (size_t)got;
    }
}

static void sample(job *j, const char *title)
{
    if (!whole_of(j->s, "tokens")) return;
    const corpus *c = j->user;
    const char *prompt = text_of(j->s, "prompt");
    cn_sampler_desc desc = { .temperature = number_of(j->s, "temperature"),
                             .top_k = whole_of(j->s, "top-k"),
                             .seed = (uint64_t)whole_of(j->s, "seed") + 1 };
    int32_t *ids = NULL;
    int64_t n = 0;
    text t = { .bytes = copy_text(prompt), .n = strlen(prompt) };
    cn_sampler *sampler = cn_sampler_new(j->model, &desc);
    encode_text(j->cn, c->tokenizer, prompt, strlen(prompt), &ids, &n);
    if (cn_sampler_feed(sampler, n > 0 ? ids : c->train, n > 0 ? n : 1)) draw_tokens(j, sampler, c->tokenizer, &t);
    if (!interrupted()) print_sample(j, title, &t);
    cn_sampler_free(sampler);
    free(ids), free(t.bytes);
}

static bool describe(job *j, cn_dict *d)
{
    const corpus *c = j->user;
    const cn_gpt_desc *config = cn_gpt_config(j->model);
    char *path = join_path(j->out, "tokenizer.json");
    text json = { 0 };
    const bool ok = read_file(path, &json) == DONE && cn_dict_set_text(d, "tokenizer.json", json.bytes);
    free(path), free(json.bytes);
    return ok && cn_dict_set_whole(d, "heads", config->heads) && cn_dict_set_number(d, "dropout", config->dropout) &&
           cn_dict_set_text(d, "text", c->hash);
}

/* ---- the command ---- */

/* Compares the settings with the checkpoint before a model of that size is allocated. */
static int check_sizes(const job *j)
{
    if (!j->resumed) return DONE;
    const cn_tensor *wte = cn_dict_get(j->resumed, "wte.weight"), *wpe = cn_dict_get(j->resumed, "wpe.weight");
    const int64_t layers = whole_of(j->s, "layers"), width = whole_of(j->s, "width"),
                  context = whole_of(j->s, "context");
    char last[64], next[64];
    snprintf(last, sizeof last, "h.%" PRId64 ".ln_1.weight", layers - 1);
    snprintf(next, sizeof next, "h.%" PRId64 ".ln_1.weight", layers);
    const bool there = wte && wpe && cn_ndim(wte) == 2 && cn_ndim(wpe) == 2;
    if (there && cn_size(wte, 1) == width && cn_size(wpe, 0) == context && cn_dict_get(j->resumed, last) &&
        !cn_dict_get(j->resumed, next))
        return DONE;
    return fail("%s: the settings (layers %" PRId64 ", width %" PRId64 ", context %" PRId64
                ") do not fit the checkpoint",
                text_of(j->s, "resume"), layers, width, context);
}

static int make_parts(job *j, corpus *c)
{
    const settings *s = j->s;
    const cn_gpt_desc desc = { .vocab = cn_token_count(c->tokenizer),
                               .context = whole_of(s, "context"),
                               .layers = whole_of(s, "layers"),
                               .heads = whole_of(s, "heads"),
                               .width = whole_of(s, "width"),
                               .dropout = number_of(s, "dropout") };
    if (desc.width % desc.heads)
        return usage("--width must be a multiple of --heads, got %" PRId64 " and %" PRId64, desc.width, desc.heads);
    snprintf(j->name, sizeof j->name, "gpt-l%" PRId64 "-h%" PRId64 "-w%" PRId64 "-c%" PRId64, desc.layers, desc.heads,
             desc.width, desc.context);
    j->model = cn_nn_gpt(j->cn, &desc);
    j->train = j->model ? train_loader(j, c) : NULL;
    if (number_of(s, "val") > 0 && j->train) {
        j->held_out = held_out_loader(j, c);
        j->measure = measure;
    }
    if (!j->train || cn_failed(j->cn)) return fail_in(j->cn);
    j->steps = whole_of(s, "steps");
    j->amount = (double)(whole_of(s, "batch") * whole_of(s, "accumulate") * desc.context);
    j->unit = "tokens";
    j->eval_every = whole_of(s, "eval-every");
    j->sample_every = whole_of(s, "sample-every");
    j->baseline = c->entropy;
    j->baseline_label = "unigram entropy";
    j->loss = text_loss;
    j->sample = sample;
    j->describe = describe;
    j->next = "generate %s --prompt \"static \"";
    return DONE;
}

static int save_tokenizer(const job *j, const corpus *c)
{
    char *path = join_path(j->out, "tokenizer.json");
    const bool ok = cn_tokenizer_save(c->tokenizer, path);
    free(path);
    return ok ? DONE : fail_in(j->cn);
}

int train_gpt(settings *s)
{
    job j = { 0 };
    corpus c = { .text = { 0 } };
    j.user = &c;
    int code = begin_job(&j, s);
    if (code == DONE) code = check_sizes(&j);
    if (code == DONE) code = read_corpus(&j, &c);
    if (code == DONE) code = check_text(&j, &c);
    if (code == DONE) code = make_parts(&j, &c);
    if (code == DONE) code = open_folder(&j);
    if (code == DONE) code = save_tokenizer(&j, &c);
    if (code == DONE) code = run_job(&j);
    end_job(&j);
    free(c.text.bytes), free(c.train), free(c.held_out);
    return code;
}
