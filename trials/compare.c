/* compare.c: reads results out of tensors and says where two of them differ. */
#include "trials/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/dtype.h"
#include "trials/make.h"

bool take_output(output *o, cn_tensor *t)
{
    *o = (output){ 0 };
    if (!t) return true;
    size_t bytes = (size_t)cn_numel(t) * cn_dtype_size(cn_type(t));
    *o = (output){ true, cn_type(t), cn_shape(t), cn_numel(t), trial_memory(bytes, 1) };
    return cn_read(t, o->data, bytes);
}

void free_outputs(output *o, int n)
{
    for (int j = 0; j < n; j++) free(o[j].data);
    memset(o, 0, (size_t)n * sizeof *o);
}

double output_at(const output *o, int64_t i)
{
    return cn__load_f64(o->dtype, o->data + (size_t)i * cn_dtype_size(o->dtype));
}

static bool differs(difference *d, int64_t i, double expected, double got)
{
    snprintf(d->words, sizeof d->words, "element %lld: expected %.17g, got %.17g", (long long)i, expected, got);
    return false;
}

bool same_bits(const output *expected, const output *got, difference *d)
{
    size_t size = cn_dtype_size(expected->dtype);
    if (expected->present != got->present || expected->dtype != got->dtype || expected->numel != got->numel) {
        snprintf(d->words, sizeof d->words, "expected %lld of %s, got %lld of %s", (long long)expected->numel,
                 expected->present ? cn_dtype_name(expected->dtype) : "nothing", (long long)got->numel,
                 got->present ? cn_dtype_name(got->dtype) : "nothing");
        return false;
    }
    for (int64_t i = 0; i < expected->numel; i++) {
        if (memcmp(expected->data + (size_t)i * size, got->data + (size_t)i * size, size) == 0) continue;
        double a = output_at(expected, i), b = output_at(got, i);
        if (!isnan(a) || !isnan(b)) return differs(d, i, a, b);
    }
    return true;
}

/* A whole number as the dtype stores it: arithmetic wraps around. */
static double wrapped(cn_dtype t, double v)
{
    if (t == CN_BOOL) return v != 0;
    double range = ldexp(1, 8 * (int)cn_dtype_size(t)), low = t == CN_U8 ? 0 : -range / 2;
    return v >= low && v < low + range ? v : v - range * floor((v - low) / range);
}

static double rounded(cn_dtype t, double v)
{
    char element[8];
    cn__store_f64(t, element, v);
    return cn__load_f64(t, element);
}

bool close_to(const double *expected, const output *got, tolerance t, difference *d)
{
    bool whole = !cn_dtype_is_float(got->dtype);
    for (int64_t i = 0; i < got->numel; i++) {
        double e = whole ? wrapped(got->dtype, expected[i]) : rounded(got->dtype, expected[i]), g = output_at(got, i);
        if (e == g || (isnan(e) && isnan(g))) continue;
        double room = t.relative * fmax(1, fmax(t.scale, fabs(e)));
        if (whole || isinf(e) || !(fabs(e - g) <= room)) return differs(d, i, e, g);
    }
    return true;
}
