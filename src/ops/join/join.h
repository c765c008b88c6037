/* join.h: attributes of the operators that join, pad and repeat.
   cat and stack have cn__axis_attrs, repeat and tile have cn__list_attrs. */
#ifndef CN_OPS_JOIN_JOIN_H
#define CN_OPS_JOIN_JOIN_H

#include "ops/view/view.h"

/* Elements added before and after each axis; negative numbers remove elements. args[0].f: the value of CN_PAD_CONSTANT.
   */
typedef struct cn__pad_attrs {
    int64_t mode, before[CN_MAX_DIMS], after[CN_MAX_DIMS];
} cn__pad_attrs;

typedef struct cn__interleave_attrs {
    int64_t times, axis;
} cn__interleave_attrs;

/* Without axes there is one shift, of the flattened tensor. */
typedef struct cn__roll_attrs {
    cn__list_attrs shifts, axes;
} cn__roll_attrs;

extern const cn_op cn__op_pad;

#endif
