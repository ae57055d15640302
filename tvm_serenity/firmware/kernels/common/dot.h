#pragma once
#include "instance.h"
/* Sums of products of 8-bit values, two outputs of two pixels at a time.

   Weights come in blocks of four inputs: four weights of the first output, four of the second.
   With the DSP extension four products take two instructions, with MVE sixteen take one. */
#if defined(__ARM_FEATURE_DSP)
INLINED uint32_t load_4(const void *from)
{
    uint32_t value;
    (void)memcpy(&value, from, sizeof value);
    return value;
}
INLINED uint32_t even_s8(uint32_t x)
{
    uint32_t r;
    __asm("sxtb16 %0, %1" : "=r"(r) : "r"(x));
    return r;
}
INLINED uint32_t odd_s8(uint32_t x)
{
    uint32_t r;
    __asm("sxtb16 %0, %1, ror #8" : "=r"(r) : "r"(x));
    return r;
}
INLINED uint32_t even_u8(uint32_t x)
{
    uint32_t r;
    __asm("uxtb16 %0, %1" : "=r"(r) : "r"(x));
    return r;
}
INLINED uint32_t odd_u8(uint32_t x)
{
    uint32_t r;
    __asm("uxtb16 %0, %1, ror #8" : "=r"(r) : "r"(x));
    return r;
}
INLINED int32_t add_products(uint32_t x, uint32_t w, int32_t sum)
{
    int32_t r;
    __asm("smlad %0, %1, %2, %3" : "=r"(r) : "r"(x), "r"(w), "r"(sum));
    return r;
}
INLINED int32_t add_low_product(uint32_t x, uint32_t w, int32_t sum)
{
    int32_t r;
    __asm("smlabb %0, %1, %2, %3" : "=r"(r) : "r"(x), "r"(w), "r"(sum));
    return r;
}
INLINED int32_t add_high_product(uint32_t x, uint32_t w, int32_t sum)
{
    int32_t r;
    __asm("smlatt %0, %1, %2, %3" : "=r"(r) : "r"(x), "r"(w), "r"(sum));
    return r;
}
#endif

/* Blocks of weights: 8 bytes of 8-bit weights, as above; or 4 bytes of 4-bit weights, each with
   the weight of the first output in its upper half. 4-bit weights are read 16 times as large, and
   so are their sums. */
INLINED int32_t begun_w8(int32_t bias) { return bias; }
INLINED int32_t begun_w4(int32_t bias) { return bias * 16; }
INLINED int32_t summed_w8(int32_t sum) { return sum; }
INLINED int32_t summed_w4(int32_t sum) { return sum >> 4; }
INLINED void all_summed_w8(int32_t *sums) { (void)sums; }
INLINED void all_summed_w4(int32_t *sums)
{
    for (int32_t i = 0; i < 4; ++i) {
        sums[i] >>= 4;
    }
}
INLINED int32_t first_of_w8(const int8_t *w, int32_t i) { return w[i]; }
INLINED int32_t second_of_w8(const int8_t *w, int32_t i) { return w[i + 4]; }
INLINED int32_t first_of_w4(const int8_t *w, int32_t i) { return w[i] & -16; }
INLINED int32_t second_of_w4(const int8_t *w, int32_t i) { return ((w[i] & 15) ^ 8) * 16 - 128; }
/* Weights of neighbouring channels; of two 4-bit weights the second is in the upper half of a
   byte. */
INLINED int32_t tap_w8(const int8_t *w, int32_t i) { return w[i]; }
INLINED int32_t tap_w4(const int8_t *w, int32_t i)
{
    return (i & 1) != 0 ? first_of_w4(w, i >> 1) : second_of_w4(w, i >> 1);
}
#if defined(__ARM_FEATURE_DSP)
INLINED uint32_t even_tap_w8(const int8_t *w) { return even_s8(load_4(w)); }
INLINED uint32_t odd_tap_w8(const int8_t *w) { return odd_s8(load_4(w)); }
INLINED uint32_t four_w4(const int8_t *w) { return (uint8_t)w[0] | (uint32_t)(uint8_t)w[1] << 16; }
INLINED uint32_t even_tap_w4(const int8_t *w) { return even_s8(four_w4(w) << 4); }
INLINED uint32_t odd_tap_w4(const int8_t *w) { return even_s8(four_w4(w) & 0x00F000F0u); }
INLINED uint32_t first_w8(const int8_t *w) { return load_4(w); }
INLINED uint32_t second_w8(const int8_t *w) { return load_4(w + 4); }
INLINED uint32_t first_w4(const int8_t *w) { return load_4(w) & 0xF0F0F0F0u; }
INLINED uint32_t second_w4(const int8_t *w) { return (load_4(w) << 4) & 0xF0F0F0F0u; }
#endif
#if defined(__ARM_FEATURE_MVE)
INLINED void sixteen_w4(const int8_t *w, int8x16_t *a, int8x16_t *b)
{
    const int8x16_t both = vldrbq_s8(w);
    *a = vandq_s8(both, vdupq_n_s8(-16));
    *b = vshlq_n_s8(both, 4);
}
/* Load eight values of neighbouring channels. */
INLINED int16x8_t eight_s8(const int8_t *from) { return vldrbq_s16(from); }
INLINED int16x8_t eight_u8(const uint8_t *from) { return vreinterpretq_s16_u16(vldrbq_u16(from)); }
INLINED int32x4_t summed_four_w4(int32x4_t sums) { return vshrq_n_s32(sums, 4); }
#endif
