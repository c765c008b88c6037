/* cairn/tensor.h: what a tensor is, how it gets its data, how long it lives.

       float v[6] = {1, 2, 3, 4, 5, 6};
       cn_scope s = cn_scope_begin(cn);
       cn_tensor *x = cn_from(cn, CN_F32, CN_DIMS(2, 3), v);   copies v
       cn_tensor *y = cn_matmul(x, cn_transpose(x, 0, 1));     nothing is computed yet
       float out[4];
       cn_read(y, out, sizeof out);                            now it is
       cn_scope_end(cn, s);                                    x and y are gone

   Laziness   Calling an operator makes a node; asking for numbers (cn_item, cn_read, cn_data, cn_eval) computes it.
              Computed along with it: kept handles, results nothing consumed, single numbers, assignments. Everything
              else is let go; reading it later computes it again, unless a value it came from was assigned over since:
              then it is an error that says so. cn_keep what you want to look at later.
   Ownership  What an operator returns belongs to the scope it was made in. cn_keep holds a tensor beyond its scope,
              cn_release gives such a hold back. Views share memory with what they are views of.
   Values     A value never changes. cn_assign and the in-place forms give the *handle* a new value; a view or node
              made before keeps the old one (as in JAX, unlike PyTorch). */
#ifndef CAIRN_TENSOR_H
#define CAIRN_TENSOR_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Scopes are marks: ending one ends those begun inside it. */
typedef struct cn_scope {
    size_t mark;
} cn_scope;
CN_API cn_scope cn_scope_begin(cn_ctx *ctx);
CN_API void cn_scope_end(cn_ctx *ctx, cn_scope scope);
/* Ends the scope but hands one tensor up to the enclosing scope. */
CN_API cn_tensor *cn_scope_return(cn_ctx *ctx, cn_scope scope, cn_tensor *t);

CN_API cn_tensor *cn_keep(cn_tensor *t);    /* returns t */
CN_API void cn_release(cn_tensor *t);       /* NULL is fine */

/* From data. cn_from copies; cn_borrow uses the memory as it is (a GPU copies it), until nothing refers to it: then
   free_fn is called. */
CN_API cn_tensor *cn_from(cn_ctx *ctx, cn_dtype dtype, cn_dims shape, const void *data);
CN_API cn_tensor *cn_borrow(cn_ctx *ctx, cn_dtype dtype, cn_dims shape, void *data,
                            void (*free_fn)(void *user), void *user);
CN_API cn_tensor *cn_scalar(cn_ctx *ctx, cn_dtype dtype, double value); /* a number: never part of a plan's structure */

/* Looking at one. */
CN_API cn_ctx *cn_context(const cn_tensor *t);
CN_API cn_dtype cn_type(const cn_tensor *t);
CN_API int cn_ndim(const cn_tensor *t);
CN_API int64_t cn_size(const cn_tensor *t, int axis); /* axis may count from the end */
CN_API cn_dims cn_shape(const cn_tensor *t);
CN_API cn_dims cn_strides(const cn_tensor *t);        /* in elements */
CN_API int64_t cn_numel(const cn_tensor *t);
CN_API bool cn_is_contiguous(const cn_tensor *t);
CN_API const char *cn_device(const cn_tensor *t);
CN_API cn_tensor *cn_name(cn_tensor *t, const char *name); /* shown in errors and plans (copied, 31 characters); returns t */

/* Numbers out. Each evaluates first; on error they return false, NULL or NaN. */
CN_API bool cn_eval(cn_tensor *t);
CN_API bool cn_eval_all(cn_ctx *ctx);                        /* everything pending that someone can want */
CN_API bool cn_read(cn_tensor *t, void *out, size_t bytes);  /* row-major, exactly the tensor's bytes */
CN_API bool cn_read_f64(cn_tensor *t, double *out, int64_t count); /* any dtype, converted */
CN_API const void *cn_data(cn_tensor *t);                    /* contiguous memory, valid while t is and is not assigned; CPU only */
CN_API double cn_item(cn_tensor *t);                         /* of a tensor of one element */
CN_API int64_t cn_item_i64(cn_tensor *t);
CN_API double cn_get(cn_tensor *t, cn_dims index);

/* Numbers later: of a value that is only looked at now and then, a loss in a log, without waiting for it. What is read is
   what t was at cn_read_begin, which evaluates it. On a GPU it comes along with the steps that follow, some of them later;
   on the CPU it is there at once. Readings left over are freed with the context. */
typedef struct cn_reading cn_reading;
CN_API cn_reading *cn_read_begin(cn_tensor *t);                     /* NULL: an error */
CN_API bool cn_read_done(cn_reading *r);                            /* does not wait; NULL is done */
CN_API bool cn_read_end(cn_reading *r, void *out, size_t bytes);    /* waits if it must, and frees r; out NULL: not wanted */

/* Numbers in. The handle gets a new value. */
CN_API bool cn_assign(cn_tensor *t, cn_tensor *value);       /* same shape; value is converted to t's dtype */
CN_API bool cn_set(cn_tensor *t, cn_dims index, double value);
CN_API bool cn_write(cn_tensor *t, const void *data, size_t bytes);

/* As PyTorch prints it. Returns the length of the whole text; writes at most size bytes, always ended by 0. */
CN_API size_t cn_print(cn_tensor *t, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
