/* The sampler: it feeds tokens to a GPT, keeps their keys and values in caches, and draws the next token from the
   logits. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/handle.h"
#include "core/philox.h"
#include "gpt/gpt.h"
#include "nn/nn.h"

enum { FIRST_LENGTH = 64 }; /* of the caches, in tokens; it doubles as the text grows */

typedef struct choice {
    float logit;
    int32_t token;
} choice;

struct cn_sampler {
    cn__object object;
    cn_module *gpt;
    cn_sampler_desc desc;
    const cn_gpt_desc *config;
    cn__gpt_cache *cache; /* one for each layer */
    int64_t length;       /* of the caches now; 0: there are none */
    int32_t *history;     /* (context): the tokens in the caches */
    int64_t used;         /* their number */
    float *logits;        /* (vocab) */
    choice *choices;      /* (vocab) */
    bool ready;           /* logits are those of the next token */
    int32_t waiting;      /* a token that was drawn and is not in the caches yet; -1: none */
    uint64_t seed, stream, drawn;
};

/* ---- making and freeing ---- */

static void release_caches(cn_sampler *s)
{
    for (int64_t i = 0; s->cache && i < s->config->layers; i++) {
        cn__release(s->cache[i].keys), cn__release(s->cache[i].values);
        s->cache[i] = (cn__gpt_cache){ NULL, NULL };
    }
    s->length = 0;
}

static void destroy(void *self)
{
    cn_sampler *s = self;
    cn_ctx *ctx = s->object.ctx;
    release_caches(s);
    cn__free(ctx, s->cache, sizeof *s->cache * (size_t)s->config->layers);
    cn__free(ctx, s->history, sizeof *s->history * (size_t)s->config->context);
    cn__free(ctx, s->logits, sizeof *s->logits * (size_t)s->config->vocab);
    cn__free(ctx, s->choices, sizeof *s->choices * (size_t)s->config->vocab);
    cn__object_unuse(s->gpt);
}

static const cn__object_type sampler_type = { "sampler", destroy };

static bool valid(cn_ctx *ctx, const cn_sampler_desc *d)
{
    if (!(d->temperature >= 0) || isinf(d->temperature))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "sampler: temperature must be finite and ≥ 0, got %g", d->temperature);
    if (d->top_k < 0) return cn__fail(ctx, CN_BAD_ARGUMENT, "sampler: top_k must be ≥ 0, got %" PRId64, d->top_k);
    if (!(d->top_p >= 0 && d->top_p <= 1))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "sampler: top_p must be from 0 to 1, got %g", d->top_p);
    return true;
}

cn_sampler *cn_sampler_new(cn_module *gpt, const cn_sampler_desc *desc)
{
    CN__CALL call = cn__call_object(gpt, &cn__module_type);
    cn_ctx *ctx = call.ctx;
    if (!ctx) return NULL;
    const cn_gpt_desc *config = cn_gpt_config(gpt);
    const cn_sampler_desc none = { 0 };
    if (!config)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "sampler: the module must be a GPT, got a %s",
                        cn_module_type_of(gpt)->name),
               NULL;
    if (!valid(ctx, desc ? desc : &none)) return NULL;
    cn_sampler *s = cn__object_new(ctx, sizeof *s, &sampler_type);
    if (!s) return NULL;
    s->gpt = cn__object_use(gpt);
    s->config = config;
    s->desc = desc ? *desc : none;
    if (s->desc.temperature == 0) s->desc.temperature = 1;
    s->waiting = -1;
    s->seed = s->desc.seed ? s->desc.seed : ctx->seed;
    s->stream = s->desc.seed ? 0 : ctx->next_stream++;
    s->cache = cn__alloc(ctx, sizeof *s->cache * (size_t)config->layers);
    s->history = cn__alloc(ctx, sizeof *s->history * (size_t)config->context);
    s->logits = cn__alloc(ctx, sizeof *s->logits * (size_t)config->vocab);
    s->choices = cn__alloc(ctx, sizeof *s->choices * (size_t)config->vocab);
    if (s->cache && s->history && s->logits && s->choices) return s;
    cn__object_free(s);
    return NULL;
}

void cn_sampler_free(cn_sampler *s) { cn__free_by_program(s, &sampler_type, __func__); }
int64_t cn_sampler_used(const cn_sampler *s) { return cn__is(s, &sampler_type) ? s->used + (s->waiting >= 0) : 0; }
void cn_sampler_reset(cn_sampler *s)
{
    CN__CALL call = cn__call_object(s, &sampler_type);
    if (!call.ctx) return;
    s->used = 0;
    s->waiting = -1;
    s->ready = false;
}

/* ---- caches ---- */

/* A longer cache that begins with the contents of the old one. */
static cn_tensor *grown(cn_sampler *s, cn_tensor *old, int64_t length)
{
    const int64_t heads = s->config->heads, width = s->config->width / heads;
    cn_tensor *new = cn_zeros(s->object.ctx, cn_type(cn_parameters(s->gpt).v[0]), CN_DIMS(1, length, heads, width));
    if (old) new = cn_slice_assign(new, 1, 0, cn_size(old, 1), 1, old);
    cn__keep(new);
    if (!new || !cn_eval(new)) return cn__release(new), NULL;
    cn__release(old);
    return new;
}

static bool make_room(cn_sampler *s, int64_t tokens)
{
    int64_t length = s->length ? s->length : FIRST_LENGTH;
    while (length < tokens) length *= 2;
    if (length > s->config->context) length = s->config->context;
    if (length == s->length) return true;
    for (int64_t i = 0; i < s->config->layers; i++) {
        cn_tensor **both[2] = { &s->cache[i].keys, &s->cache[i].values };
        for (int k = 0; k < 2; k++) {
            if (*both[k] && cn_size(*both[k], 1) == length) continue; /* an earlier call failed after this one */
            cn_tensor *new = grown(s, *both[k], length);
            if (!new) return false;
            *both[k] = new;
        }
    }
    s->length = length;
    return true;
}

/* ---- feeding tokens ---- */

/* Feeds tokens that fit into the context, as one plan. last: reads the logits that follow them. */
static bool feed_piece(cn_sampler *s, const int32_t *tokens, int64_t n, bool last)
{
    cn_ctx *ctx = s->object.ctx;
    if (!make_room(s, s->used + n)) return false;
    cn_scope scope = cn_scope_begin(ctx);
    cn_no_grad_begin(ctx);
    cn_tensor *logits = cn__gpt_step(s->gpt, cn_from(ctx, CN_I32, CN_DIMS(1, n), tokens), s->cache, s->used);
    logits = logits && cn_type(logits) != CN_F32 ? cn_cast(logits, CN_F32) : logits;
    bool ok = logits && (last ? cn_read(logits, s->logits, sizeof(float) * (size_t)s->config->vocab) : cn_eval(logits));
    cn_no_grad_end(ctx);
    cn_scope_end(ctx, scope);
    if (!ok) return false;
    for (int64_t i = 0; i < n; i++) s->history[s->used + i] = tokens[i];
    s->used += n;
    s->ready = last;
    return true;
}

/* Feeds tokens that fit into the context, in pieces of a few sizes: each size finds its plan in the cache of plans. */
static bool feed_pieces(cn_sampler *s, const int32_t *tokens, int64_t n)
{
    static const int64_t sizes[] = { 64, 16, 4, 1 };
    while (n > 0) {
        int k = 0;
        while (sizes[k] > n) k++;
        if (!feed_piece(s, tokens, sizes[k], sizes[k] == n)) return false;
        tokens += sizes[k];
        n -= sizes[k];
    }
    return true;
}

/* Empties a full context and feeds its last half again, since the positions of these tokens change. */
static bool slide(cn_sampler *s)
{
    const int64_t half = s->config->context / 2, from = s->used - half;
    if (half == 0) return s->used = 0, true;
    const size_t bytes = sizeof(int32_t) * (size_t)half;
    int32_t *rest = cn__alloc(s->object.ctx, bytes);
    if (!rest) return false;
    for (int64_t i = 0; i < half; i++) rest[i] = s->history[from + i];
    s->used = 0;
    bool ok = feed_pieces(s, rest, half);
    cn__free(s->object.ctx, rest, bytes);
    return ok;
}

static bool feed(cn_sampler *s, const int32_t *tokens, int64_t n)
{
    while (n > 0) {
        if (s->used == s->config->context && !slide(s)) return false;
        int64_t room = s->config->context - s->used, piece = n < room ? n : room;
        if (!feed_pieces(s, tokens, piece)) return false;
        tokens += piece;
        n -= piece;
    }
    return true;
}

/* The token drawn last is fed only when another token is to follow it. */
static bool feed_waiting(cn_sampler *s)
{
    if (s->waiting < 0) return true;
    if (!feed(s, &s->waiting, 1)) return false;
    s->waiting = -1;
    return true;
}

/* Begins a call of a sampler whose model still lives. */
static cn__call enter(cn_sampler *s, const char *who)
{
    cn__call call = cn__enter_object(s, &sampler_type, who, false);
    if (!call.ctx || (cn__object_fits(s->gpt, &cn__module_type, who) && !cn_failed(call.ctx))) return call;
    cn__leave(&call);
    return (cn__call){ NULL, false };
}

bool cn_sampler_feed(cn_sampler *s, const int32_t *tokens, int64_t n)
{
    CN__CALL call = enter(s, __func__);
    if (!call.ctx) return false;
    if (n < 0 || (n && !tokens))
        return cn__fail(call.ctx, CN_BAD_ARGUMENT, "sampler: n must be ≥ 0, and 0 if tokens is NULL, got %" PRId64, n);
    for (int64_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= s->config->vocab)
            return cn__fail(s->object.ctx, CN_BAD_ARGUMENT,
                            "sampler: a token must be ≥ 0 and < vocab (%" PRId64 "), got %d", s->config->vocab,
                            tokens[i]);
    return feed_waiting(s) && feed(s, tokens, n);
}

const float *cn_sampler_logits(cn_sampler *s)
{
    CN__CALL call = enter(s, __func__);
    return call.ctx && feed_waiting(s) && s->ready ? s->logits : NULL;
}

/* ---- drawing tokens ---- */

/* For qsort: the larger logit first; of equal logits the smaller token. */
static int more_likely(const void *a, const void *b)
{
    const choice *x = a, *y = b;
    if (x->logit != y->logit) return x->logit < y->logit ? 1 : -1;
    return (x->token > y->token) - (x->token < y->token);
}

/* Moves the k most likely choices to the front, in any order (quickselect). */
static void select_best(choice *c, int64_t n, int64_t k)
{
    int64_t low = 0, high = n - 1;
    while (low < high) {
        const choice pivot = c[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (more_likely(&c[i], &pivot) < 0) i++;
            while (more_likely(&c[j], &pivot) > 0) j--;
            if (i > j) break;
            const choice swap = c[i];
            c[i++] = c[j], c[j--] = swap;
        }
        if (k <= j + 1) high = j;
        else if (k > i) low = i;
        else return;
    }
}

/* The probability of a choice, up to a factor that all choices share. */
static double chance(const cn_sampler *s, const choice *c, double best)
{
    return exp((c->logit - best) / s->desc.temperature);
}

/* How many of the n choices, most likely first, together reach the probability top_p. */
static int64_t within(const cn_sampler *s, int64_t n, double best, double all)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        if ((sum += chance(s, &s->choices[i], best)) >= s->desc.top_p * all) return i + 1;
    return n;
}

static double total(const cn_sampler *s, int64_t n, double best)
{
    double all = 0;
    for (int64_t i = 0; i < n; i++) all += chance(s, &s->choices[i], best);
    return all;
}

static int32_t draw(cn_sampler *s)
{
    const cn_sampler_desc *d = &s->desc;
    choice *c = s->choices;
    int64_t n = 0;
    double best = -INFINITY;
    for (int64_t i = 0; i < s->config->vocab; i++) {
        if (isnan(s->logits[i])) continue;
        c[n++] = (choice){ s->logits[i], (int32_t)i };
        best = fmax(best, s->logits[i]);
    }
    if (n == 0 || isinf(best)) return -1;
    const int64_t k = d->greedy ? 1 : d->top_k && d->top_k < n ? d->top_k : n;
    if (k < n) select_best(c, n, k);
    n = k;
    double all = total(s, n, best);
    if (d->top_p > 0 && d->top_p < 1) {
        qsort(c, (size_t)n, sizeof *c, more_likely);
        n = within(s, n, best, all);
        all = total(s, n, best);
    }
    const double at = all * (cn__random_u32(s->seed, s->stream, s->drawn++) + 0.5) * 0x1p-32;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        if ((sum += chance(s, &c[i], best)) >= at) return c[i].token;
    return c[n - 1].token;
}

int64_t cn_sampler_next(cn_sampler *s)
{
    CN__CALL call = enter(s, __func__);
    if (!call.ctx || !feed_waiting(s)) return -1;
    if (!s->ready)
        return cn__fail(s->object.ctx, CN_BAD_ARGUMENT, "sampler: feed at least one token before the first draw"), -1;
    s->waiting = draw(s);
    if (s->waiting < 0)
        return cn__fail(s->object.ctx, CN_BAD_ARGUMENT, "sampler: the largest logit must be finite"), -1;
    return s->waiting;
}
