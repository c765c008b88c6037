/* The room "write": a GPT that learns a text and writes. Its files are those of `cairn train gpt`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "room.h"

static cn_tensor *next_loss(room *r)
{
    cn_batch b;
    return room_next_batch(r, r->train, &b) ? cn_gpt_loss(r->net, b.x, b.y) : NULL;
}

static bool describe(room *r, cn_dict *d)
{
    static const char path[] = "/tokenizer.json";
    const cn_gpt_desc *config = cn_gpt_config(r->net);
    FILE *f = cn_tokenizer_save(r->tokenizer, path) ? fopen(path, "rb") : NULL;
    if (!f) return false;
    fseek(f, 0, SEEK_END);
    const long n = ftell(f);
    rewind(f);
    char *json = calloc(1, (size_t)n + 1);
    bool ok = json && fread(json, 1, (size_t)n, f) == (size_t)n;
    fclose(f);
    remove(path);
    ok = ok && cn_dict_set_text(d, "model", "gpt") && cn_dict_set_whole(d, "heads", config->heads) &&
         cn_dict_set_number(d, "dropout", config->dropout) && cn_dict_set_text(d, "tokenizer.json", json);
    free(json);
    return ok;
}

static bool encode(room *r, const char *text, int bytes)
{
    r->n_tokens = cn_encode(r->tokenizer, text, (size_t)bytes, NULL, 0);
    r->tokens = r->n_tokens > 0 ? malloc((size_t)r->n_tokens * sizeof *r->tokens) : NULL;
    return r->tokens && cn_encode(r->tokenizer, text, (size_t)bytes, r->tokens, r->n_tokens) == r->n_tokens;
}

/* Windows anywhere in the first nine tenths of the text; the last tenth is held out, if it is long enough. */
static bool make_loaders(room *r, int64_t context, int batch)
{
    const int64_t tenth = r->n_tokens / 10, held = tenth > context ? tenth : 0, n = r->n_tokens - held;
    if (n <= context) return room_fail(r, "The text is too short for this model.");
    const cn_tokens_desc windows = { .type = CN_TOKEN_I32, .context = context, .stride = 1 };
    const cn_random_desc anywhere = { .replacement = true, .samples = (int64_t)batch * 1000 };
    cn_dataset *d = cn_dataset_token_array(r->cn, r->tokens, n, &windows);
    cn_data_sampler *order = d ? cn_data_sampler_random(r->cn, cn_dataset_count(d), &anywhere) : NULL;
    r->train = order ? cn_loader_new(d, &(cn_loader_desc){ .batch = batch, .sampler = order }) : NULL;
    if (!held) return r->train;
    d = cn_dataset_token_array(r->cn, r->tokens + n, held,
                               &(cn_tokens_desc){ .type = CN_TOKEN_I32, .context = context });
    r->held_out = d ? cn_loader_new(d, &(cn_loader_desc){ .batch = batch }) : NULL;
    return r->train && r->held_out;
}

static bool start(room *r)
{
    r->loss = next_loss;
    r->describe = describe;
    r->warm = 20;
    r->settle = 800;
    return room_begin(r, 0.01);
}

bool room_write_new(room *r, const char *text, int bytes, int vocab, int layers, int heads, int width, int context,
                    int batch)
{
    r->tokenizer = vocab ? cn_bpe_train(r->cn, text, (size_t)bytes, vocab, NULL)
                         : cn_tokenizer_characters(r->cn, text, (size_t)bytes, NULL);
    if (!r->tokenizer) return false;
    if (!encode(r, text, bytes) || r->n_tokens < 32)
        return room_fail(r, "The text is too short: a few sentences are needed at least.");
    cn_gpt_desc desc = { .vocab = cn_token_count(r->tokenizer), .layers = layers, .heads = heads, .width = width };
    desc.context = context < r->n_tokens / 3 ? context : r->n_tokens / 3;
    r->net = cn_nn_gpt(r->cn, &desc);
    return r->net && make_loaders(r, desc.context, batch) && start(r);
}

/* The tokenizer of the file itself, or of a tokenizer.json beside it (may be ""). */
static cn_tokenizer *tokenizer_of(room *r, const cn_dict *file, const char *beside)
{
    const char *own = cn_dict_text(file, "tokenizer.json");
    if (own) return cn_tokenizer_parse(r->cn, own, strlen(own));
    if (*beside) return cn_tokenizer_load(r->cn, beside);
    room_fail(r, "The file has no tokenizer. Choose its tokenizer.json together with it.");
    return NULL;
}

bool room_write_load(room *r, const char *path, const char *tokenizer, const char *text, int bytes, int batch)
{
    cn_dict *file = cn_load(r->cn, path);
    if (!file) return false;
    r->tokenizer = tokenizer_of(r, file, tokenizer);
    r->net = r->tokenizer ? cn_gpt_from(r->cn, file, NULL) : NULL;
    bool ok = r->net && encode(r, text, bytes);
    if (ok && cn_token_count(r->tokenizer) > cn_gpt_config(r->net)->vocab)
        ok = room_fail(r, "The tokenizer has more tokens than the model.");
    ok = ok && make_loaders(r, cn_gpt_config(r->net)->context, batch) && start(r);
    int64_t step = 0;
    if (ok && cn_dict_whole(file, "step", &step)) ok = room_resume(r, file);
    cn_dict_free(file);
    return ok;
}

double room_write_held_out(room *r)
{
    double sum = 0;
    int64_t n = 0;
    cn_batch b;
    if (!r->held_out) return NAN;
    cn_no_grad_begin(r->cn);
    cn_module_train(r->net, false);
    cn_loader_reset(r->held_out, 0);
    for (int i = 0; i < 4; i++) {
        cn_scope s = cn_scope_begin(r->cn);
        if (cn_loader_next(r->held_out, &b)) sum += (double)b.n * cn_item(cn_gpt_loss(r->net, b.x, b.y)), n += b.n;
        cn_scope_end(r->cn, s);
    }
    cn_module_train(r->net, true);
    cn_no_grad_end(r->cn);
    return n && !cn_failed(r->cn) ? sum / (double)n : NAN;
}

/* ---- writing ---- */

/* The prompt's tokens, or the first of the text. */
static bool feed(room *r, cn_sampler *s, const char *prompt, int bytes)
{
    const int64_t n = cn_encode(r->tokenizer, prompt, (size_t)bytes, NULL, 0);
    int32_t *ids = malloc((size_t)(n > 0 ? n : 1) * sizeof *ids);
    bool ok = ids && n >= 0 && cn_encode(r->tokenizer, prompt, (size_t)bytes, ids, n) == n;
    ok = ok && cn_sampler_feed(s, n ? ids : r->tokens, n ? n : 1);
    free(ids);
    return ok;
}

bool room_write_begin(room *r, const char *prompt, int bytes, double temperature, double seed)
{
    const cn_sampler_desc desc = {
        .temperature = temperature, .greedy = temperature <= 0, .top_k = 40, .seed = (uint64_t)seed
    };
    cn_sampler_free(r->sampler);
    r->decoder = (cn_decoder){ .tokenizer = r->tokenizer };
    r->sampler = cn_sampler_new(r->net, &desc);
    return r->sampler && feed(r, r->sampler, prompt, bytes);
}

const char *room_write_next(room *r)
{
    const int64_t id = cn_sampler_next(r->sampler);
    if (id < 0) return NULL;
    r->word[0] = 0;
    const bool unknown = id == 0 && cn_tokenizer_kind_of(r->tokenizer) == CN_TOKENS_CHARACTERS;
    if (unknown || id >= cn_token_count(r->tokenizer)) return r->word; /* these have no text */
    const int64_t n = cn_decode_next(&r->decoder, (int32_t)id, r->word, sizeof r->word - 1);
    r->word[n > 0 && n < (int64_t)sizeof r->word ? n : 0] = 0;
    return r->word;
}

/* The probabilities of what comes after the prompt; returns how many there are, 0 after an error. */
int room_write_expect(room *r, const char *prompt, int bytes, float *probabilities, int room_for)
{
    cn_sampler *s = cn_sampler_new(r->net, &(cn_sampler_desc){ .greedy = true });
    const float *logits = s && feed(r, s, prompt, bytes) ? cn_sampler_logits(s) : NULL;
    const int64_t vocab = cn_gpt_config(r->net)->vocab;
    const int n = logits && vocab <= room_for ? (int)vocab : 0;
    float most = -INFINITY;
    double sum = 0;
    for (int i = 0; i < n; i++) most = logits[i] > most ? logits[i] : most;
    for (int i = 0; i < n; i++) sum += exp((double)(logits[i] - most));
    for (int i = 0; i < n; i++) probabilities[i] = (float)(exp((double)(logits[i] - most)) / sum);
    cn_sampler_free(s);
    return n;
}

const char *room_write_token(room *r, int id)
{
    const char *text = cn_token_text(r->tokenizer, id, NULL);
    return text ? text : "";
}
