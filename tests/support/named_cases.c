#include "support/named_cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

FILE *named_open(const char *path, int *cases)
{
    FILE *f = fopen(path, "rb");
    uint32_t n = 0;
    if (!check(f && fread(&n, sizeof n, 1, f) == 1, "%s can be read", path)) return NULL;
    *cases = (int)n;
    return f;
}

static bool read_text(FILE *f, char *out, size_t size)
{
    uint16_t n;
    if (fread(&n, sizeof n, 1, f) != 1 || n >= size || fread(out, 1, n, f) != n) return false;
    out[n] = 0;
    return true;
}

static bool read_tensor(FILE *f, named_case *c)
{
    static const cn_dtype dtypes[4] = { CN_BOOL, CN_I64, CN_F32, CN_F64 };
    char name[128];
    uint8_t head[2];
    if (!read_text(f, name, sizeof name) || fread(head, 1, 2, f) != 2 || head[0] > 3 || head[1] > CN_MAX_DIMS)
        return false;
    cn_dims shape = { .n = head[1] };
    size_t bytes = cn_dtype_size(dtypes[head[0]]);
    if (fread(shape.v, sizeof *shape.v, head[1], f) != head[1]) return false;
    for (int i = 0; i < shape.n; i++) bytes *= (size_t)shape.v[i];
    void *data = malloc(bytes + 1);
    cn_ctx *ctx = cn_dict_context(c->d);
    bool ok = data && fread(data, 1, bytes, f) == bytes;
    cn_scope s = cn_scope_begin(ctx);
    ok = ok && cn_dict_set(c->d, name, cn_from(ctx, dtypes[head[0]], shape, data));
    cn_scope_end(ctx, s);
    free(data);
    return ok;
}

bool named_next(FILE *f, cn_ctx *ctx, named_case *c)
{
    uint32_t n;
    *c = (named_case){ .d = cn_dict_new(ctx) };
    bool ok = c->d && read_text(f, c->name, sizeof c->name) && read_text(f, c->options, sizeof c->options) &&
              fread(&n, sizeof n, 1, f) == 1;
    for (uint32_t i = 0; ok && i < n; i++) ok = read_tensor(f, c);
    return check(ok, "a stored case can be read");
}

void named_free(named_case *c) { cn_dict_free(c->d); }

/* Where the value of "key=" begins. */
static const char *value_of(const named_case *c, const char *key)
{
    const size_t n = strlen(key);
    for (const char *at = c->options; at && *at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL)
        if (strncmp(at, key, n) == 0 && at[n] == '=') return at + n + 1;
    return NULL;
}

bool named_has(const named_case *c, const char *key) { return value_of(c, key) != NULL; }
double named_option(const named_case *c, const char *key) { return value_of(c, key) ? atof(value_of(c, key)) : 0; }

cn_tensor *named_get(const named_case *c, const char *prefix, int number)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%d", prefix, number);
    return cn_dict_get(c->d, name);
}

static bool same_shape(cn_tensor *a, cn_tensor *b)
{
    const cn_dims x = cn_shape(a), y = cn_shape(b);
    return x.n == y.n && memcmp(x.v, y.v, (size_t)x.n * sizeof *x.v) == 0;
}

static bool close_enough(const double *e, const double *g, int64_t n, double relative, int64_t *at)
{
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        if (fabs(e[i]) > largest) largest = fabs(e[i]);
    for (*at = 0; *at < n; ++*at) {
        const double x = e[*at], y = g[*at];
        if (isnan(x) ? !isnan(y) : !(fabs(x - y) <= relative * (largest > 1e-6 ? largest : 1e-6))) return false;
    }
    return true;
}

bool named_compare(const named_case *c, const char *name, cn_tensor *expected, cn_tensor *got, double relative)
{
    const char *error = cn_error(cn_dict_context(c->d));
    if (!check(expected && got, "%s (%s): %s is there: %s", c->name, c->options, name, error)) return false;
    if (!check(same_shape(expected, got), "%s (%s): %s has the right shape", c->name, c->options, name)) return false;
    const int64_t n = cn_numel(got);
    double *e = malloc(2 * sizeof *e * (size_t)(n + 1)), *g = e + n;
    int64_t at = 0;
    const bool read = e && cn_read_f64(expected, e, n) && cn_read_f64(got, g, n);
    const bool close = read && close_enough(e, g, n, relative, &at);
    check(read, "%s (%s): %s can be computed: %s", c->name, c->options, name, error);
    if (read)
        check(close, "%s (%s): %s[%lld] is %.12g, not %.12g", c->name, c->options, name, (long long)at,
              g[close ? 0 : at], e[close ? 0 : at]);
    free(e);
    return close;
}

bool named_check(const named_case *c, const char *name, cn_tensor *got, double relative)
{
    return named_compare(c, name, cn_dict_get(c->d, name), got, relative);
}

cn_tensor *named_loss(cn_tensor *const *out, int n)
{
    cn_tensor *sum = NULL;
    for (int k = 0; k < n; k++) {
        if (!out[k]) return NULL;
        cn_ctx *ctx = cn_context(out[k]);
        cn_tensor *i = cn_arange(ctx, CN_F64, 0, (double)cn_numel(out[k]), 1);
        cn_tensor *wave =
            cn_cast(cn_reshape(cn_sin(cn_add_s(cn_mul_s(i, 0.37), 1 + k)), cn_shape(out[k])), cn_type(out[k]));
        cn_tensor *part = cn_sum(cn_mul(out[k], wave), CN_ALL, false);
        sum = sum ? cn_add(sum, part) : part;
    }
    return sum;
}

void named_check_gradients(const named_case *c, cn_module *m, cn_tensor *const *in, int n_in, double relative)
{
    char name[256];
    for (int k = 0; k < n_in; k++) {
        snprintf(name, sizeof name, "gi.%d", k);
        named_check(c, name, cn_grad_of(in[k]), relative);
    }
    cn_named_list named = cn_module_named(m);
    for (int k = 0; k < named.n; k++) {
        if (named.v[k].buffer) continue;
        snprintf(name, sizeof name, "gp.%s", named.v[k].name);
        named_check(c, name, cn_grad_of(named.v[k].tensor), relative);
    }
}
