/* cairn/grad.h: gradients (automatic differentiation). PyTorch's torch.autograd.

       cn_tensor *w = cn_param(cn_randn(cn, CN_F32, CN_DIMS(3)));      kept, requires a gradient
       cn_tensor *loss = cn_sum(cn_square(w), CN_ALL, false);
       cn_backward(loss);                                              the gradient of w is 2w
       cn_no_grad_begin(cn);
       cn_assign(w, cn_sub(w, cn_mul_s(cn_grad_of(w), 0.1)));
       cn_no_grad_end(cn);
       cn_zero_grad(w);
       cn_eval_all(cn);

   Graphs     The graph of nodes is also the record for gradients; there is no tape. cn_backward spends the graph unless
              retain is set; a spent graph has no gradients. Gradients of several cn_backward add up until cn_zero_grad.
   Ownership  cn_param keeps its tensor. A gradient belongs to its tensor; other results belong to the current scope.
   Errors     false or NULL, and an error in the context. A missing gradient is an error, never a silent zero. */
#ifndef CAIRN_GRAD_H
#define CAIRN_GRAD_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

CN_API cn_tensor *cn_param(cn_tensor *t);            /* a parameter: a new leaf, kept, that requires a gradient */
/* A list of parameters. Modules return it (nn.h), optimizers accept it (optim.h). */
typedef struct cn_params {
    cn_tensor *const *v;
    int n;
} cn_params;
CN_API bool cn_requires_grad(const cn_tensor *t);
CN_API bool cn_is_leaf(const cn_tensor *t);              /* it is not the result of a recorded operator */
CN_API bool cn_set_requires_grad(cn_tensor *t, bool on); /* t must be a leaf of a floating type */
CN_API cn_tensor *cn_grad_of(cn_tensor *t);          /* the sum of its gradients so far; belongs to t; NULL: none */
CN_API void cn_zero_grad(cn_tensor *t);              /* clears the gradient */
CN_API cn_tensor *cn_detach(cn_tensor *input);       /* the same value, without its graph */

typedef struct cn_backward_desc {
    cn_tensor *gradient;  /* of the output; NULL: 1, if the output is a single number */
    bool retain;          /* the graph can be used again */
    bool create_graph;    /* gradients can be differentiated (implies retain) */
} cn_backward_desc;
CN_API bool cn_backward(cn_tensor *loss);
CN_API bool cn_backward_with(cn_tensor *output, const cn_backward_desc *desc);

/* Gradients of outputs with respect to inputs. It does not change cn_grad_of. */
typedef struct cn_grad_desc {
    cn_tensor *const *gradients; /* one for each output; NULL: 1, if the outputs are single numbers */
    bool retain, create_graph;
    bool allow_unused;           /* an input that the outputs do not depend on gets NULL; else it is an error */
} cn_grad_desc;
CN_API bool cn_grad(cn_tensor *const *outputs, int n_outputs, cn_tensor *const *inputs, int n_inputs,
                    cn_tensor **grads, const cn_grad_desc *desc);

CN_API void cn_no_grad_begin(cn_ctx *ctx); /* until its end no gradients are recorded; calls nest */
CN_API void cn_no_grad_end(cn_ctx *ctx);
CN_API bool cn_grad_enabled(const cn_ctx *ctx);

/* backward calls a hook with the gradient of t. The hook returns it, or another tensor of the same shape. */
typedef cn_tensor *(*cn_hook)(void *user, cn_tensor *grad);
CN_API bool cn_add_hook(cn_tensor *t, cn_hook hook, void *user);
/* The same; ended(user) is called once when no backward can call the hook any more: its graph is spent, or its tensor has
   gone. It may free user, but must not call Cairn. If adding fails it is not called. */
CN_API bool cn_add_hook_until(cn_tensor *t, cn_hook hook, void *user, void (*ended)(void *user));

/* A function with a gradient of its own. forward is not recorded. backward sets in_grads; an element left NULL is 0. */
typedef struct cn_custom {
    cn_tensor *(*forward)(void *user, cn_tensor *const *in, int n_in);
    void (*backward)(void *user, cn_tensor *const *in, int n_in, cn_tensor *out, cn_tensor *out_grad,
                     cn_tensor **in_grads);
    void *user;
} cn_custom;
CN_API cn_tensor *cn_custom_apply(const cn_custom *fn, cn_tensor *const *in, int n_in);

/* Runs fn without storing the values that its gradient needs; backward runs fn again to compute them. */
typedef cn_tensor *(*cn_function)(void *user, cn_tensor *const *in, int n_in);
CN_API cn_tensor *cn_checkpoint(cn_function fn, void *user, cn_tensor *const *in, int n_in);

/* ---- derivatives of functions: PyTorch's torch.autograd.functional ----

   fn is called once with leaves that have the values of the inputs: 1 to 8 tensors of a floating type. An input that its
   result does not depend on has derivatives 0. Results belong to the current scope. False: an error. */

/* vᵀJ, a tensor for each input. v has the shape of fn's result; NULL: 1, if the result is a single number. *output (may
   be NULL) becomes the result. */
CN_API bool cn_vjp(cn_function fn, void *user, cn_tensor *const *inputs, int n_inputs, cn_tensor *v, cn_tensor **output,
                   cn_tensor **vjp);
/* J v, of the shape of fn's result: the derivative in the direction v, which has a tensor for each input. */
CN_API bool cn_jvp(cn_function fn, void *user, cn_tensor *const *inputs, int n_inputs, cn_tensor *const *v,
                   cn_tensor **output, cn_tensor **jvp);
/* H v, a tensor for each input, of a function that returns a single number. */
CN_API bool cn_hvp(cn_function fn, void *user, cn_tensor *const *inputs, int n_inputs, cn_tensor *const *v,
                   cn_tensor **output, cn_tensor **hvp);

typedef struct cn_jacobian_desc {
    bool create_graph;        /* the result can be differentiated, also with respect to inputs that require gradients */
} cn_jacobian_desc;
/* J itself: jacobian[k] has the shape of fn's result, then that of input k. One backward for each element of the result. */
CN_API bool cn_jacobian(cn_function fn, void *user, cn_tensor *const *inputs, int n_inputs, cn_tensor **jacobian,
                        const cn_jacobian_desc *desc);
/* H itself, of a function that returns a single number: hessian[k * n_inputs + l] has the shape of input k, then that of
   input l. */
CN_API bool cn_hessian(cn_function fn, void *user, cn_tensor *const *inputs, int n_inputs, cn_tensor **hessian,
                       const cn_jacobian_desc *desc);

/* Compares the gradients of fn with finite differences. inputs are f64 leaves. Returns whether they agree; if not, it
   writes the reason to words. cn_gradgradcheck checks the gradient of the gradient. */
typedef struct cn_gradcheck_desc {
    double eps;               /* 0: 1e-6 */
    double atol, rtol;        /* 0: 1e-5, 1e-3 */
    int max_elements;         /* of a larger input a sample is checked; 0: all elements */
    char *words;              /* text for the reason; may be NULL */
    size_t words_size;
} cn_gradcheck_desc;
CN_API bool cn_gradcheck(cn_function fn, void *user, cn_tensor *const *inputs, int n_inputs,
                         const cn_gradcheck_desc *desc);
CN_API bool cn_gradgradcheck(cn_function fn, void *user, cn_tensor *const *inputs, int n_inputs,
                             const cn_gradcheck_desc *desc);

#ifdef __cplusplus
}
#endif
#endif
