/* nn/module.h: the struct behind cn_module. Layers do not include it: nn.h is enough for them. */
#ifndef CN_NN_MODULE_H
#define CN_NN_MODULE_H

#include "nn/nn.h"

/* COMPUTED: a tensor that is made from parameters before each forward; it is not part of the state. */
typedef enum slot_kind { SLOT_PARAM, SLOT_SHARED, SLOT_BUFFER, SLOT_CHILD, SLOT_COMPUTED } slot_kind;

/* A named member of a module: a kept tensor, or an adopted child. */
typedef struct slot {
    char *name;
    slot_kind kind;
    cn_tensor *tensor;
    cn_module *child;
} slot;

struct cn_module {
    cn__object object;
    const cn_module_type *type;
    void *data;
    cn__vec slots; /* of slot, in the order of their making */
    cn__names slot_names;
    cn__vec children; /* of cn_module *, in the same order */
    bool training, was_training;
    cn_dims out_shape; /* of the last forward's result; summaries print it */
    cn__vec params;    /* of cn_tensor *: the list that cn_parameters returned last */
    cn__vec named;     /* of cn_named: the list that cn_module_named returned last */
    cn__bump names;    /* the names in that list */
    cn__vec hooks;     /* of struct module_hook *, in the order of their making: hooks.c */
    int last_hook;     /* the number of the newest hook, also if it was removed */
};

/* hooks.c: what stands around a forward. `in` and `out` may be replaced. False: a hook failed. */
bool cn__hooks_before(cn_module *m, cn_tensor **in, int n_in);
bool cn__hooks_after(cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out);
void cn__hooks_free(cn_module *m);

/* module.c: a parameter of m itself, not of a child. NULL: an error. */
cn_tensor *cn__own_param(cn_module *m, const char *name);
/* module.c: makes a parameter a computed tensor; its handle stays, and cn__set_computed gives it values. NULL: an error. */
cn_tensor *cn__computed(cn_module *m, const char *name);
void cn__set_computed(cn_tensor *computed, cn_tensor *value);

#endif
