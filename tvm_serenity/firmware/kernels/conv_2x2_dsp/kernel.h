#pragma once
#include "../common/instance.h"
#include "../common/dot.h"
#include "../common/requantise.h"
#include "../common/convolution.h"
#include "../common/epilogue.h"
#include "../common/two_windows.h"
/* DSP extension: two channels of two windows of INPUT at a time, inputs not widened, for
   ROUND_TWICE_SMALL and ROUND_ONCE_SMALL. Convolutions without memory for widened inputs use it. Weights are those of
   ``conv_3x2_dsp``. ``numbers`` of a pair of channels a and b: its two biases, then the two
   numbers of ``epilogue.h`` of a and of b. */
#if defined(__ARM_FEATURE_DSP)
#define TWO_BLOCK_BYTES 68
#define TWO_PRODUCTS(x, y, w) \
    "smlad r0, " x ", " w ", r0\n smlad r1, " y ", " w ", r1\n sxtb16 " w ", " w "\n" \
    "smlad r2, " x ", " w ", r2\n smlad r3, " y ", " w ", r3\n"
/* Requantise ``s``, which holds twice a sum; r5: multiplier, r6: shift, r7: the rounding constant,
   with the sign or without. */
#define TWO_ROUNDED_INPUT(high, s, added) \
    high " " s ", " s ", r5, " added "\n asr " s ", " s ", r6\n" \
    SATURATE_SIGN " " s ", #8, " s ", asr #1\n"
#define TWO_SIGNED_INPUT(s, doubled) \
    "add r4, r7, " s ", asr #31\n" doubled TWO_ROUNDED_INPUT("smmlar", s, "r4")
#define TWO_POSITIVE_INPUT(s, doubled) doubled TWO_ROUNDED_INPUT("smmlar", s, "r7")
#define TWO_ONCE_INPUT(s, doubled) doubled TWO_ROUNDED_INPUT("smmla", s, "r7")
#define TWO_FIRST(HOW, s, b) "sub " s ", " s ", " b "\n" HOW(s, "asr " s ", " s ", #7\n")
#define TWO_SECOND(HOW, s) HOW(s, "lsl " s ", " s ", #1\n")
/* All channels of two windows; the first window is stored last. */
#define TWO_WINDOWS_INPUT(HOW) \
    "push {r4-r11, lr}\n" \
    "sub sp, sp, #28\n" \
    "ldm r0, {r1, r2, r3, r4, r5, r6, r12}\n" \
    "str r1, [sp, #24]\n" \
    "mov r0, sp\n" \
    "stm r0, {r1-r6}\n" \
    "1:\n" \
    "ldr r6, [sp, #4]\n" \
    "ldr r4, [sp, #24]\n" \
    "ldm r6!, {r0, r2}\n" \
    "str r6, [sp, #4]\n" \
    "mov r1, r0\n" \
    "mov r3, r2\n" \
    "3:\n" \
    "ldm r4!, {r5, r10, r11, lr}\n" \
    "str r4, [sp]\n" \
    ".balign 4\n" \
    "add pc, r5\n" \
    "nop\n" \
    "2:\n" \
    ".rept 4\n" \
    "ldr r4, [r10], #4\n" \
    "ldr r5, [r11], #4\n" \
    "ldrd r8, r9, [r12], #8\n" \
    WIDENED_SIGN " r6, r4\n" \
    WIDENED_SIGN " r7, r5\n" \
    WIDENED_SIGN " r4, r4, ror #8\n" \
    WIDENED_SIGN " r5, r5, ror #8\n" \
    TWO_PRODUCTS("r6", "r7", "r8") \
    TWO_PRODUCTS("r4", "r5", "r9") \
    ".endr\n" \
    "cmp r10, lr\n" \
    "bne.w 2b\n" \
    "ldr r4, [sp]\n" \
    "ldr r5, [sp, #12]\n" \
    "cmp r4, r5\n" \
    "bne.w 3b\n" \
    "ldrd r10, r11, [sp, #4]\n" \
    "ldm r10!, {r5, r6}\n asr r7, r6, #8\n lsl r7, r7, r6\n" \
    TWO_FIRST(HOW, "r0", "r2") \
    TWO_FIRST(HOW, "r1", "r3") \
    "ldm r10!, {r5, r6}\n asr r7, r6, #8\n lsl r7, r7, r6\n" \
    TWO_SECOND(HOW, "r2") \
    TWO_SECOND(HOW, "r3") \
    "ldrd r6, r7, [sp, #16]\n" \
    "strb r1, [r11, r7]\n" \
    "strb r0, [r11], #1\n" \
    "strb r3, [r11, r7]\n" \
    "strb r2, [r11], #1\n" \
    "strd r10, r11, [sp, #4]\n" \
    "cmp r11, r6\n" \
    "bne.w 1b\n" \
    "add sp, sp, #28\n" \
    "pop {r4-r11, pc}\n"
__attribute__((naked, noinline, unused)) static void tile_2x2_twice_INPUT(
    __attribute__((unused)) const tile_INPUT *t)
{
    __asm volatile(TWO_WINDOWS_INPUT(TWO_SIGNED_INPUT));
}
__attribute__((naked, noinline, unused)) static void tile_2x2_positive_INPUT(
    __attribute__((unused)) const tile_INPUT *t)
{
    __asm volatile(TWO_WINDOWS_INPUT(TWO_POSITIVE_INPUT));
}
__attribute__((naked, noinline, unused)) static void tile_2x2_once_INPUT(
    __attribute__((unused)) const tile_INPUT *t)
{
    __asm volatile(TWO_WINDOWS_INPUT(TWO_ONCE_INPUT));
}
#else
#define TWO_BLOCK_BYTES 0
INLINED void tile_2x2_of_INPUT(const tile_INPUT *t, bool once)
{
    const int16_t *weights = (const int16_t *)t->weights;
    const int16_t *w = weights;
    const int32_t *n = t->numbers;
    for (input_t *out = t->out; out != t->out_end; out += 2) {
        for (int32_t at = 1; at >= 0; --at) {
            uint32_t both = (uint32_t)n[0];
            int32_t second = n[1];
            w = weights;
            for (const stretch_INPUT *s = t->stretches; s != t->stretches_end; ++s) {
                const input_t *const x = at == 0 ? s->first : s->second;
                const int32_t count = (int32_t)(s->first_end - s->first);
                for (int32_t i = 0; i < count; ++i, ++w) {
                    const int32_t in = x[(i & ~3) + (i >> 1 & 1) + 2 * (i & 1)];
                    both += (uint32_t)(in * *w);
                    second += in * (int8_t)*w;
                }
            }
            const int32_t first = (int32_t)(both - (uint32_t)second) >> 8;
            const int32_t to = at == 0 ? 0 : t->second;
            out[to] = (input_t)(once ? once_SIGN(first, n + 2) : rounded_SIGN(first, n + 2));
            out[to + 1] = (input_t)(once ? once_SIGN(second, n + 4) : rounded_SIGN(second, n + 4));
        }
        weights = w;
        n += 6;
    }
}
NOT_INLINED void tile_2x2_twice_INPUT(const tile_INPUT *t) { tile_2x2_of_INPUT(t, false); }
NOT_INLINED void tile_2x2_positive_INPUT(const tile_INPUT *t) { tile_2x2_of_INPUT(t, false); }
NOT_INLINED void tile_2x2_once_INPUT(const tile_INPUT *t) { tile_2x2_of_INPUT(t, true); }
#endif

__attribute__((unused)) static const microkernels_INPUT microkernels_INPUT_2x2 = {
    tile_2x2_twice_INPUT, tile_2x2_twice_INPUT, 2, TWO_BLOCK_BYTES, TWO_BLOCK_BYTES, 16, 6};
__attribute__((unused)) static const microkernels_INPUT microkernels_INPUT_2x2_positive = {
    tile_2x2_positive_INPUT, tile_2x2_positive_INPUT, 2, TWO_BLOCK_BYTES, TWO_BLOCK_BYTES, 16, 6};
__attribute__((unused)) static const microkernels_INPUT microkernels_INPUT_2x2_once = {
    tile_2x2_once_INPUT, tile_2x2_once_INPUT, 2, TWO_BLOCK_BYTES, TWO_BLOCK_BYTES, 16, 6};
