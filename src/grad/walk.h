/* walk.h: one walk backwards. */
#ifndef CN_GRAD_WALK_H
#define CN_GRAD_WALK_H

#include "cairn/cairn.h"
#include "core/alloc.h"
#include "core/context.h"
#include "core/errors.h"
#include "core/handle.h"
#include "core/layout.h"

typedef struct walk {
    cn_ctx *ctx;
    bool retain, create_graph;
    cn_tensor *const *inputs; /* NULL: into the leaves' own gradients */
    int n_inputs;
    cn_tensor **found; /* gradient of each input, held; NULL: not reached */
    cn__vec nodes, slots, leads, sorted, saved;
} walk;

bool cn__walk_back(walk *w, cn_tensor *const *outputs, cn_tensor *const *gradients, int n_outputs);
void cn__grad_close(cn_ctx *ctx); /* frees what the context keeps for the next walk */

#endif
