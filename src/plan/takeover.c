/* Pass "takeover": an assignment takes over the memory of the value it replaces only if no later step reads the old
   value, and if the step that writes the new value reads of the old one only the element that it is writing. */
#include "core/layout.h"
#include "plan/build.h"

bool cn__check_takeovers(builder *b)
{
    for (int at = 0; at < (int)b->steps.n; at++) {
        const draft_step *d = (draft_step *)b->steps.v + at;
        int operand = 0;
        for (int l = d->loads.n ? d->loads.first : -1; l >= 0; l = ((linked_load *)b->loads.v)[l].next) {
            operand++;
            const cn__operand *o = &((linked_load *)b->loads.v)[l].operand;
            if (o->buffer < 0 || o->view_leaf < 0) continue;
            const cn__result *r = cn__res(b->leaves[o->view_leaf]);
            int taker = b->storage_taken[r->storage->index];
            if (taker < 0 || at < taker) continue;
            bool whole = cn__layout_contiguous(&o->layout) && o->view_node < 0 && r->meta->layout.offset == 0;
            bool in_order = d->step.group ? cn__numel(&o->layout) == d->numel : operand == d->step.op->in_place;
            bool in_step = at == taker && whole && in_order;
            if (!in_step) b->storage_taken[r->storage->index] = -1;
        }
    }
    for (int i = 0; i < b->n; i++)
        if (b->info[i].updates && b->storage_taken[b->nodes[i]->donor->out[0].storage->index] < 0)
            b->info[i].updates = false;
    return true;
}
