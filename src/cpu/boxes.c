/* Groups that run box by box. A permuted load is fastest along another axis than the results: in the order of the
   results each of its elements comes from another line of the cache, which is read again for each of the line's
   elements. A box has some elements along both axes. */
#include "core/layout.h"
#include "core/util.h"
#include "cpu/cpu.h"

#define SIDE  64 /* elements of a box on both axes: of as many pages of memory, addresses are found quickly */
#define LINE  16 /* elements: boxes end where lines of the cache do, and squares that are turned have no rest */
#define ALONG 32 /* elements on the last axis that a register holds; what is left of it is on the loads' axis */

/* ---- prepare ---- */

/* Whether all operands can be seen in the shape of the group's space: loads of another shape must be contiguous. */
static bool one_shape(const cn__group *g)
{
    const cn__step *s = g->step;
    for (int i = 0; i < s->n_loads; i++)
        if (s->loads[i].number < 0 && !g->walks[i].contiguous && !cn__same_shape(&s->loads[i].layout, &s->space))
            return false;
    return true;
}

/* A box's elements are not numbered one after the other. */
static bool any_order(const cn__step *s)
{
    for (int i = 0; i < s->n_instrs; i++)
        if (!s->instrs[i].op->any_order && !s->instrs[i].op->copies) return false;
    return true;
}

static bool is_strided(const cn__group *g, int i)
{
    return i < g->step->n_loads && g->step->loads[i].number < 0 && !g->walks[i].contiguous;
}

/* The axis of size > 1 along which the load's elements lie closest. */
static int fastest_axis(const cn_layout *l)
{
    int best = -1;
    for (int d = 0; d < l->ndim; d++) {
        if (l->shape[d] == 1 || l->stride[d] <= 0) continue;
        if (best < 0 || l->stride[d] < l->stride[best]) best = d;
    }
    return best;
}

static int last_axis(const cn_layout *l)
{
    int d = l->ndim - 1;
    while (d > 0 && l->shape[d] == 1) d--;
    return d;
}

/* The axis along which a load is faster than along the last one, or -1. */
static int turned_axis(const cn__group *g)
{
    int last = last_axis(&g->step->space);
    for (int i = 0; i < g->step->n_loads; i++) {
        if (!is_strided(g, i)) continue;
        const cn_layout *l = &g->step->loads[i].layout;
        int axis = fastest_axis(l);
        if (axis >= 0 && axis != last && l->stride[last] > l->stride[axis]) return axis;
    }
    return -1;
}

/* Sets the strides of a walk by axis of the space. Those of contiguous operands are row-major. */
static bool set_strides(cn__memory *m, cn__plan *plan, cn__group *g, int i)
{
    cn__walk *w = &g->walks[i];
    cn_layout l = g->step->space;
    cn__row_major(&l);
    if (is_strided(g, i)) l = w->operand->layout;
    w->box_stride = cn__bump_new(m, &plan->memory, sizeof *w->box_stride * CN_MAX_DIMS);
    if (w->box_stride) memcpy(w->box_stride, l.stride, sizeof *w->box_stride * CN_MAX_DIMS);
    return w->box_stride != NULL;
}

/* Whether axes d - 1 and d are one axis to all operands. */
static bool one_axis(const cn__group *g, int n_walks, int d)
{
    for (int i = 0; i < n_walks; i++) {
        const int64_t *stride = g->walks[i].box_stride;
        if (stride[d - 1] != stride[d] * g->boxes.shape[d]) return false;
    }
    return true;
}

static void remove_axis(cn__group *g, int n_walks, int d)
{
    cn__boxes *b = &g->boxes;
    b->ndim--;
    b->axis -= d < b->axis;
    for (int k = d; k < b->ndim; k++) b->shape[k] = b->shape[k + 1];
    for (int i = 0; i < n_walks; i++)
        for (int k = d; k < b->ndim; k++) g->walks[i].box_stride[k] = g->walks[i].box_stride[k + 1];
}

static void merge_box_axes(cn__group *g, int n_walks)
{
    cn__boxes *b = &g->boxes;
    for (int d = b->ndim - 1; d >= 0; d--)
        if (b->shape[d] == 1) remove_axis(g, n_walks, d);
    for (int d = b->ndim - 1; d > 0; d--) {
        if (!one_axis(g, n_walks, d)) continue;
        b->shape[d] *= b->shape[d - 1];
        if (b->axis == d - 1) b->axis = d;
        remove_axis(g, n_walks, d - 1);
    }
}

/* Box after box along the last axis, then along the loads' axis, then along the others, from the last to the first. */
static void set_order(cn__boxes *b)
{
    int n = 2;
    b->order[0] = b->ndim - 1;
    b->order[1] = b->axis;
    for (int d = b->ndim - 2; d >= 0; d--)
        if (d != b->axis) b->order[n++] = d;
}

static void set_size(cn__boxes *b)
{
    int last = b->ndim - 1;
    for (int d = 0; d < b->ndim; d++) b->size[d] = 1;
    b->size[last] = cn__smaller(b->shape[last], SIDE);
    b->size[b->axis] = cn__smaller(b->shape[b->axis], SIDE * SIDE / b->size[last] / LINE * LINE);
    b->size[last] = cn__smaller(b->shape[last], SIDE * SIDE / b->size[b->axis]);
}

bool cn__boxes_find(cn__memory *m, cn__plan *plan, cn__group *g)
{
    const cn__step *s = g->step;
    int n_walks = s->n_loads + s->n_stores, axis = g->numel < 4 * CN__TILE ? -1 : turned_axis(g);
    if (axis < 0 || !any_order(s) || !one_shape(g)) return true;
    g->boxes = (cn__boxes){ .ndim = s->space.ndim, .axis = axis };
    memcpy(g->boxes.shape, s->space.shape, sizeof g->boxes.shape);
    for (int i = 0; i < n_walks; i++)
        if (!set_strides(m, plan, g, i)) return false;
    merge_box_axes(g, n_walks);
    set_order(&g->boxes);
    set_size(&g->boxes);
    return true;
}

static int64_t blocks_along(const cn__boxes *b, int d) { return cn__divide_up(b->shape[d], b->size[d]); }

int64_t cn__boxes_count(const cn__boxes *b)
{
    int64_t n = 1;
    for (int d = 0; d < b->ndim; d++) n *= blocks_along(b, d);
    return n;
}

/* ---- run ---- */

/* Where a box begins, and its size. */
typedef struct place {
    int64_t at[CN_MAX_DIMS], rows, n;
} place;

static place place_of(const cn__boxes *b, int64_t box)
{
    place p = { .rows = 1 };
    for (int k = 0; k < b->ndim; k++) {
        int d = b->order[k];
        p.at[d] = box % blocks_along(b, d) * b->size[d];
        box /= blocks_along(b, d);
    }
    return p;
}

static void go_on(const cn__boxes *b, place *p)
{
    for (int k = 0; k < b->ndim; k++) {
        int d = b->order[k];
        p->at[d] += b->size[d];
        if (p->at[d] < b->shape[d]) return;
        p->at[d] = 0;
    }
}

static char *start_of(const cn__boxes *b, const cn__walk *w, const place *p)
{
    int64_t offset = 0;
    for (int d = 0; d < b->ndim; d++) offset += p->at[d] * w->box_stride[d];
    return w->data + offset * (int64_t)w->size;
}

static void copy_in(const cn__group *g, const cn__walk *w, const place *p, void *to, int64_t to_row)
{
    const cn__boxes *b = &g->boxes;
    cn__box_of(g, w->size)(&(cn__box){ .to = to,
                                       .to_row = to_row,
                                       .from = start_of(b, w, p),
                                       .row = w->box_stride[b->axis],
                                       .step = w->box_stride[b->ndim - 1],
                                       .rows = p->rows,
                                       .n = p->n });
}

static void copy_out(const cn__group *g, const cn__walk *w, const place *p, const void *from)
{
    const cn__boxes *b = &g->boxes;
    cn__box_of(g, w->size)(&(cn__box){ .to = start_of(b, w, p),
                                       .to_row = w->box_stride[b->axis],
                                       .from = from,
                                       .row = p->n,
                                       .step = 1,
                                       .rows = p->rows,
                                       .n = p->n });
}

/* Copies each box straight to its place. */
static void move_box(const cn__group *g, const place *p)
{
    for (int i = 0; i < g->n_entries; i++) {
        const cn__walk *to = &g->walks[g->entries[i].out[0].index];
        copy_in(g, &g->walks[g->entries[i].operand], p, start_of(&g->boxes, to, p), to->box_stride[g->boxes.axis]);
    }
}

/* A part of a box that fits in a register. */
static void run_part(const cn__group *g, const cn__run *run, char *regs, const place *p)
{
    for (int i = 0; i < g->n_entries; i++) {
        const cn__entry *e = &g->entries[i];
        if (e->kind == CN__DO_LOOP) {
            cn__run_loop(g, run, e, regs, 0, p->rows * p->n);
        } else if (e->kind == CN__DO_GATHER) {
            copy_in(g, &g->walks[e->operand], p, cn__register_at(regs, e->out[0].index), p->n);
        } else if (e->kind == CN__DO_MOVE) {
            const cn__walk *to = &g->walks[e->out[0].index];
            copy_in(g, &g->walks[e->operand], p, start_of(&g->boxes, to, p), to->box_stride[g->boxes.axis]);
        } else {
            copy_out(g, &g->walks[e->out[0].index], p, cn__register_at(regs, e->in[0].index));
        }
    }
}

static void run_box(const cn__group *g, const cn__run *run, char *regs, const place *box)
{
    const int last = g->boxes.ndim - 1, axis = g->boxes.axis;
    place p = *box;
    for (int64_t k = 0; k < box->n; k += p.n) {
        p.n = cn__smaller(box->rows < CN__TILE / ALONG ? CN__TILE / box->rows : ALONG, box->n - k);
        p.at[last] = box->at[last] + k;
        for (int64_t i = 0; i < box->rows; i += p.rows) {
            p.rows = cn__smaller(CN__TILE / p.n, box->rows - i);
            p.at[axis] = box->at[axis] + i;
            run_part(g, run, regs, &p);
        }
    }
}

void cn__group_boxes(const cn__group *g, const cn__run *run, char *regs, int64_t begin, int64_t end)
{
    const cn__boxes *b = &g->boxes;
    int last = b->ndim - 1;
    bool moves = true;
    for (int i = 0; i < g->n_entries; i++) moves &= g->entries[i].kind == CN__DO_MOVE;
    place p = place_of(b, begin);
    cn__group_begin(g, run, regs, CN__TILE);
    for (; begin < end; begin++, go_on(b, &p)) {
        p.n = cn__smaller(b->size[last], b->shape[last] - p.at[last]);
        p.rows = cn__smaller(b->size[b->axis], b->shape[b->axis] - p.at[b->axis]);
        if (moves) move_box(g, &p);
        else run_box(g, run, regs, &p);
    }
}
