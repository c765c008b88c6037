/* signature.c: a strict parser for the signatures of operators. The grammar is in cairn/signature.h. */
#include "cairn/signature.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct parser {
    const char *text, *at;
    cn_signature *out;
} parser;

static const char *const kinds[] = { "Tensor", "Tensor[]", "float", "int", "int[]", "bool", "dtype", "str", "enum" };

const char *cn_parameter_kind_name(cn_parameter_kind kind)
{
    return (unsigned)kind <= CN_PARAMETER_ENUM ? kinds[kind] : "";
}

static bool fail(parser *p, const char *message, ...)
{
    char *error = p->out->error;
    int n = snprintf(error, sizeof p->out->error, "character %d: ", (int)(p->at - p->text) + 1);
    va_list list;
    va_start(list, message);
    vsnprintf(error + n, sizeof p->out->error - (size_t)n, message, list);
    va_end(list);
    return false;
}

/* ---- letters and names, in ASCII, whatever the locale is ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static void skip_spaces(parser *p)
{
    while (*p->at == ' ') p->at++;
}

static bool accept(parser *p, const char *token)
{
    skip_spaces(p);
    size_t n = strlen(token);
    if (strncmp(p->at, token, n) != 0) return false;
    p->at += n;
    return true;
}

static bool expect(parser *p, const char *token)
{
    return accept(p, token) || fail(p, "'%s' expected, found '%.12s'", token, p->at);
}

static bool identifier(parser *p, char *out, size_t size, const char *what)
{
    skip_spaces(p);
    size_t n = 0;
    if (!is_letter(*p->at)) return fail(p, "%s expected, found '%.12s'", what, p->at);
    while (is_letter(p->at[n]) || is_digit(p->at[n])) n++;
    if (n >= size) return fail(p, "%s is longer than %d characters", what, (int)size - 1);
    memcpy(out, p->at, n);
    out[n] = 0;
    p->at += n;
    return true;
}

/* ---- kinds ---- */

/* Parses the names after the first one of an enumeration: |name|name. */
static bool more_choices(parser *p, cn_parameter *q)
{
    q->kind = CN_PARAMETER_ENUM;
    while (*p->at == '|') {
        char name[sizeof q->kind_text];
        p->at++;
        if (!identifier(p, name, sizeof name, "name of a choice")) return false;
        size_t n = strlen(q->kind_text);
        if (n + 1 + strlen(name) >= sizeof q->kind_text)
            return fail(p, "choices are longer than %zu characters", sizeof q->kind_text - 1);
        q->kind_text[n] = '|';
        strcpy(q->kind_text + n + 1, name);
    }
    return true;
}

static bool brackets(parser *p, cn_parameter *q)
{
    if (q->kind == CN_PARAMETER_TENSOR) q->kind = CN_PARAMETER_TENSORS;
    else if (q->kind == CN_PARAMETER_INT) q->kind = CN_PARAMETER_INTS;
    else return fail(p, "%s has no list", q->kind_text);
    p->at++;
    if (is_digit(*p->at) && *p->at != '0' && q->kind == CN_PARAMETER_INTS) q->count = *p->at++ - '0';
    if (*p->at != ']') return fail(p, "']' or a number from 1 to 9 expected, found '%.12s'", p->at);
    p->at++;
    if (q->count) snprintf(q->kind_text, sizeof q->kind_text, "int[%d]", q->count);
    else strcpy(q->kind_text, kinds[q->kind]);
    return true;
}

static bool kind(parser *p, cn_parameter *q)
{
    if (!identifier(p, q->kind_text, sizeof q->kind_text, "kind")) return false;
    if (*p->at == '|') {
        if (!more_choices(p, q)) return false;
    } else {
        int k = 0;
        while (k < CN_PARAMETER_ENUM && strcmp(q->kind_text, kinds[k]) != 0) k++;
        if (k == CN_PARAMETER_ENUM) return fail(p, "'%s' is no kind", q->kind_text);
        q->kind = (cn_parameter_kind)k;
        if (*p->at == '[' && !brackets(p, q)) return false;
    }
    if (*p->at == '?') {
        q->optional = true;
        p->at++;
    }
    return true;
}

/* ---- defaults ---- */

/* The index of a name in a list separated by bars; -1: it is not in the list. */
static int choice(const char *names, const char *name)
{
    size_t n = strlen(name);
    for (int k = 0; *names; k++) {
        size_t length = strcspn(names, "|");
        if (length == n && memcmp(names, name, n) == 0) return k;
        names += length + (names[length] == '|');
    }
    return -1;
}

static bool is_dtype(const char *name)
{
    for (int t = 0; t < CN_DTYPES; t++)
        if (!strcmp(name, cn_dtype_name((cn_dtype)t))) return true;
    return false;
}

static bool number(const char *text, bool whole, double *out)
{
    const char *digits = text + (*text == '-');
    char *end;
    if (!whole && !strcmp(digits, "inf")) {
        *out = *text == '-' ? -INFINITY : INFINITY;
        return true;
    }
    if (!is_digit(*digits) || strspn(digits, whole ? "0123456789" : "0123456789.e-") != strlen(digits)) return false;
    *out = strtod(text, &end);
    return !*end;
}

/* Whether the text can be the default of this parameter. Sets the number. */
static bool fits(cn_parameter *q)
{
    q->number = NAN;
    if (!strcmp(q->text, "None")) return q->optional || q->kind == CN_PARAMETER_INTS;
    switch (q->kind) {
    case CN_PARAMETER_FLOAT: return number(q->text, false, &q->number);
    case CN_PARAMETER_INT:
    case CN_PARAMETER_INTS: return number(q->text, true, &q->number);
    case CN_PARAMETER_BOOL:
        q->number = !strcmp(q->text, "True");
        return q->number == 1 || !strcmp(q->text, "False");
    case CN_PARAMETER_DTYPE: return is_dtype(q->text);
    case CN_PARAMETER_ENUM: q->number = choice(q->kind_text, q->text); return q->number >= 0;
    default: return false;
    }
}

static bool default_value(parser *p, cn_parameter *q)
{
    skip_spaces(p);
    bool quoted = *p->at == '\'';
    if (quoted) p->at++;
    size_t n = strcspn(p->at, quoted ? "'" : ",) ");
    if (n >= sizeof q->text) return fail(p, "default of %s is longer than %zu characters", q->name, sizeof q->text - 1);
    memcpy(q->text, p->at, n);
    q->text[n] = 0;
    q->has_default = true;
    if (quoted ? p->at[n] != '\'' || q->kind != CN_PARAMETER_STR : !fits(q))
        return fail(p, "'%s' cannot be the default of %s, a %s", q->text, q->name, q->kind_text);
    if (quoted) q->number = NAN;
    p->at += n + quoted;
    return true;
}

/* ---- parameters and results ---- */

static bool has_parameter(const cn_signature *s, const char *name)
{
    for (int i = 0; i < s->n_in; i++)
        if (!strcmp(s->in[i].name, name)) return true;
    return false;
}

static bool parameter(parser *p, bool by_name)
{
    cn_signature *s = p->out;
    if (s->n_in == CN_MAX_PARAMETERS) return fail(p, "more than %d parameters", CN_MAX_PARAMETERS);
    cn_parameter *q = &s->in[s->n_in], *before = s->n_in ? q - 1 : NULL;
    *q = (cn_parameter){ .by_name = by_name, .number = NAN };
    if (!kind(p, q) || !identifier(p, q->name, sizeof q->name, "name of a parameter")) return false;
    if (has_parameter(s, q->name)) return fail(p, "a second parameter %s", q->name);
    if (accept(p, "=") && !default_value(p, q)) return false;
    if (before && before->has_default && !q->has_default && !by_name)
        return fail(p, "%s needs a default, as %s before it has one", q->name, before->name);
    s->n_in++;
    return true;
}

static bool parameters(parser *p)
{
    bool by_name = false;
    if (!expect(p, "(")) return false;
    if (accept(p, ")")) return true;
    do {
        if (!by_name && accept(p, "*")) by_name = true;
        else if (!parameter(p, by_name)) return false;
    } while (accept(p, ","));
    if (by_name && !p->out->in[p->out->n_in ? p->out->n_in - 1 : 0].by_name) return fail(p, "no parameter after '*'");
    return expect(p, ")");
}

static bool results(parser *p)
{
    cn_signature *s = p->out;
    if (!expect(p, "->")) return false;
    if (!accept(p, "(")) {
        s->n_out = 1;
        if (!expect(p, "Tensor")) return false;
        s->out_list = accept(p, "[]");
        return true;
    }
    do {
        if (s->n_out == CN_MAX_RESULTS) return fail(p, "more than %d results", CN_MAX_RESULTS);
        if (!expect(p, "Tensor ") || !identifier(p, s->out[s->n_out], sizeof s->out[0], "name of a result"))
            return false;
        s->n_out++;
    } while (accept(p, ","));
    return expect(p, ")");
}

bool cn_signature_parse(const char *call, cn_signature *out)
{
    if (!out) return false;
    *out = (cn_signature){ 0 };
    parser p = { call, call, out };
    if (!call) {
        snprintf(out->error, sizeof out->error, "no text");
        return false;
    }
    out->internal = accept(&p, "_");
    if (!identifier(&p, out->name, sizeof out->name, "name of an operator") || !parameters(&p) ||
        !results(&p))
        return false;
    skip_spaces(&p);
    return !*p.at || fail(&p, "end expected, found '%.12s'", p.at);
}
