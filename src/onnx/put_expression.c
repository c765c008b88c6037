/* Expressions: how elementwise operators are written that ONNX does not have, or has with other defaults.

       Where(Less(x, 0), Ceil(x), Floor(x))          operators of ONNX; x, y, z are the operands
       Elu(x; alpha=p0)                              attributes follow a semicolon: p0 and 0.5 are floats, 1 is whole,
       Gelu(x; approximate='tanh')                   and texts stand in quotes
       Neg(p0), 0.5                                  arguments and numbers have the dtype of x
       Bool(x), Int(x), Same(x)                      Cast to bool, to i64, to the dtype of x
   A text that is damaged gives NULL. */
#include <ctype.h>
#include <stdlib.h>

#include "onnx/put.h"

enum { DEPTH = 32, MOST = 4 };

typedef struct reading {
    onnx_put *c;
    const char *at;
    int depth;
} reading;

static void skip(reading *r)
{
    while (*r->at == ' ') r->at++;
}

static bool take(reading *r, char ch)
{
    skip(r);
    if (*r->at != ch) return false;
    r->at++;
    return true;
}

static cn_dtype dtype_of(const reading *r)
{
    const onnx_put *c = r->c;
    return cn__put_has(c, 0) ? cn__put_meta(c, 0)->dtype : cn__put_result(c, 0)->dtype;
}

/* A word of at most 31 letters and digits, as text that lasts. */
static const char *word(reading *r)
{
    skip(r);
    size_t n = 0;
    while (isalnum((unsigned char)r->at[n]) || r->at[n] == '_') n++;
    char *text = cn__bump_new(&r->c->w->ctx->memory, &r->c->w->memory, n + 1);
    if (!text) {
        cn__no_memory(r->c->w->ctx, "onnx_save");
        r->c->w->failed = true;
        return NULL;
    }
    memcpy(text, r->at, n);
    r->at += n;
    return text;
}

static bool is_argument(const reading *r)
{
    return r->at[0] == 'p' && isdigit((unsigned char)r->at[1]) && r->at[1] < '8';
}

static double argument(reading *r)
{
    const double v = r->c->step->args[r->at[1] - '0'].f;
    r->at += 2;
    return v;
}

/* name=value, ... up to the bracket */
static bool attributes(reading *r)
{
    do {
        const char *name = word(r);
        if (!name || !take(r, '=')) return false;
        char *end;
        if (is_argument(r)) cn__put_float(r->c, name, argument(r));
        else if (take(r, '\'')) {
            const char *text = word(r);
            if (!text || !take(r, '\'')) return false;
            cn__put_text(r->c, name, text);
        } else {
            const double v = strtod(r->at, &end);
            if (end == r->at) return false;
            if (memchr(r->at, '.', (size_t)(end - r->at))) cn__put_float(r->c, name, v);
            else cn__put_int(r->c, name, (int64_t)v);
            r->at = end;
        }
    } while (take(r, ','));
    return true;
}

static onnx_val *expression(reading *r);

static onnx_val *operation(reading *r, const char *name)
{
    onnx_put *c = r->c;
    onnx_val *in[MOST], *out;
    int n = 0;
    do {
        if (n == MOST || !(in[n++] = expression(r))) return NULL;
    } while (take(r, ','));
    if (take(r, ';') && !attributes(r)) return NULL;
    if (!take(r, ')')) return NULL;
    if (!strcmp(name, "Bool")) return cn__put_meta(c, 0)->dtype == CN_BOOL ? in[0] : cn__put_cast(c, in[0], CN_BOOL);
    if (!strcmp(name, "Int")) return cn__put_cast(c, in[0], CN_I64);
    if (!strcmp(name, "Same")) return cn__put_cast(c, in[0], dtype_of(r));
    return cn__put_nodes(c, name, in, n, &out, 1) ? out : NULL;
}

static onnx_val *expression(reading *r)
{
    onnx_put *c = r->c;
    skip(r);
    if (c->w->failed || r->depth >= DEPTH) return NULL;
    if (is_argument(r)) return cn__put_number(c, dtype_of(r), argument(r));
    if (*r->at == '-' || isdigit((unsigned char)*r->at)) {
        char *end;
        const double v = strtod(r->at, &end);
        r->at = end;
        return cn__put_number(c, dtype_of(r), v);
    }
    const char *name = word(r);
    if (!name) return NULL;
    if (!strcmp(name, "x")) return OF(0);
    if (!strcmp(name, "y")) return OF(1);
    if (!strcmp(name, "z")) return OF(2);
    if (!take(r, '(')) return NULL;
    r->depth++;
    onnx_val *v = operation(r, name);
    r->depth--;
    return v;
}

onnx_val *cn__put_expression(onnx_put *c, const char *text)
{
    reading r = { c, text, 0 };
    onnx_val *v = expression(&r);
    return v && !*r.at ? v : NULL;
}
