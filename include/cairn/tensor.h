/* cairn/tensor.h: tensors: how they get their data, how to read it, how long they live.

       float v[6] = {1, 2, 3, 4, 5, 6};
       cn_scope s = cn_scope_begin(cn);
       cn_tensor *x = cn_from(cn, CN_F32, CN_DIMS(2, 3), v);   copies v
       cn_tensor *y = cn_matmul(x, cn_transpose(x, 0, 1));     makes a node; computes nothing
       float out[4];
       cn_read(y, out, sizeof out);                            computes y
       cn_scope_end(cn, s);                                    frees x and y

   Laziness   An operator only makes a node. Reading a value (cn_item, cn_read, cn_data, cn_eval) computes it. The same
              evaluation also stores the values of kept handles, of results that no node uses, of single numbers, and of
              assignments. All other values are let go. Reading a value that was let go computes it again; if a value
              that it depends on was assigned in the meantime, that is an error. cn_keep the tensors that you want to
              read later.
   Ownership  The result of an operator belongs to the current scope. cn_keep keeps a tensor beyond its scope until
              cn_release. A view shares memory with its source. Using a tensor after its release is an error as long as
              its handle has not been reused: for the next 4,096 releases, in debug builds always.
   Values     A value never changes. cn_assign and the in-place forms give the *handle* a new value; older views and
              nodes keep the old one (as in JAX, unlike PyTorch).
   Errors     NULL, false or NaN, and an error in the context (base.h). */
#ifndef CAIRN_TENSOR_H
#define CAIRN_TENSOR_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Scopes nest: the end of a scope also ends the scopes begun inside it. */
typedef struct cn_scope {
    size_t mark;
} cn_scope;
CN_API cn_scope cn_scope_begin(cn_ctx *ctx);
CN_API void cn_scope_end(cn_ctx *ctx, cn_scope scope);
/* Ends the scope, but moves t to the enclosing scope. Returns t. */
CN_API cn_tensor *cn_scope_return(cn_ctx *ctx, cn_scope scope, cn_tensor *t);

CN_API cn_tensor *cn_keep(cn_tensor *t);    /* returns t */
CN_API void cn_release(cn_tensor *t);       /* NULL is allowed */

/* Tensors from data. cn_from copies the data. cn_borrow uses your memory (a GPU copies it); free_fn is called when no
   tensor needs the memory any more, at the end of a call. */
CN_PURE cn_tensor *cn_from(cn_ctx *ctx, cn_dtype dtype, cn_dims shape, const void *data);
CN_API cn_tensor *cn_borrow(cn_ctx *ctx, cn_dtype dtype, cn_dims shape, void *data,
                            void (*free_fn)(void *user), void *user);
CN_PURE cn_tensor *cn_scalar(cn_ctx *ctx, cn_dtype dtype, double value); /* an argument of plans: never rebuilds one */

/* Properties. */
CN_API cn_ctx *cn_context(const cn_tensor *t);
CN_API cn_dtype cn_type(const cn_tensor *t);
CN_API int cn_ndim(const cn_tensor *t);
CN_API int64_t cn_size(const cn_tensor *t, int axis); /* axis may count from the end */
CN_API cn_dims cn_shape(const cn_tensor *t);
CN_API cn_dims cn_strides(const cn_tensor *t);        /* in elements */
CN_API int64_t cn_numel(const cn_tensor *t);
CN_API bool cn_is_contiguous(const cn_tensor *t);
CN_API const char *cn_device(const cn_tensor *t);
CN_API cn_tensor *cn_name(cn_tensor *t, const char *name); /* errors and plans show it (31 characters); returns t */

/* Reading. Each function evaluates first; after an error it returns false, NULL or NaN. */
CN_API bool cn_eval(cn_tensor *t);
CN_API bool cn_eval_all(cn_ctx *ctx);                        /* every pending value that a handle can still reach */
CN_API bool cn_read(cn_tensor *t, void *out, size_t bytes);  /* row-major; bytes must be the tensor's */
CN_API bool cn_read_f64(cn_tensor *t, double *out, int64_t count); /* any dtype, converted */
CN_API const void *cn_data(cn_tensor *t);                    /* CPU only; contiguous, until t is freed or assigned */
CN_API double cn_item(cn_tensor *t);                         /* t has one element */
CN_API int64_t cn_item_i64(cn_tensor *t);
CN_API bool cn_allclose(cn_tensor *input, cn_tensor *other, double rtol, double atol, bool equal_nan); /* cn_isclose */
CN_API double cn_get(cn_tensor *t, cn_dims index);

/* Reading without waiting, for a value such as a loss in a log. cn_read_begin evaluates t; the reading gets the value
   that t has then. On a GPU the value arrives some steps later; on the CPU it is there at once. The context frees
   readings that were not ended. */
typedef struct cn_reading cn_reading;
CN_API cn_reading *cn_read_begin(cn_tensor *t);                  /* NULL: an error */
CN_API bool cn_read_done(cn_reading *r);                         /* does not wait; true for NULL */
CN_API bool cn_read_end(cn_reading *r, void *out, size_t bytes); /* waits if necessary, frees r; out NULL: discards */

/* Writing: the handle gets a new value. */
CN_API bool cn_assign(cn_tensor *t, cn_tensor *value);       /* of t's shape; value is converted to t's dtype */
CN_API bool cn_set(cn_tensor *t, cn_dims index, double value);
CN_API bool cn_write(cn_tensor *t, const void *data, size_t bytes);

/* Prints t as PyTorch does. Returns the length of the whole text. Writes at most size bytes, always ended by 0. */
CN_API size_t cn_print(cn_tensor *t, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
