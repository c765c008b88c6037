/* Pass "destinations": decides where kernels write their results. A kernel with .strided_out can write any layout. It
   writes its result into the value that would otherwise copy the result: a row-major copy of a permuted view, or a
   tensor that joins several along an axis. The copy then needs no step. If a later kernel would need a row-major copy
   of a view, the result is written in that view's order, in memory of its own. */
#include "core/layout.h"
#include "plan/build.h"

/* An operand of a node, in the list of all readers of one value. */
typedef struct reader {
    int node, operand;
    int next; /* the next reader of the same value, or -1 */
} reader;

typedef struct search {
    builder *b;
    reader *readers;
    int *first;    /* by value: its first reader, or -1 */
    uint8_t *kept; /* by node: bit o: result o is wanted, so it must have the layout of its handle */
} search;

static int value_of(const builder *b, const source *s) { return b->info[s->node].value + s->out; }

/* ---- layouts ---- */

/* Whether a view of n row-major elements shows each of them once. Then each axis, in the order of strides, begins where
   the one before it ends. */
static bool shows_all(const cn_layout *view, int64_t n)
{
    int64_t next = 1;
    if (cn__numel(view) != n || n == 0) return false;
    for (int k = 0; k < view->ndim && next < n; k++) {
        int d = 0;
        while (d < view->ndim && (view->shape[d] == 1 || view->stride[d] != next)) d++;
        if (d == view->ndim) return false;
        next *= view->shape[d];
    }
    return next == n;
}

static int axis_with(const cn_layout *l, int64_t stride)
{
    for (int d = 0; d < l->ndim; d++)
        if (l->shape[d] > 1 && l->stride[d] == stride) return d;
    return -1;
}

/* Row-major elements are moved: axis d of the layout `from` gets the stride lies[d]. Finds the new stride of another
   axis of the same elements, given by its size and old stride. False if no single stride describes it: the axis must be
   an axis of `from`, a part of one, or several that stay evenly spaced. */
static bool step_through(const cn_layout *from, const int64_t *lies, int64_t size, int64_t stride, int64_t *step)
{
    int d = 0;
    while (d < from->ndim && (from->shape[d] == 1 || from->stride[d] > stride || stride % from->stride[d] ||
                              stride >= from->stride[d] * from->shape[d]))
        d++;
    if (d == from->ndim) return false;
    *step = stride / from->stride[d] * lies[d];
    while (from->stride[d] * from->shape[d] < stride * size) {
        int next = axis_with(from, from->stride[d] * from->shape[d]);
        if (next < 0 || lies[next] != lies[d] * from->shape[d]) return false;
        d = next;
    }
    return true;
}

/* The layout of the elements of l after the same move. */
static bool laid_out(const cn_layout *l, const cn_layout *from, const int64_t *lies, cn_layout *out)
{
    *out = *l;
    int64_t one = 1; /* the stride of an axis of size 1: what a row-major layout would have */
    for (int d = l->ndim - 1; d >= 0; one = out->stride[d] * out->shape[d], d--) {
        out->stride[d] = one;
        if (l->shape[d] > 1 && !step_through(from, lies, l->shape[d], l->stride[d], &out->stride[d])) return false;
    }
    return true;
}

bool cn__seen_at_destination(const builder *b, source s, cn_layout *seen)
{
    const cn__result *r = &b->nodes[s.node]->out[s.out];
    const destination *h = b->destinations[value_of(b, &s)];
    if (!shows_all(s.layout, r->numel) || !laid_out(s.layout, &r->meta->layout, h->layout.stride, seen)) return false;
    seen->offset = h->layout.offset;
    return true;
}

/* ---- readers ---- */

static bool find_readers(search *h)
{
    const builder *b = h->b;
    int n = 0, values = 0;
    for (int i = 0; i < b->n; i++) n += b->nodes[i]->n_in, values += b->nodes[i]->n_out;
    h->readers = cn__bump_new(&b->ctx->memory, &h->b->temporary, sizeof *h->readers * (size_t)(n + 1));
    h->first = cn__bump_new(&b->ctx->memory, &h->b->temporary, sizeof *h->first * (size_t)(values + 1));
    h->kept = cn__bump_new(&b->ctx->memory, &h->b->temporary, (size_t)b->n);
    if (!h->readers || !h->first || !h->kept) return false;
    memset(h->first, -1, sizeof *h->first * (size_t)values);
    memset(h->kept, 0, (size_t)b->n);
    n = 0;
    for (int i = 0; i < b->n; i++) {
        const cn__node *node = b->nodes[i];
        h->kept[b->info[i].rep] |= node->want;
        if (b->info[i].rep != i || node->op->kind == CN_VIEW) continue;
        for (int k = 0; k < node->n_in; k++) {
            if (!node->in[k].node) continue;
            source s = cn__resolve(b, node->in[k]);
            if (s.node < 0 || !b->nodes[s.node]->op->strided_out) continue;
            h->readers[n] = (reader){ i, k, h->first[value_of(b, &s)] };
            h->first[value_of(b, &s)] = n++;
        }
    }
    return true;
}

/* Whether a reader can read a value at its destination. An elementwise reader that could be the kernel's epilogue
   cannot: running inside the kernel is worth more. */
static bool can_read(const builder *b, const cn_op *from, const reader *r)
{
    const cn__node *n = b->nodes[r->node];
    source s = cn__resolve(b, n->in[r->operand]);
    cn_layout seen;
    if (!cn__seen_at_destination(b, s, &seen)) return false;
    if (n->op->kind == CN_REDUCE) return true;
    if (n->op->kind == CN_MAP || n->op->kind == CN_RANDOM)
        return !from->epilogue || !cn__flat(b, s);
    return n->op->strided || cn__layout_contiguous(&seen);
}

/* ---- destinations ---- */

/* Sets the destination of s, which reader_node reads through a view: inside `node` (-1: memory of its own), from
   `offset` on, with the strides `lies` for the axes of the view. False, and nothing is set, if some reader could not
   read it. */
static bool set_destination(search *h, source s, int reader_node, int node, const int64_t *lies, int64_t offset)
{
    builder *b = h->b;
    if (s.node < 0 || b->destinations[value_of(b, &s)]) return false;
    const cn__node *n = b->nodes[s.node];
    const cn__result *r = &n->out[s.out];
    destination place = { .node = node };
    bool free = (n->op->strided_out >> s.out & 1) && !n->op->in_place && !(h->kept[s.node] >> s.out & 1);
    if (!free || !shows_all(s.layout, r->numel) || !laid_out(&r->meta->layout, s.layout, lies, &place.layout))
        return false;
    place.layout.offset = offset;
    destination *own = cn__bump_new(&b->ctx->memory, &b->temporary, sizeof *own);
    if (!own) {
        b->failed = true;
        return false;
    }
    *own = place;
    b->destinations[value_of(b, &s)] = own;
    for (int i = h->first[value_of(b, &s)]; i >= 0; i = h->readers[i].next) {
        if (h->readers[i].node == reader_node || can_read(b, n->op, &h->readers[i])) continue;
        b->destinations[value_of(b, &s)] = NULL;
        return false;
    }
    return true;
}

/* The operand of a stored copy is written into the copy. */
static void into_copy(search *h, int i)
{
    builder *b = h->b;
    const cn__node *n = b->nodes[i];
    source s = cn__resolve(b, n->in[0]);
    if (cn__same_shape(s.layout, &n->out->meta->layout))
        b->info[i].elided = set_destination(h, s, i, i, n->out->meta->layout.stride, 0);
}

/* The operands of a join are written into their parts of the result: all of them, or none. */
static void into_parts(search *h, int i)
{
    builder *b = h->b;
    const cn__node *n = b->nodes[i];
    const cn_layout *to = &n->out->meta->layout;
    const int64_t axis = *(const int64_t *)n->attrs;
    int64_t start = 0;
    int done = 0;
    for (; done < n->n_in; done++) {
        source s = cn__resolve(b, n->in[done]);
        if (cn__numel(s.layout) == 0) continue;
        if (!set_destination(h, s, i, i, to->stride, start * to->stride[axis])) break;
        start += s.layout->shape[axis];
    }
    b->info[i].elided = done == n->n_in && start > 0;
    for (int k = 0; k < done && !b->info[i].elided; k++) {
        source s = cn__resolve(b, n->in[k]);
        if (cn__numel(s.layout) > 0) b->destinations[value_of(b, &s)] = NULL;
    }
}

/* The operands of a kernel that accepts no strides are written so that the views it reads are row-major. */
static void for_kernel(search *h, int i)
{
    const builder *b = h->b;
    const cn__node *n = b->nodes[i];
    for (int k = 0; k < n->n_in; k++) {
        if (!n->in[k].node) continue;
        source s = cn__resolve(b, n->in[k]);
        if (s.node < 0 || cn__layout_contiguous(s.layout)) continue;
        cn_layout to = *s.layout;
        cn__row_major(&to);
        set_destination(h, s, -1, -1, to.stride, 0);
    }
}

bool cn__find_destinations(builder *b)
{
    search h = { .b = b };
    bool any = false;
    for (int i = 0; i < b->n; i++) any |= b->nodes[i]->op->strided_out != 0;
    if (!any) return true;
    if (!find_readers(&h)) return false;
    for (int i = 0; i < b->n && !b->failed; i++) {
        const cn_op *op = b->nodes[i]->op;
        if (b->info[i].rep != i || op->kind == CN_VIEW || !b->info[i].materialized || b->nodes[i]->donor) continue;
        if (op->copies) into_copy(&h, i);
        else if (op->joins) into_parts(&h, i);
        else if (op->kind != CN_MAP && op->kind != CN_RANDOM && op->kind != CN_REDUCE && !op->strided)
            for_kernel(&h, i);
    }
    return !b->failed;
}
