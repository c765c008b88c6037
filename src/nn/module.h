/* nn/module.h: what a module is made of. Layers do not look here: nn.h is enough for them. */
#ifndef CN_NN_MODULE_H
#define CN_NN_MODULE_H

#include "nn/nn.h"

typedef enum slot_kind { SLOT_PARAM, SLOT_SHARED, SLOT_BUFFER, SLOT_CHILD } slot_kind;

/* A named part: a kept tensor, or an adopted child. */
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
    cn__vec slots; /* of slot, in the order they came */
    bool training, was_training;
    cn_dims out_shape; /* of the last forward: summaries */
    cn__vec params;    /* of cn_tensor *: the last cn_parameters */
    cn__vec named;     /* of cn_named: the last cn_module_named, its names in: */
    cn__bump names;
};

#endif
