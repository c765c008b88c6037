/* Trains BPE: the most frequent pair of neighbouring tokens becomes a token, until there are enough.

   The text is split into pieces; equal pieces are stored once, with a count. A pair knows how often it occurs and in
   which pieces. A merge visits only those pieces, and updates the counts of the pairs beside each occurrence. The heap
   holds pairs with counts that may be out of date: a count that is too large is corrected when it is popped. */
#include "core/errors.h"
#include "text/alphabet.h"
#include "text/split.h"
#include "text/tokenizer.h"

typedef struct piece {
    size_t start;   /* where it begins in the text */
    size_t symbols; /* where its symbols begin */
    uint32_t bytes; /* its length */
    uint32_t n;     /* its symbols: fewer with every merge */
    int64_t count;
} piece;

typedef struct pair {
    int32_t left, right;
    int64_t count;
    uint32_t places; /* its last place + 1; 0: none */
    uint32_t fresh;  /* number of the last merge that added occurrences */
} pair;

/* A piece in which a pair occurs; the places of a pair form a list. */
typedef struct place {
    uint32_t piece, before; /* before: like pair.places */
} place;

typedef struct candidate {
    int64_t count;
    int32_t left, right;
    uint32_t pair;
} candidate;

typedef struct trainer {
    cn_ctx *ctx;
    cn_tokenizer *t;
    const char *text;            /* the training text; with add_prefix_space a copy */
    cn__vec copy;                /* of char: that copy */
    cn__vec pieces, piece_slots; /* of piece; of uint32_t: hash table, number + 1, open addressing */
    cn__vec symbols;             /* of int32_t */
    cn__vec pairs, pair_slots;   /* of pair; of uint32_t: the same */
    cn__vec places;              /* of place */
    cn__vec heap;                /* of candidate */
    cn__vec fresh;               /* of uint32_t: pairs with new occurrences in the present merge */
    uint32_t merge;              /* number of the present merge + 1 */
} trainer;

static bool reserve(trainer *r, cn__vec *v, size_t n, size_t element)
{
    return cn__vec_reserve(&r->ctx->memory, v, n, element) || cn__no_memory(r->ctx, "bpe_train");
}

/* A hash table for n entries, at most half full. *grown: it is empty, and the caller fills it. */
static bool reserve_slots(trainer *r, cn__vec *slots, size_t n, bool *grown)
{
    size_t wanted = slots->n ? slots->n : 1024;
    while (wanted < 2 * n) wanted *= 2;
    *grown = wanted != slots->n;
    if (!*grown) return true;
    if (n > UINT32_MAX / 4)
        return cn__fail(r->ctx, CN_UNSUPPORTED, "bpe_train: more than 2^30 different pieces or pairs");
    if (!reserve(r, slots, wanted, sizeof(uint32_t))) return false;
    slots->n = wanted;
    memset(slots->v, 0, wanted * sizeof(uint32_t));
    return true;
}

/* ---- pieces ---- */

static uint32_t *piece_slot(const trainer *r, const piece *w)
{
    uint32_t *slots = r->piece_slots.v;
    for (size_t i = cn__hash(&r->ctx->hash_key, r->text + w->start, w->bytes);; i++) {
        uint32_t *s = &slots[i & (r->piece_slots.n - 1)];
        if (*s == 0) return s;
        const piece *o = (const piece *)r->pieces.v + (*s - 1);
        if (o->bytes == w->bytes && memcmp(r->text + o->start, r->text + w->start, w->bytes) == 0) return s;
    }
}

static bool count_piece(trainer *r, size_t start, size_t bytes)
{
    if (bytes > UINT32_MAX / 2)
        return cn__fail(r->ctx, CN_UNSUPPORTED, "bpe_train: a piece must have at most 2^31 - 1 bytes, got %zu", bytes);
    bool grown;
    if (!reserve_slots(r, &r->piece_slots, r->pieces.n + 1, &grown)) return false;
    piece w = { .start = start, .bytes = (uint32_t)bytes, .count = 1 }, *pieces = r->pieces.v;
    for (size_t i = 0; grown && i < r->pieces.n; i++) *piece_slot(r, &pieces[i]) = (uint32_t)i + 1;
    uint32_t *slot = piece_slot(r, &w);
    if (*slot) {
        pieces[*slot - 1].count++;
        return true;
    }
    if (!reserve(r, &r->pieces, r->pieces.n + 1, sizeof(piece))) return false;
    ((piece *)r->pieces.v)[r->pieces.n++] = w;
    *slot = (uint32_t)r->pieces.n;
    return true;
}

/* Counts the pieces of the text between two special tokens. */
static bool count_part(trainer *r, const char *part, size_t n)
{
    if (n == 0) return true;
    size_t at = (size_t)(part - r->text);
    if (r->t->add_prefix_space) {
        char *copy = r->copy.v;
        at = r->copy.n;
        if (*part != ' ') copy[r->copy.n++] = ' ';
        memcpy(copy + r->copy.n, part, n);
        r->copy.n += n;
        n = r->copy.n - at;
    }
    for (size_t end = at + n, bytes; at < end; at += bytes) {
        bytes = r->t->split ? cn__split_next(r->text + at, end - at) : end - at;
        if (!count_piece(r, at, bytes)) return false;
    }
    return true;
}

static bool count_pieces(trainer *r, const char *text, size_t n)
{
    r->text = text;
    if (r->t->add_prefix_space) {
        /* Each part after the first one follows a special token, which is not copied: its space fits there. */
        if (!reserve(r, &r->copy, n + 1, 1)) return false;
        r->text = r->copy.v;
    }
    for (size_t at = 0;;) {
        cn__match m = cn__next_added(r->t, text, n, at, false);
        if (!count_part(r, text + at, m.from - at)) return false;
        if (m.id < 0) return true;
        at = m.to;
    }
}

/* ---- pairs ---- */

static uint32_t *pair_slot(const trainer *r, int32_t left, int32_t right)
{
    uint32_t *slots = r->pair_slots.v;
    for (size_t i = cn__pair_hash(&r->ctx->hash_key, left, right);; i++) {
        uint32_t *s = &slots[i & (r->pair_slots.n - 1)];
        if (*s == 0) return s;
        const pair *p = (const pair *)r->pairs.v + (*s - 1);
        if (p->left == left && p->right == right) return s;
    }
}

static pair *find_pair(trainer *r, int32_t left, int32_t right)
{
    bool grown;
    if (!reserve_slots(r, &r->pair_slots, r->pairs.n + 1, &grown)) return NULL;
    pair *pairs = r->pairs.v;
    for (size_t i = 0; grown && i < r->pairs.n; i++) *pair_slot(r, pairs[i].left, pairs[i].right) = (uint32_t)i + 1;
    uint32_t *slot = pair_slot(r, left, right);
    if (*slot) return &pairs[*slot - 1];
    if (!reserve(r, &r->pairs, r->pairs.n + 1, sizeof(pair))) return NULL;
    pair *p = (pair *)r->pairs.v + r->pairs.n++;
    *p = (pair){ .left = left, .right = right };
    *slot = (uint32_t)r->pairs.n;
    return p;
}

/* Counts one more occurrence of the pair in the piece. */
static bool add_occurrence(trainer *r, int32_t left, int32_t right, uint32_t in)
{
    pair *p = find_pair(r, left, right);
    if (!p) return false;
    p->count += ((piece *)r->pieces.v)[in].count;
    if (p->fresh != r->merge) {
        if (!reserve(r, &r->fresh, r->fresh.n + 1, sizeof(uint32_t))) return false;
        ((uint32_t *)r->fresh.v)[r->fresh.n++] = (uint32_t)(p - (pair *)r->pairs.v);
        p->fresh = r->merge;
    }
    place *places = r->places.v;
    if (p->places && places[p->places - 1].piece == in) return true;
    if (r->places.n >= UINT32_MAX)
        return cn__fail(r->ctx, CN_UNSUPPORTED, "bpe_train: the text is too long: more than 2^32 places");
    if (!reserve(r, &r->places, r->places.n + 1, sizeof(place))) return false;
    ((place *)r->places.v)[r->places.n] = (place){ in, p->places };
    p->places = (uint32_t)++r->places.n;
    return true;
}

/* Counts one occurrence less. The place stays; a later merge finds no occurrence there. */
static void remove_occurrence(trainer *r, int32_t left, int32_t right, uint32_t in)
{
    pair *p = (pair *)r->pairs.v + (*pair_slot(r, left, right) - 1);
    p->count -= ((piece *)r->pieces.v)[in].count;
}

static bool count_pairs(trainer *r)
{
    piece *pieces = r->pieces.v;
    size_t total = 0, n = pieces ? r->pieces.n : 0;
    for (size_t i = 0; i < n; i++) total += pieces[i].bytes;
    if (!reserve(r, &r->symbols, total, sizeof(int32_t))) return false;
    int32_t *symbols = r->symbols.v;
    for (size_t i = 0; i < n; i++) {
        piece *w = &pieces[i];
        w->symbols = r->symbols.n;
        w->n = w->bytes;
        int32_t *s = symbols + w->symbols;
        for (uint32_t k = 0; k < w->n; k++) s[k] = r->t->byte_id[(unsigned char)r->text[w->start + k]];
        r->symbols.n += w->n;
        for (uint32_t k = 0; k + 1 < w->n; k++)
            if (!add_occurrence(r, s[k], s[k + 1], (uint32_t)i)) return false;
    }
    return true;
}

/* ---- the most frequent pair ---- */

/* The more frequent pair; if both are equally frequent, the pair with the smaller numbers. */
static bool goes_before(const candidate *a, const candidate *b)
{
    if (a->count != b->count) return a->count > b->count;
    return a->left != b->left ? a->left < b->left : a->right < b->right;
}

static void heap_push(cn__vec *heap, candidate c)
{
    candidate *h = heap->v;
    size_t i = heap->n++;
    for (; i > 0 && goes_before(&c, &h[(i - 1) / 2]); i = (i - 1) / 2) h[i] = h[(i - 1) / 2];
    h[i] = c;
}

static candidate heap_pop(cn__vec *heap)
{
    candidate *h = heap->v, top = h[0], last = h[--heap->n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < heap->n; i = child) {
        if (child + 1 < heap->n && goes_before(&h[child + 1], &h[child])) child++;
        if (!goes_before(&h[child], &last)) break;
        h[i] = h[child];
    }
    h[i] = last;
    return top;
}

static bool push_fresh(trainer *r)
{
    if (!reserve(r, &r->heap, r->heap.n + r->fresh.n, sizeof(candidate))) return false;
    const uint32_t *fresh = r->fresh.v;
    for (size_t i = 0; i < r->fresh.n; i++) {
        const pair *p = (const pair *)r->pairs.v + fresh[i];
        if (p->count > 0) heap_push(&r->heap, (candidate){ p->count, p->left, p->right, fresh[i] });
    }
    r->fresh.n = 0;
    return true;
}

/* False: no pair is frequent enough. */
static bool next_pair(trainer *r, int64_t min_frequency, uint32_t *best)
{
    while (r->heap.n > 0) {
        candidate c = heap_pop(&r->heap);
        int64_t count = ((pair *)r->pairs.v)[c.pair].count;
        if (count == c.count) {
            *best = c.pair;
            return count >= min_frequency;
        }
        c.count = count;
        if (count > 0) heap_push(&r->heap, c);
    }
    return false;
}

/* ---- merging ---- */

/* Replaces `left right` by `made` in a piece, from left to right. */
static bool merge_in_piece(trainer *r, uint32_t in, int32_t left, int32_t right, int32_t made)
{
    piece *w = (piece *)r->pieces.v + in;
    int32_t *s = (int32_t *)r->symbols.v + w->symbols;
    uint32_t to = 0;
    for (uint32_t from = 0; from < w->n; from++, to++) {
        if (from + 1 == w->n || s[from] != left || s[from + 1] != right) {
            s[to] = s[from];
            continue;
        }
        remove_occurrence(r, left, right, in);
        if (to > 0) {
            remove_occurrence(r, s[to - 1], left, in);
            if (!add_occurrence(r, s[to - 1], made, in)) return false;
        }
        if (from + 2 < w->n) {
            remove_occurrence(r, right, s[from + 2], in);
            if (!add_occurrence(r, made, s[from + 2], in)) return false;
        }
        s[to] = made;
        from++;
    }
    w->n = to;
    return true;
}

/* The token for two joined tokens. An earlier merge may have created it. */
static int32_t join_tokens(trainer *r, int32_t left, int32_t right)
{
    cn_tokenizer *t = r->t;
    const cn__token *a = cn__token_at(t, left), *b = cn__token_at(t, right);
    size_t n = (size_t)a->n + b->n;
    char *text = cn__alloc(r->ctx, n);
    if (!text) return -1;
    memcpy(text, cn__token_bytes(t, a), a->n);
    memcpy(text + a->n, cn__token_bytes(t, b), b->n);
    int32_t made = cn__token_find(t, text, n, false);
    if (made < 0) {
        made = (int32_t)t->tokens.n;
        if (!cn__token_insert(t, made, text, n, CN__TOKEN_IN_MODEL)) made = -1;
    }
    cn__free(r->ctx, text, n);
    return made >= 0 && cn__merge_insert(t, left, right, made) ? made : -1;
}

static bool merge_pair(trainer *r, uint32_t best)
{
    pair p = ((pair *)r->pairs.v)[best];
    int32_t made = join_tokens(r, p.left, p.right);
    if (made < 0) return false;
    r->merge++;
    ((pair *)r->pairs.v)[best].places = 0;
    for (uint32_t at = p.places; at;) {
        place here = ((place *)r->places.v)[at - 1];
        if (!merge_in_piece(r, here.piece, p.left, p.right, made)) return false;
        at = here.before;
    }
    return push_fresh(r);
}

static bool train(trainer *r, const char *text, size_t n, int64_t vocab_size, int64_t min_frequency)
{
    if (!count_pieces(r, text, n) || !count_pairs(r) || !push_fresh(r)) return false;
    for (uint32_t best; (int64_t)r->t->tokens.n < vocab_size && next_pair(r, min_frequency, &best);)
        if (!merge_pair(r, best)) return false;
    return true;
}

/* ---- the tokenizer ---- */

/* Special tokens are in the model's vocabulary, too: else Hugging Face would number them after it. */
static bool insert_special(cn_tokenizer *t, const cn_bpe_desc *d)
{
    for (int i = 0; i < d->n_special; i++) {
        if (cn_tokenizer_add_special(t, d->special[i]) != i)
            return cn__fail(t->object.ctx, CN_BAD_ARGUMENT, "bpe_train: special token %d is NULL or occurs twice", i);
        ((cn__token *)t->tokens.v)[i].flags |= CN__TOKEN_IN_MODEL;
    }
    return true;
}

/* Special tokens, then the bytes in the order of GPT-2: the printable ones first. */
static cn_tokenizer *start(cn_ctx *ctx, const cn_bpe_desc *d)
{
    cn_tokenizer *t = cn__tokenizer_new(ctx, CN_TOKENS_BPE);
    bool ok = t && insert_special(t, d);
    for (int turn = 0; ok && turn < 2; turn++)
        for (int b = 0; ok && b < 256; b++)
            if (cn__prints(b) == (turn == 0))
                ok = cn__token_insert(t, (int64_t)t->tokens.n, &(char){ (char)b }, 1, CN__TOKEN_IN_MODEL);
    if (!ok) {
        cn_tokenizer_free(t);
        return NULL;
    }
    t->add_prefix_space = d->add_prefix_space;
    t->split = !d->no_split;
    cn__index_bytes(t);
    return t;
}

static void free_trainer(trainer *r)
{
    cn__memory *m = &r->ctx->memory;
    cn__vec_free(m, &r->copy, 1);
    cn__vec_free(m, &r->pieces, sizeof(piece));
    cn__vec_free(m, &r->piece_slots, sizeof(uint32_t));
    cn__vec_free(m, &r->symbols, sizeof(int32_t));
    cn__vec_free(m, &r->pairs, sizeof(pair));
    cn__vec_free(m, &r->pair_slots, sizeof(uint32_t));
    cn__vec_free(m, &r->places, sizeof(place));
    cn__vec_free(m, &r->heap, sizeof(candidate));
    cn__vec_free(m, &r->fresh, sizeof(uint32_t));
}

cn_tokenizer *cn_bpe_train(cn_ctx *ctx, const char *text, size_t n, int64_t vocab_size, const cn_bpe_desc *desc)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    cn_bpe_desc d = desc ? *desc : (cn_bpe_desc){ 0 };
    if (n > 0 && !text) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "bpe_train: n must be 0 if text is NULL, got %zu", n);
        return NULL;
    }
    if (d.n_special < 0 || (d.n_special > 0 && !d.special) || d.min_frequency < 0) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "bpe_train: n_special and min_frequency must be ≥ 0, got %d%s and %lld",
                 d.n_special, d.special ? "" : " (special is NULL)", (long long)d.min_frequency);
        return NULL;
    }
    if (vocab_size < 256 + (int64_t)d.n_special || vocab_size > INT32_MAX) {
        cn__fail(ctx, CN_BAD_ARGUMENT,
                 "bpe_train: vocab_size must be %lld (256 bytes, %d special tokens) to 2^31 - 1, got %lld",
                 256 + (long long)d.n_special, d.n_special, (long long)vocab_size);
        return NULL;
    }
    trainer r = { .ctx = ctx, .t = start(ctx, &d), .merge = 1 };
    if (!r.t) return NULL;
    bool ok = train(&r, text, n, vocab_size, d.min_frequency ? d.min_frequency : 2);
    free_trainer(&r);
    if (ok) return r.t;
    cn_tokenizer_free(r.t);
    return NULL;
}
