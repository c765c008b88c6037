/* nn/nn.h: what makers of modules share. */
#ifndef CN_NN_NN_H
#define CN_NN_NN_H

#include "cairn/cairn.h"
#include "core/errors.h"
#include "core/handle.h"
#include "core/object.h"

/* Uniform in [-bound, bound), of the context's default dtype: how PyTorch fills most layers. */
cn_tensor *cn__uniform(cn_ctx *ctx, cn_dims shape, double bound);

/* A number for each of `axes` axes: from `each` if it has any, otherwise `all`, or `usual` where that is 0. False, with an
   error: `each` is for another number of axes, or a number is below `least` or too large. */
bool cn__per_axis(cn_ctx *ctx, const char *who, const char *what, int axes, cn_dims each, int64_t all, int64_t usual,
                  int64_t least, int64_t *out);
/* "3x3" */
const char *cn__by_text(const int64_t *v, int n, char *out, size_t size);

/* An option of which 0 means the usual value and a negative number none. */
static inline double cn__or_usual(double value, double usual) { return value == 0 ? usual : value < 0 ? 0 : value; }

/* An error: "takes (N, 8, H, W), not [3,3]", of which the end is x's shape. cn_forward names the layer. Returns NULL. */
__attribute__((format(printf, 2, 3))) cn_tensor *cn__wrong_shape(cn_tensor *x, const char *wanted, ...);

/* state.c: a .rename that keeps every name. Names of the file that the module does not have are no error then. */
bool cn__same_name(void *user, const char *name, char *out, size_t size);

#endif
