/* cairn/op.h: what an operator is. docs/add-an-operator.md adds two of them, step by step.

   An operator is one `const cn_op`. Planning, fusion, gradients, tests and documentation are derived from this record.
   An operator of your own is the same struct:

       static void cube_f32(const cn_loop *l)
       {
           const float *x = l->in[0];
           float *y = l->out;
           for (int64_t i = 0; i < l->n; i++) y[i] = x[i] * x[i] * x[i];
       }
       static void cube_grad(cn_grad_call *g)
       {
           g->in_grad[0] = cn_mul(g->out_grad[0], cn_mul_s(cn_square(g->in[0]), 3));
       }
       static const cn_op cube = {
           .name = "cube", .doc = "x·x·x.", .call = "cube(Tensor input) -> Tensor",
           .kind = CN_MAP, .n_in = 1, .n_out = 1, .infer = cn_infer_map, .grad = cube_grad,
           .loops = { [CN_F32] = cube_f32 }, .wgsl = "x * x * x",
       };
       cn_tensor *y = cn_apply(&cube, &x, 1, NULL, NULL);

   Lifetime    The struct must outlive the context, because plans identify an operator by its address.
   Attributes  `attrs` (axes, flags, sizes) decide shapes and are part of a plan's key. They are a plain struct of
               int64_t and double fields, without padding, because plans compare it byte by byte.
   Arguments   `args` (learning rates, probabilities, offsets) are numbers that are fed to a plan. Changing one never
               rebuilds the plan.
   Errors      .infer calls cn_infer_fail and returns false. A kernel that finds an index out of range calls
               cn_kernel_fault, leaves that element out, and continues. */
#ifndef CAIRN_OP_H
#define CAIRN_OP_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CN_MAX_IN 8    /* operands with a fixed meaning; operators with .variadic, such as cat, accept more */
#define CN_MAX_OUT 4
#define CN_MAX_ARGS 8

typedef enum cn_kind {
    CN_MAP,       /* elementwise, any arity, operands broadcast */
    CN_VIEW,      /* a new layout over the same memory */
    CN_REDUCE,    /* over a range of neighbouring axes */
    CN_CONTRACT,  /* matmul, convolution */
    CN_INDEX,     /* gather, scatter, joining */
    CN_SCAN,      /* running results along an axis */
    CN_SORT,      /* order along an axis */
    CN_RANDOM,    /* elementwise, computed from a counter; fused like a MAP */
    CN_BLOCK,     /* one kernel for what could be composed of other operators */
    CN_COMPOSITE, /* calls other operators; the planner sees only those */
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

/* The call of .infer: from the operands' dtypes and shapes it computes the results'. A VIEW also sets strides and
   offset. */
typedef struct cn_infer {
    cn_ctx *ctx;
    const struct cn_op *op;
    int n_in;
    const cn_meta *const *in;     /* NULL where an optional operand is absent */
    const void *attrs;
    const cn_arg *args;
    int n_out;
    cn_meta out[CN_MAX_OUT];      /* to fill: dtype, ndim, shape; strides become row-major, except for a VIEW */
} cn_infer;
CN_API bool cn_infer_fail(cn_infer *i, cn_code code, const char *message, ...); /* like printf; returns false */
CN_API bool cn_infer_map(cn_infer *i);      /* results: broadcast shape, operands' dtype */
CN_API bool cn_infer_map_bool(cn_infer *i); /* the same shape; the results are bool */

/* The call of .grad. A gradient is written with operators: it runs on every device and can be differentiated again. */
typedef struct cn_grad_call {
    cn_ctx *ctx;
    const void *attrs;
    const cn_arg *args;
    int n_in, n_out;
    cn_tensor *const *in;         /* operands (NULL: absent) */
    cn_tensor *const *out;        /* results */
    cn_tensor *const *out_grad;   /* gradient of each result (NULL: none arrived) */
    const bool *needs;            /* which operands need a gradient */
    cn_tensor **in_grad;          /* to fill where needed; for a broadcast operand of a MAP the engine sums it */
    cn_tensor *const *so_far;     /* sum of the gradients that arrived for each operand so far (NULL: none) */
    bool *summed;                 /* set to true where in_grad includes so_far: saves a whole tensor for each slice */
} cn_grad_call;

/* One tile of a MAP or RANDOM: elements [start, start + n) of the row-major result, contiguous in memory. All results
   of a MAP have one shape. A loop always fills all of them; results that nobody needs go to memory that is not used. */
typedef struct cn_loop {
    void *out;
    void *more[CN_MAX_OUT - 1];   /* results after the first */
    const void *in[CN_MAX_IN];
    int64_t n, start;
    const void *attrs;
    const cn_arg *args;
} cn_loop;
typedef void (*cn_loop_fn)(const cn_loop *loop);

/* An operand or result of a kernel: contiguous, unless the record says .strided (operands) or .strided_out (results).
   */
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
    struct cn__cpu_run *run;      /* threads and faults, for cn_parallel and cn_kernel_fault */
    const struct cn__kernels *kernels; /* kernels of the library for the processor's instruction set; private */
} cn_kernel;
/* Calls body(kernel, user, begin, end, thread) for chunks of `grain` that cover [0, n), on all threads. Chunks depend
   on n and grain alone, so results do not depend on the number of threads. */
typedef void (*cn_body)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread);
CN_API void cn_parallel(const cn_kernel *k, int64_t n, int64_t grain, cn_body body, void *user);
CN_API int cn_threads(const cn_kernel *k);
/* A kernel with .epilogue calls this as soon as elements [begin, end) of its first result are final: once for each
   element. The epilogue (elementwise work that follows) then runs while the elements are in the cache. It may overwrite
   them, so the kernel must not read them again. `thread` is the argument of the calling body. */
CN_API void cn_kernel_done(const cn_kernel *k, int64_t begin, int64_t end, int thread);
CN_API void cn_kernel_fault(const cn_kernel *k, int64_t index, int64_t size); /* reports: index is not in [0, size) */

/* A REDUCE on the CPU: how elements are folded into a state. The engine cuts the reduced range into blocks, folds
   each block, and merges the states in order; the shape alone decides this order. One reducer for each dtype of the
   operand. */
typedef struct cn_reducer {
    size_t state;                                                             /* bytes for each result element */
    void (*begin)(void *state, int64_t n);                                    /* initialises n states */
    /* Folds x[0], .., x[n - 1] into one state. x[0] is at this position of the reduced range. */
    void (*row)(void *state, const void *x, int64_t n, int64_t position);
    /* Folds x[i] into state i, for i < n. Every x[i] is at this position. */
    void (*columns)(void *state, const void *x, int64_t n, int64_t position);
    void (*merge)(void *state, const void *later, int64_t n);                 /* adds later i to state i */
    void (*end)(const void *state, void *out, int64_t n);                     /* computes result i from state i */
    /* Many at a time, where x has `count` rows of n elements; NULL: row and columns are called for each. `rows` folds
       row i into state i, from position 0 on. `block` folds x[k * n + i], which is at position + k, into state i. */
    void (*rows)(void *state, const void *x, int64_t n, int64_t count);
    void (*block)(void *state, const void *x, int64_t n, int64_t count, int64_t position);
    /* Folds rows[k][i], which is at position + k, into state i, for k < 8 and i < n; NULL: `columns` is called for each
       row, as it is for the last rows of a range, fewer than 8. */
    void (*eight)(void *state, const void *const rows[8], int64_t n, int64_t position);
} cn_reducer;

/* A REDUCE on the GPU, as WGSL expressions. s and t are states; x is the element (f32, or i32 for whole numbers and
   bool); position is its place in the reduced range (i32). One reducer for floats, one for whole numbers. */
typedef struct cn_wgsl_reducer {
    const char *state;            /* the type of a state: "f32", "vec2<f32>" */
    const char *begin, *fold;     /* the initial state; the state after s and x */
    const char *merge, *end;      /* s and the later t; the result, where count is the number of elements */
} cn_wgsl_reducer;

/* Sets of dtypes, as bits, for .dtypes: those that the kernels support. cn_apply converts others: it computes halves in
   f32 and rounds back; it converts whole numbers to f32 if the record says .ints_to_float; the rest is an error. */
#define CN_BIT(t) (1u << (t))
#define CN_FLOATS (CN_BIT(CN_F32) | CN_BIT(CN_F64))
#define CN_INTS (CN_BIT(CN_U8) | CN_BIT(CN_I8) | CN_BIT(CN_I16) | CN_BIT(CN_I32) | CN_BIT(CN_I64))
#define CN_NUMBERS (CN_FLOATS | CN_INTS)
#define CN_ANY (CN_BIT(CN_DTYPES) - 1)

/* The cost of one call, for profiles, from its operands (layout.ndim -1: absent), results and attributes. */
typedef double (*cn_cost_fn)(const cn_meta *in, const cn_meta *out, const void *attrs);

struct cn_gpu_call; /* kernel.h */

typedef struct cn_op {
    /* what it is */
    const char *name, *doc;       /* doc: one sentence; x, y, z are the operands in their order */
    const char *call;             /* its signature: signature.h */
    cn_kind kind;
    int n_in, n_out;
    bool variadic;                /* accepts n_in operands or more */
    uint32_t optional;            /* bit i: operand i may be absent */

    /* dtypes and shapes */
    uint32_t dtypes;              /* of the operands that must agree; 0: CN_FLOATS */
    uint32_t free_dtype;          /* bit i: operand i keeps its own dtype (indices, masks) and is not promoted */
    bool ints_to_float;           /* whole numbers become f32 */
    size_t attr_size;             /* bytes of attrs */
    bool (*infer)(cn_infer *i);

    /* what its kernels can do */
    bool strided;                 /* the CPU kernel accepts operands with any strides */
    uint32_t strided_out;         /* bit i: kernels write result i with any strides that do not overlap */
    bool widens;                  /* the CPU kernel reads f16 and bf16 operands itself; its result is then f32 */
    int in_place;                 /* the CPU kernel may write its result over this operand, counted from 1; 0: none */
    bool epilogue;                /* the CPU kernel calls cn_kernel_done for every element of its first result */
    bool checks_index;            /* may call cn_kernel_fault: no assignment happens before it has run */
    /* The message of a fault, in which {index} and {size} stand for what cn_kernel_fault was told; NULL: the index is
       out of range for the size of its axis. */
    const char *fault;
    bool cheap;                   /* MAP: computing it again costs less than storing it */
    bool copies;                  /* MAP: the result equals the operand */
    bool any_order;               /* MAP: neither loops nor WGSL use the number of an element (start, i): elements may
                                     be computed in the order of the operands' memory */
    bool joins;                   /* concatenates its operands along an axis, the first field of attrs */

    /* the gradient */
    void (*grad)(cn_grad_call *g);
    const char *no_grad;          /* or the reason why there is none */
    uint32_t not_differentiable;  /* bit i: operand i never has a gradient (indices, masks) */

    /* COMPOSITE: calls other operators; nothing below is needed but cases */
    cn_tensor *(*compose)(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args);

    /* the CPU */
    cn_loop_fn loops[CN_DTYPES];  /* MAP: by dtype of the first promoted operand; RANDOM: by dtype of the result */
    const cn_reducer *reducers[CN_DTYPES]; /* REDUCE: by dtype of the operand; attrs begin with the axes: begin, end */
    size_t kernels_at;            /* built-in operators: where their loops or reducers are in the context's kernel table */
    void (*cpu)(const cn_kernel *k);                     /* any other kind */
    size_t (*scratch)(const cn_kernel *k, int threads);  /* bytes for .cpu; here data and args are NULL */

    /* the GPU */
    /* MAP, RANDOM: a WGSL expression in the operands x, y, z, u, v (f32 or i32). It may also use p0..p7, the arguments;
       q0.., which are 1 - p0..; k0.., which are 1/(1 - p0)..; lo0.. and hi0.., the low and high words of the arguments;
       a0.., the low words of the attributes; i, the number of the element; bits, the width of x. For several results:
       statements that set r0, r1, .. */
    const char *wgsl;
    const char *wgsl_whole;       /* the same for whole numbers and bool, where it differs */
    /* Instead of .wgsl: prints the expression for these attributes and the operand's dtype. Returns its length. */
    int (*wgsl_print)(const void *attrs, cn_dtype operand, char *out, size_t size);
    const cn_wgsl_reducer *wgsl_reducer, *wgsl_reducer_whole; /* REDUCE */
    bool (*gpu)(struct cn_gpu_call *c); /* any other kind: launches its kernels (kernel.h) */

    /* profiles, ONNX, tests */
    cn_cost_fn flops;             /* floating-point operations of a call; NULL: profiles count none */
    cn_cost_fn bytes;             /* bytes a call reads and writes; NULL: each element of operands and results once */
    bool attention;               /* profiles list it as attention */
    const char *onnx;             /* the ONNX operator with the same meaning, or NULL */
    const struct cn_case *cases;  /* test cases: op_cases.h */
    const float *ranges;          /* low and high of each operand, for cases that set no range; NULL: -2 to 2 */
    int n_cases;
} cn_op;

/* Every call of an operator goes through cn_apply, which returns the first result, or cn_apply_n, which writes all
   results to out[n_out]. NULL or false after an error. attrs and args may be NULL if the operator has none. */
CN_API cn_tensor *cn_apply(const cn_op *op, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args);
CN_API bool cn_apply_n(const cn_op *op, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args,
                       cn_tensor **out);
/* For operators without operands, whose context is not known from an operand. */
CN_API cn_tensor *cn_apply_in(cn_ctx *ctx, const cn_op *op, const void *attrs, const cn_arg *args);

/* A C function of yours on every element: cn_map(x, cbrt). Floats keep their dtype; whole numbers and bool become f32.
   The function must depend on its argument alone: the engine calls it when values are needed, from several threads, in
   any order, and once more where that is cheaper than storing. It joins groups like any elementwise operator. A GPU
   cannot run it: there the CPU computes it, which is counted and logged as a fallback.
   Gradients: cn_map has none, and asking for one is an error. cn_map_grad is told the derivative. In cn_map_user the
   functions also get `user`, which must stay as it is until the values are computed; its derivative may be NULL. */
CN_PURE cn_tensor *cn_map(cn_tensor *x, double (*fn)(double x));
CN_PURE cn_tensor *cn_map_grad(cn_tensor *x, double (*fn)(double x), double (*derivative)(double x));
CN_PURE cn_tensor *cn_map_user(cn_tensor *x, double (*fn)(void *user, double x),
                              double (*derivative)(void *user, double x), void *user);

/* All built-in operators, in the order of ops.def. */
CN_API const cn_op *const *cn_ops(int *count);
/* Whether the operator runs on a GPU. A VIEW needs no kernel; a COMPOSITE runs where the operators it calls do. */
CN_API bool cn_op_has_gpu(const cn_op *op);

#ifdef __cplusplus
}
#endif
#endif
