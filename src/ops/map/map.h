/* map.h: attributes of the family's operators. */
#ifndef CN_OPS_MAP_H
#define CN_OPS_MAP_H

#include <stdint.h>

typedef struct cn__cast_attrs {
    int64_t dtype; /* to which */
} cn__cast_attrs;

#endif
