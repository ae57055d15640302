#pragma once
#include "instance.h"
#include "plane.h"
#include "epilogue_thumb.h"
/* Lines of the result from a plane, tap by tap, for cores without the DSP extension. */
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2
/* Cortex-M3: r0 to r8: twice the weights; r9 and r10: two results; r12: pointer into the plane. */
#define TAPS_X(at) "ldrsh r11, [r12, #" at "]\n"
#define TAPS_A(w) "mla r9, r11, " w ", r9\n"
#define TAPS_B(w) "mla r10, r11, " w ", r10\n"
#define TAPS_PAIR_1(u, v, w) \
    TAPS_X("0") TAPS_A(u) TAPS_X("2") TAPS_A(v) TAPS_B(u) TAPS_X("4") TAPS_A(w) TAPS_B(v) \
    TAPS_X("6") TAPS_B(w)
#define TAPS_PAIR_2(u, v, w) \
    TAPS_X("0") TAPS_A(u) TAPS_X("2") TAPS_A(v) TAPS_X("4") TAPS_A(w) TAPS_B(u) \
    TAPS_X("6") TAPS_B(v) TAPS_X("8") TAPS_B(w)
#define TAPS_ONE(u, v, w) TAPS_X("0") TAPS_A(u) TAPS_X("2") TAPS_A(v) TAPS_X("4") TAPS_A(w)
/* Three rows, then back to the first row, ``step`` bytes further; then r4: out; r5, r6, r7:
   rounding. */
#define TAPS_ROWS(ROW, step) \
    "ldr lr, [sp, #44]\n" \
    ROW("r0", "r1", "r2") "add r12, r12, lr\n" ROW("r3", "r4", "r5") "add r12, r12, lr\n" \
    ROW("r6", "r7", "r8") \
    "sub r12, r12, lr, lsl #1\n add r12, r12, #" step "\n" \
    "add lr, sp, #4\n ldm lr, {r4, r5, r6, r7}\n"
#define TAPS_KEPT "str r4, [sp, #4]\n add lr, sp, #24\n ldm lr, {r4, r5, r6, r7, r8}\n"
/* Stack: 0 twice the bias, 4 out, 8 multiplier, 12 shift, 16 twice the zero point and 1,
   20 channels, 24 weights from the fifth on, 44 pitch, 48 odd, 52 pairs, 56 onwards, 60 lines,
   64 pairs' end. */
#define TAPS_LINES_INPUT(PAIR, pair_step, one_step, pair_shift) \
    "push {r4-r11, lr}\n" \
    "sub sp, sp, #68\n" \
    "ldm r0!, {r1, r2, r12}\n" \
    "ldm r0, {r3, r4, r5, r6, r7, r8, r9}\n" \
    "str r2, [sp, #4]\n" \
    "str r5, [sp, #20]\n" \
    "lsr r10, r8, #1\n" \
    "and r8, r8, #1\n" \
    "add r6, r6, r10, lsl #" pair_shift "\n" \
    "strd r3, r8, [sp, #44]\n" \
    "strd r6, r7, [sp, #52]\n" \
    "str r9, [sp, #60]\n" \
    "ldm r1!, {r5, r6}\n" \
    "str r5, [sp]\n" \
    "str r6, [sp, #8]\n" \
    "ldrb r7, [r1, #3]\n" \
    "ldrb r8, [r1, #7]\n" \
    "ldrsb r9, [r1, #11]\n" \
    "orr r8, r8, r9, lsl #8\n" \
    "strd r7, r8, [sp, #12]\n" \
    "ldrsb r4, [r1, #5]\n lsl r4, r4, #1\n" \
    "ldrsb r5, [r1, #6]\n lsl r5, r5, #1\n" \
    "ldrsb r6, [r1, #8]\n lsl r6, r6, #1\n" \
    "ldrsb r7, [r1, #9]\n lsl r7, r7, #1\n" \
    "ldrsb r8, [r1, #10]\n lsl r8, r8, #1\n" \
    "add lr, sp, #24\n" \
    "stm lr, {r4, r5, r6, r7, r8}\n" \
    "ldrsb r0, [r1]\n lsl r0, r0, #1\n" \
    "ldrsb r2, [r1, #2]\n lsl r2, r2, #1\n" \
    "ldrsb r3, [r1, #4]\n lsl r3, r3, #1\n" \
    "ldrsb r1, [r1, #1]\n lsl r1, r1, #1\n" \
    "1:\n" \
    "ldr r9, [sp, #52]\n" \
    "cmp r9, #0\n" \
    "beq.w 3f\n" \
    "add r9, r9, r12\n" \
    "str r9, [sp, #64]\n" \
    "2:\n" \
    "ldr r9, [sp]\n" \
    "mov r10, r9\n" \
    TAPS_ROWS(PAIR, pair_step) \
    FINISHED_INPUT("r9", "r8", "r5", "r6", "r7") \
    FINISHED_INPUT("r10", "r8", "r5", "r6", "r7") \
    "ldr r8, [sp, #20]\n" \
    "strb r9, [r4]\n strb r10, [r4, r8]\n add r4, r4, r8, lsl #1\n" \
    TAPS_KEPT \
    "ldr lr, [sp, #64]\n" \
    "cmp r12, lr\n" \
    "bne.w 2b\n" \
    "3:\n" \
    "ldr r9, [sp, #48]\n" \
    "cmp r9, #0\n" \
    "beq.w 4f\n" \
    "ldr r9, [sp]\n" \
    TAPS_ROWS(TAPS_ONE, one_step) \
    FINISHED_INPUT("r9", "r8", "r5", "r6", "r7") \
    "ldr r8, [sp, #20]\n" \
    "strb r9, [r4]\n add r4, r4, r8\n" \
    TAPS_KEPT \
    "4:\n" \
    "ldr lr, [sp, #56]\n" \
    "add r12, r12, lr\n" \
    "ldr lr, [sp, #60]\n" \
    "subs lr, lr, #1\n" \
    "str lr, [sp, #60]\n" \
    "bne.w 1b\n" \
    "add sp, sp, #68\n" \
    "pop {r4-r11, pc}\n"
#define TAPS_LINES_1_INPUT TAPS_LINES_INPUT(TAPS_PAIR_1, "4", "2", "2")
#define TAPS_LINES_2_INPUT TAPS_LINES_INPUT(TAPS_PAIR_2, "8", "4", "3")
#elif defined(__ARM_ARCH_ISA_THUMB)
/* Cortex-M0: r8 to r11: four results; r0: pointer into the plane; r2: a weight. Inputs are 0 to
   255. */
#define TAPS_TO(at, sum) "ldrh r1, [r0, #" at "]\n muls r1, r2, r1\n add " sum ", " sum ", r1\n"
#define TAPS_TAP(w, a, b, c, d) \
    "ldr r2, [sp, #" w "]\n" TAPS_TO(a, "r8") TAPS_TO(b, "r9") TAPS_TO(c, "r10") TAPS_TO(d, "r11")
#define TAPS_FOUR_1(u, v, w) \
    TAPS_TAP(u, "0", "2", "4", "6") TAPS_TAP(v, "2", "4", "6", "8") TAPS_TAP(w, "4", "6", "8", "10")
#define TAPS_FOUR_2(u, v, w) \
    TAPS_TAP(u, "0", "4", "8", "12") TAPS_TAP(v, "2", "6", "10", "14") \
    TAPS_TAP(w, "4", "8", "12", "16")
#define TAPS_ALONE(w, at) "ldr r2, [sp, #" w "]\n" TAPS_TO(at, "r7")
#define TAPS_ONE(u, v, w) TAPS_ALONE(u, "0") TAPS_ALONE(v, "2") TAPS_ALONE(w, "4")
/* Three rows, then back to the first row, ``step`` bytes further. */
#define TAPS_ROWS(ROW, step) \
    "ldr r3, [sp, #40]\n" \
    ROW("44", "48", "52") "adds r0, r0, r3\n" ROW("56", "60", "64") "adds r0, r0, r3\n" \
    ROW("68", "72", "76") \
    "subs r0, r0, r3\n subs r0, r0, r3\n adds r0, #" step "\n"
#define TAPS_NUMBERS \
    "ldr r3, [sp, #8]\n lsrs r2, r3, #16\n uxth r3, r3\n ldr r4, [sp, #12]\n ldr r1, [sp, #4]\n"
#define TAPS_STORED_INPUT FINISHED_INPUT "strb r6, [r1]\n ldr r5, [sp, #16]\n adds r1, r1, r5\n"
#define TAPS_WEIGHT(from, to) "movs r4, #" from "\n ldrsb r4, [r1, r4]\n str r4, [sp, #" to "]\n"
/* Stack: 0 bias, 4 out, 8 multiplier, 12 second number + 1, 16 channels, 20 grouped, 24 onwards,
   28 rest, 32 lines, 36 groups' end, 40 pitch, 44 weights. */
#define TAPS_LINES_INPUT(FOUR, four_step, one_step) \
    ".syntax unified\n" \
    "push {r4-r7, lr}\n" \
    "mov r4, r8\n mov r5, r9\n mov r6, r10\n mov r7, r11\n push {r4-r7}\n" \
    "sub sp, #80\n" \
    "ldm r0!, {r1, r2, r3}\n" \
    "str r2, [sp, #4]\n" \
    "ldm r0!, {r2, r4, r5, r6, r7}\n" \
    "str r2, [sp, #40]\n str r5, [sp, #16]\n str r6, [sp, #20]\n str r7, [sp, #24]\n" \
    "ldm r0!, {r4, r5}\n" \
    "str r4, [sp, #28]\n str r5, [sp, #32]\n" \
    "ldm r1!, {r4, r5}\n" \
    "asrs r4, r4, #1\n" \
    "str r4, [sp]\n str r5, [sp, #8]\n" \
    "ldrb r4, [r1, #3]\n" \
    "adds r4, #1\n" \
    "ldrb r5, [r1, #7]\n" \
    "lsls r5, r5, #8\n" \
    "orrs r4, r5\n" \
    "movs r5, #11\n" \
    "ldrsb r5, [r1, r5]\n" \
    "lsls r5, r5, #16\n" \
    "orrs r4, r5\n" \
    "str r4, [sp, #12]\n" \
    TAPS_WEIGHT("0", "44") TAPS_WEIGHT("1", "48") TAPS_WEIGHT("2", "52") \
    TAPS_WEIGHT("4", "56") TAPS_WEIGHT("5", "60") TAPS_WEIGHT("6", "64") \
    TAPS_WEIGHT("8", "68") TAPS_WEIGHT("9", "72") TAPS_WEIGHT("10", "76") \
    "movs r0, r3\n" \
    "1:\n" \
    "ldr r1, [sp, #20]\n" \
    "cmp r1, #0\n" \
    "bne 7f\n" \
    "b 3f\n" \
    "7:\n" \
    "adds r1, r1, r0\n" \
    "str r1, [sp, #36]\n" \
    "2:\n" \
    "ldr r1, [sp]\n" \
    "mov r8, r1\n mov r9, r1\n mov r10, r1\n mov r11, r1\n" \
    TAPS_ROWS(FOUR, four_step) \
    TAPS_NUMBERS \
    "mov r6, r8\n" TAPS_STORED_INPUT "mov r6, r9\n" TAPS_STORED_INPUT \
    "mov r6, r10\n" TAPS_STORED_INPUT "mov r6, r11\n" TAPS_STORED_INPUT \
    "str r1, [sp, #4]\n" \
    "ldr r1, [sp, #36]\n" \
    "cmp r0, r1\n" \
    "beq 3f\n" \
    "b 2b\n" \
    "3:\n" \
    "ldr r1, [sp, #28]\n" \
    "6:\n" \
    "cmp r1, #0\n" \
    "beq 4f\n" \
    "mov r8, r1\n" \
    "ldr r7, [sp]\n" \
    TAPS_ROWS(TAPS_ONE, one_step) \
    "movs r6, r7\n" \
    TAPS_NUMBERS TAPS_STORED_INPUT \
    "str r1, [sp, #4]\n" \
    "mov r1, r8\n" \
    "subs r1, #1\n" \
    "b 6b\n" \
    "4:\n" \
    "ldr r1, [sp, #24]\n" \
    "adds r0, r0, r1\n" \
    "ldr r1, [sp, #32]\n" \
    "subs r1, #1\n" \
    "str r1, [sp, #32]\n" \
    "beq 5f\n" \
    "b 1b\n" \
    "5:\n" \
    "add sp, #80\n" \
    "pop {r4-r7}\n mov r8, r4\n mov r9, r5\n mov r10, r6\n mov r11, r7\n" \
    "pop {r4-r7, pc}\n"
#define TAPS_LINES_1_INPUT TAPS_LINES_INPUT(TAPS_FOUR_1, "8", "2")
#define TAPS_LINES_2_INPUT TAPS_LINES_INPUT(TAPS_FOUR_2, "16", "4")
#endif
#if defined(__ARM_ARCH_ISA_THUMB)
__attribute__((naked, noinline, unused)) static void plane_lines_1_INPUT(
    __attribute__((unused)) const plane_INPUT *p)
{
    __asm volatile(TAPS_LINES_1_INPUT);
}
__attribute__((naked, noinline, unused)) static void plane_lines_2_INPUT(
    __attribute__((unused)) const plane_INPUT *p)
{
    __asm volatile(TAPS_LINES_2_INPUT);
}
#else
NOT_INLINED void plane_lines_1_INPUT(const plane_INPUT *p) { plane_lines_INPUT(p, 1); }
NOT_INLINED void plane_lines_2_INPUT(const plane_INPUT *p) { plane_lines_INPUT(p, 2); }
#endif
