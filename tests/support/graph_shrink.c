/* graph_shrink.c: the smallest program that still fails, and how it is shown. */
#include <inttypes.h>
#include <string.h>

#include "support/graph.h"

typedef struct shrinker {
    graph *p;
    graph_fails fails;
    void *user;
    int left; /* tries */
} shrinker;

/* ---- changes ---- */

static bool keep_if_failing(shrinker *s, graph *changed)
{
    if (s->left <= 0 || !graph_validate(changed, NULL)) return false;
    s->left--;
    if (!s->fails(changed, s->user)) return false;
    *s->p = *changed;
    return true;
}

static int end_of_scope(const graph *p, int begin)
{
    int depth = 0;
    for (int k = begin; k < p->n; k++) {
        const graph_op *op = p->code[k].op;
        if (!op) continue;
        depth += (op->act == ACT_BEGIN) - (op->act == ACT_END);
        if (depth == 0) return k;
    }
    return -1;
}

/* Instructions [from, to) become holes, and so does all that is made from them. */
static void drop(graph *p, int from, int to)
{
    for (int k = from; k < to; k++) {
        int end = p->code[k].op && p->code[k].op->act == ACT_BEGIN ? end_of_scope(p, k) : -1;
        p->code[k].op = NULL;
        if (end >= 0) p->code[end].op = NULL;
    }
    for (int k = from; k < p->n; k++) {
        const graph_instr *i = &p->code[k];
        for (int n = 0; n < i->n_in && p->code[k].op; n++)
            if (i->in[n] >= 0 && !p->code[i->in[n]].op) p->code[k].op = NULL;
    }
}

static bool drop_some(shrinker *s)
{
    static graph c;
    bool any = false;
    for (int size = s->p->n / 2; size >= 1; size /= 2)
        for (int at = s->p->n - size; at >= 0; at -= size) {
            bool holes = true;
            for (int k = at; k < at + size; k++) holes &= !s->p->code[k].op;
            if (holes) continue;
            c = *s->p;
            drop(&c, at, at + size);
            any |= keep_if_failing(s, &c);
        }
    return any;
}

/* What reads value `of` reads `instead`. */
static bool bypass(shrinker *s, int of, int instead)
{
    static graph c;
    c = *s->p;
    for (int k = of + 1; k < c.n; k++)
        for (int n = 0; n < c.code[k].n_in; n++)
            if (c.code[k].in[n] == of) c.code[k].in[n] = instead;
    c.code[of].op = NULL;
    return keep_if_failing(s, &c);
}

static bool bypass_some(shrinker *s)
{
    bool any = false;
    for (int k = s->p->n - 1; k >= 0; k--) {
        const graph_instr *i = &s->p->code[k];
        for (int n = 0; n < i->n_in && i->op && !(i->op->traits & OP_ACTION); n++)
            if (i->in[n] >= 0) any |= bypass(s, k, i->in[n]);
    }
    return any;
}

static void replace_size(cn_dims *d, int64_t from, int64_t to)
{
    for (int k = 0; k < d->n; k++)
        if (d->v[k] == from) d->v[k] = to;
}

/* One size, wherever leaves and attributes have it, becomes a smaller one. */
static bool smaller_sizes(shrinker *s)
{
    static graph c;
    bool any = false;
    for (int k = 0; k < s->p->n; k++) {
        const graph_instr *i = &s->p->code[k];
        for (int d = 0; i->op && d < i->dims.n; d++) {
            int64_t size = i->dims.v[d], tries[] = { 1, 2, 3, size / 8, size / 2, size - 1 };
            for (int t = 0; t < 6; t++) {
                if (tries[t] < 1 || tries[t] >= size) continue;
                c = *s->p;
                for (int n = 0; n < c.n; n++) replace_size(&c.code[n].dims, size, tries[t]);
                bool smaller = keep_if_failing(s, &c);
                any |= smaller;
                if (smaller) break;
                c = *s->p;
                c.code[k].dims.v[d] = tries[t];
                if (keep_if_failing(s, &c)) {
                    any = true;
                    break;
                }
            }
        }
    }
    return any;
}

static bool fewer_axes(shrinker *s)
{
    static graph c;
    bool any = false;
    for (int k = 0; k < s->p->n; k++) {
        if (!s->p->code[k].op || s->p->code[k].op->group != G_LEAF || s->p->code[k].dims.n == 0) continue;
        c = *s->p;
        cn_dims *d = &c.code[k].dims;
        memmove(d->v, d->v + 1, sizeof *d->v * (size_t)--d->n);
        any |= keep_if_failing(s, &c);
    }
    return any;
}

static bool plainer(shrinker *s)
{
    static graph c;
    bool any = false;
    for (int k = 0; k < s->p->n; k++) {
        const graph_instr *i = &s->p->code[k];
        if (!i->op) continue;
        if (i->keep && i->op->act != ACT_PARAM) {
            c = *s->p;
            c.code[k].keep = false;
            any |= keep_if_failing(s, &c);
        }
        if (i->flag) {
            c = *s->p;
            c.code[k].flag = false;
            any |= keep_if_failing(s, &c);
        }
        if (i->op->act == ACT_PARAM) {
            c = *s->p;
            c.code[k].op = graph_op_named("from");
            any |= keep_if_failing(s, &c);
        }
        if (i->op->group == G_LEAF && i->dtype != CN_F32) {
            c = *s->p;
            c.code[k].dtype = CN_F32;
            any |= keep_if_failing(s, &c);
        }
    }
    return any;
}

static void close_holes(graph *p)
{
    int to[GRAPH_ROOM], n = 0;
    for (int k = 0; k < p->n; k++) {
        to[k] = n;
        if (!p->code[k].op) continue;
        p->code[n] = p->code[k];
        for (int m = 0; m < p->code[n].n_in; m++)
            if (p->code[n].in[m] >= 0) p->code[n].in[m] = to[p->code[n].in[m]];
        n++;
    }
    p->n = n;
}

void graph_shrink(graph *p, graph_fails fails, void *user, int tries)
{
    static graph before;
    shrinker s = { p, fails, user, tries };
    for (bool any = true; any && s.left > 0;) {
        any = drop_some(&s);
        any = bypass_some(&s) || any;
        any = smaller_sizes(&s) || any;
        any = fewer_axes(&s) || any;
        any = plainer(&s) || any;
    }
    before = *p;
    close_holes(p);
    if (!graph_validate(p, NULL) || !fails(p, user)) *p = before; /* numbers of instructions mattered: leave it */
    graph_validate(p, NULL);
}

/* ---- showing ---- */

static void print_dims(const cn_dims *d, FILE *out)
{
    if (d->n <= 0) {
        fputs(d->n ? "CN_ALL" : "CN_SCALAR", out);
        return;
    }
    fputs("CN_DIMS(", out);
    for (int k = 0; k < d->n; k++) fprintf(out, "%s%" PRId64, k ? ", " : "", d->v[k]);
    fputs(")", out);
}

static const char *dtype_word(cn_dtype t)
{
    static const char *const words[CN_DTYPES] = { "CN_BOOL", "CN_U8",  "CN_I8",   "CN_I16", "CN_I32",
                                                  "CN_I64",  "CN_F16", "CN_BF16", "CN_F32", "CN_F64" };
    return words[t];
}

static void print_argument(const graph_instr *i, char form, FILE *out)
{
    switch (form) {
    case '0':
    case '1':
    case '2':
        if (i->in[form - '0'] < 0) fputs("NULL", out);
        else fprintf(out, "t%d", i->in[form - '0']);
        break;
    case 'a':
    case 'b':
    case 'c':
    case 'd':
        if (i->a[form - 'a'] == INT64_MAX) fputs("INT64_MAX", out);
        else fprintf(out, "%" PRId64, i->a[form - 'a']);
        break;
    case 'x': fprintf(out, "%g", i->x[0]); break;
    case 'y': fprintf(out, "%g", i->x[1]); break;
    case 'D': print_dims(&i->dims, out); break;
    case 'E': print_dims(&i->more, out); break;
    case 't': fputs(dtype_word(i->dtype), out); break;
    case 'f': fputs(i->flag ? "true" : "false", out); break;
    case 's': fprintf(out, "numbers(%" PRIu64 "%s)", i->seed, i->flag ? ", wild" : ""); break;
    }
}

void graph_print(const graph *p, FILE *out)
{
    fprintf(out, "    /* seed %" PRIu64 "%s */\n", p->seed, p->smooth ? ", smooth" : "");
    for (int k = 0; k < p->n; k++) {
        const graph_instr *i = &p->code[k];
        if (!i->op) continue;
        bool value = !(i->op->traits & OP_ACTION), first = true;
        fputs("    ", out);
        if (value) fprintf(out, "t%d = %s", k, i->keep && i->op->act != ACT_PARAM ? "cn_keep(" : "");
        fprintf(out, "cn_%s(", i->op->name);
        for (const char *f = i->op->form; *f; f++) {
            if (*f >= '0' && *f <= '2' && *f - '0' >= i->n_in) continue;
            if (!first) fputs(", ", out);
            print_argument(i, *f, out);
            first = false;
        }
        fputs(value && i->keep && i->op->act != ACT_PARAM ? "));" : ");", out);
        if (value) {
            fprintf(out, "   /* %s [", cn_dtype_name(i->out.dtype));
            for (int d = 0; d < i->out.shape.n; d++) fprintf(out, "%s%" PRId64, d ? "," : "", i->out.shape.v[d]);
            fputs("] */", out);
        }
        fputs("\n", out);
    }
}
