/* Pass "simplify": equal nodes are computed once. Nodes are equal if operator, attributes and operands are the same and
   they have no arguments. */
#include "core/layout.h"
#include "plan/build.h"

source cn__resolve(const builder *b, cn__ref in)
{
    const cn__result *r = cn__res(in);
    source s = { .leaf = -1, .node = -1, .out = 0, .view = -1, .dtype = r->meta->dtype, .layout = &r->meta->layout };
    if (cn__computed_here(b->ctx, in)) {
        cn__ref base = r->base;
        s.node = b->info[base.node->index].rep;
        s.out = base.out;
        if (base.node != in.node) s.view = (int)in.node->index;
        return s;
    }
    s.leaf = (int)r->leaf;
    s.number = in.node->state == CN__NUMBER;
    return s;
}

bool cn__flat(const builder *b, source s)
{
    if (!cn__layout_contiguous(s.layout)) return false;
    return s.node < 0 || cn__numel(s.layout) == b->nodes[s.node]->out[s.out].numel;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static uint64_t operand_key(const builder *b, cn__ref in)
{
    if (!in.node) return 1;
    source s = cn__resolve(b, in);
    if (s.leaf >= 0) return 2 + ((uint64_t)s.leaf << 2);
    return 3 + ((uint64_t)(unsigned)s.node << 34 | (uint64_t)(unsigned)(s.view + 1) << 4 | (uint64_t)(unsigned)s.out);
}

/* Constants that are stored are not shared: most are states of optimizers, which will be overwritten, each in memory of
   its own. */
static bool can_share(const cn__node *n)
{
    if (n->want && n->n_in == 0) return false;
    return n->op->kind != CN_VIEW && n->op->kind != CN_RANDOM && !n->donor && !cn__has_args(n);
}

static uint64_t node_key(const builder *b, const cn__node *n)
{
    uint64_t h = mix((uint64_t)(uintptr_t)n->op, n->variant);
    for (size_t i = 0; i + 8 <= n->op->attr_size; i += 8) {
        uint64_t word;
        memcpy(&word, (const char *)n->attrs + i, 8);
        h = mix(h, word);
    }
    for (int i = 0; i < n->n_in; i++) h = mix(h, operand_key(b, n->in[i]));
    return h;
}

static bool same(const builder *b, const cn__node *x, const cn__node *y)
{
    if (x->op != y->op || x->variant != y->variant || x->n_in != y->n_in) return false;
    if (x->op->attr_size && memcmp(x->attrs, y->attrs, x->op->attr_size)) return false;
    for (int i = 0; i < x->n_in; i++)
        if (operand_key(b, x->in[i]) != operand_key(b, y->in[i])) return false;
    return true;
}

bool cn__simplify(builder *b)
{
    size_t slots = 16;
    while (slots < (size_t)b->n * 2) slots *= 2;
    int *table = cn__bump_new(&b->ctx->memory, &b->temporary, slots * sizeof *table); /* 0: empty, else node + 1 */
    if (!table) return false;
    for (int i = 0; i < b->n; i++) {
        const cn__node *n = b->nodes[i];
        b->info[i].rep = i;
        if (!can_share(n)) continue;
        size_t at = node_key(b, n) & (slots - 1);
        for (; table[at]; at = (at + 1) & (slots - 1))
            if (same(b, n, b->nodes[table[at] - 1])) break;
        if (table[at]) b->info[i].rep = table[at] - 1;
        else table[at] = i + 1;
    }
    return true;
}
