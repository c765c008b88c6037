/* rows_end.h: undefines the macros of rows.h and of the template that included it. */
#undef ROW_CHEAP
#undef ROW_DEAR
#undef ROW_CALL
#undef ROW_REAL
#undef ROW_FLOAT
#undef ROW_NUMBER
#undef ROW_ANY
#undef ROW_TEST
#undef ROW_BITS
#undef ROW_WHOLE
#undef LOOP
#undef TEST_LOOP
