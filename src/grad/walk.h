/* walk.h: one walk backwards. */
#ifndef CN_GRAD_WALK_H
#define CN_GRAD_WALK_H

#include "core/core.h"

typedef struct walk {
    cn_ctx *ctx;
    bool retain, create_graph;
    cn_tensor *const *inputs; /* NULL: into the leaves' own gradients */
    int n_inputs;
    cn_tensor **found; /* gradient of each input, held; NULL: not reached */
    cn__vec nodes, slots, leads, sorted, saved;
} walk;

bool cn__infer_same(cn_infer *i); /* a VIEW that looks at its first operand as it is */
bool cn__walk_back(walk *w, cn_tensor *const *outputs, cn_tensor *const *gradients, int n_outputs);

#endif
