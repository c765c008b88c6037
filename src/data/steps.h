/* data/steps.h: a step of a transform, and how functions add one. transform.c and augment.c share it. */
#ifndef CN_DATA_STEPS_H
#define CN_DATA_STEPS_H

#include "cairn/image.h"
#include "data/data.h"

enum { CN__MAX_CHANNELS = 16 };

/* An image on its way through the steps. */
typedef struct cn__job {
    cn__fetch *f;
    cn_draw *random;
    cn__image x;
} cn__job;

typedef struct cn__transform_step {
    bool (*run)(const struct cn__transform_step *s, cn__job *j);
    int64_t height, width; /* of the result; 0: unchanged */
    int64_t channels;      /* of the result; 0: unchanged */
    int64_t extra;         /* padding, side, means, bits */
    double v[4];           /* v[0]: the probability, of steps that have one */
    cn_affine_desc affine;
    float mean[CN__MAX_CHANNELS], std[CN__MAX_CHANNELS];
} cn__transform_step;

bool cn__transform_add(cn_transform *t, const char *who, const cn__transform_step *s);
bool cn__transform_add_with_chance(cn_transform *t, const char *who, cn__transform_step s); /* checks v[0] */
/* For an argument that is out of range. Returns false. */
__attribute__((format(printf, 2, 3))) bool cn__transform_refuse(const cn_transform *t, const char *message, ...);

#endif
