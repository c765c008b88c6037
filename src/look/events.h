/* look/events.h: writes TensorBoard's event files. A record has a length, two checksums and one Event message. */
#ifndef CN_LOOK_EVENTS_H
#define CN_LOOK_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

uint32_t cn__crc32c(const void *data, size_t n);
/* The form in records: rotated, plus a constant, because data that contain their own checksum are a weak case. */
uint32_t cn__crc32c_masked(const void *data, size_t n);

bool cn__events_begin(FILE *f, double time);
bool cn__events_restart(FILE *f, double time, int64_t step); /* earlier numbers from this step on are void */
bool cn__events_scalar(FILE *f, double time, int64_t step, const char *name, double value);

#endif
