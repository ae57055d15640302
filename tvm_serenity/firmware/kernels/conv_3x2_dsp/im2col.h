#pragma once
#include "../common/instance.h"
#include "../common/convolution.h"
#include "../common/epilogue.h"
/* DSP extension: copies INPUT inputs of windows, widened to 16 bits, for ``kernel.h``.

   The rows under a window are read from ``offset`` inputs on; ``outside`` replaces NULL rows.
   ``whole`` inputs of each row are complete blocks. The ``left`` remaining inputs go to ``tail``
   as halfwords, ``step`` and 12 - step bytes apart in turn. At an edge ``length`` inputs are
   inside; all numbers count from the first input inside, ``first`` (0 or less) is the start of the
   window, and ``left`` the end of a row. */
typedef struct {
    const input_t *const *rows;
    int32_t offset;
    const input_t *outside;
    int16_t *to, *tail;
    int32_t left, whole;
    const input_t *const *rows_end;
    int32_t step;
    int32_t first, length;
} widening_INPUT;

/* The same for three windows, ``stride`` inputs apart, without NULL rows. */
typedef struct {
    const input_t *const *rows;
    int32_t offset, stride;
    int16_t *to;
    int32_t two_strides, whole;
    const input_t *const *rows_end;
    int32_t left;
    int16_t *tail;
    int32_t step;
} widening_three_INPUT;

#if defined(__ARM_FEATURE_DSP)
__attribute__((naked, noinline, unused)) static void widen_rows_INPUT(
    __attribute__((unused)) const widening_INPUT *w)
{
    __asm volatile(
        "push {r4-r11, lr}\n"
        "ldm r0, {r1-r8, r12}\n"
        "1:\n"
        "ldr r9, [r1], #4\n"
        "cmp r9, #0\n"
        "ite ne\n addne r9, r9, r2\n moveq r9, r3\n"
        "cbz r7, 3f\n"
        "add r10, r9, r7\n"
        "2:\n"
        "ldr r11, [r9], #4\n"
        WIDENED_SIGN " lr, r11\n"
        WIDENED_SIGN " r11, r11, ror #8\n"
        "str lr, [r4]\n"
        "str r11, [r4, #12]\n"
        "add r4, r4, #24\n"
        "cmp r9, r10\n"
        "bne 2b\n"
        "3:\n"
        "cbz r6, 5f\n"
        "add r10, r9, r6\n"
        "4:\n"
        LOADED_SIGN " r11, [r9], #1\n"
        "strh r11, [r5]\n"
        "add r5, r5, r12\n"
        "rsb r12, r12, #12\n"
        "cmp r9, r10\n"
        "bne 4b\n"
        "5:\n"
        "cmp r1, r8\n"
        "bne 1b\n"
        "pop {r4-r11, pc}\n");
}
#define WIDEN_EDGE_INPUT \
    "cmp r10, lr\n ite lo\n " LOADED_SIGN "lo r11, [r9, r10]\n movhs r11, r3\n add r10, r10, #1\n"
__attribute__((naked, noinline, unused)) static void widen_edges_INPUT(
    __attribute__((unused)) const widening_INPUT *w)
{
    __asm volatile(
        "push {r4-r11, lr}\n"
        "ldm r0, {r1-r8, r12}\n"
        LOADED_SIGN " r3, [r3]\n"
        "1:\n"
        "ldr r9, [r1], #4\n"
        "ldrd r10, lr, [r0, #36]\n"
        "cmp r9, #0\n"
        "it eq\n moveq lr, #0\n"
        "add r9, r9, r2\n"
        "b 3f\n"
        "2:\n"
        WIDEN_EDGE_INPUT "strh r11, [r4]\n"
        WIDEN_EDGE_INPUT "strh r11, [r4, #12]\n"
        WIDEN_EDGE_INPUT "strh r11, [r4, #2]\n"
        WIDEN_EDGE_INPUT "strh r11, [r4, #14]\n"
        "add r4, r4, #24\n"
        "3:\n"
        "cmp r10, r7\n"
        "bne 2b\n"
        "b 5f\n"
        "4:\n"
        WIDEN_EDGE_INPUT "strh r11, [r5]\n"
        "add r5, r5, r12\n"
        "rsb r12, r12, #12\n"
        "5:\n"
        "cmp r10, r6\n"
        "bne 4b\n"
        "cmp r1, r8\n"
        "bne 1b\n"
        "pop {r4-r11, pc}\n");
}
__attribute__((naked, noinline, unused)) static void widen_three_rows_INPUT(
    __attribute__((unused)) const widening_three_INPUT *w)
{
    __asm volatile(
        "push {r4-r11, lr}\n"
        "ldm r0, {r1-r10}\n"
        "push {r7-r10}\n"
        "1:\n"
        "ldr r8, [r1], #4\n"
        "add r8, r8, r2\n"
        "cbz r6, 3f\n"
        "add r9, r8, r6\n"
        "2:\n"
        "ldr r11, [r8, r3]\n"
        "ldr lr, [r8, r5]\n"
        "ldr r10, [r8], #4\n"
        WIDENED_SIGN " r0, r10\n"
        WIDENED_SIGN " r7, r11\n"
        WIDENED_SIGN " r12, lr\n"
        WIDENED_SIGN " r10, r10, ror #8\n"
        WIDENED_SIGN " r11, r11, ror #8\n"
        WIDENED_SIGN " lr, lr, ror #8\n"
        "stm r4!, {r0, r7, r12}\n"
        "stm r4!, {r10, r11, lr}\n"
        "cmp r8, r9\n"
        "bne 2b\n"
        "3:\n"
        "ldrd r0, r7, [sp]\n"
        "cbz r7, 5f\n"
        "ldrd r9, r10, [sp, #8]\n"
        "4:\n"
        LOADED_SIGN " r11, [r8, r3]\n"
        LOADED_SIGN " r12, [r8, r5]\n"
        LOADED_SIGN " lr, [r8], #1\n"
        "strh r11, [r9, #4]\n"
        "strh r12, [r9, #8]\n"
        "strh lr, [r9]\n"
        "add r9, r9, r10\n"
        "rsb r10, r10, #12\n"
        "subs r7, r7, #1\n"
        "bne 4b\n"
        "strd r9, r10, [sp, #8]\n"
        "5:\n"
        "cmp r1, r0\n"
        "bne 1b\n"
        "add sp, sp, #16\n"
        "pop {r4-r11, pc}\n");
}
#else
NOT_INLINED void widen_edges_INPUT(const widening_INPUT *w)
{
    int16_t *to = w->to;
    int32_t at = (int32_t)(w->tail - to) * 2;
    int32_t step = w->step;
    for (const input_t *const *row = w->rows; row != w->rows_end; ++row) {
        for (int32_t i = w->first; i < w->left; ++i) {
            const bool inside = *row != NULL && i >= 0 && i < w->length;
            const input_t value = inside ? (*row)[w->offset + i] : *w->outside;
            const int32_t k = i - w->first;
            if (i < w->whole) {
                to[(k >> 2) * 12 + (k & 1) * 6 + (k >> 1 & 1)] = value;
                continue;
            }
            w->to[at / 2] = value;
            at += step;
            step = 12 - step;
        }
        to += 3 * (w->whole - w->first);
    }
}
NOT_INLINED void widen_rows_INPUT(const widening_INPUT *w)
{
    widening_INPUT all = *w;
    for (; all.rows != w->rows_end; ++all.rows) {
        const input_t *at = *all.rows != NULL ? *all.rows + w->offset : w->outside;
        const widening_INPUT row = {&at, 0, w->outside, all.to, all.tail, w->whole + w->left, w->whole,
            &at + 1, all.step, 0, w->whole + w->left};
        widen_edges_INPUT(&row);
        all.to += 3 * w->whole;
        for (int32_t i = 0; i < w->left; ++i) {
            all.tail += all.step / 2;
            all.step = 12 - all.step;
        }
    }
}
NOT_INLINED void widen_three_rows_INPUT(const widening_three_INPUT *w)
{
    for (int32_t i = 0; i < 3; ++i) {
        const widening_INPUT one = {
            w->rows, w->offset + i * w->stride, *w->rows, w->to + 2 * i, w->tail + 2 * i, w->left,
            w->whole, w->rows_end, w->step, 0, 0};
        widen_rows_INPUT(&one);
    }
}
#endif

/* A row that a window exceeds, with pixels of complete blocks. */
NOT_INLINED void widen_pixels_INPUT(
    const convolution_INPUT *c, const widening_INPUT *w, int32_t x, int32_t n)
{
    const input_t *const row = *w->rows;
    const input_t *at;
    widening_INPUT pixel = {&at, 0, w->outside, w->to, w->to, 0, n, &at + 1, 2, 0, 0};
    for (int32_t kx = 0; kx < c->kernel_width; ++kx) {
        at = x >= 0 && x < c->width ? row + x * n : w->outside;
        widen_rows_INPUT(&pixel);
        pixel.to += 3 * n;
        x += c->dilation_x;
    }
}

/* The rows of a piece under a window that exceeds them, with pixels of complete blocks. */
NOT_INLINED void widen_border_INPUT(const convolution_INPUT *c, widening_INPUT *w, int32_t x, int32_t n)
{
    const input_t *const *const end = w->rows_end;
    for (; w->rows != end; ++w->rows) {
        w->rows_end = w->rows + 1;
        if (*w->rows == NULL) {
            widen_rows_INPUT(w);
        } else {
            widen_pixels_INPUT(c, w, x, n);
        }
        w->to += 3 * w->whole;
    }
}

/* The same for other pixels. */
INLINED void widen_edge_INPUT(const convolution_INPUT *c, widening_INPUT *w, int32_t x, int32_t n)
{
    const int32_t before = min_i32(max_i32(-x, 0), c->kernel_width);
    const int32_t end = max_i32(min_i32(c->kernel_width, c->width - x), before);
    w->first = -before * n;
    w->length = (end - before) * n;
    w->offset -= w->first;
    w->whole += w->first;
    w->left += w->whole;
    widen_edges_INPUT(w);
    w->left -= w->whole;
    w->whole -= w->first;
}
