/* plan/evaluate.h: the functions of the planner that core calls through core/engine.h. */
#ifndef CN_PLAN_EVALUATE_H
#define CN_PLAN_EVALUATE_H

#include "core/engine.h"

bool cn__plan_evaluate(cn_ctx *ctx, cn__node *root, cn__want want); /* root NULL: everything pending */

/* The context's cache of plans. */
bool cn__cache_open(cn_ctx *ctx); /* false: no memory */
void cn__cache_close(cn_ctx *ctx);

#endif
