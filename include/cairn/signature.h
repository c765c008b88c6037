/* cairn/signature.h: how an operator is called, as data: names, kinds and defaults of parameters, names of results.

       cn_signature s;
       if (cn_signature_parse("topk(Tensor input, int k, int dim=-1) -> (Tensor values, Tensor indices)", &s))
           printf("%s has default %g\n", s.in[2].name, s.in[2].number);          dim has default -1
       else
           fprintf(stderr, "%s\n", s.error);

   The text is a small part of PyTorch's schema language:

       call       name(parameter, ...) -> result
       parameter  kind name  |  kind name=default  |  *         parameters after * are passed by name only
       kind       Tensor  Tensor[]  float  int  int[]  int[2]  bool  dtype  str, or an enumeration: mean|sum|none.
                  A parameter whose kind ends with ? may be None.
       default    None  True  False, a number, inf, -inf, a dtype, a name of the enumeration, or 'text'
       result     Tensor  |  Tensor[]  |  (Tensor name, ...)

   int[] is a list of axes or sizes. int[2] is two numbers, or one for both. dim=None means all axes. An operator whose
   name begins with _ is internal: only other operators call it, and it has no public function.

   In C, a public function has the same parameters in the same order:

       Tensor    cn_tensor *                    bool    bool
       Tensor[]  cn_tensor *const * and int     dtype   cn_dtype
       float     double                         str     const char *
       int       int64_t                        int[2]  cn_dims, or two numbers: height and width
       int[]     cn_dims

   A function that creates a tensor has the context and the dtype as its first parameters. A function returns its first
   result and writes others through pointers at the end. Parameters may be fields of a descriptor, where 0 means the
   default. tools/check_signatures.py compares the headers with the signatures. */
#ifndef CAIRN_SIGNATURE_H
#define CAIRN_SIGNATURE_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CN_MAX_PARAMETERS 16
#define CN_MAX_RESULTS 4

typedef enum cn_parameter_kind {
    CN_PARAMETER_TENSOR,
    CN_PARAMETER_TENSORS,
    CN_PARAMETER_FLOAT,
    CN_PARAMETER_INT,
    CN_PARAMETER_INTS,
    CN_PARAMETER_BOOL,
    CN_PARAMETER_DTYPE,
    CN_PARAMETER_STR,
    CN_PARAMETER_ENUM,
} cn_parameter_kind;

typedef struct cn_parameter {
    char name[32];
    cn_parameter_kind kind;
    char kind_text[64];           /* as written, without ?: "int[2]", "mean|sum|none" */
    int count;                    /* int[2]: 2; else 0 */
    bool optional;                /* may be None */
    bool by_name;                 /* stands after * */
    bool has_default;
    char text[24];                /* the default as written; a text without its quotes */
    double number;                /* default as a number: True is 1, a name of an enumeration its index; else NaN */
} cn_parameter;

typedef struct cn_signature {
    char name[48];                /* without the _ of internal operators */
    bool internal;
    int n_in, n_out;
    cn_parameter in[CN_MAX_PARAMETERS];
    char out[CN_MAX_RESULTS][32]; /* names of results; "" if there is only one */
    bool out_list;                /* the result is Tensor[] */
    char error[128];              /* after a failure: what is wrong, and where */
} cn_signature;

CN_API bool cn_signature_parse(const char *call, cn_signature *out); /* false: out->error */
CN_API const char *cn_parameter_kind_name(cn_parameter_kind kind);   /* "Tensor", "Tensor[]", ..., "enum" */

/* Public functions that call several operators and have no record of their own. */
typedef struct cn_routine {
    const char *call, *doc;
} cn_routine;
CN_API const cn_routine *cn_routines(int *count);

#ifdef __cplusplus
}
#endif
#endif
