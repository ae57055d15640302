/* Sums of products of 8-bit values, two outputs of two pixels at a time.

   Weights come in blocks of four inputs: four weights of the first output, four of the second.
   With the DSP extension four products take two instructions, with MVE sixteen take one. */
#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#endif
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
