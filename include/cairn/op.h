/* cairn/op.h: what an operator is, and how to add one.

   An operator is one `const cn_op`: what it computes is said here once, and everything else (planning, fusion,
   gradients, tests, documentation) is derived from it. A user's operator is the same struct:

       static void cube_f32(const cn_loop *l) { ... for (i < l->n) out[i] = x[i] * x[i] * x[i]; }
       static void cube_grad(cn_grad_call *g)
       {
           g->in_grad[0] = cn_mul(g->out_grad[0], cn_mul_s(cn_square(g->in[0]), 3));
       }
       static const cn_op cube = { .name = "cube", .doc = "x*x*x", .call = "cube(Tensor input) -> Tensor",
                                   .kind = CN_MAP, .n_in = 1, .n_out = 1,
                                   .infer = cn_infer_map, .grad = cube_grad, .loops = { [CN_F32] = cube_f32 } };
       cn_tensor *y = cn_apply(&cube, &x, 1, NULL, NULL);

   Lifetime   The struct must outlive the context: plans know an operator by its address.
   Structure and arguments  `attrs` (axes, flags, sizes) are part of a plan's identity: a plain struct of int64_t and
              double fields (no padding), compared byte by byte. `args` (learning rates, probabilities, offsets) are
              numbers fed to a plan: changing one never rebuilds it.
   Errors     infer returns false after cn_infer_fail with words; a kernel that finds an index out of range calls
              cn_kernel_fault and goes on without touching memory it should not. */
#ifndef CAIRN_OP_H
#define CAIRN_OP_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CN_MAX_IN 8    /* operands with a fixed meaning; operators like cat take more, see .variadic */
#define CN_MAX_OUT 4
#define CN_MAX_ARGS 8

typedef enum cn_kind {
    CN_MAP,       /* elementwise, any arity, operands broadcast */
    CN_VIEW,      /* layout only */
    CN_REDUCE,    /* over a range of neighbouring axes */
    CN_CONTRACT,  /* matmul, convolution */
    CN_INDEX,     /* gather, scatter, joining */
    CN_SCAN,
    CN_SORT,
    CN_RANDOM,    /* elementwise from a counter: fuses like a MAP */
    CN_BLOCK,     /* a fused kernel whose composite definition is its reference */
    CN_COMPOSITE, /* other operators put together: nothing the planner sees */
} cn_kind;

typedef union cn_arg {
    double f;
    int64_t i;
    uint64_t u;
} cn_arg;

typedef struct cn_layout {
    int ndim;
    int64_t shape[CN_MAX_DIMS], stride[CN_MAX_DIMS]; /* strides in elements */
    int64_t offset;                                  /* in elements, from the start of the storage */
} cn_layout;

typedef struct cn_meta {
    cn_dtype dtype;
    cn_layout layout;
} cn_meta;

/* The result's dtype and shape from the operands' (and strides and offset, for a VIEW only). */
typedef struct cn_infer {
    cn_ctx *ctx;
    const struct cn_op *op;
    int n_in;
    const cn_meta *const *in;     /* NULL where an optional operand is absent */
    const void *attrs;
    const cn_arg *args;
    int n_out;
    cn_meta out[CN_MAX_OUT];      /* to fill: dtype, ndim, shape; strides are row-major unless VIEW */
} cn_infer;
CN_API bool cn_infer_fail(cn_infer *i, cn_code code, const char *words, ...); /* returns false */
CN_API bool cn_infer_map(cn_infer *i);      /* MAP: broadcast shape, dtype of the operands; the same for every result */
CN_API bool cn_infer_map_bool(cn_infer *i); /* the same with a bool result */

/* Gradients are written with operators, so they run on every device and differentiate again. */
typedef struct cn_grad_call {
    cn_ctx *ctx;
    const void *attrs;
    const cn_arg *args;
    int n_in, n_out;
    cn_tensor *const *in;         /* operands (NULL: absent) */
    cn_tensor *const *out;        /* results */
    cn_tensor *const *out_grad;   /* gradient of each result (NULL: none arrived) */
    const bool *needs;            /* which operands want one */
    cn_tensor **in_grad;          /* to fill where needed; for a broadcast operand of a MAP the engine sums it */
    cn_tensor *const *so_far;     /* what arrived for each operand from elsewhere (NULL: nothing yet) */
    bool *summed;                 /* set where in_grad already contains so_far: for an operand used piece by piece */
} cn_grad_call;

/* One tile of a MAP or RANDOM: contiguous elements [start, start + n) of the row-major result. Where a MAP has several
   results, all of one shape, a loop always fills all of them: what nobody needs goes to memory that is thrown away. */
typedef struct cn_loop {
    void *out;
    void *more[CN_MAX_OUT - 1];   /* results after the first */
    const void *in[CN_MAX_IN];
    int64_t n, start;
    const void *attrs;
    const cn_arg *args;
} cn_loop;
typedef void (*cn_loop_fn)(const cn_loop *loop);

/* An operand or result as a kernel sees it: contiguous unless the record says .strided, or .strided_out of results. */
typedef struct cn_array {
    void *data;                   /* NULL: absent operand */
    cn_dtype dtype;
    int ndim;
    int64_t numel;
    int64_t shape[CN_MAX_DIMS], stride[CN_MAX_DIMS];
} cn_array;

typedef struct cn_kernel {
    const struct cn_op *op;
    const void *attrs;
    const cn_arg *args;
    int n_in, n_out;
    const cn_array *in;
    const cn_array *out;
    void *scratch;                /* as many bytes as .scratch asked for, 64-byte aligned */
    struct cn__cpu_run *run;      /* threads and faults: for cn_parallel, cn_kernel_fault */
    const struct cn__kernels *kernels; /* of the library itself, for the processor's instruction set */
} cn_kernel;
/* body(kernel, user, begin, end, thread) over [0, n) in chunks of `grain`, on all threads. Chunks depend on n and grain
   alone, so that results do not depend on the number of threads. */
typedef void (*cn_body)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread);
CN_API void cn_parallel(const cn_kernel *k, int64_t n, int64_t grain, cn_body body, void *user);
CN_API int cn_threads(const cn_kernel *k);
/* An operator with .epilogue reports which elements [begin, end) of its first result are final: as soon as they are, each
   element once. The epilogue, elementwise work that follows, then runs while they are in the cache. It may overwrite
   them, so the kernel must not read them again. `thread` is the calling body's. */
CN_API void cn_kernel_done(const cn_kernel *k, int64_t begin, int64_t end, int thread);
CN_API void cn_kernel_fault(const cn_kernel *k, int64_t index, int64_t size); /* index not in [0, size) */

/* A REDUCE on the CPU: how elements are folded into a state, in an order fixed by the shape alone. The engine cuts the
   reduced range into blocks, folds each, and merges them in order. One for each dtype of the operand. */
typedef struct cn_reducer {
    size_t state;                                                             /* bytes for each result element */
    void (*begin)(void *state, int64_t n);                                    /* n fresh states */
    /* Folds x[0..n) into one state; position: of x[0] in the reduced range. */
    void (*row)(void *state, const void *x, int64_t n, int64_t position);
    /* Folds x[i] into state i; every x[i] is at this position. */
    void (*columns)(void *state, const void *x, int64_t n, int64_t position);
    void (*merge)(void *state, const void *later, int64_t n);                 /* state i absorbs later i */
    void (*end)(const void *state, void *out, int64_t n);                     /* result elements from states */
} cn_reducer;

/* The same on the GPU, as WGSL expressions: s and t are states, x the element (f32, or i32 for whole numbers and bool),
   at its position (i32). One for floats, one for whole numbers. */
typedef struct cn_wgsl_reducer {
    const char *state;            /* type: "f32", "vec2<f32>" */
    const char *begin, *fold;     /* a fresh state; s with x folded in */
    const char *merge, *end;      /* s with the later t absorbed; the result, where count is the number of elements */
} cn_wgsl_reducer;

/* Which dtypes a kernel takes natively, as bits. Others are converted by the funnel: halves are computed in f32 and
   rounded back; integers become f32 where only floats make sense (.ints_to_float), else they are an error. */
#define CN_BIT(t) (1u << (t))
#define CN_FLOATS (CN_BIT(CN_F32) | CN_BIT(CN_F64))
#define CN_INTS (CN_BIT(CN_U8) | CN_BIT(CN_I8) | CN_BIT(CN_I32) | CN_BIT(CN_I64))
#define CN_NUMBERS (CN_FLOATS | CN_INTS)
#define CN_ANY 0x1ffu

/* What one call of a kernel costs, for profiles: from its operands (ndim -1: absent), results and attributes. */
typedef double (*cn_cost_fn)(const cn_meta *in, const cn_meta *out, const void *attrs);

struct cn_gpu_call; /* kernel.h */

typedef struct cn_op {
    const char *name, *doc;
    const char *call;             /* its signature: signature.h */
    cn_kind kind;
    int n_in, n_out;
    bool variadic;                /* takes n_in operands or more */
    uint32_t optional;            /* bit i: operand i may be absent */
    uint32_t dtypes;              /* of the operands that must agree; 0: CN_FLOATS */
    uint32_t free_dtype;          /* bit i: operand i keeps its own dtype (indices, masks) and is not promoted */
    bool ints_to_float;
    bool strided;                 /* CPU kernel takes any strides */
    uint32_t strided_out;         /* bit i: kernels write result i with any strides, which do not overlap */
    bool widens;                  /* CPU kernel takes f16 and bf16 operands as they are; its result is f32 then */
    bool in_place;                /* CPU kernel may write its result over its first operand, if that has no later use */
    bool epilogue;                    /* CPU kernel calls cn_kernel_done for every element of its first result */
    bool checks_index;            /* may call cn_kernel_fault: no assignment happens before it has run */
    bool cheap;                   /* MAP: computing it again costs less than storing it */
    bool copies;                  /* MAP: the result is the operand as it is */
    bool joins;                   /* concatenates its operands along an axis, the first field of attrs */
    size_t attr_size;
    bool (*infer)(cn_infer *i);
    void (*grad)(cn_grad_call *g);
    const char *no_grad;          /* or why there is none */
    uint32_t not_differentiable;  /* bit i: operand i has no gradient by nature (indices, masks) */
    cn_tensor *(*compose)(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args);
    cn_loop_fn loops[CN_DTYPES];  /* MAP: one tile, by dtype of the first promoted operand; RANDOM: of the result */
    const cn_reducer *reducers[CN_DTYPES]; /* REDUCE: by dtype of the operand; attrs begin with the axes: begin, end */
    size_t kernels_at;            /* built-in operators: offset of loops or reducers in the context's kernel table */
    void (*cpu)(const cn_kernel *k);
    size_t (*scratch)(const cn_kernel *k, int threads);  /* called without data and without args (k->args == NULL) */
    /* MAP, RANDOM: a WGSL expression in x, y, z, u, v (f32 or i32). It may also use p0..p7, the arguments; q0.., which
       are 1 minus them; k0.., 1/(1 minus them); lo0.., hi0.., their low and high words; a0.., the low words of the
       attributes; i, the number of the element; bits, the width of x. Several results: statements that set r0, r1. */
    const char *wgsl;
    const char *wgsl_whole;       /* the same for whole numbers and bool, where it differs */
    /* Or printed for its attributes and the dtype it is computed in. Returns its length. */
    int (*wgsl_print)(const void *attrs, cn_dtype operand, char *out, size_t size);
    const cn_wgsl_reducer *wgsl_reducer, *wgsl_reducer_whole; /* REDUCE */
    bool (*gpu)(struct cn_gpu_call *c); /* any other kind: launches its kernels (kernel.h) */
    cn_cost_fn flops;             /* floating-point operations of a call; NULL: profiles count none */
    cn_cost_fn bytes;             /* bytes that it reads and writes; NULL: each element of operands and results once */
    bool attention;               /* profiles list it as attention */
    const char *onnx;
    const struct cn_case *cases;  /* test cases: op_cases.h */
    const float *ranges;          /* low and high of each operand, for cases that do not say them; NULL: -2 to 2 */
    int n_cases;
} cn_op;

/* The one funnel. cn_apply: one result. cn_apply_n: all of them into out[n_out]. */
CN_API cn_tensor *cn_apply(const cn_op *op, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args);
CN_API bool cn_apply_n(const cn_op *op, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args,
                       cn_tensor **out);
/* For operators without operands (creation): the context cannot be known from them. */
CN_API cn_tensor *cn_apply_in(cn_ctx *ctx, const cn_op *op, const void *attrs, const cn_arg *args);

/* All built-in operators, in the order of ops.def. */
CN_API const cn_op *const *cn_ops(int *count);
/* Whether it runs on a GPU, as its record says: a VIEW needs no kernel, a COMPOSITE runs where its parts do. */
CN_API bool cn_op_has_gpu(const cn_op *op);

#ifdef __cplusplus
}
#endif
#endif
