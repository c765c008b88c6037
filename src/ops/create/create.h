/* create.h: what operators that make tensors from nothing share. Their attributes are cn__shape_attrs. */
#ifndef CN_OPS_CREATE_H
#define CN_OPS_CREATE_H

#include "ops/shared.h"

/* The shape rule: dtype and shape come from the attributes. */
bool cn__infer_created(cn_infer *i);
cn__shape_attrs cn__shaped(cn_dtype t, cn_dims shape);

/* One loop serves every dtype: it reads the dtype from the attributes. */
#define CN__EVERY_DTYPE(loop) loop, loop, loop, loop, loop, loop, loop, loop, loop, loop

/* Loops fill blocks of this many elements in a wide type and convert them. */
enum { CN__PIECE = 256 };

/* Attributes of test cases. */
#define CN__SHAPE(t, ...) \
    &(const cn__shape_attrs){ t, (int64_t)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), { __VA_ARGS__ } }
#define CN__SHAPE0(t) &(const cn__shape_attrs){ t, 0, { 0 } }

typedef struct cn__multinomial_attrs {
    int64_t samples, replacement;
} cn__multinomial_attrs;

/* tril, triu: the sizes of the last two axes; the diagonal is an argument. */
typedef struct cn__triangle_attrs {
    int64_t rows, cols;
} cn__triangle_attrs;

#endif
