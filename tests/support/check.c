/* check.c: the tally of a test program. */
#include "support/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRINTED_PER_GROUP = 12 };

static struct {
    int passed, failed, skipped;
    char group[64];
    int failed_in_group;
} tally;

static void close_group(void)
{
    int hidden = tally.failed_in_group - PRINTED_PER_GROUP;
    if (hidden > 0) printf("FAILED %s%s%d more\n", tally.group, tally.group[0] ? ": " : "", hidden);
    tally.failed_in_group = 0;
}

void check_group(const char *name)
{
    close_group();
    snprintf(tally.group, sizeof tally.group, "%s", name);
}

bool check(bool ok, const char *words, ...)
{
    if (ok) {
        tally.passed++;
        return true;
    }
    tally.failed++;
    if (++tally.failed_in_group > PRINTED_PER_GROUP) return false;
    va_list list;
    va_start(list, words);
    printf("FAILED ");
    vprintf(words, list);
    printf("\n");
    va_end(list);
    fflush(stdout);
    return false;
}

void skip(void) { tally.skipped++; }

int finish(void)
{
    close_group();
    printf("%d passed, %d failed", tally.passed, tally.failed);
    if (tally.skipped) printf(", %d skipped", tally.skipped);
    printf("\n");
    return tally.failed ? 1 : 0;
}

static bool is_on(const char *name)
{
    const char *value = getenv(name);
    return value && strcmp(value, "1") == 0;
}

bool test_is_quick(void) { return is_on("CAIRN_TEST_QUICK"); }
bool test_is_long(void) { return is_on("CAIRN_TEST_LONG"); }
