/* nn/module.h: the struct behind cn_module. Layers do not include it: nn.h is enough for them. */
#ifndef CN_NN_MODULE_H
#define CN_NN_MODULE_H

#include "nn/nn.h"

typedef enum slot_kind { SLOT_PARAM, SLOT_SHARED, SLOT_BUFFER, SLOT_CHILD } slot_kind;

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
};

#endif
