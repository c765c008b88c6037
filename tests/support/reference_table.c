/* reference_table.c: looking through the families' tables. */
#include "support/reference_table.h"

#include <string.h>

static void detach_reference(const ref_call *c) { memcpy(c->out->v, c->in->v, (size_t)c->out->numel * sizeof(double)); }

/* What belongs to the engine and to no family. */
static const ref_entry ref_engine[] = { { "detach", detach_reference }, { NULL, NULL } };

const ref_entry *find_reference(const char *op)
{
    const ref_entry *const tables[] = { ref_engine, ref_map,   ref_create, ref_reduce,   ref_scan, ref_view,
                                        ref_join,   ref_index, ref_window, ref_contract, ref_block, ref_fft,
                                        ref_linalg, ref_optim };
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const ref_entry *e = tables[t]; e->op; e++)
            if (strcmp(e->op, op) == 0) return e;
    return NULL;
}
