/* property.c: counts the checks of each property. */
#include "support/property.h"

#include <stdio.h>

static const char *const property_names[PROPERTIES] = { "records",   "forward",      "layouts",
                                                        "gradients", "second order", "eager=planned",
                                                        "threads",   "refusals",     "tidy" };
static int counts[PROPERTIES];

bool expect(const trial *t, property p, bool ok, const char *what, const char *words)
{
    counts[p]++;
    return check(ok, "%s, case %d, %s%s%s: %s", t->op->name, t->number, property_names[p], what[0] ? ", " : "", what,
                 words);
}

static void print_number(const char *before, int n)
{
    if (n < 1000) printf("%s%d", before, n);
    else printf("%s%d,%03d", before, n / 1000, n % 1000);
}

void print_counts(int operators, int cases)
{
    print_number("", operators);
    print_number(" operators, ", cases);
    for (int p = 0; p < PROPERTIES; p++) {
        printf(p ? ", %s" : " cases: %s", property_names[p]);
        print_number(" ", counts[p]);
    }
    printf("\n");
}

bool is_thin(const trial *t) { return test_is_quick() && t->number >= 2; }
