#include "support/stored_cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

FILE *stored_cases_open(const char *path)
{
    char line[256];
    FILE *f = fopen(path, "rb");
    if (f && (!fgets(line, sizeof line, f) || strncmp(line, "cairn ", 6) != 0)) {
        fclose(f);
        return NULL;
    }
    return f;
}

static bool dtype_of(const char *name, cn_dtype *t)
{
    for (int i = 0; i < CN_DTYPES; i++)
        if (strcmp(cn_dtype_name((cn_dtype)i), name) == 0) {
            *t = (cn_dtype)i;
            return true;
        }
    return false;
}

/* "tensor ROLE NAME DTYPE AXES SIZES...", the bytes, a newline */
static bool read_tensor(FILE *f, const char *line, stored_tensor *t)
{
    char dtype[8];
    int at = 0;
    if (sscanf(line, "tensor %15s %63s %7s %d%n", t->role, t->name, dtype, &t->shape.n, &at) != 4) return false;
    if (!dtype_of(dtype, &t->dtype) || t->shape.n < 0 || t->shape.n > CN_MAX_DIMS) return false;
    t->numel = 1;
    for (int d = 0, used; d < t->shape.n; d++, at += used) {
        long long size;
        if (sscanf(line + at, " %lld%n", &size, &used) != 1 || size < 0 || size > 1 << 20) return false;
        t->shape.v[d] = size;
        t->numel *= size;
    }
    const size_t bytes = (size_t)t->numel * cn_dtype_size(t->dtype);
    t->data = malloc(bytes + 1);
    return t->data && fread(t->data, 1, bytes, f) == bytes && fgetc(f) == '\n';
}

bool stored_next(FILE *f, stored_case *c)
{
    char line[1024], dtype[8];
    memset(c, 0, sizeof *c);
    if (!fgets(line, sizeof line, f)) return false;
    if (sscanf(line, "case %63s %15s %7s %255[^\n]", c->name, c->mode, dtype, c->words) != 4) return false;
    if (!dtype_of(dtype, &c->dtype)) return false;
    while (fgets(line, sizeof line, f)) {
        if (strcmp(line, "end\n") == 0) return true;
        if (c->n == (int)(sizeof c->v / sizeof *c->v) || !read_tensor(f, line, &c->v[c->n++])) break;
    }
    stored_free(c);
    return false;
}

void stored_free(stored_case *c)
{
    for (int i = 0; i < c->n; i++) free(c->v[i].data);
    c->n = 0;
}

cn_tensor *stored_tensor_of(cn_ctx *cn, const stored_tensor *t) { return cn_from(cn, t->dtype, t->shape, t->data); }

static double number_at(const stored_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case CN_F32: return ((const float *)t->data)[i];
    case CN_F64: return ((const double *)t->data)[i];
    case CN_I64: return (double)((const int64_t *)t->data)[i];
    default: return NAN;
    }
}

double stored_difference(const stored_tensor *expected, cn_tensor *t)
{
    if (!t || cn_type(t) != expected->dtype || cn_ndim(t) != expected->shape.n) return INFINITY;
    for (int d = 0; d < expected->shape.n; d++)
        if (cn_size(t, d) != expected->shape.v[d]) return INFINITY;
    double *v = malloc((size_t)expected->numel * sizeof *v + 1), worst = 0, largest = 0.01;
    bool ok = v && cn_read_f64(t, v, expected->numel);
    for (int64_t i = 0; ok && i < expected->numel; i++) {
        const double e = number_at(expected, i), difference = fabs(v[i] - e);
        ok = !isnan(difference);
        largest = fmax(largest, fabs(e));
        worst = fmax(worst, difference);
    }
    free(v);
    return ok ? worst / largest : INFINITY;
}
