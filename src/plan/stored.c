/* Pass "stored": decides which values are written to memory. An elementwise value is stored only if the caller wants
   it, if a reader cannot compute it inside its own group, or if computing it again would cost more than storing it. */
#include "core/layout.h"
#include "plan/build.h"

static bool computes_operands(const cn_op *op) { return cn__elementwise(op) || op->kind == CN_REDUCE; }

static void count_use(builder *b, const cn__node *n, int k)
{
    if (!n->in[k].node) return;
    source s = cn__resolve(b, n->in[k]);
    if (s.node < 0) return;
    node_info *from = &b->info[s.node];
    from->needed |= (uint8_t)(1u << s.out);
    bool same_size = n->op->kind == CN_REDUCE || cn__numel(s.layout) == n->out[0].numel;
    if (!computes_operands(n->op) || !same_size || !cn__flat(b, s)) from->must_store = true;
    else if (!b->info[n->index].updates) from->uses++;
    else if (!from->assigned) from->assigned = true, from->uses++; /* all assignments of one value share its group */
}

static void decide(builder *b, int i)
{
    const cn__node *n = b->nodes[i];
    node_info *me = &b->info[i];
    me->chain = n->op->cheap ? 1 : 3;
    me->loads = 0;
    for (int k = 0; k < n->n_in; k++) {
        if (!n->in[k].node) continue;
        source s = cn__resolve(b, n->in[k]);
        const node_info *from = s.node >= 0 ? &b->info[s.node] : NULL;
        if (from && !from->materialized) {
            me->chain += from->chain;
            me->loads += from->loads;
        } else if (!s.number) {
            me->loads++;
        }
    }
    if (!cn__elementwise(n->op)) {
        me->materialized = true;
        return;
    }
    bool too_long = me->chain > GROUP_INSTRS / 2 || me->loads > GROUP_LOADS / 2;
    bool worth_storing = me->uses > 1 && (me->chain > CHEAP_CHAIN || me->loads > CHEAP_LOADS);
    me->materialized = me->stored || me->must_store || me->uses == 0 || too_long || worth_storing;
}

bool cn__choose_stored(builder *b)
{
    for (int i = 0; i < b->n; i++) {
        const cn__node *n = b->nodes[i];
        node_info *me = &b->info[i];
        if (me->rep != i) b->info[me->rep].stored |= n->want != 0 && n->op->kind != CN_VIEW;
        b->info[me->rep].needed |= n->want;
        me->stored |= n->want != 0;
        me->in_group = me->step = -1;
        bool in_place = cn__elementwise(n->op) || (n->op->in_place && n->in[n->op->in_place - 1].node == n->donor);
        me->updates = n->donates && n->out[0].consumers == 0 && in_place;
        if (me->rep != i || n->op->kind == CN_VIEW) continue;
        for (int k = 0; k < n->n_in; k++) count_use(b, n, k);
    }
    for (int i = 0; i < b->n; i++)
        if (b->info[i].rep == i && b->nodes[i]->op->kind != CN_VIEW) decide(b, i);
    return true;
}
