#pragma once
#include "../common/instance.h"
#include "../common/dot.h"
#include "../common/requantise.h"
#include "../common/epilogue.h"
#include "../common/rows.h"
/* DSP extension: rows of a depthwise convolution of 3x3, inputs read in place, for
   ROUND_TWICE_SMALL.

   Four channels of two pixels, or of one, at a time. ``outside``: a pixel of zero points that
   replaces pixels outside of the image. ``numbers`` of four channels, 30 words: twice their
   biases; twice the weights of each tap as halfwords, for the first and third channel, then for
   the second and fourth; the two numbers of ``epilogue.h`` of each channel. */
typedef struct {
    const input_t *taps[18]; /* of one pixel, then of the other: its last column, if they are near */
    input_t *out[2];
    int32_t channels;
    const int32_t *numbers;
} directed_INPUT;

/* ``two`` and ``one`` compute that many pixels; ``near``: two pixels whose columns are adjacent. */
typedef struct {
    int32_t width, out_width, channels, stride_x, left, low, high;
    void (*two)(const directed_INPUT *p);
    void (*one)(const directed_INPUT *p);
} direct_INPUT;

#if defined(__ARM_FEATURE_DSP)
/* A tap. r0: numbers, r1: the channel, r12 and lr: weights; the sums are in a, b, c, d. */
#define DIRECT_WEIGHTS(at) "ldrd r12, lr, [r0, #" at "]\n"
#define DIRECT_READ_INPUT(from) \
    "ldr r10, [sp, #" from "]\n ldr r11, [r10, r1]\n" \
    WIDENED_SIGN " r10, r11\n" WIDENED_SIGN " r11, r11, ror #8\n"
#define DIRECT_PRODUCTS(a, b, c, d) \
    "smlabb " a ", r10, r12, " a "\n smlabb " b ", r11, lr, " b "\n" \
    "smlatt " c ", r10, r12, " c "\n smlatt " d ", r11, lr, " d "\n"
#define DIRECT_TAP_INPUT(from, a, b, c, d) DIRECT_READ_INPUT(from) DIRECT_PRODUCTS(a, b, c, d)
#define DIRECT_FIRST_INPUT(from) DIRECT_TAP_INPUT(from, "r2", "r3", "r4", "r5")
#define DIRECT_SECOND_INPUT(from) DIRECT_TAP_INPUT(from, "r6", "r7", "r8", "r9")
#define DIRECT_NO_SECOND(from)
#define DIRECT_TAPS_INPUT(second) \
    DIRECT_WEIGHTS("0") DIRECT_FIRST_INPUT("0") second("36") \
    DIRECT_WEIGHTS("8") DIRECT_FIRST_INPUT("4") second("40") \
    DIRECT_WEIGHTS("16") DIRECT_FIRST_INPUT("8") second("44") \
    DIRECT_WEIGHTS("24") DIRECT_FIRST_INPUT("12") second("48") \
    DIRECT_WEIGHTS("32") DIRECT_FIRST_INPUT("16") second("52") \
    DIRECT_WEIGHTS("40") DIRECT_FIRST_INPUT("20") second("56") \
    DIRECT_WEIGHTS("48") DIRECT_FIRST_INPUT("24") second("60") \
    DIRECT_WEIGHTS("56") DIRECT_FIRST_INPUT("28") second("64") \
    DIRECT_WEIGHTS("64") DIRECT_FIRST_INPUT("32") second("68") \
    "add r0, r0, #72\n"
/* A row of two adjacent pixels, which share all columns except the first and the last. */
#define DIRECT_ROW_INPUT(w0, w1, w2, c0, c1, c2, c3) \
    DIRECT_WEIGHTS(w0) DIRECT_FIRST_INPUT(c0) \
    DIRECT_READ_INPUT(c1) DIRECT_PRODUCTS("r6", "r7", "r8", "r9") \
    DIRECT_WEIGHTS(w1) DIRECT_PRODUCTS("r2", "r3", "r4", "r5") \
    DIRECT_READ_INPUT(c2) DIRECT_PRODUCTS("r6", "r7", "r8", "r9") \
    DIRECT_WEIGHTS(w2) DIRECT_PRODUCTS("r2", "r3", "r4", "r5") \
    DIRECT_SECOND_INPUT(c3)
#define DIRECT_ROWS_INPUT \
    DIRECT_ROW_INPUT("0", "8", "16", "0", "4", "8", "44") \
    DIRECT_ROW_INPUT("24", "32", "40", "12", "16", "20", "56") \
    DIRECT_ROW_INPUT("48", "56", "64", "24", "28", "32", "68") \
    "add r0, r0, #72\n"
#define DIRECT_NUMBERS "ldm r0!, {r10, r11}\n asr r12, r11, #8\n lsl r12, r12, r11\n"
#define DIRECT_ROUNDED_INPUT(s, added) \
    "smmlar " s ", " s ", r10, " added "\n asr " s ", " s ", r11\n" \
    SATURATE_SIGN " " s ", #8, " s ", asr #1\n"
#define DIRECT_SIGNED_INPUT(s) "add lr, r12, " s ", asr #31\n" DIRECT_ROUNDED_INPUT(s, "lr")
#define DIRECT_POSITIVE_INPUT(s) DIRECT_ROUNDED_INPUT(s, "r12")
#define DIRECT_STORED(a, b, c, d, to) \
    "bfi " a ", " b ", #8, #8\n bfi " a ", " c ", #16, #8\n bfi " a ", " d ", #24, #8\n" \
    "ldr r10, [sp, #" to "]\n str " a ", [r10, r1]\n"
#define DIRECT_BEGIN \
    "push {r4-r11, lr}\n sub sp, sp, #84\n mov r12, sp\n" \
    "ldm r0!, {r1-r7}\n stm r12!, {r1-r7}\n" \
    "ldm r0!, {r1-r7}\n stm r12!, {r1-r7}\n" \
    "ldm r0!, {r1-r7}\n stm r12!, {r1-r7}\n" \
    "ldr r0, [r0]\n mov r1, #0\n 1:\n ldm r0!, {r2, r3, r4, r5}\n"
#define DIRECT_END \
    "add r1, r1, #4\n ldr r10, [sp, #80]\n cmp r1, r10\n bne.w 1b\n" \
    "add sp, sp, #84\n pop {r4-r11, pc}\n"
#define DIRECT_BOTH_INPUT(HOW, taps) \
    DIRECT_BEGIN \
    "mov r6, r2\n mov r7, r3\n mov r8, r4\n mov r9, r5\n" \
    taps \
    DIRECT_NUMBERS HOW("r2") HOW("r6") DIRECT_NUMBERS HOW("r3") HOW("r7") \
    DIRECT_NUMBERS HOW("r4") HOW("r8") DIRECT_NUMBERS HOW("r5") HOW("r9") \
    DIRECT_STORED("r2", "r3", "r4", "r5", "72") DIRECT_STORED("r6", "r7", "r8", "r9", "76") \
    DIRECT_END
#define DIRECT_ALONE_INPUT(HOW) \
    DIRECT_BEGIN \
    DIRECT_TAPS_INPUT(DIRECT_NO_SECOND) \
    DIRECT_NUMBERS HOW("r2") DIRECT_NUMBERS HOW("r3") \
    DIRECT_NUMBERS HOW("r4") DIRECT_NUMBERS HOW("r5") \
    DIRECT_STORED("r2", "r3", "r4", "r5", "72") \
    DIRECT_END
__attribute__((naked, noinline, unused)) static void direct_two_INPUT(
    __attribute__((unused)) const directed_INPUT *p)
{
    __asm volatile(DIRECT_BOTH_INPUT(DIRECT_SIGNED_INPUT, DIRECT_TAPS_INPUT(DIRECT_SECOND_INPUT)));
}
__attribute__((naked, noinline, unused)) static void direct_near_INPUT(
    __attribute__((unused)) const directed_INPUT *p)
{
    __asm volatile(DIRECT_BOTH_INPUT(DIRECT_SIGNED_INPUT, DIRECT_ROWS_INPUT));
}
__attribute__((naked, noinline, unused)) static void direct_one_INPUT(
    __attribute__((unused)) const directed_INPUT *p)
{
    __asm volatile(DIRECT_ALONE_INPUT(DIRECT_SIGNED_INPUT));
}
__attribute__((naked, noinline, unused)) static void direct_two_positive_INPUT(
    __attribute__((unused)) const directed_INPUT *p)
{
    __asm volatile(DIRECT_BOTH_INPUT(DIRECT_POSITIVE_INPUT, DIRECT_TAPS_INPUT(DIRECT_SECOND_INPUT)));
}
__attribute__((naked, noinline, unused)) static void direct_near_positive_INPUT(
    __attribute__((unused)) const directed_INPUT *p)
{
    __asm volatile(DIRECT_BOTH_INPUT(DIRECT_POSITIVE_INPUT, DIRECT_ROWS_INPUT));
}
__attribute__((naked, noinline, unused)) static void direct_one_positive_INPUT(
    __attribute__((unused)) const directed_INPUT *p)
{
    __asm volatile(DIRECT_ALONE_INPUT(DIRECT_POSITIVE_INPUT));
}
#else
INLINED void direct_pixels_INPUT(const directed_INPUT *p, int32_t pixels)
{
    const int32_t *q = p->numbers;
    for (int32_t c = 0; c < p->channels; ++c) {
        const int32_t i = c % 4;
        for (int32_t pixel = 0; pixel < pixels; ++pixel) {
            int32_t sum = q[i] / 2;
            for (int32_t t = 0; t < 9; ++t) {
                const uint32_t word = (uint32_t)q[4 + 2 * t + i % 2];
                const int16_t twice = (int16_t)(word >> (i / 2 * 16) & 0xffffu);
                sum += p->taps[9 * pixel + t][c] * (twice / 2);
            }
            p->out[pixel][c] = (input_t)rounded_SIGN(sum, q + 22 + 2 * i);
        }
        q += i == 3 ? 30 : 0;
    }
}
NOT_INLINED void direct_two_INPUT(const directed_INPUT *p) { direct_pixels_INPUT(p, 2); }
NOT_INLINED void direct_one_INPUT(const directed_INPUT *p) { direct_pixels_INPUT(p, 1); }
NOT_INLINED void direct_two_positive_INPUT(const directed_INPUT *p) { direct_pixels_INPUT(p, 2); }
NOT_INLINED void direct_near_INPUT(const directed_INPUT *p)
{
    directed_INPUT both = *p;
    for (int32_t t = 0; t < 9; t += 3) {
        both.taps[9 + t] = p->taps[t + 1];
        both.taps[10 + t] = p->taps[t + 2];
    }
    direct_pixels_INPUT(&both, 2);
}
NOT_INLINED void direct_near_positive_INPUT(const directed_INPUT *p) { direct_near_INPUT(p); }
NOT_INLINED void direct_one_positive_INPUT(const directed_INPUT *p) { direct_pixels_INPUT(p, 1); }
#endif

/* The three rows under the windows of a line; NULL rows have no width. */
typedef struct {
    const input_t *rows[3], *outside;
    uint32_t widths[3];
} under_INPUT;

/* Point at the taps of column ``x``, ``at`` elements from the start of the rows. */
INLINED void directed_at_INPUT(const under_INPUT *u, int32_t x, int32_t at, const input_t **taps)
{
    taps[0] = (uint32_t)x < u->widths[0] ? u->rows[0] + at : u->outside;
    taps[3] = (uint32_t)x < u->widths[1] ? u->rows[1] + at : u->outside;
    taps[6] = (uint32_t)x < u->widths[2] ? u->rows[2] + at : u->outside;
}

NOT_INLINED void depthwise_direct_INPUT(const direct_INPUT *d, const input_t *const *rows,
    const int32_t *numbers, const input_t *outside, input_t *out)
{
    const int32_t n = d->channels;
    const int32_t stride = d->stride_x;
    directed_INPUT p;
    under_INPUT u;
    for (int32_t ky = 0; ky < 3; ++ky) {
        u.rows[ky] = rows[ky];
        u.widths[ky] = rows[ky] != NULL ? (uint32_t)d->width : 0;
    }
    u.outside = outside;
    p.out[0] = out;
    p.channels = n;
    p.numbers = numbers;
    int32_t x = -d->left;
    int32_t at = x * n;
    for (int32_t left = d->out_width; left > 0; left -= 2) {
        directed_at_INPUT(&u, x, at, p.taps);
        directed_at_INPUT(&u, x + 1, at + n, p.taps + 1);
        directed_at_INPUT(&u, x + 2, at + 2 * n, p.taps + 2);
        if (left > 1) {
            x += stride;
            at += stride * n;
            if (stride != 1) {
                directed_at_INPUT(&u, x, at, p.taps + 9);
                directed_at_INPUT(&u, x + 1, at + n, p.taps + 10);
            }
            directed_at_INPUT(&u, x + 2, at + 2 * n, p.taps + 11);
            x += stride;
            at += stride * n;
            p.out[1] = p.out[0] + n;
            d->two(&p);
        } else {
            d->one(&p);
        }
        p.out[0] += 2 * n;
    }
    if (d->low > (INPUT_MIN) || d->high < (INPUT_MIN) + 255) {
        for (const input_t *const end = out + d->out_width * n; out != end; ++out) {
            *out = (input_t)clamped(*out, d->low, d->high);
        }
    }
}

/* All lines of a complete tensor. */
NOT_INLINED void depthwise_direct_lines_INPUT(const direct_INPUT *d, const lines_INPUT *l, const input_t *in,
    const int32_t *numbers, const input_t *outside, input_t *out)
{
    for (int32_t line = 0; line < l->out_height; ++line) {
        const input_t *rows[3];
        (void)point_INPUT(l, in, d->width * d->channels, line, rows);
        depthwise_direct_INPUT(d, rows, numbers, outside, out);
        out += d->out_width * d->channels;
    }
}
