/* Profiles: observe the steps of plans and add up their times. A kernel is identified by its name and by the types and
   shapes of its operands. A hash table finds its entry, so that a run of a known kernel allocates nothing. */
#include <stdio.h>

#include "core/errors.h"
#include "core/layout.h"
#include "look/profile.h"
#include "plan/plan.h"

static cn_profile *profile_of(cn__observer *w) { return (cn_profile *)((char *)w - offsetof(cn_profile, observer)); }

static void add(cn__tally *t, int64_t ns, double flops, double bytes)
{
    t->calls++;
    t->ns += ns;
    t->flops += flops;
    t->bytes += bytes;
}

/* ---- the key of a kernel ----

   An operand is one number (dtype, number of axes, and whether it is a result), then its sizes. */

typedef struct key {
    const char *name;
    int device, n;
    cn_profile_class kind;
    int64_t joined; /* elements of the other steps that run in the same kernel */
    uint64_t hash;
    int64_t numbers[CN__SHAPE_NUMBERS];
} key;

/* Does not clear the numbers: there are many, and most are unused. */
static void begin_key(key *k, const char *name, int device, cn_profile_class kind)
{
    k->name = name;
    k->device = device;
    k->kind = kind;
    k->n = 0;
    k->joined = 0;
}

static void add_operand(key *k, const cn__operand *o, bool result)
{
    const int n = o->layout.ndim;
    if (o->buffer < 0 || n < 0 || k->n + 1 + n > CN__SHAPE_NUMBERS)
        return; /* constants and absent operands have no shape */
    k->numbers[k->n++] = (int64_t)o->dtype | n << 8 | (int64_t)result << 16;
    for (int d = 0; d < n; d++) k->numbers[k->n++] = o->layout.shape[d];
}

static uint64_t hash_key(const key *k)
{
    uint64_t h = 14695981039346656037u ^ (uint64_t)k->device ^ (uint64_t)k->joined << 8;
    for (const char *c = k->name; *c; c++) h = (h ^ (unsigned char)*c) * 1099511628211u;
    for (int i = 0; i < k->n; i++) {
        h = (h ^ (uint64_t)k->numbers[i]) * 0x9fb21c651e98df25u;
        h ^= h >> 32;
    }
    return h;
}

static void add_operands(key *k, const cn__step *s)
{
    for (int i = 0; i < s->n_loads; i++) add_operand(k, &s->loads[i], false);
    for (int i = 0; i < s->n_stores; i++) add_operand(k, &s->stores[i].to, true);
    for (int i = 1; i < s->merged; i++) k->joined += cn__numel(&s[i].space);
}

static void print_operand(const int64_t *w, char *out, size_t size)
{
    cn_layout l = { .ndim = (int)(w[0] >> 8 & 0xff) };
    for (int d = 0; d < l.ndim; d++) l.shape[d] = w[1 + d];
    char shape[96];
    snprintf(out, size, "%s%s", cn_dtype_name((cn_dtype)(w[0] & 0xff)), cn__shape_text(&l, shape, sizeof shape));
}

void cn__profile_shape_text(const cn__profile_shape *s, char *out, size_t size)
{
    size_t n = 0;
    bool results = false;
    out[0] = 0;
    for (int i = 0; i < s->n_numbers; i += 1 + (int)(s->numbers[i] >> 8 & 0xff)) {
        char one[112];
        print_operand(&s->numbers[i], one, sizeof one);
        const bool arrow = (s->numbers[i] >> 16) != 0 && !results;
        const char *between = arrow ? (i ? " -> " : "-> ") : i ? ", " : "";
        if (n + strlen(between) + strlen(one) + 1 > size) return;
        n += (size_t)snprintf(out + n, size - n, "%s%s", between, one);
        results |= arrow;
    }
}

/* ---- class and cost of a kernel ---- */

static bool only_copies(const cn__step *s)
{
    for (int i = 0; i < s->n_instrs; i++)
        if (!s->instrs[i].op->copies) return false;
    return true;
}

static cn_profile_class class_of(const cn__step *s)
{
    if (s->group) return s->op ? CN_PROFILE_REDUCE : only_copies(s) ? CN_PROFILE_MOVE : CN_PROFILE_ELEMENTWISE;
    if (s->op->kind == CN_CONTRACT) return CN_PROFILE_MATMUL;
    if (s->op->attention) return CN_PROFILE_ATTENTION;
    return CN_PROFILE_OTHER;
}

/* The cost by the operator's record; 0: not known. */
static double ask_record(const cn__step *s, cn_cost_fn cost)
{
    cn_meta in[CN_MAX_IN], out[CN_MAX_OUT];
    if (!cost || s->n_loads > CN_MAX_IN || s->n_stores > CN_MAX_OUT || !s->n_stores) return 0;
    for (int i = 0; i < s->n_loads; i++) in[i] = (cn_meta){ s->loads[i].dtype, s->loads[i].layout };
    for (int i = 0; i < s->n_stores; i++) out[i] = (cn_meta){ s->stores[i].to.dtype, s->stores[i].to.layout };
    return cost(in, out, s->attrs);
}

static double flops_of(const cn__step *s) { return s->group ? 0 : ask_record(s, s->op->flops); }

/* The bytes in memory: an axis of stride 0 repeats one element. */
static double bytes_of_operand(const cn__operand *o)
{
    if (o->buffer < 0 || o->layout.ndim < 0) return 0;
    double n = (double)cn_dtype_size(o->dtype);
    for (int d = 0; d < o->layout.ndim; d++)
        if (o->layout.stride[d] || o->layout.shape[d] == 0) n *= (double)o->layout.shape[d];
    return n;
}

static double bytes_of_step(const cn__step *s, int but)
{
    if (!s->group && s->op->bytes) return ask_record(s, s->op->bytes);
    double n = 0;
    for (int i = 0; i < s->n_loads; i++)
        if (s->loads[i].buffer != but) n += bytes_of_operand(&s->loads[i]);
    for (int i = 0; i < s->n_stores; i++) n += bytes_of_operand(&s->stores[i].to);
    return n;
}

/* Sums over the steps that run in the kernel. An epilogue finds the result of its kernel in the cache. */
static double bytes_of(const cn__plan *plan, int step)
{
    const cn__step *s = &plan->steps[step];
    double n = 0;
    for (int i = 0; i < s->merged; i++) n += bytes_of_step(s + i, -1);
    if (step + 1 < plan->n_steps && s[1].epilogue) n += bytes_of_step(s + 1, s->n_stores ? s->stores[0].to.buffer : -1);
    return n;
}

/* ---- the table of kernels ---- */

static bool same(const cn_profile *p, const cn__profile_shape *s, const key *k)
{
    const cn__profile_row *row = &cn__profile_rows_of(p)[s->row];
    return s->hash == k->hash && s->n_numbers == k->n && s->joined == k->joined && row->kind == k->kind &&
           row->device == k->device && strcmp(row->name, k->name) == 0 &&
           (!k->n || memcmp(s->numbers, k->numbers, sizeof *k->numbers * (size_t)k->n) == 0);
}

/* The slot of the kernel, or the free slot where it belongs. */
static uint32_t *slot_of(const cn_profile *p, const key *k)
{
    uint32_t *slots = p->slots.v;
    for (size_t i = k->hash;; i++) {
        uint32_t *s = &slots[i & (p->slots.n - 1)];
        if (*s == 0 || same(p, &cn__profile_shapes_of(p)[*s - 1], k)) return s;
    }
}

/* At most half of the slots are in use. */
static bool reserve_room(cn_profile *p)
{
    cn__memory *m = &p->object.ctx->memory;
    const size_t wanted = p->slots.n < 2 * (p->shapes.n + 1) ? (p->slots.n ? 2 * p->slots.n : 64) : p->slots.n;
    if (!cn__vec_reserve(m, &p->shapes, p->shapes.n + 1, sizeof(cn__profile_shape)) ||
        !cn__vec_reserve(m, &p->rows, p->rows.n + 1, sizeof(cn__profile_row)) ||
        !cn__vec_reserve(m, &p->slots, wanted, sizeof(uint32_t)))
        return false;
    if (wanted == p->slots.n) return true;
    p->slots.n = wanted;
    uint32_t *slots = memset(p->slots.v, 0, sizeof *slots * wanted);
    for (size_t i = 1; i < p->shapes.n; i++) {
        size_t at = cn__profile_shapes_of(p)[i].hash;
        while (slots[at & (wanted - 1)]) at++;
        slots[at & (wanted - 1)] = (uint32_t)i + 1;
    }
    return true;
}

static void *copy_of(cn_profile *p, const void *from, size_t bytes)
{
    void *to = cn__bump_new(&p->object.ctx->memory, &p->memory, bytes ? bytes : 1);
    return to && bytes ? memcpy(to, from, bytes) : to;
}

static int row_of(cn_profile *p, const key *k)
{
    for (size_t i = 1; i < p->rows.n; i++) {
        const cn__profile_row *r = &cn__profile_rows_of(p)[i];
        if (r->kind == k->kind && r->device == k->device && strcmp(r->name, k->name) == 0) return (int)i;
    }
    const char *name = copy_of(p, k->name, strlen(k->name) + 1);
    if (!name) return -1;
    cn__profile_rows_of(p)[p->rows.n] = (cn__profile_row){ .name = name, .device = k->device, .kind = k->kind };
    return (int)p->rows.n++;
}

/* The number of the kernel's shape. Without memory it is 0, the shape of all unknown kernels. */
static int shape_of(cn_profile *p, key *k, const cn__plan *plan, int step)
{
    k->hash = hash_key(k);
    const uint32_t found = *slot_of(p, k);
    if (found) return (int)found - 1;
    const int64_t *numbers = reserve_room(p) ? copy_of(p, k->numbers, sizeof *numbers * (size_t)k->n) : NULL;
    const int row = numbers ? row_of(p, k) : -1;
    if (row < 0) return 0;
    cn__profile_shape s = { .hash = k->hash, .row = row, .n_numbers = k->n, .numbers = numbers, .joined = k->joined };
    if (plan) s.flops = flops_of(&plan->steps[step]), s.bytes = bytes_of(plan, step);
    *slot_of(p, k) = (uint32_t)p->shapes.n + 1;
    cn__profile_shapes_of(p)[p->shapes.n] = s;
    return (int)p->shapes.n++;
}

static int device_of(cn_profile *p, const char *name)
{
    for (int i = 0; i < p->n_devices; i++)
        if (strcmp(p->device[i].name, name) == 0) return i;
    if (p->n_devices == CN__DEVICES) return CN__DEVICES - 1;
    snprintf(p->device[p->n_devices].name, sizeof p->device->name, "%s", name);
    return p->n_devices++;
}

/* ---- observe ---- */

static void note_event(cn_profile *p, int shape, int64_t began, int64_t ns, int64_t bytes)
{
    if (p->most_events == 0) return;
    if ((int64_t)p->events.n >= p->most_events ||
        !cn__push(&p->object.ctx->memory, &p->events, &(cn__profile_event){ began, ns, bytes, shape },
                  sizeof(cn__profile_event)))
        p->dropped++;
}

static void on_step(cn__observer *w, const cn__plan *plan, int step, int64_t began, int64_t ended)
{
    const int64_t ns = ended - began;
    cn_profile *p = profile_of(w);
    const cn__step *s = &plan->steps[step];
    key k;
    begin_key(&k, s->name, device_of(p, plan->device->name), class_of(s));
    add_operands(&k, s);
    const int shape = shape_of(p, &k, plan, step);
    const cn__profile_shape *known = &cn__profile_shapes_of(p)[shape];
    add(&cn__profile_rows_of(p)[known->row].tally, ns, known->flops, known->bytes);
    add(&p->device[k.device].kind[k.kind], ns, known->flops, known->bytes);
    p->kernels++;
    note_event(p, shape, began, ns, 0);
}

static void on_transfer(cn__observer *w, const char *device, bool up, size_t bytes, int64_t began)
{
    const int64_t ns = cn__nanoseconds() - began;
    cn_profile *p = profile_of(w);
    key k;
    begin_key(&k, up ? "upload" : "download", device_of(p, device), CN_PROFILE_TRANSFER);
    const int shape = shape_of(p, &k, NULL, 0);
    add(&cn__profile_rows_of(p)[cn__profile_shapes_of(p)[shape].row].tally, ns, 0, (double)bytes);
    add(&p->device[k.device].kind[CN_PROFILE_TRANSFER], ns, 0, (double)bytes);
    if (p->inside) p->transfers_inside_ns += ns;
    note_event(p, shape, began, ns, (int64_t)bytes);
}

static void on_moment(cn__observer *w, cn__moment m, bool built)
{
    cn_profile *p = profile_of(w);
    const int64_t now = cn__nanoseconds();
    switch (m) {
    case CN__EVALUATION_BEGINS:
        p->inside = true;
        p->evaluation_began = now;
        break;
    case CN__PLANNING_BEGINS: p->planning_began = now; break;
    case CN__PLANNING_ENDS:
        p->built += built;
        add(&p->planning, now - p->planning_began, 0, 0);
        note_event(p, built ? CN__EVENT_BUILDING : CN__EVENT_PLANNING, p->planning_began, now - p->planning_began, 0);
        break;
    case CN__EVALUATION_ENDS:
        p->inside = false;
        p->evaluations++;
        p->inside_ns += now - p->evaluation_began;
        note_event(p, CN__EVENT_EVALUATION, p->evaluation_began, now - p->evaluation_began, 0);
        break;
    }
}

/* ---- begin and end ---- */

static void destroy(void *self)
{
    cn_profile *p = self;
    cn_ctx *ctx = p->object.ctx;
    if (p->running) ctx->observer = NULL;
    cn__vec_free(&ctx->memory, &p->rows, sizeof(cn__profile_row));
    cn__vec_free(&ctx->memory, &p->shapes, sizeof(cn__profile_shape));
    cn__vec_free(&ctx->memory, &p->slots, sizeof(uint32_t));
    cn__vec_free(&ctx->memory, &p->events, sizeof(cn__profile_event));
    cn__bump_free(&ctx->memory, &p->memory);
}

const cn__object_type cn__profile_type = { "profile", destroy };

cn_profile *cn_profile_begin(cn_ctx *ctx, const cn_profile_desc *desc)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (ctx->observer || ctx->evaluating) {
        cn__fail(ctx, CN_UNSUPPORTED, "profile_begin: %s",
                 ctx->observer ? "another profile is running: end it first" : "not allowed during an evaluation");
        return NULL;
    }
    cn_profile *p = cn__object_new(ctx, sizeof *p, &cn__profile_type);
    if (!p) return NULL;
    if (!reserve_room(p)) {
        cn__no_memory(ctx, "profile");
        cn__object_free(p);
        return NULL;
    }
    cn__profile_rows_of(p)[p->rows.n++] = (cn__profile_row){ .name = "(unknown kernels)", .kind = CN_PROFILE_OTHER };
    cn__profile_shapes_of(p)[p->shapes.n++] = (cn__profile_shape){ 0 };
    const int64_t events = desc ? desc->events : 0;
    p->most_events = events == 0 ? 200000 : events < 0 ? 0 : events;
    p->observer = (cn__observer){ .moment = on_moment, .step = on_step, .transfer = on_transfer };
    p->gpu = cn_gpu_counted(ctx);
    p->running = true;
    ctx->observer = &p->observer;
    p->began = cn__nanoseconds();
    return p;
}

bool cn_profile_end(cn_profile *p)
{
    CN__CALL call = cn__call_object(p, &cn__profile_type);
    if (!call.ctx || !p->running) return false;
    if (p->inside) return cn__fail(p->object.ctx, CN_UNSUPPORTED, "profile_end: not allowed during an evaluation");
    p->ended = cn__nanoseconds();
    p->gpu = cn_profile_gpu(p);
    p->running = false;
    p->object.ctx->observer = NULL;
    return true;
}

void cn_profile_free(cn_profile *p)
{
    if (cn__is(p, &cn__profile_type) && p->inside)
        cn__fail(p->object.ctx, CN_UNSUPPORTED, "profile_free: not allowed during an evaluation");
    else cn__free_by_program(p, &cn__profile_type, __func__);
}
