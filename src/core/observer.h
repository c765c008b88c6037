/* core/observer.h: an observer is told while plans are found and run. A context without one pays for a test of a pointer.

   Times are of the monotonic clock, in nanoseconds. An observer must not use its context beyond the allocator. */
#ifndef CN_CORE_OBSERVER_H
#define CN_CORE_OBSERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct cn__plan;

typedef enum cn__moment {
    CN__EVALUATION_BEGINS,
    CN__PLANNING_BEGINS, /* looking for a plan, and building it if there is none */
    CN__PLANNING_ENDS,
    CN__EVALUATION_ENDS,
} cn__moment;

typedef struct cn__observer cn__observer;
struct cn__observer {
    void (*moment)(cn__observer *w, cn__moment m, bool built); /* built: a plan, in the planning that ends */
    void (*step)(cn__observer *w, const struct cn__plan *plan, int step, int64_t began, int64_t ended);
    void (*transfer)(cn__observer *w, const char *device, bool up, size_t bytes, int64_t began);
    bool by_device; /* set by a device that gives times of its own clock for steps */
};

static inline int64_t cn__nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif
