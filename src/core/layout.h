/* core/layout.h: layouts: shape, strides and offset, all in elements. */
#ifndef CN_CORE_LAYOUT_H
#define CN_CORE_LAYOUT_H

#include "cairn/op.h"

void cn__row_major(cn_layout *l); /* sets strides from the shape, and offset 0 */
bool cn__layout_contiguous(const cn_layout *l);
int64_t cn__numel(const cn_layout *l);
/* Fails in the name of `who` unless sizes are ≥ 0 and bytes do not overflow. */
bool cn__check_shape(cn_ctx *ctx, const char *who, cn_dtype dtype, int ndim, const int64_t *shape);
bool cn__same_shape(const cn_layout *a, const cn_layout *b);
/* The axes in the order of memory: the largest stride first. Axes of size 1 or stride 0 stay where they are. False if
   the axes are in this order already. */
bool cn__memory_order(const cn_layout *l, cn_dims *order);
int cn__axis(int64_t axis, int ndim); /* negative axes count from the end; -1: out of range */
const char *cn__shape_text(const cn_layout *l, char *buf, size_t size); /* "[2,3]" */

#endif
