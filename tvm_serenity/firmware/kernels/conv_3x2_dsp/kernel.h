#pragma once
#include "../common/instance.h"
#include "../common/dot.h"
#include "../common/requantise.h"
#include "../common/convolution.h"
#include "../common/epilogue.h"
#include "im2col.h"
/* DSP extension: two channels of three windows of INPUT at a time, for ROUND_TWICE_SMALL and
   ROUND_ONCE_SMALL.

   A halfword of weights is 256 a + b, for the channels a and b of one input. Its sums are T = 256
   A + B, which may wrap; the low byte of the halfword gives B, and A is (T - B) / 256, exactly,
   because |A| < 2^23 is verified at build time. Inputs are widened to 16 bits once for all
   channels: a block of four has the even inputs of each window, then the odd inputs of each. The
   blocks are those of a window's rows; the remainders of all rows follow the blocks, in pairs of
   each window.

   ``weights`` of a pair of channels: the bias of T, the bias of B, the words of weights, then the
   two numbers of ``epilogue.h`` of a and of b.

   ``second`` and ``third``: the distances of the results of the second and third window from
   ``out``. */
typedef struct {
    const int16_t *wide;
    int32_t skipped; /* bytes of code: blocks that are not a multiple of those in the loop */
    const input_t *out_end;
    int32_t second, third;
    input_t *out;
    const int16_t *wide_end;
    const int32_t *weights;
} tile_3x2_INPUT;

typedef struct three_windows_INPUT three_windows_INPUT;
typedef struct {
    int32_t tail; /* where in wide inputs what is no whole block of a row begins */
    bool flat;    /* windows are contiguous pixels of complete blocks */
    bool lined;   /* windows are rows of one tensor, or complete blocks of rows */
    int32_t onwards; /* from the rows under the windows of a line to those of the next */
    void (*line)(const three_windows_INPUT *t, window_INPUT from); /* widens three windows of a line */
    void (*three)(const tile_3x2_INPUT *t);
} three_windows_form_INPUT;
struct three_windows_INPUT {
    const convolution_INPUT *c;
    const three_windows_form_INPUT *how;
    const int32_t *weights;
    const input_t *outside; /* a row of a window */
    int16_t *wide;
};

#if defined(__ARM_FEATURE_DSP)
#define THREE_BLOCK_BYTES 68
#define THREE_PRODUCTS(w) \
    "smlad r0, r6, " w ", r0\n smlad r1, r7, " w ", r1\n smlad r2, r8, " w ", r2\n" \
    "sxtb16 " w ", " w "\n" \
    "smlad r3, r6, " w ", r3\n smlad r4, r7, " w ", r4\n smlad r5, r8, " w ", r5\n"
/* Requantise ``s``, which holds twice a sum; r7: multiplier, r8: shift, r9: the rounding constant,
   with the sign or without. */
#define THREE_ROUNDED_INPUT(high, s, added) \
    high " " s ", " s ", r7, " added "\n asr " s ", " s ", r8\n" \
    SATURATE_SIGN " " s ", #8, " s ", asr #1\n"
#define THREE_SIGNED_INPUT(s, doubled) \
    "add r6, r9, " s ", asr #31\n" doubled THREE_ROUNDED_INPUT("smmlar", s, "r6")
#define THREE_POSITIVE_INPUT(s, doubled) doubled THREE_ROUNDED_INPUT("smmlar", s, "r9")
#define THREE_ONCE_INPUT(s, doubled) doubled THREE_ROUNDED_INPUT("smmla", s, "r9")
#define THREE_FIRST(HOW, s, b) "sub " s ", " s ", " b "\n" HOW(s, "asr " s ", " s ", #7\n")
#define THREE_SECOND(HOW, s) HOW(s, "lsl " s ", " s ", #1\n")
/* All channels of three windows. Later results overwrite earlier ones: if there are fewer than
   three windows, the missing ones have the address of the last one. */
#define THREE_WINDOWS_INPUT(HOW) \
    "push {r4-r11, lr}\n" \
    "sub sp, sp, #24\n" \
    "ldm r0, {r1, r2, r3, r4, r5, r6, r7, r8}\n" \
    "mov lr, r7\n" \
    "mov r12, r8\n" \
    "adr r0, 2f\n" \
    "add r2, r2, r0\n" \
    "add r2, r2, #1\n" \
    "mov r0, sp\n" \
    "stm r0, {r1-r6}\n" \
    "1:\n" \
    "ldm r12!, {r0, r3}\n" \
    "mov r1, r0\n" \
    "mov r2, r0\n" \
    "mov r4, r3\n" \
    "mov r5, r3\n" \
    "ldm sp, {r11, pc}\n" \
    ".balign 4\n" \
    "2:\n" \
    ".rept 8\n" \
    "ldrd r9, r10, [r12], #8\n" \
    "ldm.w r11!, {r6, r7, r8}\n" \
    THREE_PRODUCTS("r9") \
    "ldm.w r11!, {r6, r7, r8}\n" \
    THREE_PRODUCTS("r10") \
    ".endr\n" \
    "cmp r11, lr\n" \
    "bne.w 2b\n" \
    "ldm r12!, {r7, r8}\n asr r9, r8, #8\n lsl r9, r9, r8\n" \
    THREE_FIRST(HOW, "r0", "r3") \
    THREE_FIRST(HOW, "r1", "r4") \
    THREE_FIRST(HOW, "r2", "r5") \
    "ldm r12!, {r7, r8}\n asr r9, r8, #8\n lsl r9, r9, r8\n" \
    THREE_SECOND(HOW, "r3") \
    THREE_SECOND(HOW, "r4") \
    THREE_SECOND(HOW, "r5") \
    "ldrd r6, r7, [sp, #8]\n" \
    "ldrd r8, r11, [sp, #16]\n" \
    "strb r2, [r11, r8]\n" \
    "strb r1, [r11, r7]\n" \
    "strb r0, [r11], #1\n" \
    "strb r5, [r11, r8]\n" \
    "strb r4, [r11, r7]\n" \
    "strb r3, [r11], #1\n" \
    "str r11, [sp, #20]\n" \
    "cmp r11, r6\n" \
    "bne.w 1b\n" \
    "add sp, sp, #24\n" \
    "pop {r4-r11, pc}\n"
__attribute__((naked, noinline, unused)) static void tile_3x2_twice_INPUT(
    __attribute__((unused)) const tile_3x2_INPUT *t)
{
    __asm volatile(THREE_WINDOWS_INPUT(THREE_SIGNED_INPUT));
}
__attribute__((naked, noinline, unused)) static void tile_3x2_positive_INPUT(
    __attribute__((unused)) const tile_3x2_INPUT *t)
{
    __asm volatile(THREE_WINDOWS_INPUT(THREE_POSITIVE_INPUT));
}
__attribute__((naked, noinline, unused)) static void tile_3x2_once_INPUT(
    __attribute__((unused)) const tile_3x2_INPUT *t)
{
    __asm volatile(THREE_WINDOWS_INPUT(THREE_ONCE_INPUT));
}
#else
#define THREE_BLOCK_BYTES 0
INLINED void tile_3x2_of_INPUT(const tile_3x2_INPUT *t, bool once)
{
    const int32_t depth = (int32_t)(t->wide_end - t->wide) / 3;
    const int32_t channels = (int32_t)(t->out_end - t->out);
    const int32_t to[3] = {0, t->second, t->third};
    for (int32_t at = 2; at >= 0; --at) {
        const int32_t *bias = t->weights;
        for (int32_t o = 0; o < channels; o += 2) {
            const int16_t *const w = (const int16_t *)(const void *)(bias + 2);
            const int32_t *const n = bias + 2 + depth / 2;
            uint32_t both = (uint32_t)bias[0];
            int32_t second = bias[1];
            for (int32_t i = 0; i < depth; ++i) {
                const int32_t x = t->wide[i / 2 * 6 + i % 2 + 2 * at];
                both += (uint32_t)(x * w[i]);
                second += x * (int8_t)w[i];
            }
            const int32_t first = (int32_t)(both - (uint32_t)second) >> 8;
            input_t *const out = t->out + to[at] + o;
            out[0] = (input_t)(once ? once_SIGN(first, n) : rounded_SIGN(first, n));
            out[1] = (input_t)(once ? once_SIGN(second, n + 2) : rounded_SIGN(second, n + 2));
            bias = n + 4;
        }
    }
}
NOT_INLINED void tile_3x2_twice_INPUT(const tile_3x2_INPUT *t) { tile_3x2_of_INPUT(t, false); }
NOT_INLINED void tile_3x2_positive_INPUT(const tile_3x2_INPUT *t) { tile_3x2_of_INPUT(t, false); }
NOT_INLINED void tile_3x2_once_INPUT(const tile_3x2_INPUT *t) { tile_3x2_of_INPUT(t, true); }
#endif

/* Widen one of three windows. */
NOT_INLINED void widen_window_INPUT(
    const three_windows_INPUT *t, window_INPUT from, int16_t *to, widening_INPUT *w)
{
    const convolution_INPUT *const c = t->c;
    const bool inside =
        c->dilation_x == 1 && from.x >= 0 && from.x + c->kernel_width <= c->width;
    int16_t *const tail = to + t->how->tail;
    int32_t left = 0;
    for (int32_t p = 0; p < c->pieces; ++p) {
        const int32_t n = c->channels[p];
        const int32_t count = c->kernel_width * n;
        w->rows = from.rows;
        w->offset = from.x * n;
        w->to = to;
        w->tail = tail + (left >> 1) * 6 + (left & 1);
        w->left = count & 3;
        w->whole = count & ~3;
        from.rows += c->kernel_height;
        w->rows_end = from.rows;
        w->step = (left & 1) != 0 ? 10 : 2;
        left += c->kernel_height * w->left;
        to += 3 * c->kernel_height * w->whole;
        if (inside) {
            widen_rows_INPUT(w);
        } else if (n % 4 != 0) {
            widen_edge_INPUT(c, w, from.x, n);
        } else {
            widen_border_INPUT(c, w, from.x, n);
        }
    }
}

/* Widen three windows of a line of one tensor. */
NOT_INLINED void widen_line_INPUT(const three_windows_INPUT *t, window_INPUT from)
{
    const convolution_INPUT *const c = t->c;
    const int32_t n = c->channels[0];
    const int32_t count = c->kernel_width * n;
    const widening_three_INPUT w = {from.rows, from.x * n, c->stride_x * n, t->wide,
        2 * c->stride_x * n, count & ~3, from.rows + c->kernel_height, count & 3,
        t->wide + t->how->tail, 2};
    widen_three_rows_INPUT(&w);
}

/* The same for several tensors whose rows are complete blocks. */
NOT_INLINED void widen_pieces_INPUT(const three_windows_INPUT *t, window_INPUT from)
{
    const convolution_INPUT *const c = t->c;
    widening_three_INPUT w = {from.rows, 0, 0, t->wide, 0, 0, from.rows, 0, t->wide, 2};
    for (int32_t p = 0; p < c->pieces; ++p) {
        const int32_t n = c->channels[p];
        w.rows = w.rows_end;
        w.rows_end += c->kernel_height;
        w.offset = from.x * n;
        w.stride = c->stride_x * n;
        w.two_strides = 2 * w.stride;
        w.whole = c->kernel_width * n;
        widen_three_rows_INPUT(&w);
        w.to += 3 * c->kernel_height * w.whole;
    }
}

/* Return whether three windows are inside of one line. */
INLINED bool in_line_INPUT(const convolution_INPUT *c, window_INPUT from)
{
    const int32_t last = from.x + 2 * c->stride_x;
    return from.x >= 0 && last + c->kernel_width <= c->width &&
        last < c->out_width * c->stride_x - c->left && from.rows[0] != NULL &&
        from.rows[c->kernel_height - 1] != NULL;
}

INLINED void next_window_INPUT(const three_windows_INPUT *t, window_INPUT *at)
{
    const convolution_INPUT *const c = t->c;
    at->x += c->stride_x;
    if (at->x == c->out_width * c->stride_x - c->left) {
        at->x = -c->left;
        at->rows += t->how->onwards;
    }
}

/* Compute ``pixels`` pixels of the result from the first line on. */
NOT_INLINED void convolve_three_windows_INPUT(
    const three_windows_INPUT *t, const input_t *const *rows, input_t *out, int32_t pixels)
{
    const convolution_INPUT *const c = t->c;
    const int32_t n = c->out_channels;
    const bool full = c->to.low == (INPUT_MIN) && c->to.high == (INPUT_MIN) + 255;
    window_INPUT at = {rows, -c->left};
    for (int32_t i = max_i32(t->how->tail, 3 * c->depth - 12); i < 3 * c->depth; ++i) {
        t->wide[i] = 0; /* the padding of the last inputs, whose weights are 0 */
    }
    const int32_t in = c->channels[0];
    const bool alone = c->pieces == 1 && c->dilation_x == 1;
    widening_INPUT one = {rows, 0, t->outside, t->wide, t->wide, c->kernel_width * in & 3,
        c->kernel_width * in & ~3, rows, 2, 0, 0};
    tile_3x2_INPUT three = {t->wide, 0, out, n, 2 * n, out, t->wide + 3 * c->depth, t->weights};
    three.skipped = (-(c->depth / 4) & 7) * THREE_BLOCK_BYTES;
    for (; pixels > 0; pixels -= 3) {
        const int32_t count = min_i32(pixels, 3);
        if (count == 3 && (t->how->flat || (t->how->lined && in_line_INPUT(c, at)))) {
            t->how->line(t, at);
            at.x += 2 * c->stride_x;
            next_window_INPUT(t, &at);
        } else {
            for (int16_t *to = t->wide; to != t->wide + 2 * count; to += 2) {
                if (alone && at.x >= 0 && at.x + c->kernel_width <= c->width) {
                    one.rows = at.rows;
                    one.rows_end = at.rows + c->kernel_height;
                    one.offset = at.x * in;
                    one.to = to;
                    one.tail = to + t->how->tail;
                    widen_rows_INPUT(&one);
                } else {
                    widen_window_INPUT(t, at, to, &one);
                }
                next_window_INPUT(t, &at);
            }
        }
        three.out = out;
        three.out_end = out + n;
        three.second = count > 1 ? n : 0;
        three.third = count > 2 ? 2 * n : three.second;
        t->how->three(&three);
        for (int32_t i = 0; i < (full ? 0 : count * n); ++i) {
            out[i] = (input_t)clamped(out[i], c->to.low, c->to.high);
        }
        out += count * n;
    }
}

/* Point at the rows under the windows of lines up to ``end``; with one tensor, rows that several
   lines read are listed once. */
NOT_INLINED void point_lines_INPUT(const three_windows_INPUT *t, const lines_INPUT *l, const input_t *const *pieces,
    int32_t line, int32_t end, const input_t **rows)
{
    const convolution_INPUT *const c = t->c;
    for (; line < end; ++line) {
        const input_t **to = rows;
        for (int32_t p = 0; p < c->pieces; ++p) {
            to = point_INPUT(l, pieces[p], c->width * c->channels[p], line, to);
        }
        rows += t->how->onwards;
    }
}

/* All lines of complete tensors, three at a time, so that groups of three windows span lines.

   ``rows`` holds the rows under the windows of three lines. */
NOT_INLINED void convolve_three_windows_lines_INPUT(const three_windows_INPUT *t, const lines_INPUT *l,
    const input_t *const *pieces, input_t *out, const input_t **rows)
{
    for (int32_t line = 0; line < l->out_height; line += 3) {
        const int32_t end = min_i32(line + 3, l->out_height);
        const int32_t pixels = (end - line) * t->c->out_width;
        point_lines_INPUT(t, l, pieces, line, end, rows);
        convolve_three_windows_INPUT(t, rows, out, pixels);
        out += pixels * t->c->out_channels;
    }
}
