/* cairn/init.h: new values for parameters. PyTorch's torch.nn.init.

       cn_tensor *w = cn_module_get(model, "0.weight");
       cn_init_kaiming_normal(w, 0, CN_FAN_OUT, "relu");
       cn_init_xavier_uniform(w, cn_init_gain("tanh", 0));
       cn_init_trunc_normal(w, 0, 0.02, -2, 2);
       cn_init_zeros(cn_module_get(model, "0.bias"));

   Layers have PyTorch's initial values from their makers; this is for others.
   Values     Each gives the handle a new value, as cn_assign does; whether it requires a gradient stays as it is, nothing is
              recorded. Random numbers come from the context's seed, one stream a call: the same program draws the same.
   Fans       Of a weight (out,in,kernel...): fan_in = in · kernel, fan_out = out · kernel, as PyTorch counts them.
   Errors     false: a shape or number that is not possible, in words; the value is as it was. */
#ifndef CAIRN_INIT_H
#define CAIRN_INIT_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

CN_API bool cn_init_uniform(cn_tensor *t, double low, double high);  /* [low, high) */
CN_API bool cn_init_normal(cn_tensor *t, double mean, double std);
CN_API bool cn_init_trunc_normal(cn_tensor *t, double mean, double std, double a, double b); /* normal, within [a, b]; PyTorch's default is -2, 2 */
CN_API bool cn_init_constant(cn_tensor *t, double value);
CN_API bool cn_init_ones(cn_tensor *t);
CN_API bool cn_init_zeros(cn_tensor *t);
CN_API bool cn_init_eye(cn_tensor *t);                               /* two axes */
CN_API bool cn_init_dirac(cn_tensor *t, int64_t groups);             /* a convolution's weight that leaves channels as they are */

CN_API bool cn_init_xavier_uniform(cn_tensor *t, double gain);       /* variance gain² · 2 / (fan_in + fan_out) */
CN_API bool cn_init_xavier_normal(cn_tensor *t, double gain);
typedef enum cn_fan { CN_FAN_IN, CN_FAN_OUT } cn_fan;
/* Variance gain² / fan, gain = cn_init_gain(nonlinearity, a); NULL: "leaky_relu". */
CN_API bool cn_init_kaiming_uniform(cn_tensor *t, double a, cn_fan mode, const char *nonlinearity);
CN_API bool cn_init_kaiming_normal(cn_tensor *t, double a, cn_fan mode, const char *nonlinearity);

/* Rows (or columns, if there are fewer) orthogonal, of length gain; axes after the first count as one. */
CN_API bool cn_init_orthogonal(cn_tensor *t, double gain);
/* Two axes: in each column a share of `sparsity` is 0, the others are normal (PyTorch's default std is 0.01). */
CN_API bool cn_init_sparse(cn_tensor *t, double sparsity, double std);

/* "linear", "conv2d" and its kin, "sigmoid", "tanh", "relu", "leaky_relu" (param: its slope), "selu"; NaN for another. */
CN_API double cn_init_gain(const char *nonlinearity, double param);
CN_API bool cn_init_fans(const cn_tensor *t, int64_t *fan_in, int64_t *fan_out);

#ifdef __cplusplus
}
#endif
#endif
