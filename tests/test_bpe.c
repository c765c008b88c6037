/* BPE against the slow, obvious version: all pairs counted anew for every merge, the best merge looked for in all of the text.
   Texts of two letters, where pairs overlap and are equally frequent. */
#include <stdio.h>
#include <string.h>

#include "cairn/cairn.h"
#include "cairn/text.h"
#include "support/check.h"

enum { WORDS = 8, LONGEST = 40, MOST = 320 }; /* letters of a word, tokens */

typedef struct word {
    int n, v[LONGEST];
} word;

typedef struct slow {
    int n_tokens, n_merges;
    int length[MOST];
    char text[MOST][LONGEST];
    struct {
        int left, right, made;
    } merge[MOST];
} slow;

static uint64_t state = 88172645463325252u;

static int draw(int below)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (int)(state % (uint64_t)below);
}

/* All places where left and right stand beside each other, from left to right. */
static void merge_word(word *w, int left, int right, int made)
{
    int to = 0;
    for (int from = 0; from < w->n; from++) {
        bool here = from + 1 < w->n && w->v[from] == left && w->v[from + 1] == right;
        w->v[to++] = here ? made : w->v[from];
        from += here;
    }
    w->n = to;
}

static int join_tokens(slow *s, int left, int right)
{
    char text[2 * LONGEST];
    int n = s->length[left] + s->length[right];
    memcpy(text, s->text[left], (size_t)s->length[left]);
    memcpy(text + s->length[left], s->text[right], (size_t)s->length[right]);
    for (int i = 0; i < s->n_tokens; i++)
        if (s->length[i] == n && memcmp(s->text[i], text, (size_t)n) == 0) return i;
    s->length[s->n_tokens] = n;
    memcpy(s->text[s->n_tokens], text, (size_t)n);
    return s->n_tokens++;
}

static bool merge_best(slow *s, word *words, int n_words, int min_frequency)
{
    static int count[MOST][MOST];
    int left = -1, right = -1;
    memset(count, 0, sizeof count);
    for (int i = 0; i < n_words; i++)
        for (int k = 0; k + 1 < words[i].n; k++) count[words[i].v[k]][words[i].v[k + 1]]++;
    for (int a = 0; a < s->n_tokens; a++)
        for (int b = 0; b < s->n_tokens; b++)
            if (count[a][b] >= min_frequency && (left < 0 || count[a][b] > count[left][right])) left = a, right = b;
    if (left < 0) return false;
    int made = join_tokens(s, left, right), n = s->n_merges++;
    s->merge[n].left = left, s->merge[n].right = right, s->merge[n].made = made;
    for (int i = 0; i < n_words; i++) merge_word(&words[i], left, right, made);
    return true;
}

/* The first merge of the list that applies anywhere, at the first place where it does, again and again. */
static void slow_encode(const slow *s, word *w)
{
    for (int m = 0; m < s->n_merges;) {
        int at = 0;
        while (at + 1 < w->n && (w->v[at] != s->merge[m].left || w->v[at + 1] != s->merge[m].right)) at++;
        if (at + 1 >= w->n) {
            m++;
            continue;
        }
        w->v[at] = s->merge[m].made;
        memmove(&w->v[at + 1], &w->v[at + 2], (size_t)(w->n - at - 2) * sizeof *w->v);
        w->n--;
        m = 0;
    }
}

static int letters(const cn_tokenizer *t, char *text, word *w)
{
    w->n = 1 + draw(LONGEST - 1);
    for (int k = 0; k < w->n; k++) {
        text[k] = "ab"[draw(3) == 0];
        w->v[k] = cn_token_id(t, text + k, 1);
    }
    return w->n;
}

static void start(slow *s, const cn_tokenizer *bytes)
{
    *s = (slow){ .n_tokens = (int)cn_token_count(bytes) };
    for (int32_t i = 0; i < s->n_tokens; i++) {
        size_t n;
        const char *text = cn_token_text(bytes, i, &n);
        s->length[i] = (int)n;
        memcpy(s->text[i], text, n);
    }
}

static void compare_tokens(const slow *s, const cn_tokenizer *t, int number)
{
    check(cn_token_count(t) == s->n_tokens, "text %d: %lld tokens, not %d", number, (long long)cn_token_count(t),
          s->n_tokens);
    for (int32_t i = 0; i < s->n_tokens; i++) {
        size_t n;
        const char *text = cn_token_text(t, i, &n);
        check(text && (int)n == s->length[i] && memcmp(text, s->text[i], n) == 0, "text %d: token %d is %.*s, not %s",
              number, i, s->length[i], s->text[i], text);
    }
}

static void compare_encoding(const slow *s, const cn_tokenizer *t, int number)
{
    for (int i = 0; i < 20; i++) {
        char text[LONGEST];
        int32_t got[LONGEST];
        word w;
        int n = letters(t, text, &w);
        slow_encode(s, &w);
        int64_t count = cn_encode(t, text, (size_t)n, got, LONGEST);
        check(count == w.n && memcmp(got, w.v, (size_t)w.n * sizeof *got) == 0,
              "tokenizer %d: \"%.*s\" has %lld tokens, not %d", number, n, text, (long long)count, w.n);
    }
}

int main(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    const char *special = "<s>";
    for (int number = 0; number < (test_is_quick() ? 100 : 600); number++) {
        static slow s;
        word words[WORDS];
        char text[WORDS * (LONGEST + 3)];
        size_t n = 0;
        int n_words = 1 + draw(WORDS), min_frequency = 2 + draw(2), size = 257 + draw(40);
        cn_bpe_desc desc = { .no_split = true, .special = &special, .n_special = 1, .min_frequency = min_frequency };
        cn_tokenizer *bytes = cn_bpe_train(cn, NULL, 0, 257, &desc);
        start(&s, bytes);
        for (int i = 0; i < n_words; i++) {
            n += (size_t)letters(bytes, text + n, &words[i]);
            memcpy(text + n, special, 3);
            n += 3;
        }
        while (s.n_tokens < size && merge_best(&s, words, n_words, min_frequency)) {}
        cn_tokenizer *t = cn_bpe_train(cn, text, n, size, &desc);
        compare_tokens(&s, t, number);
        compare_encoding(&s, t, number);
        cn_tokenizer_free(bytes);
        cn_tokenizer_free(t);
    }
    check(!cn_failed(cn), "no error: %s", cn_error(cn));
    cn_close(cn);
    return finish();
}
