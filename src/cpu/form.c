/* Finds weights in other forms, which storages keep: core/storage.h. */
#include "cpu/cpu.h"
#include "cpu/kernel.h"

static uint64_t mixed(uint64_t hash, uint64_t number)
{
    hash = (hash ^ number) * UINT64_C(0x9fb21c651e98df25);
    return hash ^ hash >> 32;
}

/* All that decides a form, besides the bytes of the storage. */
static uint64_t form_key(const cn_array *x, const cn__storage *s, cn__form_kind kind, uint64_t detail)
{
    uint64_t key = mixed(mixed(kind, detail), (uint64_t)((const char *)x->data - (const char *)s->data));
    key = mixed(key, (uint64_t)x->dtype << 8 | (uint64_t)x->ndim);
    for (int d = 0; d < x->ndim; d++) key = mixed(mixed(key, (uint64_t)x->shape[d]), (uint64_t)x->stride[d]);
    return key;
}

void *cn__kernel_form(const cn_kernel *k, int operand, cn__form_kind kind, uint64_t detail, size_t bytes, bool *made)
{
    const struct cn__cpu_run *r = k->run;
    const int at = r->plan ? r->step->loads[operand].buffer : -1;
    *made = true;
    if (at < 0 || r->plan->buffers[at].where != CN__AT_LEAF) return NULL;
    cn__storage *s = cn__res(r->plan_run->leaves[r->plan->buffers[at].index])->storage;
    if (!s->fixed) return NULL;
    return cn__storage_form(r->plan_run->ctx, s, form_key(&k->in[operand], s, kind, detail), bytes, made);
}
