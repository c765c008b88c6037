/* cairn/kernel.h: how an operator says what runs on the GPU. Operators of your own use the same functions.

   A MAP, RANDOM or REDUCE operator needs none of this: it gives WGSL expressions in its record (op.h). Every other
   operator gives a shader, WGSL with a few declarations in comments, and a function that launches it:

       // roll.wgsl                                        static bool roll_gpu(cn_gpu_call *c)
       //! kernel roll                                     {
       //! uses raw0 set_raw0 par                              cn_gpu_param(c, shift);
       fn each(i: u32) {                                       cn_gpu_param(c, c->in[0].numel);
           set_raw0(i, raw0((i + par(0u)) % par(1u)));         return cn_gpu_run(c, &(cn_gpu_launch){
       }                                                           .shader = roll_wgsl, .each = c->out[0].numel });
                                                           }
       const cn_op roll = { ..., .gpu = roll_gpu };

   When      The function runs once for each step of a plan, before the step first runs. It knows shapes, strides and
             attributes; it does not know memory and arguments. It may launch several kernels, which run in this order.
   Elements  An element is one 32-bit word on the GPU: f64 is stored as f32, whole numbers (also i64) as i32, bool as
             0 or 1. f16 and bf16 lie two in a word; a kernel meets them only through inK, where the operator says
             .widens.
   Shader    The text of a .wgsl file. Lines that begin with //! say what WGSL cannot:
               //! kernel NAME        begins a kernel. It has `fn each(i: u32)`, called for every i below .each; or
                                      `fn kernel(group: u32, local: u32)`, where group < .groups and local < .size
               //! part NAME          begins a piece that kernels and other parts may use
               //! uses A B ..        what the kernel or part uses; only this is declared in the program. A name is
                                      one of those below, a part of this file, or a function of src/gpu/library.wgsl
               //! workgroup BYTES    of var<workgroup> that the kernel or part declares
               //! hole NAME = V | V  {{NAME}} in the text is replaced by a value that the launch gives: one of these,
                                      or any value, if the list is `any`
               //! if NAME [VALUE]    lines up to `//! else` or `//! end` are kept if the hole has this value, or,
                                      without VALUE, if it is neither `false` nor `0`
               //! repeat J COUNT     lines up to `//! end` are repeated, with {{J}} = 0, 1, ..; COUNT is a number or
                                      a hole
   Names     K is the number of an operand or result; indices are u32:
               inK(i), rawK(i)        element i of operand K, counted from its first: f32 or i32 (bool: 0 or 1); its
                                      word
               inK=V                  in `uses`: inK gives V where the operand is absent or has no elements
               outK(i, v)             sets element i of result K; of a bool, any v other than 0 is true
               outK?                  in `uses`: outK does nothing where the result has no elements
               set_rawK(i, w)         sets the word
               store_result(i, v)     sets element i of result 0 and runs the epilogue on it (operators with
                                      .epilogue). Call it exactly once for each element; do not read the element
               par(n), pari(n), parf(n)     the n-th parameter as u32, i32, f32
               arg(n), argu(n), argh(n)     argument n as f32, its low word, its high word: may change from run to run
               tmp(i), set_tmp(i, w)  words of the step's scratch memory, kept between its launches
               fault(index, size)     reports an index (i32) out of range, for operators with .checks_index
               subgroups              the kernel calls subgroup functions
   Limits    256 invocations and 16 KiB of workgroup memory are available everywhere; ask c->limits before using more.
             Any number of groups is possible.
   Errors    A wrong declaration, a hole without a value and a driver's complaint are errors of the context. */
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
    const cn_array *in;        /* data is NULL where an operand is absent; otherwise it must not be read */
    const cn_array *out;
    const cn_gpu_info *limits;
} cn_gpu_call;

/* Parameters of the launches that follow: par(0), par(1), .. The low 32 bits of the value are passed. */
CN_API void cn_gpu_param(cn_gpu_call *c, int64_t value);
CN_API void cn_gpu_param_f32(cn_gpu_call *c, float value);
CN_API void cn_gpu_params_clear(cn_gpu_call *c); /* the next parameter is par(0) again */
CN_API int cn_gpu_params(const cn_gpu_call *c);  /* how many there are */
CN_API void cn_gpu_scratch(cn_gpu_call *c, int64_t words);

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
    const char *name;         /* shown in profiles; NULL: the operator's */
    const char *shader;       /* the text of a .wgsl file */
    const char *kernel;       /* NULL: the first in the file */
    const char *with;         /* another file, whose parts the kernel may use, or NULL */
    const cn_gpu_hole *holes; /* ends with a hole without a name; NULL: there are none */
    int64_t each;             /* calls of fn each; or, where it is 0: */
    int64_t groups;           /* workgroups of fn kernel, */
    int size;                 /* and invocations of a workgroup */
    int first;                /* the operand that the shader calls 0, for operators with more than CN_MAX_IN operands */
} cn_gpu_launch;

/* Adds a launch to the step. No calls and no groups: nothing is launched. False after an error. */
CN_API bool cn_gpu_run(cn_gpu_call *c, const cn_gpu_launch *l);

/* A part of a shader with its holes filled, as the value of another hole: where one text is needed several times. The
   text lives as long as the plan. NULL after an error, which the next launch reports. */
CN_API const char *cn_gpu_part(cn_gpu_call *c, const char *shader, const char *part, const cn_gpu_hole *holes);
/* Two texts in one; either may be NULL. */
CN_API const char *cn_gpu_join(cn_gpu_call *c, const char *first, const char *second);

/* Whether result 0 has operand 0's memory (operators with .in_place): then only what changes must be written. */
CN_API bool cn_gpu_in_place(const cn_gpu_call *c);

#ifdef __cplusplus
}
#endif
#endif
