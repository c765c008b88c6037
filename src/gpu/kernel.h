/* gpu/kernel.h: how an operator says what runs on the GPU.

       static bool roll_gpu(cn__gpu_call *c)
       {
           cn__gpu_param(c, (uint32_t)shift);
           return cn__gpu_each(c, c->out[0].numel,
                               "fn each(i: u32) { set_raw(i, raw0((i + par(0u)) % par(1u))); }");
       }
       const cn_op cn__op_roll = { ..., .gpu = roll_gpu };

   When      Once for each step of a plan, before it first runs: shapes, strides and attributes are known, memory and
             arguments are not. A step may launch several kernels, one after the other.
   Words     An element is one 32-bit word on the GPU: f64 as f32, whole numbers (i64 too) as i32, bool as 0 or 1. f16 and
             bf16 lie two in a word, and kernels meet them only as operands, through inK, where the operator says .widens:
             elsewhere they have been converted.
   WGSL      A kernel's text may use, with K the number of an operand or result:
               inK(i), rawK(i)       element i of operand K, counted from its first: f32 or i32 (bool: i32 0 or 1); its word
               outK(i, v), set_rawK(i, w)   element i of result K; of a bool, any v other than 0 is true
               put(i, v)             result 0 and whatever is fused behind it (operators with .tail): every element is
                                     set exactly once, with v a f32 (i32 if the result is whole), and not read again
               par(n)                the n-th cn__gpu_param, a u32; pari(n) the same as i32; parf(n) as f32
               arg(n), argu(n), argh(n)    argument n as f32, its low word, its high word: these may change from run to run
               tmp(i), set_tmp(i, w) words of the step's scratch memory (cn__gpu_scratch), kept between its launches
               fault(index, size)    reports an index (i32) out of range, for operators with .checks_index
             and any function of library.c (erf, philox, ..). Only what a text mentions is declared. Indices are u32.
   Limits    Groups are given as one number, however many: they are folded. 256 invocations and 16 KiB of workgroup
             memory are everywhere; ask c->limits before using more. */
#ifndef CN_GPU_KERNEL_H
#define CN_GPU_KERNEL_H

#include "cairn/gpu.h"
#include "cairn/op.h"

typedef struct cn__gpu_call {
    cn_ctx *ctx;
    const cn_op *op;
    const void *attrs;
    int n_in, n_out;
    const cn_array *in;        /* data is NULL where an operand is absent, and not to be looked at otherwise */
    const cn_array *out;
    const cn_gpu_info *limits;
    struct cn__gpu_step *step; /* of gpu/plan.c */
} cn__gpu_call;

/* A number for the launches that follow; in the order of par(0), par(1), .. The second form is par(n) of -1 etc. */
void cn__gpu_param(cn__gpu_call *c, uint32_t value);
void cn__gpu_param_f32(cn__gpu_call *c, float value);
void cn__gpu_params_clear(cn__gpu_call *c); /* numbers for the next launch begin with par(0) again */
void cn__gpu_scratch(cn__gpu_call *c, int64_t words);

typedef struct cn__gpu_launch {
    const char *name;  /* shown in profiles; NULL: the operator's */
    const char *code;  /* WGSL with `fn kernel(group: u32, local: u32)`: group of groups, local < size */
    int64_t groups;
    int size;          /* invocations of a group */
    int group_bytes;   /* of var<workgroup> that the code declares */
    int first;         /* the operand that the code calls 0: for those that take more than CN_MAX_IN */
} cn__gpu_launch;
bool cn__gpu_run_groups(cn__gpu_call *c, const cn__gpu_launch *l);
/* `fn each(i: u32)` called for every i below n. */
bool cn__gpu_each(cn__gpu_call *c, int64_t n, const char *code);

/* Whether result 0 is operand 0's memory, for operators with .in_place: then only what changes needs to be written. */
bool cn__gpu_in_place(const cn__gpu_call *c);

/* Text in pieces: printf's format; lives as long as the plan. NULL only if memory ran out, which launches accept. */
char *cn__gpu_text(cn__gpu_call *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* As part of another: "" in place of NULL; the launch fails. */
static inline const char *cn__gpu_piece(const char *text) { return text ? text : ""; }

#endif
