/* cairn/kernel.h: GPU kernels of operators. Operators of your own use the same functions.

   A MAP, RANDOM or REDUCE operator needs none of this: its record has WGSL expressions (op.h). Any other operator has a
   shader, which is WGSL with declarations in comments, and a function that launches it:

       // roll.wgsl                                        static bool roll_gpu(cn_gpu_call *c)
       //! kernel roll                                     {
       //! uses raw0 set_raw0 par                              cn_gpu_param(c, shift);
       fn each(i: u32) {                                       cn_gpu_param(c, c->in[0].numel);
           set_raw0(i, raw0((i + par(0u)) % par(1u)));         return cn_gpu_run(c, &(cn_gpu_launch){
       }                                                           .shader = roll_wgsl, .each = c->out[0].numel });
                                                           }
       const cn_op roll = { ..., .gpu = roll_gpu };

   When      The function is called once for each step of a plan, before the step first runs. Shapes, strides and
             attributes are known then; data and arguments are not. It may launch several kernels; they run in order.
   Elements  An element is one 32-bit word on the GPU: f64 is stored as f32, whole numbers (also i64) as i32, bool as
             0 or 1. A word holds two elements of f16 or bf16; only operators with .widens read them, through inK.
   Shader    The text of a .wgsl file. Lines that begin with //! declare what WGSL cannot:
               //! kernel NAME        begins a kernel. It has `fn each(i: u32)`, called for every i below .each; or
                                      `fn kernel(group: u32, local: u32)`, where group < .groups and local < .size
               //! part NAME          begins a part, which kernels and other parts may use
               //! uses A B ..        what the kernel or part uses; only this is declared in the program. A name is
                                      one of those below, a part of this file, or a function of src/gpu/library.wgsl
               //! workgroup BYTES    size of the var<workgroup> that the kernel or part declares
               //! hole NAME = V | V  the launch replaces {{NAME}} in the text by one of these values, or by any
                                      value, if the list is `any`
               //! if NAME [VALUE]    keeps the lines up to `//! else` or `//! end` if the hole has this value, or,
                                      without VALUE, if the value is neither `false` nor `0`
               //! repeat J COUNT     repeats the lines up to `//! end` with {{J}} = 0, 1, .., COUNT - 1; COUNT is a
                                      number or a hole
   Names     K is the number of an operand or result; indices are u32:
               inK(i)                 element i of operand K, in memory order: f32, or i32 for whole numbers and bool
               rawK(i)                its word, u32
               inK=V                  in `uses`: inK returns V if the operand is absent or has no elements
               outK(i, v)             stores v as element i of result K; in a bool result, any v other than 0 is true
               outK?                  in `uses`: outK does nothing if the result has no elements
               set_rawK(i, w)         stores the word w as element i of result K
               store_result(i, v)     stores v as element i of result 0 and runs the epilogue on it, for operators with
                                      .epilogue. The kernel stores every element once and does not read it again
               par(n), pari(n), parf(n)     the n-th parameter as u32, i32, f32
               arg(n), argu(n), argh(n)     argument n as f32, its low word, its high word; may differ from run to run
               tmp(i), set_tmp(i, w)  a word of the step's scratch memory, which its launches share
               fault(index, size)     reports an index (i32) out of range, for operators with .checks_index
               subgroups              the kernel calls subgroup functions
   Limits    256 invocations and 16 KiB of workgroup memory are available everywhere; ask c->limits before using more.
             A launch may have any number of workgroups.
   Errors    A wrong declaration, a hole without a value, or an error of the driver becomes the error of the context. */
#ifndef CAIRN_KERNEL_H
#define CAIRN_KERNEL_H

#include "gpu.h"
#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cn_gpu_call {
    cn_ctx *ctx;
    const cn_op *op;
    const void *attrs;
    int n_in, n_out;
    const cn_array *in;        /* data is NULL if the operand is absent; it must not be read in any case */
    const cn_array *out;
    const cn_gpu_info *limits;
} cn_gpu_call;

/* Each call adds a parameter to the launches that follow: par(0), par(1), .. Of an int64_t, the low 32 bits are
   passed. */
CN_API void cn_gpu_param(cn_gpu_call *c, int64_t value);
CN_API void cn_gpu_param_f32(cn_gpu_call *c, float value);
CN_API void cn_gpu_params_clear(cn_gpu_call *c); /* the next parameter is par(0) again */
CN_API int cn_gpu_params(const cn_gpu_call *c);  /* the number of parameters */
CN_API void cn_gpu_scratch(cn_gpu_call *c, int64_t words); /* asks for scratch memory: tmp(0) to tmp(words - 1) */

/* A value for {{name}}: text, or a number where text is NULL. */
typedef struct cn_gpu_hole {
    const char *name, *text;
    int64_t number;
} cn_gpu_hole;
#define CN_GPU_TEXT(name, text) { name, text, 0 }
#define CN_GPU_NUMBER(name, number) { name, NULL, number }
#define CN_GPU_FLAG(name, value) { name, (value) ? "true" : "false", 0 }
#define CN_GPU_HOLES(...) (const cn_gpu_hole[]){ __VA_ARGS__, { NULL, NULL, 0 } }

typedef struct cn_gpu_launch {
    const char *name;         /* in profiles; NULL: the operator's name */
    const char *shader;       /* the text of a .wgsl file */
    const char *kernel;       /* NULL: the first in the file */
    const char *with;         /* another file, whose parts the kernel may use, or NULL */
    const cn_gpu_hole *holes; /* values of holes: CN_GPU_HOLES(..); NULL: none */
    int64_t each;             /* number of calls of fn each; if it is 0: */
    int64_t groups;           /* number of workgroups of fn kernel, */
    int size;                 /* and of invocations in a workgroup */
    int first;                /* the operand that is in0 and raw0, for operators with more than CN_MAX_IN operands */
} cn_gpu_launch;

/* Adds a launch to the step; nothing if both .each and .groups are 0. False after an error. */
CN_API bool cn_gpu_run(cn_gpu_call *c, const cn_gpu_launch *l);

/* The text of a part of a shader with its holes filled, to be the value of another hole. It lives as long as the plan.
   NULL after an error, which the next launch reports. */
CN_API const char *cn_gpu_part(cn_gpu_call *c, const char *shader, const char *part, const cn_gpu_hole *holes);
/* The second text after the first; either may be NULL. */
CN_API const char *cn_gpu_join(cn_gpu_call *c, const char *first, const char *second);

/* Whether result 0 has taken over the memory of the operand that .in_place names: the kernel then stores changes only. */
CN_API bool cn_gpu_in_place(const cn_gpu_call *c);

#ifdef __cplusplus
}
#endif
#endif
