#pragma once
#include "instance.h"
#include "requantise.h"
/* Requantisation in five instructions with the DSP extension, for ROUND_TWICE_SMALL.

   LiteRT's value of a sum s is (h + half - (h < 0)) >> right, with h the rounded high half of 2 *
   s * multiplier. SMMLAR computes h and adds the rest. The sign of s replaces the sign of h: they
   differ only if h is 0, and then subtracting 1 does not change the result. The saturating
   instruction does the last bit of the right shift. ``numbers``: the multiplier, and a word with
   the right shift minus 1 in its lowest byte, which is the only byte that a shift by register
   reads, and twice the zero point plus 1 above it. Shifted left by the right shift minus 1, the
   latter is the zero point and the half. */
#if defined(__ARM_FEATURE_DSP)
#define SATURATE_s8 "ssat"
#define SATURATE_u8 "usat"
#define WIDENED_s8 "sxtb16"
#define WIDENED_u8 "uxtb16"
#endif
#define LOADED_s8 "ldrsb"
#define LOADED_u8 "ldrb"
INLINED int32_t added_of(int32_t word)
{
    return (word >> 8) * (int32_t)(1u << (word & 255));
}
INLINED int32_t rounded_all(int32_t sum, const int32_t *numbers)
{
    const int32_t added = added_of(numbers[1]) + (sum >> 31);
    return (high_product(sum, numbers[0]) + added) >> (numbers[1] & 255) >> 1;
}
INLINED int32_t rounded_s8(int32_t sum, const int32_t *numbers)
{
    return clamped(rounded_all(sum, numbers), -128, 127);
}
INLINED int32_t rounded_u8(int32_t sum, const int32_t *numbers)
{
    return clamped(rounded_all(sum, numbers), 0, 255);
}
/* ROUND_ONCE_SMALL: the high half is not rounded, and the sign does not matter. */
INLINED int32_t once_all(int32_t sum, const int32_t *numbers)
{
    const int32_t high = (int32_t)((int64_t)sum * numbers[0] >> 31);
    return (high + added_of(numbers[1])) >> (numbers[1] & 255) >> 1;
}
INLINED int32_t once_s8(int32_t sum, const int32_t *numbers)
{
    return clamped(once_all(sum, numbers), -128, 127);
}
INLINED int32_t once_u8(int32_t sum, const int32_t *numbers)
{
    return clamped(once_all(sum, numbers), 0, 255);
}
