#pragma once
#include "../common/instance.h"
#include "../common/plane.h"
/* DSP extension: lines from a plane; each word of the plane has two taps. */
#if defined(__ARM_FEATURE_DSP)
/* Sums of a row in r6 to r9: P: the first two weights, Q: the last two; r10 to r12: inputs. The
   sums of the ``first`` row start from r6, which holds the bias; other rows continue the sums. */
#define PLANE_AFTER(s) s
#define PLANE_BIAS(s) "r6"
#define PLANE_AFTER_KEPT
#define PLANE_BIAS_KEPT "mov r9, r6\n"
#define PLANE_ONE(P, Q, first) \
    "ldrd r10, r11, [lr]\n smlad r6, r10, " P ", r6\n smlabt r6, r11, " Q ", r6\n"
#define PLANE_TWO_1(P, Q, first) \
    "ldrd r10, r11, [lr]\n" \
    "smlad r7, r11, " Q ", " first("r7") "\n smlad r6, r10, " P ", r6\n" \
    "smlatb r7, r10, " P ", r7\n smlabt r6, r11, " Q ", r6\n"
#define PLANE_FOUR_1(P, Q, first) \
    "ldrd r10, r11, [lr]\n ldr r12, [lr, #8]\n" \
    "smlad r9, r12, " Q ", " first("r9") "\n smlad r8, r11, " P ", " first("r8") "\n" \
    "smlad r7, r11, " Q ", " first("r7") "\n smlad r6, r10, " P ", r6\n" \
    "smlatb r9, r11, " P ", r9\n smlabt r8, r12, " Q ", r8\n" \
    "smlatb r7, r10, " P ", r7\n smlabt r6, r11, " Q ", r6\n"
#define PLANE_TWO_2(P, Q, first) \
    "ldrd r10, r11, [lr]\n ldr r12, [lr, #8]\n" \
    "smlad r7, r11, " P ", " first("r7") "\n smlad r6, r10, " P ", r6\n" \
    "smlabt r7, r12, " Q ", r7\n smlabt r6, r11, " Q ", r6\n"
#define PLANE_FOUR_2(P, Q, first) \
    "ldrd r10, r11, [lr]\n ldr r12, [lr, #8]\n" \
    first##_KEPT \
    "smlad r8, r12, " P ", " first("r8") "\n" \
    "smlad r7, r11, " P ", " first("r7") "\n smlad r6, r10, " P ", r6\n" \
    "smlabt r7, r12, " Q ", r7\n smlabt r6, r11, " Q ", r6\n" \
    "ldrd r10, r11, [lr, #12]\n" \
    "smlad r9, r10, " P ", r9\n" \
    "smlabt r8, r10, " Q ", r8\n smlabt r9, r11, " Q ", r9\n"
/* Three rows, then back to the first row, ``step`` bytes further; then r5, r10, r11, r12:
   rounding. */
#define PLANE_ROWS(SUM, step) \
    SUM("r0", "r1", PLANE_BIAS) \
    "ldr r4, [sp, #32]\n add lr, lr, r4\n" SUM("r2", "r3", PLANE_AFTER) \
    "add lr, lr, r4\n ldrd r4, r5, [sp, #24]\n" SUM("r4", "r5", PLANE_AFTER) \
    "ldr r4, [sp, #36]\n sub lr, lr, r4\n add lr, lr, #" step "\n" \
    "add r4, sp, #4\n ldm r4, {r5, r10, r11, r12}\n"
#define PLANE_ROUNDED_INPUT(s, added) \
    "smmlar " s ", " s ", r10, " added "\n asr " s ", " s ", r11\n" \
    SATURATE_SIGN " " s ", #8, " s ", asr #1\n"
#define PLANE_SIGNED_INPUT(s) "add r4, r12, " s ", asr #31\n" PLANE_ROUNDED_INPUT(s, "r4")
#define PLANE_POSITIVE_INPUT(s) PLANE_ROUNDED_INPUT(s, "r12")
#define PLANE_TAPS(P, Q) \
    "sxtb16 r11, " P "\n sxtb16 r12, " P ", ror #8\n" \
    "pkhbt " P ", r11, r12, lsl #16\n pkhtb " Q ", r11, r12\n" \
    "sadd16 " P ", " P ", " P "\n sadd16 " Q ", " Q ", " Q "\n"
/* Stack: 0 twice the bias, 4 out, 8 multiplier, 12 shift, 16 what is added, 20 channels, 24 weights
   of the last row, 32 pitch, 36 two pitches, 40 grouped, 44 onwards, 48 where the rest is made,
   52 lines, 56 end, 64 rest. */
#define PLANE_LINES_INPUT(HOW, FOUR, TWO, four_bytes, two_bytes, one_bytes) \
    "push {r4-r11, lr}\n" \
    "sub sp, sp, #68\n" \
    "ldm r0!, {r1, r5, lr}\n" \
    "ldm r0, {r2, r3, r4, r6, r7, r8, r9}\n" \
    "strd r2, r3, [sp, #32]\n" \
    "str r4, [sp, #20]\n" \
    "strd r6, r7, [sp, #40]\n" \
    "str r8, [sp, #64]\n" \
    "adr r4, 5f\n" \
    "cmp r8, #1\n" \
    "it eq\n adreq r4, 7f\n" \
    "it hi\n adrhi r4, 6f\n" \
    "add r8, r4, #1\n" \
    "strd r8, r9, [sp, #48]\n" \
    "ldm r1!, {r6, r7}\n" \
    "ldm r1, {r0, r2, r4}\n" \
    "lsr r8, r0, #24\n lsr r9, r2, #24\n asr r10, r4, #24\n" \
    "orr r9, r9, r10, lsl #8\n lsl r9, r9, r8\n" \
    "str r6, [sp]\n" \
    "strd r5, r7, [sp, #4]\n" \
    "strd r8, r9, [sp, #12]\n" \
    PLANE_TAPS("r0", "r1") PLANE_TAPS("r2", "r3") PLANE_TAPS("r4", "r5") \
    "strd r4, r5, [sp, #24]\n" \
    "1:\n" \
    "ldr r4, [sp, #40]\n" \
    "cmp r4, #0\n" \
    "beq.w 3f\n" \
    "add r4, r4, lr\n" \
    "str r4, [sp, #56]\n" \
    "2:\n" \
    "ldr r6, [sp]\n" \
    PLANE_ROWS(FOUR, four_bytes) \
    HOW("r6") HOW("r7") HOW("r8") HOW("r9") \
    "ldr r10, [sp, #20]\n" \
    "ldr r4, [sp, #56]\n" \
    "strb r6, [r5]\n strb r7, [r5, r10]\n add r5, r5, r10, lsl #1\n" \
    "strb r8, [r5]\n strb r9, [r5, r10]\n add r5, r5, r10, lsl #1\n" \
    "str r5, [sp, #4]\n" \
    "cmp lr, r4\n" \
    "bne.w 2b\n" \
    "3:\n" \
    "ldr pc, [sp, #48]\n" \
    ".balign 4\n" \
    "6:\n" \
    "ldr r6, [sp]\n" \
    PLANE_ROWS(TWO, two_bytes) \
    HOW("r6") HOW("r7") \
    "ldr r10, [sp, #20]\n" \
    "strb r6, [r5]\n strb r7, [r5, r10]\n add r5, r5, r10, lsl #1\n" \
    "str r5, [sp, #4]\n" \
    "ldr r4, [sp, #64]\n" \
    "cmp r4, #3\n" \
    "bne.w 5f\n" \
    ".balign 4\n" \
    "7:\n" \
    "ldr r6, [sp]\n" \
    PLANE_ROWS(PLANE_ONE, one_bytes) \
    HOW("r6") \
    "ldr r10, [sp, #20]\n" \
    "strb r6, [r5]\n add r5, r5, r10\n" \
    "str r5, [sp, #4]\n" \
    ".balign 4\n" \
    "5:\n" \
    "ldr r4, [sp, #44]\n" \
    "ldr r5, [sp, #52]\n" \
    "add lr, lr, r4\n" \
    "subs r5, r5, #1\n" \
    "str r5, [sp, #52]\n" \
    "bne.w 1b\n" \
    "add sp, sp, #68\n" \
    "pop {r4-r11, pc}\n"
#define PLANE_LINES_1_INPUT(HOW) PLANE_LINES_INPUT(HOW, PLANE_FOUR_1, PLANE_TWO_1, "8", "4", "2")
#define PLANE_LINES_2_INPUT(HOW) PLANE_LINES_INPUT(HOW, PLANE_FOUR_2, PLANE_TWO_2, "16", "8", "4")
__attribute__((naked, noinline, unused)) static void plane_lines_1_INPUT(
    __attribute__((unused)) const plane_INPUT *p)
{
    __asm volatile(PLANE_LINES_1_INPUT(PLANE_SIGNED_INPUT));
}
__attribute__((naked, noinline, unused)) static void plane_lines_2_INPUT(
    __attribute__((unused)) const plane_INPUT *p)
{
    __asm volatile(PLANE_LINES_2_INPUT(PLANE_SIGNED_INPUT));
}
__attribute__((naked, noinline, unused)) static void plane_positive_1_INPUT(
    __attribute__((unused)) const plane_INPUT *p)
{
    __asm volatile(PLANE_LINES_1_INPUT(PLANE_POSITIVE_INPUT));
}
__attribute__((naked, noinline, unused)) static void plane_positive_2_INPUT(
    __attribute__((unused)) const plane_INPUT *p)
{
    __asm volatile(PLANE_LINES_2_INPUT(PLANE_POSITIVE_INPUT));
}
#else
NOT_INLINED void plane_lines_1_INPUT(const plane_INPUT *p) { plane_lines_INPUT(p, 1); }
NOT_INLINED void plane_lines_2_INPUT(const plane_INPUT *p) { plane_lines_INPUT(p, 2); }
NOT_INLINED void plane_positive_1_INPUT(const plane_INPUT *p) { plane_lines_INPUT(p, 1); }
NOT_INLINED void plane_positive_2_INPUT(const plane_INPUT *p) { plane_lines_INPUT(p, 2); }
#endif
