/* grad/walk.h: one backward walk over the graph. */
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
    cn_tensor *const *inputs; /* the tensors whose gradients are wanted; NULL: all leaves, into their own gradients */
    int n_inputs;
    cn_tensor **found; /* the gradient of each input, held; NULL: the walk did not reach the input */
    cn__vec nodes;     /* of cn__node *: the graph, in the order of making */
    cn__vec slots;     /* of cn_tensor *: the gradient of every result of every node, or NULL */
    cn__vec leads;     /* of bool: whether a node leads to one of the inputs */
    cn__vec saved;     /* the nodes that an outer walk uses too */
} walk;

bool cn__walk_back(walk *w, cn_tensor *const *outputs, cn_tensor *const *gradients, int n_outputs);
void cn__grad_close(cn_ctx *ctx); /* frees the vectors that the context keeps for the next walk */

#endif
