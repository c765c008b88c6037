/* The gradient of a slice. Each slice of a tensor contributes a piece of the tensor's gradient. The first piece is
   written into zeros (slice_backward), further pieces are added (slice_add). Adjacent pieces that cover the whole axis
   are joined by cat instead: nothing is zeroed or added, and a kernel that computes a piece may write it to its
   destination directly (plan/destinations.c). */
#include "ops/view/move.h"
#include "ops/view/view.h"
#include "gpu/shaders.h"

/* Arguments after the start. BEGIN, END and AXIS are notes at the node of a gradient: along axis AXIS - 1 the pieces
   cover [BEGIN, END), and the rest is zero. AXIS 0: nothing is known. The notes hold before and after the node is
   evaluated. */
enum { FRESH = 1, BEGIN = 4, END = 5, AXIS = 6 };

typedef struct stretch {
    int64_t begin, end; /* empty: nothing is known */
} stretch;

static bool empty(stretch s) { return s.begin >= s.end; }

/* ---- pieces of a gradient ---- */

/* The axes of x from the longest stride to the shortest; at[d] is the index of axis d in this order. */
static cn_dims order_in_memory(const cn_layout *x, cn_dims *at)
{
    cn_dims order = { .n = x->ndim };
    for (int d = 0; d < x->ndim; d++) {
        int k = d;
        for (; k > 0 && x->stride[order.v[k - 1]] < x->stride[d]; k--) order.v[k] = order.v[k - 1];
        order.v[k] = d;
    }
    at->n = x->ndim;
    for (int k = 0; k < x->ndim; k++) at->v[order.v[k]] = k;
    return order;
}

static stretch pieces_in(const cn_tensor *gradient, int64_t axis)
{
    const cn__node *n = gradient ? gradient->ref.node : NULL;
    if (!n || n->n_args <= AXIS || n->args[AXIS].i != axis + 1) return (stretch){ 0, 0 };
    return (stretch){ n->args[BEGIN].i, n->args[END].i };
}

/* The gradient in the order of axes `at`, with the notes: they are arguments that the permutation does not read. */
static cn_tensor *note_pieces(cn_tensor *sum, const cn_dims *at, int64_t axis, stretch s)
{
    const cn_arg notes[CN_MAX_ARGS] = {
        [BEGIN] = { .i = s.begin }, [END] = { .i = s.end }, [AXIS] = { .i = axis + 1 }
    };
    cn__list_attrs order = { .n = at->n };
    for (int d = 0; d < at->n; d++) order.v[d] = at->v[d];
    return cn_apply(&cn__op_permute, &sum, 1, &order, empty(s) ? NULL : notes);
}

static stretch side_by_side(stretch a, stretch b)
{
    if (empty(a) || empty(b) || (a.end != b.begin && b.end != a.begin)) return (stretch){ 0, 0 };
    return a.end == b.begin ? (stretch){ a.begin, b.end } : (stretch){ b.begin, a.end };
}

/* The node that wrote the latest piece into the gradient `seen`, or NULL: the gradient was not made by cn__add_piece
   along this axis, or the node's operands have been released. */
static const cn__node *writer_of(cn__ref seen, const cn__slice_attrs *a)
{
    cn__ref r = seen;
    while (r.node->op == &cn__op_permute && r.node->in) r = r.node->in[0];
    const cn__node *n = r.node;
    bool first = n->op == &cn__op_slice_backward;
    if (!n->in || (!first && (n->op != &cn__op_slice_add || !n->args[FRESH].i))) return NULL;
    const cn_layout *l = &cn__res(seen)->meta->layout;
    bool as_made = cn__layout_contiguous(l) && cn__same_shape(l, &n->out->meta->layout);
    return as_made && !memcmp(n->attrs, a, sizeof *a) ? n : NULL;
}

/* The piece that a node wrote, and the gradient it wrote it into (node NULL: zeros). */
static cn__ref piece_of(const cn__node *n, cn__ref *into)
{
    bool first = n->op == &cn__op_slice_backward;
    *into = first ? (cn__ref){ NULL, 0 } : n->in[0];
    return n->in[first ? 0 : 1];
}

static cn_tensor *handle_of(cn_ctx *ctx, cn__ref r)
{
    r.node->refs++;
    return cn__handle_new(ctx, r);
}

/* Finds the pieces written into `whole`, and `last`, which begins at `start`, and sorts them along the axis. From the
   last piece back, each must lie at an end of the range that is left. Returns their number; 0: they cannot be found.
   pieces: NULL, or room for n handles. */
static int find_pieces(cn_tensor *whole, cn_tensor *last, const cn__slice_attrs *a, int64_t start, int n,
                       cn_tensor **pieces)
{
    cn__ref piece = last->ref, into = whole->ref;
    int64_t begin = 0, end = a->length;
    int found = 0, front = 0;
    for (;; found++) {
        int64_t length = cn__res(piece)->meta->layout.shape[a->axis];
        bool at_front = start == begin;
        if (!at_front && start + length != end) return 0;
        if (at_front) begin += length;
        else end -= length;
        int place = at_front ? front++ : n - 1 - (found - front);
        if (pieces && !(pieces[place] = handle_of(whole->ctx, piece))) return 0;
        if (!into.node) return begin == end ? found + 1 : 0;
        const cn__node *by = writer_of(into, a);
        if (!by) return 0;
        start = by->args[0].i;
        piece = piece_of(by, &into);
    }
}

static cn_tensor *join_pieces(cn_tensor *whole, cn_tensor *last, const cn__slice_attrs *a, int64_t start)
{
    const int n = whole && last ? find_pieces(whole, last, a, start, 0, NULL) : 0;
    if (!n) return NULL;
    cn_ctx *ctx = whole->ctx;
    const size_t bytes = sizeof(cn_tensor *) * (size_t)n;
    cn_tensor **pieces = cn__block_new(&ctx->memory, bytes), *joined = NULL;
    if (!pieces) cn__no_memory(ctx, "slice");
    else if (find_pieces(whole, last, a, start, n, pieces)) joined = cn_cat(pieces, n, a->axis);
    cn__block_free(&ctx->memory, pieces, bytes);
    return joined;
}

/* The gradient has the memory order of x. So if x is a view, the gradient of what x views needs no copy. */
void cn__add_piece(cn_grad_call *g, cn_tensor *piece, const cn__slice_attrs *a)
{
    cn_dims at;
    const cn_dims order = order_in_memory(cn__layout(g->in[0]), &at);
    const cn__slice_attrs there = { at.v[a->axis], a->length, a->step };
    const int64_t start = g->args[0].i, n = piece && a->step == 1 ? cn_size(piece, (int)a->axis) : 0;
    const stretch own = { start, start + n }, before = pieces_in(g->so_far[0], a->axis);
    const stretch all = g->so_far[0] ? side_by_side(before, own) : own;
    const bool whole = !empty(all) && all.end - all.begin == a->length;
    g->summed[0] = g->so_far[0] != NULL;
    if (whole && !g->summed[0]) {
        g->in_grad[0] = piece;
        return;
    }
    cn_tensor *in[2] = { cn_permute(g->so_far[0], order), cn_permute(piece, order) };
    cn_arg args[CN_MAX_ARGS] = { { .i = start }, [FRESH] = { .i = g->summed[0] && !empty(all) } };
    cn_tensor *sum = whole ? join_pieces(in[0], in[1], &there, start) : NULL;
    if (!sum && g->summed[0]) sum = cn_apply(&cn__op_slice_add, in, 2, &there, args);
    else if (!sum) sum = cn_apply(&cn__op_slice_backward, &in[1], 1, &there, args);
    g->in_grad[0] = note_pieces(sum, &at, a->axis, all);
}

/* ---- slice_backward: zeros, with g at the indices of the slice ---- */

static bool infer_slice_backward(cn_infer *i)
{
    const cn__slice_attrs *a = i->attrs;
    const cn_layout *g = &i->in[0]->layout;
    if (!cn__infer_axis(i, a->axis, g->ndim)) return false;
    int64_t n = g->shape[a->axis], start = i->args ? i->args[0].i : 0;
    if (a->step < 1 || start < 0 || a->length < 0 ||
        (n > 0 && (start >= a->length || (a->length - 1 - start) / a->step < n - 1)))
        return cn_infer_fail(i, CN_BAD_ARGUMENT,
                             "%lld elements from %lld in steps of %lld do not fit into an axis of size %lld",
                             (long long)n, (long long)start, (long long)a->step, (long long)a->length);
    i->out[0] = *i->in[0];
    i->out[0].layout.shape[a->axis] = a->length;
    return true;
}

static void cpu_slice_backward(const cn_kernel *k)
{
    const cn__slice_attrs *a = k->attrs;
    cn__zero_result(k);
    if (k->in[0].numel == 0) return;
    cn__move m = cn__move_of(k, 0);
    cn__move_along(&m, (int)a->axis, k->args[0].i);
    if (m.shape[a->axis] > 1) m.to_stride[a->axis] *= a->step;
    cn__move_run(k, &m);
}

/* The first parameters of slice_grad.wgsl. */
static void gpu_sizes(cn_gpu_call *c, const cn_array *piece)
{
    const cn__slice_attrs *a = c->attrs;
    int64_t inner = 1;
    for (int d = (int)a->axis + 1; d < c->out[0].ndim; d++) inner *= c->out[0].shape[d];
    cn_gpu_param(c, inner);
    cn_gpu_param(c, a->length);
    cn_gpu_param(c, piece->shape[a->axis]);
    cn_gpu_param(c, a->step);
}

static bool gpu_slice_backward(cn_gpu_call *c)
{
    gpu_sizes(c, &c->in[0]);
    const char *piece = cn__gpu_walk_array(c, "piece", &c->in[0]);
    return cn_gpu_run(c, &(cn_gpu_launch){ .shader = cn__wgsl_slice_grad,
                                           .kernel = "slice_backward",
                                           .holes = CN_GPU_HOLES(CN_GPU_TEXT("piece", piece)),
                                           .each = c->out[0].numel });
}

static void grad_slice_backward(cn_grad_call *g)
{
    cn__slice_attrs a = *(const cn__slice_attrs *)g->attrs;
    a.length = cn_size(g->in[0], (int)a.axis);
    g->in_grad[0] = cn_apply(&cn__op_slice, g->out_grad, 1, &a, g->args);
}

const cn_op cn__op_slice_backward = {
    .call = "_slice_backward(Tensor grad, int dim, int length, int step, int start) -> Tensor",
    .name = "slice_backward",
    .doc = "The gradient of slice: zeros around what is given.",
    .kind = CN_INDEX,
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .strided = true,
    .attr_size = sizeof(cn__slice_attrs),
    .infer = infer_slice_backward,
    .grad = grad_slice_backward,
    .cpu = cpu_slice_backward,
    .gpu = gpu_slice_backward,
    CN_CASES({ CN_IN(CN_S(4, 3)), .attrs = &(const cn__slice_attrs){ 1, 5, 1 }, CN_ARGS({ .i = 1 }) },
             { CN_IN(CN_S(3, 3, 2)), .attrs = &(const cn__slice_attrs){ 1, 8, 3 }, CN_ARGS({ .i = 1 }) },
             { CN_IN(CN_S(0)), .attrs = &(const cn__slice_attrs){ 0, 7, 2 }, CN_ARGS({ .i = 7 }) },
             { CN_IN(CN_S(0, 2)), .attrs = &(const cn__slice_attrs){ 1, 3, 1 }, CN_ARGS({ .i = 1 }) },
             { CN_IN(CN_S(1)), .attrs = &(const cn__slice_attrs){ 0, 1, 1 }, CN_ARGS({ .i = 0 }) },
             { CN_IN(CN_S(100, 200)), .attrs = &(const cn__slice_attrs){ 0, 201, 2 }, CN_ARGS({ .i = 1 }) },
             { CN_IN(CN_S(160, 210)), .attrs = &(const cn__slice_attrs){ 0, 650, 4 }, CN_ARGS({ .i = 3 }) }),
};

/* ---- slice_add: x with the piece added to one of its slices ---- */

static bool infer_slice_add(cn_infer *i)
{
    const cn__slice_attrs *a = i->attrs;
    const cn_layout *x = &i->in[0]->layout, *piece = &i->in[1]->layout;
    char s[96], t[96];
    if (!cn__infer_axis(i, a->axis, x->ndim)) return false;
    cn_layout slice = *x;
    slice.shape[a->axis] = piece->ndim == x->ndim ? piece->shape[a->axis] : -1;
    if (!cn__same_shape(&slice, piece) || a->length != x->shape[a->axis])
        return cn_infer_fail(i, CN_BAD_SHAPE, "the shape %s is not that of a slice of %s along axis %lld",
                             cn__shape_text(piece, s, sizeof s), cn__shape_text(x, t, sizeof t), (long long)a->axis);
    const cn_meta *const *in = i->in++; /* slice_backward's rule checks the piece */
    bool fits = infer_slice_backward(i);
    i->in = in;
    return fits;
}

static void add_row_f32(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n, int64_t bytes)
{
    (void)bytes;
    float *y = (float *)(void *)to;
    const float *x = (const float *)(const void *)from;
    if (to_stride == 1 && from_stride == 1)
        for (int64_t i = 0; i < n; i++) y[i] += x[i];
    else
        for (int64_t i = 0; i < n; i++) y[i * to_stride] += x[i * from_stride];
}

static void add_row_f64(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n, int64_t bytes)
{
    (void)bytes;
    double *y = (double *)(void *)to;
    const double *x = (const double *)(const void *)from;
    for (int64_t i = 0; i < n; i++) y[i * to_stride] += x[i * from_stride];
}

/* args[FRESH] is not 0: x is zero where the piece goes. The piece then replaces the zeros, so -0 stays -0, and pieces
   that are written one by one give the same bits as joined ones. */
static void cpu_slice_add(const cn_kernel *k)
{
    const cn__slice_attrs *a = k->attrs;
    if (k->out[0].data != k->in[0].data) {
        cn__move all = cn__move_of(k, 0);
        cn__move_run(k, &all);
    }
    if (k->in[1].numel == 0) return;
    cn__move m = cn__move_of(k, 1);
    if (!k->args[FRESH].i) m.row = k->out[0].dtype == CN_F64 ? add_row_f64 : add_row_f32;
    cn__move_along(&m, (int)a->axis, k->args[0].i);
    if (m.shape[a->axis] > 1) m.to_stride[a->axis] *= a->step;
    cn__move_run(k, &m);
}

static bool gpu_slice_add(cn_gpu_call *c)
{
    gpu_sizes(c, &c->in[1]);
    const bool in_place = cn_gpu_in_place(c);
    const char *piece = cn__gpu_walk_array(c, "piece", &c->in[1]);
    const char *whole = in_place ? "" : cn__gpu_walk_array(c, "whole", &c->in[0]);
    return cn_gpu_run(c,
                      &(cn_gpu_launch){ .shader = cn__wgsl_slice_grad,
                                        .kernel = in_place ? "slice_add_in_place" : "slice_add",
                                        .holes = CN_GPU_HOLES(CN_GPU_TEXT("piece", piece), CN_GPU_TEXT("whole", whole)),
                                        .each = in_place ? c->in[1].numel : c->out[0].numel });
}

static void grad_slice_add(cn_grad_call *g)
{
    cn__slice_attrs a = *(const cn__slice_attrs *)g->attrs;
    a.length = cn_size(g->in[1], (int)a.axis);
    if (g->needs[0]) g->in_grad[0] = g->out_grad[0];
    if (g->needs[1]) g->in_grad[1] = cn_apply(&cn__op_slice, g->out_grad, 1, &a, g->args);
}

const cn_op cn__op_slice_add = {
    .call = "_slice_add(Tensor input, Tensor source, int dim, int length, int step, int start, bool onto_zeros) -> "
            "Tensor",
    .name = "slice_add",
    .doc = "x with y added to a slice along an axis: adds up the gradients of several slices of one tensor.",
    .kind = CN_INDEX,
    .n_in = 2,
    .n_out = 1,
    .strided = true,
    .in_place = 1,
    .attr_size = sizeof(cn__slice_attrs),
    .infer = infer_slice_add,
    .grad = grad_slice_add,
    .cpu = cpu_slice_add,
    .gpu = gpu_slice_add,
    CN_CASES(
        { CN_IN(CN_S(4, 5), CN_S(4, 3)), .attrs = &(const cn__slice_attrs){ 1, 5, 1 }, CN_ARGS({ .i = 1 }) },
        { CN_IN(CN_S(3, 8, 2), CN_S(3, 3, 2)), .attrs = &(const cn__slice_attrs){ 1, 8, 3 }, CN_ARGS({ .i = 1 }) },
        { CN_IN(CN_S(7), CN_S(0)), .attrs = &(const cn__slice_attrs){ 0, 7, 2 }, CN_ARGS({ .i = 7 }) },
        { CN_IN(CN_S(0, 3), CN_S(0, 2)), .attrs = &(const cn__slice_attrs){ 1, 3, 1 }, CN_ARGS({ .i = 1 }) },
        { CN_IN(CN_S(1), CN_S(1)), .attrs = &(const cn__slice_attrs){ 0, 1, 1 }, CN_ARGS({ .i = 0 }) },
        { CN_IN(CN_S(201, 200), CN_S(100, 200)), .attrs = &(const cn__slice_attrs){ 0, 201, 2 }, CN_ARGS({ .i = 1 }) }),
};
