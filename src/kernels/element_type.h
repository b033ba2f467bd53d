/*
 * element_type.h - ELEMENT_TYPE: the number of the elements' type, one of the floats, as include/tally.h has it.
 *
 * Before including this header, include operators.h and lower.h.
 */
#ifndef TALLY_ELEMENT_TYPE_H
#define TALLY_ELEMENT_TYPE_H

#if defined(TYPE_F64)
#define ELEMENT_TYPE F64
#elif defined(TYPE_F32)
#define ELEMENT_TYPE F32
#elif defined(TYPE_F16)
#define ELEMENT_TYPE F16
#else
#define ELEMENT_TYPE BF16
#endif

#endif
