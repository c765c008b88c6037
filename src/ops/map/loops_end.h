/* loops_end.h: forgets one element type. */
#undef T
#undef E
#undef U
#undef P
#undef LOOP
