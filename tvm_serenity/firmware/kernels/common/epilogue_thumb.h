#pragma once
#include "instance.h"
#include "epilogue.h"
/* The rounding of ``epilogue.h`` in assembly, for cores without the DSP extension.

   Cortex-M3 has a 64-bit product; the sum is doubled before, and the low half rounds the high
   half. */
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2
#define FINISHED_TO_int8 "ssat"
#define FINISHED_TO_uint8 "usat"
/* Requantise ``s``, which holds twice a sum; ``n``: the second number, ``twice``: twice the zero
   point plus 1. */
#define FINISHED_INPUT(s, low, multiplier, n, twice) \
    "smull " low ", " s ", " multiplier ", " s "\n add " s ", " s ", " low ", lsr #31\n" \
    "add " s ", " s ", " s ", asr #31\n" FINISHED_END_INPUT(s, n, twice)
/* ROUND_ONCE_SMALL. */
#define FINISHED_ONCE_INPUT(s, low, multiplier, n, twice) \
    "smull " low ", " s ", " multiplier ", " s "\n" FINISHED_END_INPUT(s, n, twice)
#define FINISHED_END_INPUT(s, n, twice) \
    "asr " s ", " s ", " n "\n add " s ", " s ", " twice "\n" \
    FINISHED_TO_INPUT " " s ", #8, " s ", asr #1\n"
#elif defined(__ARM_ARCH_ISA_THUMB)
/* ARMv6-M multiplies 32 bits to 32. Halves of 16 bits, the sum's lower one signed, make the product's
   upper 48 bits: the middle has |upper| * 2^16 + 2^15 * |multiplier / 2^16| + 2^15 < 2^31. Shifts
   leave in the carry what they round by. The second number is split into the right shift, in the
   lowest byte, and the zero point nine bits above, so 1 is added to it before.

   r6: sum -> stored value; r2, r3: upper and lower half of the multiplier; r4: second number + 1.
   r5 and r7 are free. Labels: 9. */
#define FINISHED_CLAMP_int8 \
    "sxtb r5, r6\n cmp r5, r6\n beq 9f\n asrs r6, r6, #31\n movs r5, #127\n eors r6, r6, r5\n 9:\n"
#define FINISHED_CLAMP_uint8 \
    "uxtb r5, r6\n cmp r5, r6\n beq 9f\n asrs r6, r6, #31\n mvns r6, r6\n 9:\n"
#define FINISHED_PRODUCT \
    "sxth r5, r6\n subs r6, r6, r5\n asrs r6, r6, #16\n" \
    "movs r7, r5\n muls r7, r3, r7\n asrs r7, r7, #16\n" \
    "muls r5, r2, r5\n adds r7, r7, r5\n" \
    "movs r5, r6\n muls r5, r3, r5\n adds r7, r7, r5\n" \
    "muls r6, r2, r6\n lsls r6, r6, #1\n asrs r7, r7, #15\n"
#define FINISHED_RIGHT "asrs r5, r4, #9\n asrs r6, r6, r4\n adcs r6, r6, r5\n"
#define FINISHED_INPUT \
    FINISHED_PRODUCT "adcs r6, r6, r7\n asrs r7, r6, #31\n adds r6, r6, r7\n" FINISHED_RIGHT \
    FINISHED_CLAMP_INPUT
/* ROUND_ONCE_SMALL. */
#define FINISHED_ONCE_INPUT \
    FINISHED_PRODUCT "adds r6, r6, r7\n" FINISHED_RIGHT FINISHED_CLAMP_INPUT
#endif
