/* Groups on the CPU: a group is a short list of loops that run over tiles small enough for the L1 cache. Each loop
   rounds as it would alone, so fused and unfused computation give the same bits. */
#include "core/dtype.h"
#include "core/layout.h"
#include "core/util.h"
#include "cpu/cpu.h"

#define LONG_RUN (CN__TILE / 4) /* elements that lie evenly in memory: tiles often need no copy of such a load */

/* ---- prepare ---- */

/* Merges neighbouring axes that one stride can describe. */
static bool merge_axes(cn__memory *m, cn__plan *plan, cn__walk *w, const cn_layout *l)
{
    w->shape = cn__bump_new(m, &plan->memory, sizeof *w->shape * 2 * (size_t)(l->ndim + 1));
    if (!w->shape) return false;
    w->stride = w->shape + l->ndim;
    w->ndim = 0;
    for (int d = 0; d < l->ndim; d++) {
        if (l->shape[d] == 1) continue;
        int last = w->ndim - 1;
        if (last >= 0 && w->stride[last] == l->stride[d] * l->shape[d]) {
            w->shape[last] *= l->shape[d];
            w->stride[last] = l->stride[d];
        } else {
            w->shape[w->ndim] = l->shape[d];
            w->stride[w->ndim++] = l->stride[d];
        }
    }
    return true;
}

bool cn__overlaps(const cn__plan *p, const cn__operand *store, const cn__operand *load)
{
    if (load->buffer < 0) return false;
    const cn__buffer *a = &p->buffers[store->buffer], *b = &p->buffers[load->buffer];
    if (a->where == CN__AT_ARENA && b->where == CN__AT_ARENA)
        return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
    return a->where == CN__AT_DONOR && b->where == CN__AT_LEAF;
}

static cn_dtype dtype_of(const cn__step *s, int value)
{
    if (value < s->n_loads) return s->loads[value].dtype;
    const cn__instr *i = &s->instrs[s->n_instrs - 1];
    while (value < i->out) i--;
    return i->out_dtype[value - i->out];
}

typedef struct draft {
    const struct cn__kernels *kernels;
    cn__group *g;
    cn__plan *plan;
    const cn__step *step;
    cn__slot *slots; /* by value */
    int *last_use;   /* by value: the last instruction that reads it */
    int *same;       /* by value: the value of which it is a copy, or itself */
    bool *free_regs;
} draft;

/* A register that may hold a tile's place in memory, or that is filled for many tiles, belongs to its load alone. */
static bool keeps_register(const draft *d, int load)
{
    const cn__walk *w = &d->g->walks[load];
    if (d->step->loads[load].number >= 0 || w->contiguous || w->ndim == 0) return true;
    return !d->g->boxes.ndim && w->shape[w->ndim - 1] >= LONG_RUN && (uint64_t)w->stride[w->ndim - 1] < 2;
}

/* `own`: a register that no other value had, because instructions of the next tile would write to it. */
static int allocate_register(draft *d, bool own)
{
    int r = own ? d->g->n_regs : 0;
    while (r < d->g->n_regs && !d->free_regs[r]) r++;
    d->free_regs[r] = false;
    if (r == d->g->n_regs) d->g->n_regs++;
    return r;
}

static void release(draft *d, int value)
{
    if (d->slots[value].kind != CN__IN_REGISTER) return;
    if (value >= d->step->n_loads || !keeps_register(d, value)) d->free_regs[d->slots[value].index] = true;
}

static void release_after(draft *d, int at)
{
    const cn__instr *i = &d->step->instrs[at];
    for (int k = 0; k < i->n_in; k++)
        if (d->last_use[d->same[i->in[k]]] == at) release(d, d->same[i->in[k]]);
    for (int o = 0; o < i->n_out; o++)
        if (d->last_use[i->out + o] < 0) release(d, i->out + o); /* nothing reads it */
}

static void add_gather(draft *d, int load)
{
    cn__slot *s = &d->slots[load];
    *s = (cn__slot){ CN__IN_REGISTER, d->g->walks[load].size, allocate_register(d, keeps_register(d, load)) };
    if (d->step->loads[load].number >= 0) {
        d->g->numbers[d->g->n_numbers].operand = load;
        d->g->numbers[d->g->n_numbers++].reg = s->index;
        return;
    }
    d->g->entries[d->g->n_entries++] = (cn__entry){ .kind = CN__DO_GATHER, .operand = load, .out = { *s } };
}

/* The store to whose memory the loop of instruction `at` can write this value directly, as a walk; or -1. No later
   instruction may read a load that lies in that memory. */
static int direct_store(const draft *d, int value, int at)
{
    for (int s = 0; s < d->step->n_stores && !d->step->op && !d->g->boxes.ndim; s++) {
        if (d->same[d->step->stores[s].value] != value) continue;
        bool safe = true;
        for (int l = 0; l < d->step->n_loads; l++)
            if (cn__overlaps(d->plan, &d->step->stores[s].to, &d->step->loads[l]) && d->last_use[l] > at) safe = false;
        if (safe) return d->step->n_loads + s;
    }
    return -1;
}

static void add_loop(draft *d, int at)
{
    const cn__instr *i = &d->step->instrs[at];
    if (i->op->copies) return;
    for (int k = 0; k < i->n_in; k++) {
        int value = d->same[i->in[k]];
        if (value < d->step->n_loads && d->slots[value].size == 0) add_gather(d, value);
    }
    cn__entry e = { .kind = CN__DO_LOOP,
                    .loop = cn__cpu_loop(d->kernels, i->op, i->dtype),
                    .n_in = i->n_in,
                    .n_out = i->n_out,
                    .node = i->node,
                    .attrs = i->attrs };
    for (int k = 0; k < i->n_in; k++) e.in[k] = d->slots[d->same[i->in[k]]];
    for (int o = 0; o < i->n_out; o++) {
        int memory = direct_store(d, i->out + o, at);
        e.out[o].size = (uint8_t)cn_dtype_size(i->out_dtype[o]);
        e.out[o].kind = memory >= 0 ? CN__IN_MEMORY : CN__IN_REGISTER;
        e.out[o].index = memory >= 0 ? memory : allocate_register(d, false);
        d->slots[i->out + o] = e.out[o];
    }
    d->g->entries[d->g->n_entries++] = e;
    release_after(d, at);
}

static void add_stores(draft *d)
{
    for (int s = 0; s < d->step->n_stores && !d->step->op; s++) {
        int value = d->same[d->step->stores[s].value], load = value < d->step->n_loads ? value : -1;
        cn__slot *from = &d->slots[value];
        if (load >= 0 && d->step->loads[load].number < 0 && from->size == 0) {
            cn__slot to = { CN__IN_MEMORY, d->g->walks[load].size, d->step->n_loads + s };
            d->g->entries[d->g->n_entries++] = (cn__entry){ .kind = CN__DO_MOVE, .operand = load, .out = { to } };
            continue;
        }
        if (from->kind == CN__IN_MEMORY && from->index == d->step->n_loads + s) continue;
        d->g->entries[d->g->n_entries++] = (cn__entry){
            .kind = CN__DO_STORE, .in = { *from }, .out = { { CN__IN_MEMORY, from->size, d->step->n_loads + s } }
        };
    }
}

static bool prepare_walks(draft *d, cn__memory *m)
{
    const cn__step *st = d->step;
    bool ok = true;
    for (int i = 0; i < st->n_loads + st->n_stores && ok; i++) {
        cn__walk *w = &d->g->walks[i];
        w->operand = i < st->n_loads ? &st->loads[i] : &st->stores[i - st->n_loads].to;
        w->size = (uint8_t)cn_dtype_size(w->operand->dtype);
        w->contiguous = w->operand->number < 0 && cn__layout_contiguous(&w->operand->layout);
        if (i < st->n_loads && !w->contiguous) ok = merge_axes(m, d->plan, w, &w->operand->layout);
    }
    if (ok && !st->op && !st->epilogue) ok = cn__boxes_find(m, d->plan, d->g);
    for (int i = 0; i < st->n_loads; i++) {
        const cn__walk *w = &d->g->walks[i];
        if (w->contiguous && !d->g->boxes.ndim) d->slots[i] = (cn__slot){ CN__IN_MEMORY, w->size, i };
    }
    return ok;
}

static void find_last_uses(draft *d)
{
    const cn__step *step = d->step;
    for (int v = 0; v < step->n_values; v++) d->last_use[v] = -1, d->same[v] = v;
    for (int i = 0; i < step->n_instrs; i++) {
        const cn__instr *in = &step->instrs[i];
        if (in->op->copies) d->same[in->out] = d->same[in->in[0]];
        else
            for (int k = 0; k < in->n_in; k++) d->last_use[d->same[in->in[k]]] = i;
    }
    for (int s = 0; s < step->n_stores && step->stores[s].value >= 0; s++)
        d->last_use[d->same[step->stores[s].value]] = step->n_instrs;
}

static void add_entries(draft *d)
{
    const cn__step *step = d->step;
    for (int l = 0; l < step->n_loads; l++) /* filled once for all tiles, so their registers are never reused */
        if (step->loads[l].number >= 0) add_gather(d, l);
    for (int i = 0; i < step->n_instrs; i++) add_loop(d, i);
    if (!step->op) {
        add_stores(d);
        return;
    }
    int reduced = d->same[step->reduced];
    if (d->slots[reduced].size == 0) add_gather(d, reduced);
    d->g->reduced = d->slots[reduced];
    d->g->reducer = cn__cpu_reducer(d->kernels, step->op, dtype_of(step, step->reduced));
}

bool cn__group_prepare(const cn__cpu *cpu, cn__plan *plan, const cn__step *step, cn__group *g)
{
    int most = step->n_values + step->n_stores + 1;
    cn__memory *m = &cpu->device.ctx->memory;
    *g = (cn__group){ .step = step, .gather = cpu->gather, .numel = cn__numel(&step->space) };
    g->walks = cn__bump_new(m, &plan->memory, sizeof *g->walks * (size_t)(step->n_loads + step->n_stores));
    const int entries =
        step->n_loads + step->n_instrs + step->n_stores + 1; /* a gather, a loop, a store; of a reduction */
    g->entries = cn__bump_new(m, &plan->memory, sizeof *g->entries * (size_t)entries);
    g->numbers = cn__bump_new(m, &plan->memory, sizeof *g->numbers * (size_t)(step->n_loads + 1));
    cn__bump temporary = { 0 };
    draft d = { .kernels = cpu->kernels, .g = g, .plan = plan, .step = step };
    d.slots = cn__bump_new(m, &temporary, sizeof *d.slots * (size_t)most);
    d.last_use = cn__bump_new(m, &temporary, sizeof *d.last_use * (size_t)most);
    d.same = cn__bump_new(m, &temporary, sizeof *d.same * (size_t)most);
    d.free_regs = cn__bump_new(m, &temporary, sizeof *d.free_regs * (size_t)(most + 1));
    bool ok = g->walks && g->entries && g->numbers && d.slots && d.last_use && d.same && d.free_regs;
    if (ok) {
        find_last_uses(&d);
        ok = prepare_walks(&d, m);
        if (ok) add_entries(&d);
    }
    cn__bump_free(m, &temporary);
    return ok;
}

/* ---- run ---- */

void *cn__operand_data(const cn__operand *o, const cn__run *run, void *const *base)
{
    if (o->buffer < 0) return NULL;
    int64_t offset = o->layout.offset;
    if (o->view_node >= 0) offset = run->nodes[o->view_node]->out[0].meta->layout.offset;
    else if (o->view_leaf >= 0) offset = cn__res(run->leaves[o->view_leaf])->meta->layout.offset;
    return (char *)base[o->buffer] + offset * (int64_t)cn_dtype_size(o->dtype);
}

void cn__group_bind(cn__group *g, const cn__run *run, void *const *base)
{
    for (int i = 0; i < g->step->n_loads + g->step->n_stores; i++)
        g->walks[i].data = cn__operand_data(g->walks[i].operand, run, base);
}

static size_t table_bytes(const cn__group *g) { return cn__round_up_bytes((size_t)g->n_regs * sizeof(cn__held), 64); }

size_t cn__group_regs(const cn__group *g) { return table_bytes(g) + (size_t)g->n_regs * CN__REG_BYTES; }

static void fill(const cn__group *g, char *to, const void *element, size_t size, int64_t n)
{
    cn__box_of(g, size)(&(cn__box){ .to = to, .from = element, .rows = 1, .n = n });
}

void cn__group_begin(const cn__group *g, const cn__run *run, char *regs, int64_t n)
{
    cn__held *held = (cn__held *)regs;
    for (int i = 0; i < g->n_regs; i++) {
        char *own = regs + table_bytes(g) + (size_t)i * CN__REG_BYTES;
        held[i] = (cn__held){ own, own, NULL };
    }
    for (int i = 0; i < g->n_numbers; i++) {
        const cn__operand *o = g->walks[g->numbers[i].operand].operand;
        const cn__node *number = run->leaves[o->number].node;
        uint64_t element = 0;
        cn__store_f64(o->dtype, &element, number->args[0].f);
        fill(g, held[g->numbers[i].reg].at, &element, cn_dtype_size(o->dtype), n < CN__TILE ? n : CN__TILE);
    }
}

/* Copies elements [start, start + n) of the walk to contiguous memory: rows along the last axis, several at a time. */
static void gather(const cn__group *g, const cn__walk *w, char *to, int64_t start, int64_t n)
{
    if (w->ndim == 0) {
        fill(g, to, w->data, w->size, n);
        return;
    }
    int64_t at[CN_MAX_DIMS], offset = 0, rest = start;
    for (int d = w->ndim - 1; d > 0; d--) {
        at[d] = rest % w->shape[d];
        rest /= w->shape[d];
        offset += at[d] * w->stride[d];
    }
    at[0] = rest;
    offset += rest * w->stride[0];
    int last = w->ndim - 1;
    cn__box_fn copy = cn__box_of(g, w->size);
    while (n > 0) {
        cn__box b = { .to = to, .from = w->data + offset * (int64_t)w->size, .step = w->stride[last], .rows = 1 };
        b.n = cn__smaller(w->shape[last] - at[last], n);
        if (last > 0 && b.n == w->shape[last]) {
            b.rows = cn__smaller(w->shape[last - 1] - at[last - 1], n / b.n);
            b.row = w->stride[last - 1];
        }
        b.to_row = b.n;
        copy(&b);
        to += (size_t)(b.rows * b.n) * w->size;
        n -= b.rows * b.n;
        if (b.rows > 1) {
            offset += b.rows * b.row;
            at[last - 1] += b.rows;
        } else {
            offset += b.n * w->stride[last];
            at[last] += b.n;
        }
        for (int d = last; d > 0; d--) {
            if (at[d] < w->shape[d]) continue;
            offset += w->stride[d - 1] - w->shape[d] * w->stride[d];
            at[d] = 0;
            at[d - 1]++;
        }
    }
}

/* Whether elements [start, start + n) lie evenly along the last axis. Then *first is the first of them. */
static bool evenly(const cn__walk *w, int64_t start, int64_t n, char **first)
{
    int last = w->ndim - 1;
    int64_t at = last ? start % w->shape[last] : start, rest = last ? start / w->shape[last] : 0;
    if (at + n > w->shape[last]) return false;
    int64_t offset = at * w->stride[last];
    for (int d = last - 1; d > 0; d--) {
        offset += rest % w->shape[d] * w->stride[d];
        rest /= w->shape[d];
    }
    offset += rest * w->stride[0];
    *first = w->data + offset * (int64_t)w->size;
    return true;
}

/* Makes a tile of a load. Nothing is copied where the load lies contiguous, or repeats the element of the last tile. */
static void hold(const cn__group *g, const cn__walk *w, char *regs, int reg, int64_t start, int64_t n)
{
    cn__held *held = (cn__held *)regs + reg;
    char *own = held->own, *first = NULL;
    int64_t step = w->ndim ? w->stride[w->ndim - 1] : 0;
    bool even =
        w->ndim == 0 || ((uint64_t)step < 2 && w->shape[w->ndim - 1] >= LONG_RUN && evenly(w, start, n, &first));
    if (w->ndim == 0) first = w->data;
    held->at = even && step == 1 ? first : own;
    if (!even) {
        held->filled = NULL;
        gather(g, w, own, start, n);
    } else if (step == 0 && held->filled != first) {
        held->filled = first;
        fill(g, own, first, w->size, CN__TILE);
    }
}

void cn__group_stage(const cn__group *g, char *regs, char *to)
{
    if (g->reduced.kind != CN__IN_REGISTER) return;
    for (int i = 0; i < g->n_numbers; i++)
        if (g->numbers[i].reg == g->reduced.index) return; /* filled once for all tiles */
    ((cn__held *)regs)[g->reduced.index] = (cn__held){ to, to, NULL };
}

static inline char *slot_at(const cn__group *g, const cn__slot *s, const char *regs, int64_t start)
{
    return s->kind == CN__IN_REGISTER ? cn__register_at(regs, s->index)
                                      : g->walks[s->index].data + start * (int64_t)s->size;
}

const void *cn__slot_at(const cn__group *g, const cn__slot *s, const char *regs, int64_t start)
{
    return slot_at(g, s, regs, start);
}

void cn__run_loop(const cn__group *g, const cn__run *run, const cn__entry *e, char *regs, int64_t start, int64_t n)
{
    cn_loop l; /* field by field: clearing all of it costs more than a short loop */
    l.out = slot_at(g, &e->out[0], regs, start);
    for (int k = 1; k < e->n_out; k++) l.more[k - 1] = slot_at(g, &e->out[k], regs, start);
    l.n = n;
    l.start = start;
    l.attrs = e->attrs;
    l.args = run->nodes[e->node]->args;
    for (int k = 0; k < e->n_in; k++) l.in[k] = slot_at(g, &e->in[k], regs, start);
    e->loop(&l);
}

void cn__group_tile(const cn__group *g, const cn__run *run, char *regs, int64_t start, int64_t n)
{
    for (int i = 0; i < g->n_entries; i++) {
        const cn__entry *e = &g->entries[i];
        if (e->kind == CN__DO_LOOP) cn__run_loop(g, run, e, regs, start, n);
        else if (e->kind == CN__DO_GATHER) hold(g, &g->walks[e->operand], regs, e->out[0].index, start, n);
        else if (e->kind == CN__DO_MOVE)
            gather(g, &g->walks[e->operand], slot_at(g, &e->out[0], regs, start), start, n);
        else
            memmove(slot_at(g, &e->out[0], regs, start), slot_at(g, &e->in[0], regs, start), (size_t)n * e->in[0].size);
    }
}

void cn__group_range(const cn__group *g, const cn__run *run, char *regs, int64_t begin, int64_t end)
{
    cn__group_begin(g, run, regs, end - begin);
    for (int64_t at = begin; at < end; at += CN__TILE)
        cn__group_tile(g, run, regs, at, end - at < CN__TILE ? end - at : CN__TILE);
}

/* ---- merged groups ---- */

void cn__groups_count(cn__group *g, int n)
{
    for (int i = 0; i < n; i++) {
        int64_t own = cn__divide_up(g[i].numel, CN__TILE);
        if (g[i].turned) own = cn__turned_count(g[i].turned);
        else if (g[i].boxes.ndim) own = cn__boxes_count(&g[i].boxes);
        g[i].tiles = (i ? g[i - 1].tiles : 0) + own;
    }
}

static size_t regs_bytes(const cn__group *g, int n)
{
    size_t most = 0;
    for (int i = 0; i < n; i++) most = cn__group_regs(&g[i]) > most ? cn__group_regs(&g[i]) : most;
    return most;
}

size_t cn__groups_scratch(const cn__group *g, int n, int threads) { return (size_t)threads * regs_bytes(g, n); }

typedef struct job {
    const cn__group *g;
    int n;
    const cn__run *run;
    char *scratch;
    size_t regs_bytes;
    int64_t part; /* tiles in a part */
} job;

/* The group that this tile belongs to. */
static int group_of(const job *j, int64_t tile)
{
    int low = 0, high = j->n - 1;
    while (low < high) {
        int mid = (low + high) / 2;
        if (j->g[mid].tiles > tile) high = mid;
        else low = mid + 1;
    }
    return low;
}

static void run_part(void *user, int64_t part, int thread)
{
    const job *j = user;
    char *regs = j->scratch + (size_t)thread * j->regs_bytes;
    int64_t tile = part * j->part, end = cn__smaller(tile + j->part, j->g[j->n - 1].tiles);
    for (int i = group_of(j, tile); tile < end; i++) {
        const cn__group *g = &j->g[i];
        int64_t first = i ? g[-1].tiles : 0, last = cn__smaller(end, g->tiles);
        if (tile < last && g->turned) cn__group_turned(g, j->run, regs, tile - first, last - first);
        else if (tile < last && g->boxes.ndim) cn__group_boxes(g, j->run, regs, tile - first, last - first);
        else if (tile < last)
            cn__group_range(g, j->run, regs, (tile - first) * CN__TILE,
                            cn__smaller((last - first) * CN__TILE, g->numel));
        tile = last;
    }
}

void cn__groups_run(const cn__group *g, int n, const cn__run *run, cn__workers *w, char *scratch)
{
    int64_t tiles = 32 / (1 + g->n_entries); /* parts of about equal work, however long the program is */
    if (tiles < 4) tiles = 4;
    if (g->turned) tiles = 1;
    if (g->boxes.ndim) tiles = cn__divide_up(tiles * CN__TILE, cn__box_elements(&g->boxes));
    job j = { g, n, run, scratch, regs_bytes(g, n), tiles };
    int64_t parts = (g[n - 1].tiles + j.part - 1) / j.part;
    if (parts <= 4) j.part *= 4, parts = (parts + 3) / 4; /* too little to share */
    if (parts == 1) run_part(&j, 0, 0);
    else if (parts) cn__workers_run(w, parts, run_part, &j);
}
