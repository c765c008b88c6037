/* The passes that make a plan, in the order in which they run. */
#include "core/errors.h"
#include "plan/build.h"

static bool prepare(builder *b) { return b->plan->device->table->prepare(b->plan->device, b->plan); }

static const struct {
    const char *name;
    bool (*run)(builder *b); /* false: no memory */
} passes[] = {
    { "simplify", cn__simplify },              /* equal nodes become one */
    { "stored", cn__choose_stored },           /* decides which values are written to memory */
    { "destinations", cn__find_destinations }, /* kernels write results into the copies of them */
    { "fuse", cn__fuse },                      /* nodes become draft steps */
    { "takeover", cn__check_takeovers },       /* decides which assignments overwrite the old value */
    { "outputs", cn__find_outputs },           /* values that outlive the run get memory of their own */
    { "steps", cn__finish_steps },             /* the lists of draft steps become arrays */
    { "epilogues", cn__find_epilogues },       /* finds groups that can run inside a kernel */
    { "early", cn__move_updates },             /* large updates run as soon as they may */
    { "merge", cn__merge_steps },              /* equal programs over different memory become one kernel */
    { "names", cn__name_steps },               /* names steps for people, counts kernels */
    { "place", cn__place },                    /* intermediates get places in the arena */
    { "prepare", prepare },                    /* the device makes its kernels ready */
};

bool cn__run_passes(builder *b)
{
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        if (!passes[i].run(b))
            return cn__fail(b->ctx, CN_NO_MEMORY, "plan: out of memory in pass `%s`", passes[i].name);
    return true;
}
