/* rows_end.h: forgets what rows.h and the template around it have defined. */
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
