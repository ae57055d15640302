#pragma once
#include "../common/instance.h"
#include "../common/dot.h"
#include "../common/requantise.h"
#include "../common/epilogue.h"
/* DSP extension: four channels of one window of contiguous INPUT inputs, for ROUND_TWICE_SMALL and
   ROUND_ONCE_SMALL. Weights and numbers are those of ``conv_2x2_dsp``, a block of four inputs of
   both pairs at a time. Inputs are read in place, or widened to 16 bits before: the even inputs of
   each block of four, then the odd inputs. */
typedef struct {
    const int32_t *numbers;
    input_t *out;
    const void *in;
    int32_t skipped; /* bytes of code to skip if the blocks are no multiple of four */
    const input_t *out_end;
    const void *in_end;
    const int32_t *weights;
} dense_tile_INPUT;

#if defined(__ARM_FEATURE_DSP)
#define QUAD_BLOCK_BYTES 64
#define QUAD_WIDE_BLOCK_BYTES 56
#define QUAD_PRODUCTS(x, w, a, b) \
    "smlad " a ", " x ", " w ", " a "\n sxtb16 " w ", " w "\n smlad " b ", " x ", " w ", " b "\n"
/* r6: multiplier, r7: shift, r8: the rounding constant. */
#define QUAD_TWICE(s, doubled) \
    "add r9, r8, " s ", asr #31\n " doubled "smmlar " s ", " s ", r6, r9\n"
#define QUAD_POSITIVE(s, doubled) doubled "smmlar " s ", " s ", r6, r8\n"
#define QUAD_ONCE(s, doubled) doubled "smmla " s ", " s ", r6, r8\n"
#define QUAD_ROUNDED_INPUT(s) \
    "asr " s ", " s ", r7\n " SATURATE_SIGN " " s ", #8, " s ", asr #1\n strb " s ", [r4], #1\n"
#define QUAD_STORED_INPUT(HOW, a, b) \
    "add r10, r10, #8\n ldm r10!, {r6, r7}\n asr r8, r7, #8\n lsl r8, r8, r7\n sub " a ", " a ", " b "\n" \
    HOW(a, "asr " a ", " a ", #7\n") QUAD_ROUNDED_INPUT(a) \
    "ldm r10!, {r6, r7}\n asr r8, r7, #8\n lsl r8, r8, r7\n" \
    HOW(b, "lsl " b ", " b ", #1\n") QUAD_ROUNDED_INPUT(b)
#define QUAD_READ_INPUT \
    "ldr r5, [r11], #4\n" WIDENED_SIGN " r4, r5\n" WIDENED_SIGN " r5, r5, ror #8\n"
#define QUAD_READ_WIDE "ldrd r4, r5, [r11], #8\n"
#define QUADS_INPUT(HOW, read) \
    "push {r4-r11, lr}\n" \
    "sub sp, sp, #20\n" \
    "ldm r0, {r1, r2, r3, r4, r5, lr}\n" \
    "ldr r12, [r0, #24]\n" \
    "mov r0, sp\n" \
    "stm r0, {r1-r5}\n" \
    "1:\n" \
    "ldr r10, [sp]\n" \
    "ldrd r11, r4, [sp, #8]\n" \
    "ldrd r0, r1, [r10]\n" \
    "ldrd r2, r3, [r10, #24]\n" \
    ".balign 4\n" \
    "add pc, r4\n" \
    "nop\n" \
    "2:\n" \
    ".rept 4\n" \
    read \
    "ldm.w r12!, {r6, r7, r8, r9}\n" \
    QUAD_PRODUCTS("r4", "r6", "r0", "r1") \
    QUAD_PRODUCTS("r4", "r7", "r2", "r3") \
    QUAD_PRODUCTS("r5", "r8", "r0", "r1") \
    QUAD_PRODUCTS("r5", "r9", "r2", "r3") \
    ".endr\n" \
    "cmp r11, lr\n" \
    "bne.w 2b\n" \
    "ldr r4, [sp, #4]\n" \
    QUAD_STORED_INPUT(HOW, "r0", "r1") \
    QUAD_STORED_INPUT(HOW, "r2", "r3") \
    "ldr r5, [sp, #16]\n" \
    "str r10, [sp]\n" \
    "str r4, [sp, #4]\n" \
    "cmp r4, r5\n" \
    "bne.w 1b\n" \
    "add sp, sp, #20\n" \
    "pop {r4-r11, pc}\n"
__attribute__((naked, noinline, unused)) static void dense_tile_twice_INPUT(
    __attribute__((unused)) const dense_tile_INPUT *q)
{
    __asm volatile(QUADS_INPUT(QUAD_TWICE, QUAD_READ_INPUT));
}
__attribute__((naked, noinline, unused)) static void dense_tile_positive_INPUT(
    __attribute__((unused)) const dense_tile_INPUT *q)
{
    __asm volatile(QUADS_INPUT(QUAD_POSITIVE, QUAD_READ_INPUT));
}
__attribute__((naked, noinline, unused)) static void dense_tile_once_INPUT(
    __attribute__((unused)) const dense_tile_INPUT *q)
{
    __asm volatile(QUADS_INPUT(QUAD_ONCE, QUAD_READ_INPUT));
}
__attribute__((naked, noinline, unused)) static void dense_tile_twice_wide_INPUT(
    __attribute__((unused)) const dense_tile_INPUT *q)
{
    __asm volatile(QUADS_INPUT(QUAD_TWICE, QUAD_READ_WIDE));
}
__attribute__((naked, noinline, unused)) static void dense_tile_positive_wide_INPUT(
    __attribute__((unused)) const dense_tile_INPUT *q)
{
    __asm volatile(QUADS_INPUT(QUAD_POSITIVE, QUAD_READ_WIDE));
}
__attribute__((naked, noinline, unused)) static void dense_tile_once_wide_INPUT(
    __attribute__((unused)) const dense_tile_INPUT *q)
{
    __asm volatile(QUADS_INPUT(QUAD_ONCE, QUAD_READ_WIDE));
}
#else
#define QUAD_BLOCK_BYTES 0
#define QUAD_WIDE_BLOCK_BYTES 0
INLINED void dense_tile_of_INPUT(const dense_tile_INPUT *q, bool once, bool wide)
{
    const input_t *const in = (const input_t *)q->in;
    const int16_t *const wider = (const int16_t *)q->in;
    const int32_t bytes = (int32_t)((const uint8_t *)q->in_end - (const uint8_t *)q->in);
    const int32_t depth = wide ? bytes / 2 : bytes;
    const int32_t channels = (int32_t)(q->out_end - q->out);
    for (int32_t o = 0; o < channels; o += 2) {
        const int32_t *const n = q->numbers + 3 * o;
        const int16_t *const w =
            (const int16_t *)(const void *)q->weights + o / 4 * 2 * depth + (o & 2);
        uint32_t both = (uint32_t)n[0];
        int32_t second = n[1];
        for (int32_t i = 0; i < depth; ++i) {
            const int32_t weight = w[i / 4 * 8 + (i & 1) * 4 + (i >> 1 & 1)];
            const int32_t x = wide ? wider[(i & ~3) + (i & 1) * 2 + (i >> 1 & 1)] : in[i];
            both += (uint32_t)(x * weight);
            second += x * (int8_t)weight;
        }
        const int32_t first = (int32_t)(both - (uint32_t)second) >> 8;
        q->out[o] = (input_t)(once ? once_SIGN(first, n + 2) : rounded_SIGN(first, n + 2));
        q->out[o + 1] = (input_t)(once ? once_SIGN(second, n + 4) : rounded_SIGN(second, n + 4));
    }
}
NOT_INLINED void dense_tile_twice_INPUT(const dense_tile_INPUT *q) { dense_tile_of_INPUT(q, false, false); }
NOT_INLINED void dense_tile_positive_INPUT(const dense_tile_INPUT *q) { dense_tile_of_INPUT(q, false, false); }
NOT_INLINED void dense_tile_once_INPUT(const dense_tile_INPUT *q) { dense_tile_of_INPUT(q, true, false); }
NOT_INLINED void dense_tile_twice_wide_INPUT(const dense_tile_INPUT *q) { dense_tile_of_INPUT(q, false, true); }
NOT_INLINED void dense_tile_positive_wide_INPUT(const dense_tile_INPUT *q) { dense_tile_of_INPUT(q, false, true); }
NOT_INLINED void dense_tile_once_wide_INPUT(const dense_tile_INPUT *q) { dense_tile_of_INPUT(q, true, true); }
#endif

/* ``wide``: a buffer for ``inputs`` of 16 bits, NULL if inputs are read in place. */
NOT_INLINED void dense_tiles_INPUT(const input_t *in, const int32_t *weights, const int32_t *numbers,
    input_t *out, int32_t inputs, int32_t outputs, const requantisation *to, int16_t *wide,
    void (*tile)(const dense_tile_INPUT *q))
{
    const int32_t whole = outputs & ~3;
    const int32_t bytes = wide != NULL ? QUAD_WIDE_BLOCK_BYTES : QUAD_BLOCK_BYTES;
    dense_tile_INPUT q = {numbers, out, in, (-(inputs / 4) & 3) * bytes, out + whole, in + inputs, weights};
    if (wide != NULL) {
        for (int32_t i = 0; i < inputs; ++i) {
            wide[(i & ~3) + (i & 1) * 2 + (i >> 1 & 1)] = in[i];
        }
        q.in = wide;
        q.in_end = wide + inputs;
    }
    if (whole > 0) {
        tile(&q);
    }
    if (whole < outputs) {
        input_t made[4];
        q.numbers += 3 * whole;
        q.weights += whole / 4 * inputs;
        q.out = made;
        q.out_end = made + 4;
        tile(&q);
        for (int32_t i = whole; i < outputs; ++i) {
            out[i] = made[i - whole];
        }
    }
    for (int32_t i = 0; i < (to->low > (INPUT_MIN) || to->high < (INPUT_MIN) + 255 ? outputs : 0); ++i) {
        out[i] = (input_t)clamped(out[i], to->low, to->high);
    }
}
