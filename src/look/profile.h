/* look/profile.h: the struct behind a profile, and what it records. */
#ifndef CN_LOOK_PROFILE_H
#define CN_LOOK_PROFILE_H

#include "cairn/profile.h"
#include "core/object.h"

enum { CN__DEVICES = 4, CN__SHAPE_NUMBERS = 120 };

typedef struct cn__tally {
    int64_t calls, ns;
    double flops, bytes;
} cn__tally;

/* One name on one device. */
typedef struct cn__profile_row {
    const char *name;
    int device;
    cn_profile_class kind;
    cn__tally tally;
} cn__profile_row;

/* A kernel with the layout of its operands; several may share a row. numbers: see add_operand in profile.c. */
typedef struct cn__profile_shape {
    uint64_t hash;
    int row, n_numbers;
    const int64_t *numbers;
    int64_t joined;      /* elements of the other steps that run in the same kernel */
    double flops, bytes; /* of one call */
} cn__profile_shape;

enum { CN__EVENT_EVALUATION = -1, CN__EVENT_PLANNING = -2, CN__EVENT_BUILDING = -3 }; /* in place of a shape */
typedef struct cn__profile_event {
    int64_t began, ns;
    int64_t bytes; /* of a transfer */
    int shape;
} cn__profile_event;

struct cn_profile {
    cn__object object;
    cn__observer observer;
    bool running, inside; /* inside: during an evaluation */
    int64_t began, ended;
    int64_t evaluation_began, planning_began;
    int64_t evaluations, built, kernels;
    int64_t inside_ns, transfers_inside_ns; /* time in evaluations; the part of it in transfers */
    cn__tally planning;
    cn_gpu_counters gpu; /* counters at the beginning; after the end, the difference */
    int n_devices;
    struct {
        char name[16];
        cn__tally kind[CN_PROFILE_CLASSES];
    } device[CN__DEVICES];
    cn__vec rows, shapes, slots; /* slots: hash table of uint32_t, number of a shape + 1; n is a power of two */
    cn__vec events;
    int64_t most_events, dropped;
    cn__bump memory; /* for names and numbers */
};

static inline cn__profile_row *cn__profile_rows_of(const cn_profile *p) { return p->rows.v; }
static inline cn__profile_shape *cn__profile_shapes_of(const cn_profile *p) { return p->shapes.v; }

/* "f32[32,784] x f32[784,16] -> f32[32,16]" */
void cn__profile_shape_text(const cn__profile_shape *s, char *out, size_t size);

extern const cn__object_type cn__profile_type;

#endif
