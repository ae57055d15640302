#pragma once
#include "instance.h"
#include "requantise.h"
/* Requantisation in five instructions with the DSP extension, for ROUND_TWICE_SMALL.

   LiteRT's value of a sum s is (h + half + (h < 0)) >> right, with h the high half of twice
   s * multiplier, rounded. SMMLAR adds to h what is added anyway; s < 0 stands for h < 0, as the two
   differ only where h is 0, and there 1 less changes nothing. The last of the right shift comes with
   the saturation. ``numbers``: the multiplier, and a word: the right shift less 1 in its lowest byte,
   which is all that a shift by a register reads, above it twice the zero point and 1. Shifted to the
   left by as much, that is half of the last place with the zero point. */
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
/* ROUND_ONCE_SMALL: the high half is not rounded, and nothing depends on the sign. */
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
