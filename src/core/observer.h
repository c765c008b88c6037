/* core/observer.h: an observer is told about evaluations, steps and transfers. A context without one tests a pointer.

   Times are in nanoseconds of the monotonic clock. An observer must not use its context, except for the allocator. */
#ifndef CN_CORE_OBSERVER_H
#define CN_CORE_OBSERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct cn__plan;

typedef enum cn__moment {
    CN__EVALUATION_BEGINS,
    CN__PLANNING_BEGINS, /* a plan is searched, and built if there is none */
    CN__PLANNING_ENDS,
    CN__EVALUATION_ENDS,
} cn__moment;

typedef struct cn__observer cn__observer;
struct cn__observer {
    void (*moment)(cn__observer *w, cn__moment m, bool built); /* built: at PLANNING_ENDS, whether a plan was built */
    void (*step)(cn__observer *w, const struct cn__plan *plan, int step, int64_t began, int64_t ended);
    void (*transfer)(cn__observer *w, const char *device, bool up, size_t bytes, int64_t began);
    bool by_device; /* set by a device that measures steps with its own clock */
};

static inline int64_t cn__nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif
