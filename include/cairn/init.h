/* cairn/init.h: initial values for parameters. PyTorch's torch.nn.init.

       cn_tensor *w = cn_module_get(model, "0.weight");
       cn_init_kaiming_normal(w, 0, CN_FAN_OUT, "relu");
       cn_init_xavier_uniform(w, cn_init_gain("tanh", 0));
       cn_init_trunc_normal(w, 0, 0.02, -2, 2);
       cn_init_zeros(cn_module_get(model, "0.bias"));

   Layers already start with PyTorch's initial values. Call these functions to start with others.

   Values     Each function assigns a new value to the handle, as cn_assign does. Whether the tensor requires a gradient
              does not change, and no gradient is recorded. Random numbers come from the context's seed, one stream for
              each call: the same program draws the same numbers.
   Fans       A weight (out,in,kernel...) has fan_in = in · kernel and fan_out = out · kernel, as in PyTorch.
   Ownership  The tensor stays yours: nothing is kept.
   Errors     false, and an error in the context: a shape, dtype or number is not allowed. The value does not change. */
#ifndef CAIRN_INIT_H
#define CAIRN_INIT_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

CN_API bool cn_init_uniform(cn_tensor *t, double low, double high);  /* [low, high) */
CN_API bool cn_init_normal(cn_tensor *t, double mean, double std);
/* Normal, but only within [a, b]; PyTorch's defaults are 0, 1, -2, 2. */
CN_API bool cn_init_trunc_normal(cn_tensor *t, double mean, double std, double a, double b);
CN_API bool cn_init_constant(cn_tensor *t, double value);
CN_API bool cn_init_ones(cn_tensor *t);
CN_API bool cn_init_zeros(cn_tensor *t);
CN_API bool cn_init_eye(cn_tensor *t);                               /* the identity matrix; t has two axes */
CN_API bool cn_init_dirac(cn_tensor *t, int64_t groups);             /* a convolution that copies its channels */

CN_API bool cn_init_xavier_uniform(cn_tensor *t, double gain);       /* variance gain² · 2 / (fan_in + fan_out) */
CN_API bool cn_init_xavier_normal(cn_tensor *t, double gain);
typedef enum cn_fan { CN_FAN_IN, CN_FAN_OUT } cn_fan;
/* Variance gain² / fan, gain = cn_init_gain(nonlinearity, a); NULL: "leaky_relu". */
CN_API bool cn_init_kaiming_uniform(cn_tensor *t, double a, cn_fan mode, const char *nonlinearity);
CN_API bool cn_init_kaiming_normal(cn_tensor *t, double a, cn_fan mode, const char *nonlinearity);

/* Orthogonal rows of length gain; if there are fewer columns than rows, orthogonal columns. All axes after the first
   count as columns. */
CN_API bool cn_init_orthogonal(cn_tensor *t, double gain);
/* For two axes: in each column a share `sparsity` of the elements is 0, the rest is normal (PyTorch's std is 0.01). */
CN_API bool cn_init_sparse(cn_tensor *t, double sparsity, double std);

/* The gain of a nonlinearity: "linear", "conv1d" and the other convolutions, "sigmoid", "tanh", "relu", "leaky_relu"
   (param: its slope) or "selu". NaN: the name is unknown. */
CN_API double cn_init_gain(const char *nonlinearity, double param);
CN_API bool cn_init_fans(const cn_tensor *t, int64_t *fan_in, int64_t *fan_out);

#ifdef __cplusplus
}
#endif
#endif
