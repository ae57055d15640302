#pragma once
#include "../common/instance.h"
#include "../common/dot.h"
#include "../common/requantise.h"
#include "../common/depthwise.h"
#include "../common/rows.h"
/* MVE: depthwise convolutions of 3x3, 16 channels at a time, INPUT inputs.

   Products, and sums of two products, have 16 bits: weights are never -128, and unsigned inputs
   are converted to signed ones. The 32-bit sums are vectors of every fourth channel. The numbers
   of 16 channels: 9 times 16 weights; the biases of every fourth channel, starting from the first,
   third, second and fourth; multipliers in the same order; shifts, one byte each. The number of
   channels is a multiple of four. */
typedef struct {
    int32_t pixels, channels;
    const int8_t *weights;
    const int32_t *numbers;
    int32_t moves; /* whether any of the steps is not 0 */
    int32_t zero_point;
    int32_t back; /* from the result's channels, in whole vectors, to its next pixel */
    int32_t steps[3]; /* in each row, from a pixel's channels, in whole vectors, to those of the next */
    const input_t *taps[9];
    uint8_t *out;
} nine_taps_FORMAT;

#if defined(__ARM_FEATURE_MVE)
#if INPUT_SIGNED
#define SIGNED_FORMAT(q)
#define PREPARE_FORMAT
#define ZERO_POINT_FORMAT
#define NARROW_FORMAT "vqmovnb.s16 q4, q4\n\tvqmovnt.s16 q4, q6\n\t"
#define OFFSET_FORMAT "ldr r7, [sp, #20]\n\t"
#else
#define SIGNED_FORMAT(q) "vadd.i8 " q ", " q ", r7\n\t"
#define OFFSET_FORMAT "movs r7, #128\n\t"
#define ZERO_POINT_FORMAT "ldr r7, [sp, #20]\n\t"
#define PREPARE_FORMAT OFFSET_FORMAT
#define NARROW_FORMAT "vqmovunb.s16 q4, q4\n\tvqmovunt.s16 q4, q6\n\t"
#endif
#define TAP(q, t) "vldrb.8 " q ", [" t "], #16\n\t"
#define SAME_TAP(q, t) "vldrb.8 " q ", [" t "]\n\t"
#define WEIGHTS(q) "vldrb.8 " q ", [r11], #16\n\t"
#define ONE_TAP_FORMAT(t) \
    TAP("q0", t) \
    SIGNED_FORMAT("q0") \
    WEIGHTS("q1") \
    "vmullb.s8 q2, q0, q1\n\tvmullt.s8 q3, q0, q1\n\t" \
    "vmovlb.s16 q4, q2\n\tvmovlt.s16 q5, q2\n\tvmovlb.s16 q6, q3\n\tvmovlt.s16 q7, q3\n\t"
#define TWO_TAPS_FORMAT(s, t) \
    TAP("q0", s) \
    SIGNED_FORMAT("q0") \
    WEIGHTS("q1") \
    "vmullb.s8 q2, q0, q1\n\tvmullt.s8 q3, q0, q1\n\t" \
    SAME_TAP("q0", t) \
    SIGNED_FORMAT("q0") \
    WEIGHTS("q1") \
    "vmullb.s8 q0, q0, q1\n\tvadd.i16 q2, q2, q0\n\t" \
    TAP("q0", t) \
    SIGNED_FORMAT("q0") \
    "vmullt.s8 q0, q0, q1\n\tvadd.i16 q3, q3, q0\n\t" \
    "vmovlb.s16 q0, q2\n\tvadd.i32 q4, q4, q0\n\tvmovlt.s16 q2, q2\n\tvadd.i32 q5, q5, q2\n\t" \
    "vmovlb.s16 q1, q3\n\tvadd.i32 q6, q6, q1\n\tvmovlt.s16 q3, q3\n\tvadd.i32 q7, q7, q3\n\t"
/* Halves are rounded away from 0. If results are clamped at the zero point, the rounding of
   negative sums does not matter. */
#define AWAY_FROM_0(q) "vshr.s32 q3, " q ", #31\n\tvadd.i32 " q ", " q ", q3\n\t"
#define HALF_UP(q)
#define REQUANTISED(q, shifts, half) \
    "vldrw.32 q0, [r6], #16\n\tvldrw.32 q1, [r6, #48]\n\tvldrb.s32 q2, [r6, #" shifts "]\n\t" \
    "vadd.i32 " q ", " q ", q0\n\tvqrdmulh.s32 " q ", " q ", q1\n\t" \
    half(q) \
    "vrshl.s32 " q ", " q ", q2\n\t"

/* Pixels of a line whose taps advance together. */
#define NINES_FORMAT(half) \
    __asm volatile("push {r7}\n\t" \
                   "ldm r0!, {r1, r2, r3, r4, r5, r6, r8, r9, r10, r12}\n\t" \
                   "push {r1, r2, r3, r4, r5, r6, r8, r9, r10, r12}\n\t" \
                   OFFSET_FORMAT \
                   "ldr r12, [r0, #36]\n\t" \
                   "ldr r8, [r0, #24]\n\t" \
                   "ldr r9, [r0, #28]\n\t" \
                   "ldr r10, [r0, #32]\n\t" \
                   "ldm r0, {r0, r1, r2, r3, r4, r5}\n" \
                   "1:\n\t" \
                   "ldrd lr, r11, [sp, #4]\n\t" \
                   "ldr r6, [sp, #12]\n\t" \
                   "dlstp.8 lr, lr\n" \
                   "2:\n\t" \
                   ONE_TAP_FORMAT("r0") \
                   TWO_TAPS_FORMAT("r1", "r2") \
                   TWO_TAPS_FORMAT("r3", "r4") \
                   TWO_TAPS_FORMAT("r5", "r8") \
                   TWO_TAPS_FORMAT("r9", "r10") \
                   REQUANTISED("q4", "112", half) \
                   REQUANTISED("q5", "100", half) \
                   REQUANTISED("q6", "88", half) \
                   REQUANTISED("q7", "76", half) \
                   ZERO_POINT_FORMAT \
                   "vqmovnb.s32 q4, q4\n\t" \
                   "vqmovnt.s32 q4, q5\n\t" \
                   "vqmovnb.s32 q6, q6\n\t" \
                   "vqmovnt.s32 q6, q7\n\t" \
                   "vqadd.s16 q4, q4, r7\n\t" \
                   "vqadd.s16 q6, q6, r7\n\t" \
                   PREPARE_FORMAT \
                   NARROW_FORMAT \
                   "vstrb.8 q4, [r12], #16\n\t" \
                   "adds r6, #80\n\t" \
                   "letp lr, 2b\n\t" \
                   "ldr lr, [sp]\n\t" \
                   "subs lr, lr, #1\n\t" \
                   "str lr, [sp]\n\t" \
                   "beq 3f\n\t" \
                   "ldr r11, [sp, #24]\n\t" \
                   "ldr lr, [sp, #16]\n\t" \
                   "sub r12, r12, r11\n\t" \
                   "cmp lr, #0\n\t" \
                   "beq 1b\n\t" \
                   "ldr lr, [sp, #28]\n\t" \
                   "add r0, lr\n\t" \
                   "add r1, lr\n\t" \
                   "add r2, lr\n\t" \
                   "ldr lr, [sp, #32]\n\t" \
                   "add r3, lr\n\t" \
                   "add r4, lr\n\t" \
                   "add r5, lr\n\t" \
                   "ldr lr, [sp, #36]\n\t" \
                   "add r8, lr\n\t" \
                   "add r9, lr\n\t" \
                   "add r10, lr\n\t" \
                   "b 1b\n" \
                   "3:\n\t" \
                   "add sp, #40\n\t" \
                   "pop {r7}" \
                   : "+r"(r0) \
                   : \
                   : "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", \
                   "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory")

NOT_INLINED void depthwise_3x3_FORMAT(const nine_taps_FORMAT *n)
{
    register const nine_taps_FORMAT *r0 __asm("r0") = n;
    NINES_FORMAT(AWAY_FROM_0);
}
NOT_INLINED void depthwise_3x3_positive_FORMAT(const nine_taps_FORMAT *n)
{
    register const nine_taps_FORMAT *r0 __asm("r0") = n;
    NINES_FORMAT(HALF_UP);
}
#else
NOT_INLINED void depthwise_3x3_FORMAT(const nine_taps_FORMAT *n)
{
    static const int32_t order[4] = {0, 2, 1, 3};
    const int32_t vectors = (n->channels + 15) / 16 * 16;
    const requantisation to = {
        n->zero_point, (INPUT_MIN), (INPUT_MIN) + 255, ROUND_TWICE_SMALL, 1};
    for (int32_t pixel = 0; pixel < n->pixels; ++pixel) {
        uint8_t *const out = n->out + pixel * (vectors - n->back);
        for (int32_t c = 0; c < n->channels; ++c) {
            const int8_t *const w = n->weights + c / 16 * 144 + c % 16;
            const int32_t *const numbers = n->numbers + c / 16 * 36;
            const int32_t at = order[c % 4] * 4 + c % 16 / 4;
            int32_t sum = numbers[at];
            for (int32_t tap = 0; tap < 9; ++tap) {
                const int32_t x = n->taps[tap][pixel * (vectors + n->steps[tap / 3]) + c];
                sum += (INPUT_SIGNED ? x : x - 128) * w[16 * tap];
            }
            const int8_t shift = ((const int8_t *)(const void *)(numbers + 32))[at];
            out[c] = (uint8_t)requantised(&to, sum, numbers[16 + at], shift);
        }
    }
}
NOT_INLINED void depthwise_3x3_positive_FORMAT(const nine_taps_FORMAT *n) { depthwise_3x3_FORMAT(n); }
#endif

typedef void (*summed_depthwise_3x3_FORMAT)(const nine_taps_FORMAT *n);

/* Point the taps of ``line`` at the pixels under the window at ``x0``; rows advance by ``step``,
   padding rows do not. */
INLINED void nine_under_FORMAT(const depthwise_FORMAT *d, const input_t *const *rows, const input_t *outside,
    int32_t x0, int32_t step, nine_taps_FORMAT *line)
{
    const int32_t n = d->channels;
    const int32_t reach = d->dilation_x;
    const uint32_t width = (uint32_t)d->width;
    const bool in0 = (uint32_t)x0 < width;
    const bool in1 = (uint32_t)(x0 + reach) < width;
    const bool in2 = (uint32_t)(x0 + 2 * reach) < width;
    const int32_t first = x0 * n;
    const int32_t second = first + reach * n;
    const int32_t third = second + reach * n;
    const input_t **taps = line->taps;
    line->moves = step;
    for (int32_t ky = 0; ky < 3; ++ky) {
        const input_t *const row = rows[ky];
        taps[0] = taps[1] = taps[2] = outside;
        if (row == NULL) {
            line->steps[ky] = line->moves = -((line->channels + 15) / 16 * 16);
        } else {
            line->steps[ky] = step;
            taps[0] = in0 ? row + first : outside;
            taps[1] = in1 ? row + second : outside;
            taps[2] = in2 ? row + third : outside;
        }
        taps += 3;
    }
}

/* A line. Eight channels of two contiguous pixels are computed as 16 channels; ``outside`` then
   holds two pixels. */
NOT_INLINED void depthwise_3x3_line_FORMAT(const depthwise_FORMAT *d, summed_depthwise_3x3_FORMAT sum,
    const input_t *const *rows, const int8_t *weights, const int32_t *numbers,
    const input_t *outside, uint8_t *out)
{
    const int32_t n = d->channels;
    const int32_t stride = d->stride_x;
    const int32_t last = d->width - 1 - 2 * d->dilation_x;
    nine_taps_FORMAT line;
    line.weights = weights;
    line.numbers = numbers;
    line.zero_point = d->to.zero_point;
    line.out = out;
    int32_t x0 = -d->left;
    for (int32_t left = d->out_width; left > 0;) {
        int32_t made = 1;
        if (x0 >= 0 && x0 <= last) {
            made = min_i32((last - x0) / stride + 1, left);
        }
        line.pixels = made;
        line.channels = n;
        if (n == 8 && stride == 1 && made > 1) {
            made -= made % 2;
            line.pixels = made / 2;
            line.channels = 16;
        }
        const int32_t vectors = (line.channels + 15) / 16 * 16;
        line.back = vectors - line.channels;
        nine_under_FORMAT(d, rows, outside, x0, stride * line.channels - vectors, &line);
        sum(&line);
        line.out += made * n;
        x0 += made * stride;
        left -= made;
    }
}

/* All lines of a complete tensor; ``rows`` holds the rows under a window. */
NOT_INLINED void depthwise_3x3_lines_FORMAT(const depthwise_FORMAT *d, summed_depthwise_3x3_FORMAT sum,
    const lines_INPUT *l, const input_t *in, const int8_t *weights, const int32_t *numbers,
    const input_t *outside, uint8_t *out, const input_t **rows)
{
    for (int32_t line = 0; line < l->out_height; ++line) {
        (void)point_INPUT(l, in, d->width * d->channels, line, rows);
        depthwise_3x3_line_FORMAT(d, sum, rows, weights, numbers, outside, out);
        out += d->out_width * d->channels;
    }
}
