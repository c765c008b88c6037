/* order.h: lines of pairs put in order on the GPU: what sort, topk and writing by index share.

   A pair is (key, place): smaller keys come first, of equal keys the smaller place. Places differ, so the order is that
   of a stable sort. */
#ifndef CN_OPS_ORDER_H
#define CN_OPS_ORDER_H

#include "cairn/kernel.h"

enum { CN__ORDER_PAR = 9, CN__ORDER_NUMBERS = 6, CN__ORDER_HOLES = 4 };

typedef struct cn__order {
    int64_t lines, n;   /* each with n pairs */
    int64_t keep;       /* number of pairs that are wanted, from the first; 0: all */
    const char *shader; /* has the parts load_given and, if it stores, store_given: see order.wgsl */
    cn_gpu_hole holes[CN__ORDER_HOLES];
    bool stores;        /* false: pair i of a line is left in scratch memory, at words 2 (line n + i) and the next */
    bool across;        /* neighbours in memory belong to neighbouring lines */
    int64_t numbers[CN__ORDER_NUMBERS]; /* par(CN__ORDER_PAR), .. of the shader */
} cn__order;
bool cn__gpu_order(cn_gpu_call *c, const cn__order *o); /* clears parameters */

#endif
