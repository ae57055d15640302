#pragma once
#include "../common/instance.h"
#include "../common/dot.h"
#include "../common/requantise.h"
#include "../common/convolution.h"
#include "../common/epilogue.h"
#include "../common/two_windows.h"
#include "../common/epilogue_thumb.h"
/* Cortex-M0: four channels of two windows, or of one, at a time, INPUT inputs byte by byte.
   Weights and numbers: see ``tile_2x4_plain`` in ``two_windows.h``. Weights are stored with 128 added,
   because only unsigned bytes can be loaded with an immediate offset; 128 times the sum of the
   inputs is subtracted. */
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
typedef struct {
    tile_INPUT two;
    int32_t excess[2]; /* added to the sums of each window */
} unsigned_tile_INPUT;

#define UNSIGNED_PAIR_int8(i) "movs r4, #" i "\n ldrsb r3, [r1, r4]\n ldrsb r4, [r2, r4]\n"
#define UNSIGNED_PAIR_uint8(i) "ldrb r3, [r1, #" i "]\n ldrb r4, [r2, #" i "]\n"
#define UNSIGNED_ONE_int8(i) "movs r4, #" i "\n ldrsb r3, [r1, r4]\n"
#define UNSIGNED_ONE_uint8(i) "ldrb r3, [r1, #" i "]\n"
#define UNSIGNED_ADD(at, x, sum) "ldrb r5, [r0, #" at "]\n muls r5, " x ", r5\n add " sum ", " sum ", r5\n"
#define UNSIGNED_TWO(at, a, b) UNSIGNED_ADD(at, "r3", a) UNSIGNED_ADD(at, "r4", b)
#define UNSIGNED_BYTE_TWO_INPUT(i, w0, w1, w2, w3) \
    UNSIGNED_PAIR_INPUT(i) UNSIGNED_TWO(w0, "r6", "r7") UNSIGNED_TWO(w1, "r8", "r9") \
    UNSIGNED_TWO(w2, "r10", "r11") UNSIGNED_TWO(w3, "r12", "lr")
#define UNSIGNED_BYTE_ONE_INPUT(i, w0, w1, w2, w3) \
    UNSIGNED_ONE_INPUT(i) UNSIGNED_ADD(w0, "r3", "r6") UNSIGNED_ADD(w1, "r3", "r7") \
    UNSIGNED_ADD(w2, "r3", "r8") UNSIGNED_ADD(w3, "r3", "r9")
#define UNSIGNED_BLOCK(BYTE) \
    BYTE("0", "0", "1", "2", "3") BYTE("1", "4", "5", "6", "7") \
    BYTE("2", "8", "9", "10", "11") BYTE("3", "12", "13", "14", "15")
/* r0: numbers of the channel; r1: out. */
#define UNSIGNED_NUMBERS "ldrh r3, [r0]\n ldrh r2, [r0, #2]\n ldr r4, [r0, #4]\n adds r0, #8\n adds r4, #1\n"
#define UNSIGNED_FIRST(FINISH) FINISH "strb r6, [r1]\n"
#define UNSIGNED_SECOND(FINISH) FINISH "ldr r5, [sp, #20]\n strb r6, [r1, r5]\n adds r1, #1\n"
#define UNSIGNED_BOTH(FINISH, a, b) \
    UNSIGNED_NUMBERS "mov r6, " a "\n" UNSIGNED_FIRST(FINISH) "mov r6, " b "\n" UNSIGNED_SECOND(FINISH)
#define UNSIGNED_ALONE(FINISH, a) UNSIGNED_NUMBERS a FINISH "strb r6, [r1]\n adds r1, #1\n"
/* Stack: 0 stretch, 4 numbers, 8 out, 12 stretches' end, 16 out's end, 20 to the second window's
   results, 24 weights, 28 excess, 36 first stretch, 40 inputs' end, 44 a sum. */
#define UNSIGNED_ENTER \
    ".syntax unified\n" \
    "push {r4-r7, lr}\n" \
    "mov r4, r8\n mov r5, r9\n mov r6, r10\n mov r7, r11\n push {r4-r7}\n" \
    "sub sp, #48\n" \
    "mov r1, sp\n" \
    "ldm r0!, {r3-r7}\n stm r1!, {r3-r7}\n str r3, [sp, #36]\n" \
    "ldm r0!, {r3-r6}\n stm r1!, {r3-r6}\n" \
    "1:\n" \
    "ldr r0, [sp, #4]\n" \
    "ldm r0!, {r3-r6}\n" \
    "str r0, [sp, #4]\n" \
    "ldr r1, [sp, #28]\n"
#define UNSIGNED_STRETCHES(BLOCK) \
    "ldr r5, [sp, #36]\n" \
    "3:\n" \
    "ldm r5!, {r0-r3}\n" \
    "str r5, [sp]\n" \
    "str r3, [sp, #40]\n" \
    "ldr r0, [sp, #24]\n" \
    "2:\n" \
    BLOCK \
    "ldr r5, [sp, #40]\n" \
    "cmp r1, r5\n" \
    "bne 2b\n" \
    "str r0, [sp, #24]\n" \
    "ldr r5, [sp]\n" \
    "ldr r3, [sp, #12]\n" \
    "cmp r5, r3\n" \
    "beq 4f\n" \
    "b 3b\n" \
    "4:\n"
#define UNSIGNED_LEAVE \
    "str r0, [sp, #4]\n" \
    "str r1, [sp, #8]\n" \
    "ldr r5, [sp, #16]\n" \
    "cmp r1, r5\n" \
    "beq 5f\n" \
    "b 1b\n" \
    "5:\n" \
    "add sp, #48\n" \
    "pop {r4-r7}\n mov r8, r4\n mov r9, r5\n mov r10, r6\n mov r11, r7\n" \
    "pop {r4-r7, pc}\n"
#define UNSIGNED_TWO_WINDOWS_INPUT(FINISH) \
    UNSIGNED_ENTER \
    "ldr r2, [sp, #32]\n" \
    "adds r7, r6, r1\n mov r12, r7\n adds r7, r6, r2\n mov lr, r7\n" \
    "adds r7, r5, r1\n mov r10, r7\n adds r7, r5, r2\n mov r11, r7\n" \
    "adds r7, r4, r1\n mov r8, r7\n adds r7, r4, r2\n mov r9, r7\n" \
    "adds r6, r3, r1\n adds r7, r3, r2\n" \
    UNSIGNED_STRETCHES(UNSIGNED_BLOCK(UNSIGNED_BYTE_TWO_INPUT) "adds r0, #16\n adds r1, #4\n adds r2, #4\n") \
    "str r7, [sp, #44]\n" \
    "ldr r0, [sp, #4]\n" \
    "ldr r1, [sp, #8]\n" \
    UNSIGNED_NUMBERS UNSIGNED_FIRST(FINISH) "ldr r6, [sp, #44]\n" UNSIGNED_SECOND(FINISH) \
    UNSIGNED_BOTH(FINISH, "r8", "r9") UNSIGNED_BOTH(FINISH, "r10", "r11") UNSIGNED_BOTH(FINISH, "r12", "lr") \
    UNSIGNED_LEAVE
#define UNSIGNED_WINDOW_INPUT(FINISH) \
    UNSIGNED_ENTER \
    "adds r7, r6, r1\n mov r9, r7\n adds r7, r5, r1\n mov r8, r7\n" \
    "adds r7, r4, r1\n adds r6, r3, r1\n" \
    UNSIGNED_STRETCHES(UNSIGNED_BLOCK(UNSIGNED_BYTE_ONE_INPUT) "adds r0, #16\n adds r1, #4\n") \
    "str r7, [sp, #44]\n" \
    "ldr r0, [sp, #4]\n" \
    "ldr r1, [sp, #8]\n" \
    UNSIGNED_ALONE(FINISH, "") UNSIGNED_ALONE(FINISH, "ldr r6, [sp, #44]\n") \
    UNSIGNED_ALONE(FINISH, "mov r6, r8\n") UNSIGNED_ALONE(FINISH, "mov r6, r9\n") \
    UNSIGNED_LEAVE

__attribute__((naked, noinline, unused)) static void unsigned_windows_INPUT(
    __attribute__((unused)) const unsigned_tile_INPUT *t)
{
    __asm volatile(UNSIGNED_TWO_WINDOWS_INPUT(FINISHED_INPUT));
}
__attribute__((naked, noinline, unused)) static void unsigned_windows_once_INPUT(
    __attribute__((unused)) const unsigned_tile_INPUT *t)
{
    __asm volatile(UNSIGNED_TWO_WINDOWS_INPUT(FINISHED_ONCE_INPUT));
}
__attribute__((naked, noinline, unused)) static void unsigned_window_INPUT(
    __attribute__((unused)) const unsigned_tile_INPUT *t)
{
    __asm volatile(UNSIGNED_WINDOW_INPUT(FINISHED_INPUT));
}
__attribute__((naked, noinline, unused)) static void unsigned_window_once_INPUT(
    __attribute__((unused)) const unsigned_tile_INPUT *t)
{
    __asm volatile(UNSIGNED_WINDOW_INPUT(FINISHED_ONCE_INPUT));
}

/* The value that is subtracted from the sums of each window. */
INLINED unsigned_tile_INPUT unsigned_tile_of_INPUT(const tile_INPUT *t, int32_t windows)
{
    unsigned_tile_INPUT made = {*t, {0, 0}};
    for (int32_t at = 0; at < windows; ++at) {
        int32_t sum = 0;
        for (const stretch_INPUT *s = t->stretches; s != t->stretches_end; ++s) {
            const input_t *x = at == 0 ? s->first : s->second;
            const input_t *const end = x + (s->first_end - s->first);
            for (; x != end; x += 4) {
                sum += x[0] + x[1] + x[2] + x[3];
            }
        }
        made.excess[at] = -128 * sum;
    }
    return made;
}
NOT_INLINED void unsigned_two_INPUT(const tile_INPUT *t)
{
    const unsigned_tile_INPUT made = unsigned_tile_of_INPUT(t, 2);
    unsigned_windows_INPUT(&made);
}
NOT_INLINED void unsigned_one_INPUT(const tile_INPUT *t)
{
    const unsigned_tile_INPUT made = unsigned_tile_of_INPUT(t, 1);
    unsigned_window_INPUT(&made);
}
NOT_INLINED void unsigned_two_once_INPUT(const tile_INPUT *t)
{
    const unsigned_tile_INPUT made = unsigned_tile_of_INPUT(t, 2);
    unsigned_windows_once_INPUT(&made);
}
NOT_INLINED void unsigned_one_once_INPUT(const tile_INPUT *t)
{
    const unsigned_tile_INPUT made = unsigned_tile_of_INPUT(t, 1);
    unsigned_window_once_INPUT(&made);
}
#else
NOT_INLINED void unsigned_two_INPUT(const tile_INPUT *t) { tile_2x4_plain_INPUT(t, 2, 128, false); }
NOT_INLINED void unsigned_one_INPUT(const tile_INPUT *t) { tile_2x4_plain_INPUT(t, 1, 128, false); }
NOT_INLINED void unsigned_two_once_INPUT(const tile_INPUT *t) { tile_2x4_plain_INPUT(t, 2, 128, true); }
NOT_INLINED void unsigned_one_once_INPUT(const tile_INPUT *t) { tile_2x4_plain_INPUT(t, 1, 128, true); }
#endif
__attribute__((unused)) static const microkernels_INPUT microkernels_INPUT_unsigned = {
    unsigned_two_INPUT, unsigned_one_INPUT, 4, 0, 0, 16, 12};
__attribute__((unused)) static const microkernels_INPUT microkernels_INPUT_unsigned_once = {
    unsigned_two_once_INPUT, unsigned_one_once_INPUT, 4, 0, 0, 16, 12};
/* For layers with a single window. */
__attribute__((unused)) static const microkernels_INPUT microkernels_INPUT_unsigned_alone = {
    unsigned_one_INPUT, unsigned_one_INPUT, 4, 0, 0, 16, 12};
__attribute__((unused)) static const microkernels_INPUT microkernels_INPUT_unsigned_once_alone = {
    unsigned_one_once_INPUT, unsigned_one_once_INPUT, 4, 0, 0, 16, 12};
