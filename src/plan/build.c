/* Builds a plan from pending nodes: opens a builder, runs the passes, closes the builder. */
#include "plan/build.h"

#include "core/errors.h"

void *cn__plan_alloc(builder *b, size_t bytes)
{
    void *p = cn__bump_new(&b->ctx->memory, &b->plan->memory, bytes ? bytes : 1);
    if (!p) b->failed = true;
    return p;
}

static bool open_builder(builder *b)
{
    cn__memory *m = &b->ctx->memory;
    b->info = cn__bump_new(m, &b->temporary, sizeof *b->info * (size_t)b->n);
    int values = 0;
    for (int i = 0; i < b->n; i++) values += b->nodes[i]->n_out;
    int slots = b->n_leaves + values + (b->n + b->n_leaves) + b->n_storages;
    int *ints = cn__bump_new(m, &b->temporary, sizeof *ints * (size_t)(slots + 1));
    b->destinations = cn__bump_new(m, &b->temporary, sizeof *b->destinations * (size_t)(values + 1));
    if (!b->info || !ints || !b->destinations) return false;
    memset(ints, -1, sizeof *ints * (size_t)slots);
    memset(b->destinations, 0, sizeof *b->destinations * (size_t)values);
    b->leaf_buffer = ints;
    b->value_buffer = b->leaf_buffer + b->n_leaves;
    b->view_copy = b->value_buffer + values;
    b->storage_taken = b->view_copy + b->n + b->n_leaves;
    for (int i = 0, v = 0; i < b->n; v += b->nodes[i++]->n_out) b->info[i].value = v;
    return true;
}

void cn__free_drafts(builder *b)
{
    cn__memory *m = &b->ctx->memory;
    cn__vec_free(m, &b->steps, sizeof(draft_step));
    cn__vec_free(m, &b->loads, sizeof(linked_load));
    cn__vec_free(m, &b->instrs, sizeof(linked_instr));
    cn__vec_free(m, &b->stores, sizeof(linked_store));
}

static void close_builder(builder *b)
{
    cn__memory *m = &b->ctx->memory;
    cn__free_drafts(b);
    cn__vec_free(m, &b->buffers, sizeof(cn__buffer));
    cn__vec_free(m, &b->stack, sizeof(int));
    cn__bump_free(m, &b->temporary);
}

void cn__plan_free(cn_ctx *ctx, cn__plan *plan)
{
    if (!plan) return;
    if (plan->prepared) plan->device->table->unprepare(plan->device, plan);
    cn__bump memory = plan->memory;
    cn__bump_free(&ctx->memory, &memory);
}

cn__plan *cn__plan_build(cn_ctx *ctx, cn__node *const *nodes, int n_nodes, const cn__ref *leaves, int n_leaves,
                         int n_storages)
{
    cn__bump memory = { 0 };
    cn__plan *plan = cn__bump_new(&ctx->memory, &memory, sizeof *plan);
    if (!plan) {
        cn__no_memory(ctx, "plan");
        return NULL;
    }
    plan->memory = memory;
    plan->device = ctx->device;
    plan->n_nodes = n_nodes;
    plan->n_leaves = n_leaves;
    builder b = { .ctx = ctx,
                  .nodes = nodes,
                  .n = n_nodes,
                  .leaves = leaves,
                  .n_leaves = n_leaves,
                  .plan = plan,
                  .n_storages = n_storages,
                  .last_check = -1 };
    bool ok = open_builder(&b) && cn__run_passes(&b);
    close_builder(&b);
    if (ok) return plan;
    cn__no_memory(ctx, "plan");
    cn__plan_free(ctx, plan);
    return NULL;
}
