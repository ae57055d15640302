#pragma once
#include "../common/instance.h"
#include "../common/dot.h"
#include "../common/requantise.h"
/* Sums of two tensors of INPUT, rounded twice as in LiteRT's reference; all shifts are to the
   right. */
typedef struct {
    int32_t first_multiplier, second_multiplier, multiplier;
    int32_t low, high;
    int32_t first_zero, second_zero;
    int32_t first_left, second_left; /* shifts of the operands before they are multiplied */
    int32_t first_shift, second_shift, shift;
    int32_t zero_point;
} added_INPUT;

#if defined(__ARM_FEATURE_MVE)
#if INPUT_SIGNED
#define FOUR_OPERANDS_INPUT "vldrb.s32 q0, [r0], #4\n\tvldrb.s32 q1, [r1], #4\n\t"
#else
#define FOUR_OPERANDS_INPUT "vldrb.u32 q0, [r0], #4\n\tvldrb.u32 q1, [r1], #4\n\t"
#endif
#define TIMES(q, m, shift) \
    "vqrdmulh.s32 " q ", " q ", " m "\n\tvshr.s32 q2, " q ", #31\n\t" \
    "vadd.i32 " q ", " q ", q2\n\tvrshl.s32 " q ", " shift "\n\t"
NOT_INLINED void add_added_INPUT(
    const added_INPUT *s, const input_t *first, const input_t *second, uint8_t *out, int32_t count)
{
    register const input_t *r0 __asm("r0") = first;
    register const input_t *r1 __asm("r1") = second;
    register uint8_t *r2 __asm("r2") = out;
    register const added_INPUT *r3 __asm("r3") = s;
    register int32_t r12 __asm("r12") = count;
    __asm volatile("ldm r3!, {r4, r5, r6, r8, r9}\n\t"
                   "vdup.32 q3, r4\n\t"
                   "vdup.32 q4, r5\n\t"
                   "vdup.32 q5, r6\n\t"
                   "vdup.32 q6, r8\n\t"
                   "vdup.32 q7, r9\n\t"
                   "dlstp.32 lr, r12\n\t"
                   "ldm r3, {r3, r4, r5, r6, r8, r9, r10, r12}\n"
                   "1:\n\t"
                   FOUR_OPERANDS_INPUT
                   "vsub.i32 q0, q0, r3\n\t"
                   "vsub.i32 q1, q1, r4\n\t"
                   "vshl.s32 q0, r5\n\t"
                   "vshl.s32 q1, r6\n\t"
                   TIMES("q0", "q3", "r8")
                   TIMES("q1", "q4", "r9")
                   "vadd.i32 q0, q0, q1\n\t"
                   TIMES("q0", "q5", "r10")
                   "vadd.i32 q0, q0, r12\n\t"
                   "vmax.s32 q0, q0, q6\n\t"
                   "vmin.s32 q0, q0, q7\n\t"
                   "vstrb.32 q0, [r2], #4\n\t"
                   "letp lr, 1b"
                   : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3), "+r"(r12)
                   :
                   : "r4", "r5", "r6", "r8", "r9", "r10", "lr", "q0", "q1", "q2", "q3", "q4",
                   "q5", "q6", "q7", "memory");
}
#else
NOT_INLINED void add_added_INPUT(
    const added_INPUT *s, const input_t *first, const input_t *second, uint8_t *out, int32_t count)
{
    const requantisation whole = {0, INT32_MIN, INT32_MAX, ROUND_TWICE, 0};
    const requantisation to = {s->zero_point, s->low, s->high, ROUND_TWICE, 0};
    for (int32_t i = 0; i < count; ++i) {
        const int32_t x = (first[i] - s->first_zero) * (1 << s->first_left);
        const int32_t y = (second[i] - s->second_zero) * (1 << s->second_left);
        const int32_t sum = requantised(&whole, x, s->first_multiplier, s->first_shift) +
                            requantised(&whole, y, s->second_multiplier, s->second_shift);
        out[i] = (uint8_t)requantised(&to, sum, s->multiplier, s->shift);
    }
}
#endif
