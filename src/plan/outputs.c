/* Pass "outputs": a value that outlives the run gets memory of its own, or the memory of the value it replaces. */
#include "plan/build.h"

bool cn__find_outputs(builder *b)
{
    cn__plan *p = b->plan;
    int count = 0;
    for (int i = 0; i < b->n; i++)
        for (int o = 0; o < b->nodes[i]->n_out; o++)
            count += b->nodes[i]->op->kind != CN_VIEW && b->nodes[i]->want >> o & 1;
    p->outputs = cn__plan_alloc(b, sizeof *p->outputs * (size_t)count);
    if (b->failed) return false;
    for (int i = 0; i < b->n; i++) {
        const cn__node *n = b->nodes[i];
        if (n->op->kind == CN_VIEW) continue;
        for (int o = 0; o < n->n_out; o++) {
            if (!(n->want >> o & 1)) continue;
            int id = b->value_buffer[b->info[b->info[i].rep].value + o];
            cn__buffer *buf = (cn__buffer *)b->buffers.v + id;
            if (b->info[i].updates) {
                buf->where = CN__AT_DONOR;
                buf->index = (int)n->donor->out[0].leaf;
            } else if (buf->where == CN__AT_ARENA) {
                buf->where = CN__AT_OUTPUT;
                buf->index = p->n_memories++;
            }
            p->outputs[p->n_outputs].node = i;
            p->outputs[p->n_outputs].out = o;
            p->outputs[p->n_outputs++].buffer = id;
        }
    }
    return true;
}
