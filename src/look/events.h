/* look/events.h: TensorBoard's event files: records, each with its length and two checksums, of one Event message. */
#ifndef CN_LOOK_EVENTS_H
#define CN_LOOK_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

uint32_t cn__crc32c(const void *data, size_t n);
/* As records have it: turned and shifted, so that the checksum of data with checksums in it stays good. */
uint32_t cn__crc32c_masked(const void *data, size_t n);

bool cn__events_begin(FILE *f, double time);
bool cn__events_restart(FILE *f, double time, int64_t step); /* what is there of this step and later counts no more */
bool cn__events_scalar(FILE *f, double time, int64_t step, const char *name, double value);

#endif
