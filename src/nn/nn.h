/* nn/nn.h: functions that the makers of layers share. */
#ifndef CN_NN_NN_H
#define CN_NN_NN_H

#include "cairn/cairn.h"
#include "core/errors.h"
#include "core/handle.h"
#include "core/object.h"

/* Uniform in [-bound, bound), in the context's default dtype: PyTorch's initial values of most layers. */
cn_tensor *cn__uniform(cn_ctx *ctx, cn_dims shape, double bound);

/* Writes one number for each of `axes` axes: those of `each` if it has any; otherwise `all`, or `usual` if `all` is 0.
   False, with an error: `each` has another count of numbers, or a number is below `least` or too large. */
bool cn__per_axis(cn_ctx *ctx, const char *who, const char *what, int axes, cn_dims each, int64_t all, int64_t usual,
                  int64_t least, int64_t *out);
/* Prints sizes: "3x3". Returns out. */
const char *cn__by_text(const int64_t *v, int n, char *out, size_t size);

enum { CN__MAX_LAYERS = 4096 }; /* of a recurrent module, and of a stack of transformer layers */

/* The value of an option where 0 means the default, and a negative number means 0. */
static inline double cn__or_usual(double value, double usual) { return value == 0 ? usual : value < 0 ? 0 : value; }

/* Sets the error "x must be (N, 8, H, W), got [3,3]": the rule, then x's shape. cn_forward adds the layer's name.
   Returns NULL. */
__attribute__((format(printf, 2, 3))) cn_tensor *cn__wrong_shape(cn_tensor *x, const char *rule, ...);

/* embedding.c: a table of rows (rows,width), normal, with zeros in row `padding` (-1: none). */
cn_tensor *cn__embedding_initial(cn_ctx *ctx, int64_t rows, int64_t width, int64_t padding);
/* False, with an error, unless max_norm and norm_type are those of a layer. */
bool cn__check_renorm(cn_ctx *ctx, const char *who, double max_norm, double norm_type);
/* Gives those rows of the weight that the indices name, and that are longer, the length max_norm; nothing if it is 0. */
bool cn__embedding_renorm(cn_tensor *weight, cn_tensor *indices, double max_norm, double norm_type);

/* state.c: a .rename that keeps every name. Names of the file that the module does not have are no error then. */
bool cn__same_name(void *user, const char *name, char *out, size_t size);

/* module.c: begins a call with a module and tensors, as cn_forward does: errors name what it calls. The context is
   NULL, with an error, if one of them is NULL, stale, freed or of another context. what: the names of the tensors. */
cn__call cn__enter_forward(const cn_module *m, cn_tensor *const *t, int n, const char *const *what, const char *who);

/* module.c: adds a parameter or a buffer whose name may contain dots, as names in files of other programs do. */
cn_tensor *cn__module_tensor(cn_module *m, const char *name, cn_tensor *t, bool trained);

extern const cn__object_type cn__module_type; /* module.c */

#endif
