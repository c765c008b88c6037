/* Random bytes of Windows. */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <ntsecapi.h>

#include "core/entropy.h"

bool cn__entropy(void *to, size_t bytes) { return RtlGenRandom(to, (ULONG)bytes); }
