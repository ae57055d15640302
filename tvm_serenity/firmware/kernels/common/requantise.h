#pragma once
#include "instance.h"
/* Requantisation of 32-bit sums to stored values, rounded as in LiteRT's reference kernels. */
enum { ROUND_TWICE, ROUND_TWICE_SMALL, ROUND_ONCE, ROUND_ONCE_SMALL };

typedef struct {
    int32_t zero_point;
    int32_t low;
    int32_t high;
    int32_t rounding; /* _SMALL: |sum| < 2^30 and all shifts are to the right, verified at build time */
    int32_t step;     /* 1: a multiplier per channel; 0: one for all channels */
} requantisation;

INLINED int32_t high_product(int32_t a, int32_t b)
{
    return (int32_t)(((int64_t)a * b + (1 << 30)) >> 31);
}

INLINED int32_t clamped(int32_t value, int32_t low, int32_t high)
{
    return max_i32(min_i32(value, high), low);
}

/* The range of results: all values of the type, or those between the bounds. */
enum { BOUNDED, FULL_s8, FULL_u8 };

/* ROUND_TWICE_SMALL: return the stored value of ``sum``; ``twice`` is the zero point * 2 + 1.

   A rounding shift by n equals a shift by n - 1, adding 1, and a shift by 1. The zero point is
   added together with the 1, and the saturating instruction does the last shift. */
INLINED uint8_t stored(int32_t sum, int32_t multiplier, int32_t all_but_one, int32_t twice,
    const requantisation *to, int32_t range)
{
#if defined(__ARM_FEATURE_DSP)
    int32_t high;
    __asm("smmulr %0, %1, %2" : "=r"(high) : "r"(sum * 2), "r"(multiplier));
#else
    const int32_t high = high_product(sum, multiplier);
#endif
    const int32_t value = ((high + (high >> 31)) >> all_but_one) + twice;
    if (range == BOUNDED) {
        return (uint8_t)clamped(value >> 1, to->low, to->high);
    }
#if defined(__ARM_FEATURE_SAT)
    int32_t r;
    if (range == FULL_s8) {
        __asm("ssat %0, #8, %1, asr #1" : "=r"(r) : "r"(value));
    } else {
        __asm("usat %0, #8, %1, asr #1" : "=r"(r) : "r"(value));
    }
    return (uint8_t)r;
#else
    return (uint8_t)(
        range == FULL_s8 ? clamped(value >> 1, -128, 127) : clamped(value >> 1, 0, 255));
#endif
}

/* Requantise and store four channels of a pixel. */
INLINED void store_four(const int32_t *sums, const int32_t *multipliers, const int8_t *shifts,
    const requantisation *to, int32_t range, uint8_t *out)
{
    const int32_t twice = 2 * to->zero_point + 1;
    const int32_t step = to->step;
    const int32_t s0 = ~(int32_t)shifts[0];
    const int32_t s1 = ~(int32_t)shifts[step];
    const int32_t s2 = ~(int32_t)shifts[2 * step];
    const int32_t s3 = ~(int32_t)shifts[3 * step];
    out[0] = stored(sums[0], multipliers[0], s0, twice, to, range);
    out[1] = stored(sums[1], multipliers[step], s1, twice, to, range);
    out[2] = stored(sums[2], multipliers[2 * step], s2, twice, to, range);
    out[3] = stored(sums[3], multipliers[3 * step], s3, twice, to, range);
}

INLINED int32_t requantised(
    const requantisation *to, int32_t sum, int32_t multiplier, int32_t shift)
{
    int32_t value;
    if (to->rounding >= ROUND_ONCE) {
        const int32_t right = 31 - shift;
        value = (int32_t)(((int64_t)sum * multiplier + ((int64_t)1 << (right - 1))) >> right);
    } else {
        const int32_t right = shift > 0 ? 0 : -shift;
        const int32_t left = shift > 0 ? shift : 0;
        const int32_t high = high_product((int32_t)((uint32_t)sum << left), multiplier);
        value = right > 0 ? (((high + (high >> 31)) >> (right - 1)) + 1) >> 1 : high;
    }
    return clamped(value + to->zero_point, to->low, to->high);
}

#if defined(__ARM_FEATURE_MVE)
/* _SMALL: four values within their bounds; ``shifts`` are to the right.

   A shift rounds half up. Rounding once does so from all bits of the product. Rounding twice
   starts from a rounded product and rounds half away from 0; subtracting 1 from negative values
   makes this half up. */
INLINED int32x4_t requantised_four(
    const requantisation *to, int32x4_t sums, int32x4_t multipliers, int32x4_t shifts)
{
    int32x4_t value;
    if (to->rounding == ROUND_ONCE_SMALL) {
        value = vqdmulhq_s32(sums, multipliers);
    } else {
        value = vqrdmulhq_s32(sums, multipliers);
        value = vaddq_s32(value, vshrq_n_s32(value, 31));
    }
    value = vaddq_n_s32(vrshlq_s32(value, shifts), to->zero_point);
    return vminq_s32(vmaxq_s32(value, vdupq_n_s32(to->low)), vdupq_n_s32(to->high));
}
#endif
