#pragma once
#include "instance.h"
#include "epilogue.h"
/* Depthwise convolutions of 3x3, one channel at a time, for ROUND_TWICE_SMALL.

   The rows of a channel are copied and widened to 16 bits, into a plane with borders of zero
   points: two taps of a row are one word. ``depthwise_3x3_planes_dsp`` or ``plane_taps.h``
   computes lines of the result from the plane. The plane holds all rows, or the rows of some lines
   of the result; then the rows that the next lines also read move up. ``numbers`` of a channel:
   twice the bias, the multiplier, and three words of weights, one per row; the last byte of each
   word is a byte of the second number of ``epilogue.h``, the lowest byte first. */

/* Lines of the result that are computed from the plane; offsets and sizes in bytes. */
typedef struct {
    const int32_t *numbers;
    input_t *out;
    const int16_t *plane;
    int32_t pitch, two_pitches, channels;
    int32_t grouped; /* bytes of the plane that the groups of four results of a line cover */
    int32_t onwards; /* bytes from the end of a line to the next line */
    int32_t rest;    /* results of a line after the groups of four */
    int32_t lines;
} plane_INPUT;

typedef struct {
    int32_t height, width, channels, out_height, out_width;
    int32_t stride_x, stride_y, top, left;
    int32_t plane_rows, pitch; /* in elements: a multiple of four */
    int32_t input_zero, low, high;
    int32_t offset; /* is added to inputs in the plane; the biases compensate for it */
    void (*make)(const plane_INPUT *p);
} planes_INPUT;

INLINED void plane_lines_INPUT(const plane_INPUT *p, int32_t stride)
{
    const int32_t width = p->grouped / (2 * stride) + p->rest;
    const int8_t *const weights = (const int8_t *)(const void *)(p->numbers + 2);
    const int32_t twice = weights[11] * 256 + (uint8_t)weights[7];
    const int32_t numbers[2] = {p->numbers[1], twice * 256 + weights[3]};
    input_t *out = p->out;
    for (int32_t line = 0; line < p->lines; ++line) {
        for (int32_t i = 0; i < width; ++i) {
            const int16_t *at = p->plane + line * (p->onwards / 2 + width * stride) + i * stride;
            int32_t sum = p->numbers[0] / 2;
            for (int32_t ky = 0; ky < 3; ++ky) {
                for (int32_t kx = 0; kx < 3; ++kx) {
                    sum += at[kx] * weights[4 * ky + kx];
                }
                at += p->pitch / 2;
            }
            *out = (input_t)rounded_SIGN(sum, numbers);
            out += p->channels;
        }
    }
}

/* Copy of rows of a channel into the plane, ``count`` inputs of each; offsets in bytes. */
typedef struct {
    const input_t *from;
    int16_t *to;
    int32_t rows, channels, grouped, rest, on_from, on_to;
    int32_t offset;
} filled_INPUT;

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2
__attribute__((naked, noinline, unused)) static void fill_plane_INPUT(
    __attribute__((unused)) const filled_INPUT *f)
{
    __asm volatile(
        "push {r4-r11, lr}\n"
        "ldm r0!, {r1, r2, r12}\n"
        "ldr r3, [r0], #4\n"
        "lsl r4, r3, #1\n"
        "add r5, r4, r3\n"
        "1:\n"
        "ldrd lr, r6, [r0]\n"
        "cmp lr, #0\n"
        "beq 3f\n"
        "2:\n"
        LOADED_SIGN " r8, [r1]\n"
        LOADED_SIGN " r9, [r1, r3]\n"
        LOADED_SIGN " r10, [r1, r4]\n"
        LOADED_SIGN " r11, [r1, r5]\n"
        "add r1, r1, r3, lsl #2\n"
        "strh r8, [r2], #2\n"
        "strh r9, [r2], #2\n"
        "strh r10, [r2], #2\n"
        "strh r11, [r2], #2\n"
        "subs lr, lr, #1\n"
        "bne 2b\n"
        "3:\n"
        "cbz r6, 5f\n"
        "4:\n"
        LOADED_SIGN " r8, [r1]\n"
        "add r1, r1, r3\n"
        "strh r8, [r2], #2\n"
        "subs r6, r6, #1\n"
        "bne 4b\n"
        "5:\n"
        "ldrd r8, r9, [r0, #8]\n"
        "add r1, r1, r8\n"
        "add r2, r2, r9\n"
        "subs r12, r12, #1\n"
        "bne 1b\n"
        "pop {r4-r11, pc}\n");
}
#elif defined(__ARM_ARCH_ISA_THUMB)
#define FILL_UNSIGNED_int8 "adds r5, #128\n uxtb r5, r5\n"
#define FILL_UNSIGNED_uint8
#define FILL_ONE_INPUT "ldrb r5, [r1]\n adds r1, r1, r3\n" FILL_UNSIGNED_INPUT
__attribute__((naked, noinline, unused)) static void fill_plane_INPUT(
    __attribute__((unused)) const filled_INPUT *f)
{
    __asm volatile(
        ".syntax unified\n"
        "push {r4-r7, lr}\n"
        "ldm r0!, {r1, r2, r4}\n"
        "ldr r3, [r0]\n"
        "mov r12, r4\n"
        "1:\n"
        "ldr r6, [r0, #4]\n"
        "ldr r7, [r0, #8]\n"
        "cmp r6, #0\n"
        "beq 3f\n"
        "2:\n"
        FILL_ONE_INPUT "strh r5, [r2]\n"
        FILL_ONE_INPUT "strh r5, [r2, #2]\n"
        FILL_ONE_INPUT "strh r5, [r2, #4]\n"
        FILL_ONE_INPUT "strh r5, [r2, #6]\n"
        "adds r2, #8\n"
        "subs r6, #1\n"
        "bne 2b\n"
        "3:\n"
        "cmp r7, #0\n"
        "beq 5f\n"
        "4:\n"
        FILL_ONE_INPUT "strh r5, [r2]\n"
        "adds r2, #2\n"
        "subs r7, #1\n"
        "bne 4b\n"
        "5:\n"
        "ldr r5, [r0, #12]\n"
        "adds r1, r1, r5\n"
        "ldr r5, [r0, #16]\n"
        "adds r2, r2, r5\n"
        "mov r5, r12\n"
        "subs r5, #1\n"
        "mov r12, r5\n"
        "bne 1b\n"
        "pop {r4-r7, pc}\n");
}
#else
NOT_INLINED void fill_plane_INPUT(const filled_INPUT *f)
{
    const input_t *from = f->from;
    int16_t *to = f->to;
    for (int32_t row = 0; row < f->rows; ++row) {
        for (int32_t i = 0; i < 4 * f->grouped + f->rest; ++i) {
            *to++ = (int16_t)(*from + f->offset);
            from += f->channels;
        }
        from += f->on_from;
        to += f->on_to / 2;
    }
}
#endif
