#pragma once
#include "../common/instance.h"
#include "../common/dot.h"
#include "../common/requantise.h"
#include "../common/convolution.h"
#include "../common/epilogue.h"
#include "../common/two_windows.h"
#include "../common/epilogue_thumb.h"
/* Cortex-M3: four channels of two windows, or of one, at a time, INPUT inputs byte by byte.
   Weights and numbers: see ``tile_2x4_plain`` in ``two_windows.h``. */
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2
#define BYTES_BLOCK(windows) ((windows) == 2 ? 224 : 144)
#define BYTE_OF_int8 "ldrsb"
#define BYTE_OF_uint8 "ldrb"
#define BYTES_TWO(a, b) "ldrsb lr, [r12], #1\n mla " a ", r8, lr, " a "\n mla " b ", r9, lr, " b "\n"
#define BYTES_ONE(a) "ldrsb r5, [r12], #1\n mla " a ", r4, r5, " a "\n"
/* Sums of a channel of two windows, or of one; r10: its numbers, lr: twice the zero point and 1. */
#define BYTES_ROUNDED(s, FINISH, low, m, n, twice) "lsl " s ", " s ", #1\n" FINISH(s, low, m, n, twice)
#define BYTES_FINISHED(FINISH, a, b) \
    "ldm r10!, {r8, r9}\n" \
    BYTES_ROUNDED(a, FINISH, "r12", "r8", "r9", "lr") BYTES_ROUNDED(b, FINISH, "r12", "r8", "r9", "lr")
#define BYTES_FINISHED_ONE(FINISH, a) \
    "ldm r10!, {r6, r7}\n" BYTES_ROUNDED(a, FINISH, "r5", "r6", "r7", "r8") "strb " a ", [r11], #1\n"
#define BYTES_STORED(a, b) "strb " b ", [r11, r12]\n strb " a ", [r11], #1\n"
/* Stack: 0 stretch, 4 numbers, 8 out, 12 stretches' end, 16 out's end, 20 to the second window's
   results, 24 first stretch, 28 inputs' end, then the weights. */
#define BYTES_TWO_WINDOWS_INPUT(FINISH) \
    "push {r4-r11, lr}\n" \
    "sub sp, sp, #32\n" \
    "ldm r0, {r1, r2, r3, r4, r5, r6, r12}\n" \
    "str r1, [sp, #24]\n" \
    "mov r0, sp\n" \
    "stm r0, {r1-r6}\n" \
    "1:\n" \
    "ldr r9, [sp, #4]\n" \
    "ldr r8, [sp, #24]\n" \
    "ldm r9!, {r0, r2, r4, r6}\n" \
    "str r9, [sp, #4]\n" \
    "mov r1, r0\n" \
    "mov r3, r2\n" \
    "mov r5, r4\n" \
    "mov r7, r6\n" \
    "3:\n" \
    "ldm r8!, {r9, r10, r11, lr}\n" \
    "str r8, [sp]\n" \
    "str lr, [sp, #28]\n" \
    ".balign 4\n" \
    "add pc, r9\n" \
    "nop\n" \
    "2:\n" \
    ".rept 16\n" \
    BYTE_OF_INPUT " r8, [r10], #1\n" \
    BYTE_OF_INPUT " r9, [r11], #1\n" \
    BYTES_TWO("r0", "r1") BYTES_TWO("r2", "r3") BYTES_TWO("r4", "r5") BYTES_TWO("r6", "r7") \
    ".endr\n" \
    "ldr r8, [sp, #28]\n" \
    "cmp r10, r8\n" \
    "bne.w 2b\n" \
    "ldr r8, [sp]\n" \
    "ldr r9, [sp, #12]\n" \
    "cmp r8, r9\n" \
    "bne.w 3b\n" \
    "ldrd r10, r11, [sp, #4]\n" \
    "str r12, [sp, #28]\n" \
    "ldr lr, [r10, #4]\n" \
    "asr lr, lr, #8\n" \
    BYTES_FINISHED(FINISH, "r0", "r1") BYTES_FINISHED(FINISH, "r2", "r3") \
    BYTES_FINISHED(FINISH, "r4", "r5") BYTES_FINISHED(FINISH, "r6", "r7") \
    "ldr r12, [sp, #20]\n" \
    BYTES_STORED("r0", "r1") BYTES_STORED("r2", "r3") \
    BYTES_STORED("r4", "r5") BYTES_STORED("r6", "r7") \
    "ldr r12, [sp, #28]\n" \
    "ldr r6, [sp, #16]\n" \
    "strd r10, r11, [sp, #4]\n" \
    "cmp r11, r6\n" \
    "bne.w 1b\n" \
    "add sp, sp, #32\n" \
    "pop {r4-r11, pc}\n"
#define BYTES_WINDOW_INPUT(FINISH) \
    "push {r4-r11, lr}\n" \
    "ldm r0!, {r9, r10, r11}\n" \
    "ldr r12, [r0, #12]\n" \
    "sub sp, sp, #12\n" \
    "ldm r0, {r1, r2}\n" \
    "strd r1, r2, [sp]\n" \
    "str r9, [sp, #8]\n" \
    "1:\n" \
    "ldr r9, [sp, #8]\n" \
    "ldm r10!, {r0, r1, r2, r3}\n" \
    "3:\n" \
    "ldm r9!, {r6, r7, r8, lr}\n" \
    ".balign 4\n" \
    "add pc, r6\n" \
    "nop\n" \
    "2:\n" \
    ".rept 16\n" \
    BYTE_OF_INPUT " r4, [r7], #1\n" \
    BYTES_ONE("r0") BYTES_ONE("r1") BYTES_ONE("r2") BYTES_ONE("r3") \
    ".endr\n" \
    "cmp r7, lr\n" \
    "bne.w 2b\n" \
    "ldr r6, [sp]\n" \
    "cmp r9, r6\n" \
    "bne.w 3b\n" \
    "ldr r8, [r10, #4]\n" \
    "asr r8, r8, #8\n" \
    BYTES_FINISHED_ONE(FINISH, "r0") BYTES_FINISHED_ONE(FINISH, "r1") \
    BYTES_FINISHED_ONE(FINISH, "r2") BYTES_FINISHED_ONE(FINISH, "r3") \
    "ldr r6, [sp, #4]\n" \
    "cmp r11, r6\n" \
    "bne.w 1b\n" \
    "add sp, sp, #12\n" \
    "pop {r4-r11, pc}\n"
__attribute__((naked, noinline, unused)) static void bytes_two_INPUT(
    __attribute__((unused)) const tile_INPUT *t)
{
    __asm volatile(BYTES_TWO_WINDOWS_INPUT(FINISHED_INPUT));
}
__attribute__((naked, noinline, unused)) static void bytes_two_once_INPUT(
    __attribute__((unused)) const tile_INPUT *t)
{
    __asm volatile(BYTES_TWO_WINDOWS_INPUT(FINISHED_ONCE_INPUT));
}
__attribute__((naked, noinline, unused)) static void bytes_one_INPUT(
    __attribute__((unused)) const tile_INPUT *t)
{
    __asm volatile(BYTES_WINDOW_INPUT(FINISHED_INPUT));
}
__attribute__((naked, noinline, unused)) static void bytes_one_once_INPUT(
    __attribute__((unused)) const tile_INPUT *t)
{
    __asm volatile(BYTES_WINDOW_INPUT(FINISHED_ONCE_INPUT));
}
#else
#define BYTES_BLOCK(windows) 0
NOT_INLINED void bytes_two_INPUT(const tile_INPUT *t) { tile_2x4_plain_INPUT(t, 2, 0, false); }
NOT_INLINED void bytes_one_INPUT(const tile_INPUT *t) { tile_2x4_plain_INPUT(t, 1, 0, false); }
NOT_INLINED void bytes_two_once_INPUT(const tile_INPUT *t) { tile_2x4_plain_INPUT(t, 2, 0, true); }
NOT_INLINED void bytes_one_once_INPUT(const tile_INPUT *t) { tile_2x4_plain_INPUT(t, 1, 0, true); }
#endif
__attribute__((unused)) static const microkernels_INPUT microkernels_INPUT_bytes = {
    bytes_two_INPUT, bytes_one_INPUT, 4, BYTES_BLOCK(2), BYTES_BLOCK(1), 16, 12};
__attribute__((unused)) static const microkernels_INPUT microkernels_INPUT_bytes_once = {
    bytes_two_once_INPUT, bytes_one_once_INPUT, 4, BYTES_BLOCK(2), BYTES_BLOCK(1), 16, 12};
/* For layers with a single window. */
__attribute__((unused)) static const microkernels_INPUT microkernels_INPUT_bytes_alone = {
    bytes_one_INPUT, bytes_one_INPUT, 4, BYTES_BLOCK(1), BYTES_BLOCK(1), 16, 12};
__attribute__((unused)) static const microkernels_INPUT microkernels_INPUT_bytes_once_alone = {
    bytes_one_once_INPUT, bytes_one_once_INPUT, 4, BYTES_BLOCK(1), BYTES_BLOCK(1), 16, 12};
