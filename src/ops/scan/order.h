/* order.h: lines of pairs put in order on the GPU: what sort, topk and writing by index share.

   A pair is (key, place): smaller keys come first, of equal keys the smaller place. Places differ, so the order is that
   of a stable sort. */
#ifndef CN_OPS_ORDER_H
#define CN_OPS_ORDER_H

#include "gpu/kernel.h"

enum { CN__ORDER_PAR = 9, CN__ORDER_NUMBERS = 6 };

typedef struct cn__order {
    int64_t lines, n;   /* n pairs in each line */
    int64_t keep;       /* 0: all are wanted; else so many from the front */
    const char *common; /* text that load and store need, or NULL */
    const char *load;   /* `fn load(line: u32, i: u32) -> vec2<u32>`: pair i of a line as it comes; its place is i */
    const char *store;  /* `fn store(line: u32, i: u32, p: vec2<u32>)`: pair i in order; i may reach beyond keep */
    bool across;        /* neighbours in memory belong to neighbouring lines */
    uint32_t numbers[CN__ORDER_NUMBERS]; /* par(CN__ORDER_PAR), .. in load and store */
} cn__order;
/* store NULL: leaves pair i of a line in words 2 (line n + i) and the next of scratch memory. Parameters are cleared. */
bool cn__gpu_order(cn__gpu_call *c, const cn__order *o);

#endif
