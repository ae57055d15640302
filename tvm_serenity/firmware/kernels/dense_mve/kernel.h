#pragma once
#include "../common/instance.h"
#include "../common/dot.h"
#include "../common/requantise.h"
/* One window of INPUT inputs and many outputs, four at a time, with one multiplier for all.

   The layout of the weights is that of conv_mve/microkernel.h, signed. Unsigned inputs are
   converted to signed ones; the bias compensates for it. The number of inputs is a multiple of 32,
   that of outputs a multiple of four; results have the full range of their type. */
typedef struct {
    int32_t rounds, groups; /* of 32 inputs, of four outputs */
    int32_t multiplier, shift, zero_point;
} dense_FORMAT;

#if defined(__ARM_FEATURE_MVE)
#if INPUT_SIGNED
#define DENSE_SIGNED_FORMAT
#define DENSE_NARROW_FORMAT "vqmovnb.s16 q5, q5\n\t"
#else
#define DENSE_SIGNED_FORMAT "vadd.i8 q0, q0, q6\n\t"
#define DENSE_NARROW_FORMAT "vqmovunb.s16 q5, q5\n\t"
#endif
#define DENSE_16_FORMAT \
    "vldrb.8 q0, [r11], #16\n\t" \
    DENSE_SIGNED_FORMAT \
    "vldrb.8 q1, [r3], #64\n\t" \
    "vmladava.s8 r2, q0, q1\n\t" \
    "vldrb.8 q2, [r3, #-48]\n\t" \
    "vmladava.s8 r6, q0, q2\n\t" \
    "vldrb.8 q3, [r3, #-32]\n\t" \
    "vmladava.s8 r4, q0, q3\n\t" \
    "vldrb.8 q4, [r3, #-16]\n\t" \
    "vmladava.s8 r8, q0, q4\n\t"
/* Halves are rounded away from 0. If results are clamped at the zero point or above, the rounding
   of negative sums does not matter. */
#define DENSE_AWAY "vshr.s32 q0, q5, #31\n\tvadd.i32 q5, q5, q0\n\t"
#define DENSE_FORMAT(times, away) \
    const int32_t read[2] = {(int32_t)(intptr_t)x, d->rounds}; \
    register const int32_t *r0 __asm("r0") = read; \
    register const int8_t *r3 __asm("r3") = weights; \
    register const int32_t *r5 __asm("r5") = bias; \
    register int32_t r9 __asm("r9") = d->multiplier; \
    register int32_t r10 __asm("r10") = d->shift; \
    register uint8_t *r1 __asm("r1") = out; \
    register int32_t r12 __asm("r12") = d->groups; \
    __asm volatile("vdup.32 q7, %[zero]\n\t" \
                   "mov r11, #128\n\t" \
                   "vdup.8 q6, r11\n" \
                   "1:\n\t" \
                   "ldrd r11, lr, [r0]\n\t" \
                   "ldm r5!, {r2, r4, r6, r8}\n\t" \
                   "dls lr, lr\n" \
                   "2:\n\t" \
                   DENSE_16_FORMAT \
                   DENSE_16_FORMAT \
                   "le lr, 2b\n\t" \
                   "vmov q5[2], q5[0], r2, r6\n\t" \
                   "vmov q5[3], q5[1], r4, r8\n\t" \
                   times " q5, q5, r9\n\t" \
                   away \
                   "vrshl.s32 q5, r10\n\t" \
                   "vadd.i32 q5, q5, q7\n\t" \
                   "vqmovnb.s32 q5, q5\n\t" \
                   DENSE_NARROW_FORMAT \
                   "vstrb.32 q5, [r1], #4\n\t" \
                   "subs r12, r12, #1\n\t" \
                   "bne 1b" \
                   : "+r"(r3), "+r"(r5), "+r"(r1), "+r"(r12) \
                   : "r"(r0), "r"(r9), "r"(r10), [zero] "r"(d->zero_point) \
                   : "r2", "r4", "r6", "r8", "r11", "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", \
                   "q7", "cc", "memory")

NOT_INLINED void make_dense_FORMAT(const dense_FORMAT *d, const input_t *x, const int8_t *weights,
    const int32_t *bias, uint8_t *out)
{
    DENSE_FORMAT("vqrdmulh.s32", DENSE_AWAY);
}
NOT_INLINED void make_dense_positive_FORMAT(const dense_FORMAT *d, const input_t *x, const int8_t *weights,
    const int32_t *bias, uint8_t *out)
{
    DENSE_FORMAT("vqrdmulh.s32", "");
}
NOT_INLINED void make_dense_once_FORMAT(const dense_FORMAT *d, const input_t *x, const int8_t *weights,
    const int32_t *bias, uint8_t *out)
{
    DENSE_FORMAT("vqdmulh.s32", "");
}
#else
INLINED void in_dense_FORMAT(const dense_FORMAT *d, const input_t *x, const int8_t *weights,
    const int32_t *bias, uint8_t *out, int32_t rounding)
{
    static const int32_t place[4] = {0, 32, 16, 48};
    const requantisation to = {d->zero_point, (INPUT_MIN), (INPUT_MIN) + 255, rounding, 0};
    for (int32_t o = 0; o < 4 * d->groups; ++o) {
        const int8_t *const w = weights + o / 4 * d->rounds * 128 + place[o % 4];
        int32_t sum = bias[o];
        for (int32_t k = 0; k < 32 * d->rounds; ++k) {
            sum += (INPUT_SIGNED ? x[k] : x[k] - 128) * w[k / 16 * 64 + k % 16];
        }
        out[o] = (uint8_t)requantised(&to, sum, d->multiplier, d->shift);
    }
}
NOT_INLINED void make_dense_FORMAT(const dense_FORMAT *d, const input_t *x, const int8_t *weights,
    const int32_t *bias, uint8_t *out)
{
    in_dense_FORMAT(d, x, weights, bias, out, ROUND_TWICE_SMALL);
}
NOT_INLINED void make_dense_positive_FORMAT(const dense_FORMAT *d, const input_t *x, const int8_t *weights,
    const int32_t *bias, uint8_t *out)
{
    in_dense_FORMAT(d, x, weights, bias, out, ROUND_TWICE_SMALL);
}
NOT_INLINED void make_dense_once_FORMAT(const dense_FORMAT *d, const input_t *x, const int8_t *weights,
    const int32_t *bias, uint8_t *out)
{
    in_dense_FORMAT(d, x, weights, bias, out, ROUND_ONCE_SMALL);
}
#endif
