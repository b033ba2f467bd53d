/* undefine.h - takes back the parameters of the exact sum templates, so that they can be given anew. */
#undef NAME
#undef ELEMENT
#undef PAIRED
#undef TERM
#undef TERM_ONE
#undef MAX_LEVELS
#undef REAL
#undef INT
#undef WORD
#undef VREAL
#undef VINT
#undef VWORD
#undef MANTISSA
#undef LOWEST
#undef HIGHEST
