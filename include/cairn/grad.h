/* cairn/grad.h: gradients.

       cn_tensor *w = cn_param(cn_randn(cn, CN_F32, CN_DIMS(3)));      kept, requires a gradient
       cn_tensor *loss = cn_sum(cn_square(w), CN_ALL, false);
       cn_backward(loss);                                              w's gradient is 2w
       cn_no_grad_begin(cn);
       cn_assign(w, cn_sub(w, cn_mul_s(cn_grad_of(w), 0.1)));
       cn_no_grad_end(cn);
       cn_zero_grad(w);
       cn_eval_all(cn);

   The graph is the record: nothing is taped twice. After a backward its graph is spent; retain keeps it for another.
   A missing gradient is an error, never a silent zero. */
#ifndef CAIRN_GRAD_H
#define CAIRN_GRAD_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

CN_API cn_tensor *cn_param(cn_tensor *t);            /* detached, kept, requires a gradient: a leaf of its own */
/* A list of them, as modules give it (nn.h) and optimizers take it (optim.h). */
typedef struct cn_params {
    cn_tensor *const *v;
    int n;
} cn_params;
CN_API bool cn_requires_grad(const cn_tensor *t);
CN_API bool cn_set_requires_grad(cn_tensor *t, bool on); /* of a leaf of a floating type */
CN_API cn_tensor *cn_grad_of(cn_tensor *t);          /* the gradient gathered so far; NULL if none. Belongs to t */
CN_API void cn_zero_grad(cn_tensor *t);              /* forgets it */
CN_API cn_tensor *cn_detach(cn_tensor *input);

typedef struct cn_backward_desc {
    cn_tensor *gradient;  /* of the output itself; default 1 for a single number */
    bool retain;          /* the graph can be walked again */
    bool create_graph;    /* gradients can be differentiated (implies retain) */
} cn_backward_desc;
CN_API bool cn_backward(cn_tensor *loss);
CN_API bool cn_backward_with(cn_tensor *output, const cn_backward_desc *desc);

/* Gradients of outputs with regard to inputs, without touching cn_grad_of. */
typedef struct cn_grad_desc {
    cn_tensor *const *gradients; /* one for each output; NULL: 1 for single numbers */
    bool retain, create_graph;
    bool allow_unused;           /* an input that is not reached gives NULL instead of an error */
} cn_grad_desc;
CN_API bool cn_grad(cn_tensor *const *outputs, int n_outputs, cn_tensor *const *inputs, int n_inputs,
                    cn_tensor **grads, const cn_grad_desc *desc);

CN_API void cn_no_grad_begin(cn_ctx *ctx); /* nests */
CN_API void cn_no_grad_end(cn_ctx *ctx);
CN_API bool cn_grad_enabled(const cn_ctx *ctx);

/* Called with the gradient of t as it arrives; returns it, or another of the same shape. */
typedef cn_tensor *(*cn_hook)(void *user, cn_tensor *grad);
CN_API bool cn_add_hook(cn_tensor *t, cn_hook hook, void *user);

/* A function with a gradient of its own. forward runs unrecorded; backward fills in_grads (NULL: none). */
typedef struct cn_custom {
    cn_tensor *(*forward)(void *user, cn_tensor *const *in, int n_in);
    void (*backward)(void *user, cn_tensor *const *in, int n_in, cn_tensor *out, cn_tensor *out_grad, cn_tensor **in_grads);
    void *user;
} cn_custom;
CN_API cn_tensor *cn_custom_apply(const cn_custom *fn, cn_tensor *const *in, int n_in);

/* Runs fn without remembering what its backward needs; the backward computes it again. */
typedef cn_tensor *(*cn_function)(void *user, cn_tensor *const *in, int n_in);
CN_API cn_tensor *cn_checkpoint(cn_function fn, void *user, cn_tensor *const *in, int n_in);

/* Compares gradients with finite differences, in f64. inputs: f64 leaves. Returns whether they agree; if not, words
   says where. The second checks the gradient of the gradient. */
typedef struct cn_gradcheck_desc {
    double eps;               /* 0: 1e-6 */
    double atol, rtol;        /* 0: 1e-5, 1e-3 */
    int max_elements;         /* an input larger than this is sampled; 0: all */
    char *words;              /* may be NULL */
    size_t words_size;
} cn_gradcheck_desc;
CN_API bool cn_gradcheck(cn_function fn, void *user, cn_tensor *const *inputs, int n_inputs, const cn_gradcheck_desc *desc);
CN_API bool cn_gradgradcheck(cn_function fn, void *user, cn_tensor *const *inputs, int n_inputs, const cn_gradcheck_desc *desc);

#ifdef __cplusplus
}
#endif
#endif
