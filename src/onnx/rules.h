/* onnx/rules.h: what rules are written with. A rule turns one node of ONNX into operators of Cairn:

       bool cn__onnx_softsign(onnx_call *c) { return GIVE(cn_softsign(IN(0))); }

   A tensor that is NULL after an error is handed on, as everywhere: GIVE returns false then. */
#ifndef CN_ONNX_RULES_H
#define CN_ONNX_RULES_H

#include <math.h>

#include "core/errors.h"
#include "onnx/run.h"

#define IN(i)              cn__onnx_in(c, i)      /* input i as a tensor; NULL: absent */
#define HAS(i)             cn__onnx_has(c, i)     /* whether input i is there */
#define GIVE(t)            cn__onnx_give(c, 0, t) /* the first result */
#define GIVE_AT(i, t)      cn__onnx_give(c, i, t)
#define INT(name, usual)   cn__onnx_int(c, name, usual) /* attributes */
#define FLOAT(name, usual) cn__onnx_float(c, name, usual)
#define TEXT(name, usual)  cn__onnx_string(c, name, usual)
#define FAIL(code, ...)    cn__onnx_wrong(c, code, __VA_ARGS__)

/* Whole numbers of an attribute or of a known input. */
enum { CN__ONNX_INTS = 64 };
typedef struct onnx_ints {
    int n;
    int64_t v[CN__ONNX_INTS];
} onnx_ints;
typedef struct onnx_floats {
    int n;
    double v[CN__ONNX_INTS];
} onnx_floats;

bool cn__onnx_has(const onnx_call *c, int i);
cn_tensor *cn__onnx_in(onnx_call *c, int i);
bool cn__onnx_give(onnx_call *c, int i, cn_tensor *t);       /* false: t is NULL */
bool cn__onnx_give_value(onnx_call *c, int i, onnx_value v); /* true */
bool cn__onnx_wanted(const onnx_call *c, int i);             /* whether anybody asked for result i */

const onnx_attr *cn__onnx_attr(const onnx_call *c, const char *name); /* or NULL */
int64_t cn__onnx_int(const onnx_call *c, const char *name, int64_t usual);
double cn__onnx_float(const onnx_call *c, const char *name, double usual);
const char *cn__onnx_string(const onnx_call *c, const char *name, const char *usual);
bool cn__onnx_attr_ints(onnx_call *c, const char *name, onnx_ints *out); /* n -1: absent. False: an error */
/* The numbers of input i: those that are known, or else the tensor is evaluated and read. n -1: absent. */
bool cn__onnx_ints(onnx_call *c, int i, onnx_ints *out);
bool cn__onnx_floats(onnx_call *c, int i, onnx_floats *out);
/* Numbers that were an attribute before version `since`, and are input i from then on. */
bool cn__onnx_ints_of(onnx_call *c, const char *name, int since, int i, onnx_ints *out);

__attribute__((format(printf, 3, 4))) bool cn__onnx_wrong(onnx_call *c, cn_code code, const char *message, ...);

/* An axis of x, which may count from the end, as 0 .. n - 1; -1, and an error, if there is no such axis. */
int cn__onnx_axis(onnx_call *c, int64_t axis, int n);
/* Axes as cn_dims: all if there are none. False: an error. */
bool cn__onnx_axes(onnx_call *c, const onnx_ints *v, int n, cn_dims *out);
bool cn__onnx_dims(onnx_call *c, const onnx_ints *v, cn_dims *out);
cn_tensor *cn__onnx_whole(onnx_call *c, const int64_t *v, int n);                       /* an i64 tensor (n) */
cn_tensor *cn__onnx_real(onnx_call *c, cn_dtype dtype, cn_dims shape, const double *v); /* n numbers of a shape */
bool cn__onnx_cast_to(onnx_call *c, int64_t type, cn_dtype *out); /* a TensorProto.DataType; false: an error */

/* n weights in another form, number k of the node (k < CN__ONNX_DERIVED): what was made of them before, or NULL. Then
   cn__onnx_derive keeps what is made, and returns it. */
cn_tensor *cn__onnx_derived_from(onnx_call *c, int k, cn_tensor *const *from, int n);
cn_tensor *cn__onnx_derive(onnx_call *c, int k, cn_tensor *const *from, int n, cn_tensor *made);
/* The weight and the bias of a convolution that takes over the normalisation c->norm. */
bool cn__onnx_take_norm(onnx_call *c, cn_tensor **weight, cn_tensor **bias);

/* x as f32 or f64, if it is a half or whole. */
cn_tensor *cn__onnx_wide(cn_tensor *x);

/* The rules themselves: those that the table names. */
#define ROW(op, domain, rule, needs, known, state, flags) bool cn__onnx_##rule(onnx_call *c);
#include "onnx/table.def"
#undef ROW

#endif
