#pragma once
#include "../common/instance.h"
#include "../common/dot.h"
#include "../common/requantise.h"
/* Sums of two tensors of INPUT as one linear form in 32 bits with SHIFT fraction bits; its
   constant includes the zero point. The build verifies for all pairs of values that the form
   equals the result of LiteRT's reference. All shifts are rounding shifts, because some assemblers
   encode plain vector shifts as rounding ones; the constant compensates for it. Each result is
   stored after its operands are read, so it may overwrite one of them. */
typedef struct {
    int32_t first, second, constant;
} linear_INPUT_SHIFT;

#if defined(__ARM_FEATURE_MVE)
#if INPUT_SIGNED
#define LINEAR_OPERANDS_INPUT "vldrb.s32 q0, [r0], #4\n\tvldrb.s32 q1, [r1], #4\n\t"
#define LINEAR_NARROW_INPUT "vqrshrnb.s16 q0, q0, #6\n\t"
#else
#define LINEAR_OPERANDS_INPUT "vldrb.u32 q0, [r0], #4\n\tvldrb.u32 q1, [r1], #4\n\t"
#define LINEAR_NARROW_INPUT "vqrshrunb.s16 q0, q0, #6\n\t"
#endif
NOT_INLINED void add_linear_INPUT_SHIFT(
    const linear_INPUT_SHIFT *s, const input_t *first, const input_t *second, uint8_t *out, int32_t count)
{
    register const input_t *r0 __asm("r0") = first;
    register const input_t *r1 __asm("r1") = second;
    register uint8_t *r2 __asm("r2") = out;
    __asm volatile("vdup.32 q2, %3\n\t"
                   "dlstp.32 lr, %6\n"
                   "1:\n\t"
                   LINEAR_OPERANDS_INPUT
                   "vmlas.s32 q0, q2, %5\n\t"
                   "vmla.s32 q0, q1, %4\n\t"
                   "vqrshrnb.s32 q0, q0, #(" SHIFT_TEXT " - 6)\n\t"
                   LINEAR_NARROW_INPUT
                   "vstrb.32 q0, [r2], #4\n\t"
                   "letp lr, 1b"
                   : "+r"(r0), "+r"(r1), "+r"(r2)
                   : "r"(s->first), "r"(s->second), "r"(s->constant), "r"(count)
                   : "lr", "q0", "q1", "q2", "memory");
}
#else
INLINED uint8_t linear_of_INPUT_SHIFT(int32_t sum)
{
#if defined(__ARM_FEATURE_SAT)
    int32_t r;
#if INPUT_SIGNED
    __asm("ssat %0, #8, %1, asr #" SHIFT_TEXT : "=r"(r) : "r"(sum));
#else
    __asm("usat %0, #8, %1, asr #" SHIFT_TEXT : "=r"(r) : "r"(sum));
#endif
    return (uint8_t)r;
#else
    return (uint8_t)clamped(sum >> SHIFT, (INPUT_MIN), (INPUT_MIN) + 255);
#endif
}
NOT_INLINED void add_linear_INPUT_SHIFT(
    const linear_INPUT_SHIFT *s, const input_t *first, const input_t *second, uint8_t *out, int32_t count)
{
    const int32_t a = s->first;
    const int32_t b = s->second;
    const int32_t constant = s->constant + (1 << (SHIFT - 7)) + (1 << (SHIFT - 1));
    const input_t *const end = first + (count & ~3);
    for (; first != end; first += 4, second += 4, out += 4) {
        const int32_t s0 = first[0] * a + constant + second[0] * b;
        const int32_t s1 = first[1] * a + constant + second[1] * b;
        const int32_t s2 = first[2] * a + constant + second[2] * b;
        const int32_t s3 = first[3] * a + constant + second[3] * b;
        out[0] = linear_of_INPUT_SHIFT(s0);
        out[1] = linear_of_INPUT_SHIFT(s1);
        out[2] = linear_of_INPUT_SHIFT(s2);
        out[3] = linear_of_INPUT_SHIFT(s3);
    }
    for (int32_t i = 0; i < (count & 3); ++i) {
        out[i] = linear_of_INPUT_SHIFT(first[i] * a + constant + second[i] * b);
    }
}
#endif
