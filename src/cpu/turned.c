/* Groups whose result is copied in another order. The group runs tile by tile in the order of its own elements, on
   several rows of them, and turns these rows straight into the copy: the result itself is never written. */
#include "core/layout.h"
#include "core/util.h"
#include "cpu/cpu.h"

#define SIDE  64              /* rows of a block */
#define PITCH (CN__TILE + 16) /* elements between staged rows: not a power of 2, so that they lie in different sets */
#define STAGE ((32 * PITCH + CN__REG_BYTES - 1) / CN__REG_BYTES) /* registers that hold the staged rows */

/* Rows that are staged: one square to turn. */
static int64_t staged_rows(const cn__walk *w) { return 32 / w->size; }

/* ---- prepare ---- */

/* Whether the step does nothing but copy the only result of the group, which nobody else reads. */
static bool copies_result(const cn__plan *plan, const cn__group *g, const cn__step *copy)
{
    const cn__step *s = g->step;
    if (!copy->group || copy->op || copy->epilogue || copy->merged != 1) return false;
    if (copy->n_loads != 1 || copy->n_stores != 1 || s->n_stores != 1) return false;
    for (int i = 0; i < copy->n_instrs; i++)
        if (!copy->instrs[i].op->copies) return false;
    const cn__operand *from = &copy->loads[0], *to = &copy->stores[0].to;
    if (from->buffer != s->stores[0].to.buffer || from->dtype != to->dtype) return false;
    const cn__buffer *b = &plan->buffers[from->buffer];
    if (b->where != CN__AT_ARENA || &plan->steps[b->first] != s || &plan->steps[b->last] != copy) return false;
    for (int i = 0; i < s->n_loads; i++) /* the copy is written while the group still reads */
        if (cn__overlaps(plan, to, &s->loads[i])) return false;
    return g->walks[s->n_loads].contiguous && cn__layout_contiguous(&to->layout);
}

/* The axes of a view of the result, from the fastest in the result's memory on, with their strides in the copy. False
   if the view does not show each element once. */
static bool set_axes(cn__turned *t, const cn_layout *view, const cn_layout *to, int64_t numel)
{
    int64_t next = 1;
    for (int d = 0; d < view->ndim && next < numel; d++) {
        if (view->shape[d] == 1 || view->stride[d] != next) continue;
        cn__turned_axis *last = t->ndim ? &t->axes[t->ndim - 1] : NULL;
        if (last && last->stride * last->size == to->stride[d]) last->size *= view->shape[d];
        else t->axes[t->ndim++] = (cn__turned_axis){ view->shape[d], to->stride[d] };
        next *= view->shape[d];
        d = -1;
    }
    return next == numel && cn__numel(view) == numel;
}

/* Finds the axis along which the copy is contiguous. False if it is not worth it: rows are few or short, or columns of
   the copy are pages apart, so that a cache keeps only a few of those that are written side by side. */
static bool find_rows(cn__turned *t, const cn__walk *w)
{
    while (t->rows < t->ndim && t->axes[t->rows].stride != 1) t->rows++;
    return t->rows > 0 && t->rows < t->ndim && t->axes[t->rows].size >= staged_rows(w) &&
           t->axes[0].size >= CN__TILE / 2 && t->axes[0].stride * w->size % 4096 != 0;
}

/* The result is no longer computed in memory, but in a register. False if it is not computed in memory. */
static bool stage_result(cn__group *g, int reg)
{
    const int result = g->step->n_loads;
    bool found = false;
    for (int i = 0; i < g->n_entries; i++) {
        cn__entry *e = &g->entries[i];
        if (e->kind == CN__DO_STORE || e->kind == CN__DO_MOVE) return false;
        for (int k = 0; k < e->n_out; k++) found |= e->out[k].kind == CN__IN_MEMORY && e->out[k].index == result;
    }
    for (int i = 0; i < g->n_entries && found; i++) {
        cn__entry *e = &g->entries[i];
        for (int k = 0; k < e->n_in + e->n_out; k++) {
            cn__slot *s = k < e->n_in ? &e->in[k] : &e->out[k - e->n_in];
            if (s->kind == CN__IN_MEMORY && s->index == result) *s = (cn__slot){ CN__IN_REGISTER, s->size, reg };
        }
    }
    return found;
}

bool cn__turned_find(cn__memory *m, cn__plan *plan, cn__group *g, const cn__step *copy)
{
    if (g->boxes.ndim || g->numel < 2 * SIDE * CN__TILE || !copies_result(plan, g, copy)) return true;
    cn__walk *w = &g->walks[g->step->n_loads];
    cn__turned t = { .stage = g->n_regs };
    if (!set_axes(&t, &copy->loads[0].layout, &copy->stores[0].to.layout, g->numel)) return true;
    if (!find_rows(&t, w) || !stage_result(g, t.stage)) return true;
    g->turned = cn__bump_new(m, &plan->memory, sizeof t);
    if (!g->turned) return false;
    *g->turned = t;
    g->n_regs += STAGE;
    w->operand = &copy->stores[0].to;
    return true;
}

static int64_t block_size(const cn__turned *t, int d) { return d == 0 ? CN__TILE : d == t->rows ? SIDE : 1; }

int64_t cn__turned_count(const cn__turned *t)
{
    int64_t n = 1;
    for (int d = 0; d < t->ndim; d++) n *= cn__divide_up(t->axes[d].size, block_size(t, d));
    return n;
}

/* ---- run ---- */

/* A block: a tile of some rows. */
typedef struct place {
    int64_t start, row;  /* its first element, and the distance to the next row */
    int64_t rows, n, to; /* to: where the copy of the first element is */
} place;

static place place_of(const cn__turned *t, int64_t block)
{
    place p = { 0 };
    int64_t stride = 1;
    for (int d = 0; d < t->ndim; d++) {
        const cn__turned_axis *a = &t->axes[d];
        const int64_t size = block_size(t, d), blocks = cn__divide_up(a->size, size), at = block % blocks * size;
        if (d == 0) p.n = cn__smaller(size, a->size - at);
        if (d == t->rows) p.rows = cn__smaller(size, a->size - at), p.row = stride;
        p.start += at * stride;
        p.to += at * a->stride;
        stride *= a->size;
        block /= blocks;
    }
    return p;
}

void cn__group_turned(const cn__group *g, const cn__run *run, char *regs, int64_t begin, int64_t end)
{
    const cn__turned *t = g->turned;
    const cn__walk *w = &g->walks[g->step->n_loads];
    cn__group_begin(g, run, regs, CN__TILE);
    char **result = &((cn__held *)regs + t->stage)->at, *const staged = *result;
    for (; begin < end; begin++) {
        const place p = place_of(t, begin);
        for (int64_t i = 0, rows; i < p.rows; i += rows) {
            rows = cn__smaller(staged_rows(w), p.rows - i);
            for (int64_t k = 0; k < rows; k++) {
                *result = staged + k * PITCH * w->size;
                cn__group_tile(g, run, regs, p.start + (i + k) * p.row, p.n);
            }
            cn__box_of(g, w->size)(&(cn__box){ .to = w->data + (p.to + i) * w->size,
                                               .to_row = t->axes[0].stride,
                                               .from = staged,
                                               .row = 1,
                                               .step = PITCH,
                                               .rows = p.n,
                                               .n = rows });
        }
    }
}
