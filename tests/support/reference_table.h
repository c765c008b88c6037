/* reference_table.h: the reference of an operator, by its name. */
#ifndef TESTS_REFERENCE_TABLE_H
#define TESTS_REFERENCE_TABLE_H

#include "support/reference.h"

const ref_entry *find_reference(const char *op); /* NULL: there is none */

#endif
