/* cairn/base.h: contexts, errors, element types, shapes.

   Everything belongs to a context. Open one, work, close it:

       cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1 });
       cn_tensor *x = cn_randn(cn, CN_F32, CN_DIMS(2, 3));
       printf("%g\n", cn_item(cn_sum(x, CN_ALL, false)));
       if (cn_failed(cn)) fprintf(stderr, "%s\n", cn_error(cn));
       cn_close(cn);

   Ownership  One thread at a time may use a context; a second one at the same time gets an error. Contexts share
              nothing: a tensor or object of another context is an error, which stands in both. cn_close frees all that
              was made in it; nothing of it may be used afterwards. A callback cannot close it, nor end outer scopes.
   Errors     Operators return a tensor, or NULL after an error. An operator with a NULL operand returns NULL. The first
              error stays in the context, with its code and message, until cn_error_clear: one check for each step is
              enough. It names the function that was called. A tensor that is used after its release, and an object
              that is used after it was freed, are errors. The library never prints or aborts. */
#ifndef CAIRN_BASE_H
#define CAIRN_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define CN_API __declspec(dllexport)
#elif defined(__GNUC__)
#define CN_API __attribute__((visibility("default")))
#else
#define CN_API
#endif

/* A call whose result is not looked at is a mistake: the compiler warns. CN_PURE: an operator with one result, which
   does nothing else. */
#if defined(__GNUC__)
#define CN_MUST_USE __attribute__((warn_unused_result))
#else
#define CN_MUST_USE
#endif
#define CN_PURE CN_API CN_MUST_USE

#ifdef __cplusplus
extern "C" {
#endif

#define CN_MAX_DIMS 8

typedef struct cn_ctx cn_ctx;
typedef struct cn_tensor cn_tensor;

/* Element types, in PyTorch's order of promotion within a category. */
typedef enum cn_dtype { CN_BOOL, CN_U8, CN_I8, CN_I16, CN_I32, CN_I64, CN_F16, CN_BF16, CN_F32, CN_F64 } cn_dtype;
#define CN_DTYPES 10

CN_API const char *cn_dtype_name(cn_dtype t);               /* "f32" */
CN_API size_t cn_dtype_size(cn_dtype t);                    /* bytes of an element */
CN_API bool cn_dtype_is_float(cn_dtype t);
CN_API cn_dtype cn_promote(cn_dtype a, cn_dtype b);         /* PyTorch's promote_types */

/* A list of sizes, axes or indices: CN_DIMS(2, 3, 4). CN_SCALAR is the shape of a single number. */
typedef struct cn_dims {
    int n;
    int64_t v[CN_MAX_DIMS];
} cn_dims;

#ifdef __cplusplus
} /* extern "C" */
template <typename... T> inline cn_dims cn_dims_list(T... v)
{
    static_assert(sizeof...(v) <= CN_MAX_DIMS, "at most 8 dimensions");
    return cn_dims{(int)sizeof...(v), {(int64_t)v...}};
}
#define CN_DIMS(...) cn_dims_list(__VA_ARGS__)
#define CN_SCALAR (cn_dims{0, {0}})
#define CN_ALL (cn_dims{-1, {0}})
template <typename T, size_t N> inline const T *cn_list_of(const T (&v)[N]) { return v; }
template <typename T, size_t N> char (&cn_list_size(const T (&v)[N]))[N];
#define CN_LIST(type, ...) cn_list_of<type>({__VA_ARGS__}), (int)sizeof(cn_list_size<type>({__VA_ARGS__}))
extern "C" {
#else
#define CN_DIMS(...) ((cn_dims){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})
#define CN_SCALAR ((cn_dims){0, {0}})
#define CN_ALL ((cn_dims){-1, {0}}) /* as a list of axes: all of them */
#define CN_LIST(type, ...) (type[]){__VA_ARGS__}, (int)(sizeof((type[]){__VA_ARGS__}) / sizeof(type))
#endif

/* CN_LIST is two arguments, an array and how many elements it has, for functions that take both. The compiler counts:
       cn_cat(CN_TENSORS(a, b, c), 0);      cn_dataset_split(d, CN_LIST(double, 0.9, 0.1), seed, parts);
   There is no empty list: write NULL, 0. */
#define CN_TENSORS(...) CN_LIST(cn_tensor *, __VA_ARGS__)

typedef enum cn_code {
#define CN_ERROR(name, text) CN_##name,
#include "errors.def"
#undef CN_ERROR
} cn_code;

/* The source of memory. resize(user, NULL, 0, n) allocates, resize(user, p, n, 0) frees. If resize returns NULL, the
   call that needed memory fails with CN_NO_MEMORY. */
typedef struct cn_allocator {
    void *(*resize)(void *user, void *p, size_t old_bytes, size_t new_bytes);
    void *user;
} cn_allocator;

typedef void (*cn_logger)(void *user, const char *line);

typedef struct cn_desc {
    const char *device;      /* "cpu", "gpu", "gpu:1" (gpu.h), or "auto": a hardware GPU if there is one, else the CPU
                                (cn_gpu_auto has the reason). NULL: what CAIRN_DEVICE says, else "cpu". If a GPU that
                                was asked for cannot be opened, the context has an error and computes on the CPU */
    uint64_t seed;           /* of all random numbers */
    int threads;             /* 0: one for each core */
    cn_allocator allocator;  /* default: malloc; it must not use the context */
    cn_logger logger;        /* gets notices and traces; must not use the context; default: none */
    void *logger_user;
    size_t memory_limit;     /* bytes of tensor memory; 0: no limit */
    int64_t pending_limit;   /* pending nodes; more of them are evaluated without being asked for; 0: 16,384 */
    int plan_limit;          /* plans in the cache; 0: 256 */
    bool eager;              /* evaluate every operation at once (also CAIRN_EAGER=1) */
} cn_desc;

CN_PURE cn_ctx *cn_open(const cn_desc *desc); /* NULL desc: defaults. Returns NULL: out of memory */
CN_API void cn_close(cn_ctx *ctx);           /* frees every tensor of the context */
CN_API const char *cn_version(void);
/* The instruction set of the CPU's kernels: "baseline", "avx2" or "avx512" on x86, "neon" on ARM.
   CAIRN_ISA limits it. */
CN_API const char *cn_instruction_set(void);

CN_API bool cn_failed(const cn_ctx *ctx);
CN_API cn_code cn_error_code(const cn_ctx *ctx);
CN_API const char *cn_error(const cn_ctx *ctx); /* the message; "" if there is no error */
CN_API void cn_error_clear(cn_ctx *ctx);
CN_API const char *cn_code_name(cn_code code);

CN_API void cn_seed(cn_ctx *ctx, uint64_t seed); /* as if the context had been opened with it */

#ifdef __cplusplus
}
#endif
#endif
