#pragma once
#include "instance.h"
#include "dot.h"
#include "requantise.h"
#include "im2col.h"
#include "rows.h"
/* Lines of a convolution of any window, INPUT inputs, of one tensor or several joined along the
   channels.

   ``rows``: the rows under the windows of a line, at any address: those of the first piece, of the
   next piece, ..., then those of the next line. NULL: a row outside. Two windows are read in runs
   of contiguous inputs, in blocks of four. */
typedef struct {
    const input_t *first, *second;
    int32_t blocks;
} run_INPUT;

/* The position of a window: the rows under it, and its first pixel in them. */
typedef struct {
    const input_t *const *rows;
    int32_t x;
} window_INPUT;

/* The constants of a layer, and its work memory. */
typedef struct {
    const int8_t *weights;
    const int32_t *bias, *multipliers;
    const int8_t *shifts;
    const input_t *outside; /* pixels of zero points, as many as a row of a window has */
    input_t *columns;       /* two windows, if they are copied */
    run_INPUT *runs;
} with_INPUT;

typedef struct convolution_INPUT convolution_INPUT;
struct convolution_INPUT {
    int32_t pieces, kernel_height;
    int32_t width, out_width, out_channels;
    int32_t kernel_width, stride_x, dilation_x, left;
    int32_t depth; /* of a column: inputs of a window, padded to a multiple of four */
    int32_t input_zero;
    requantisation to;
    /* Reads two windows (or the same one twice); returns the end of their runs. */
    run_INPUT *(*read)(const convolution_INPUT *c, const with_INPUT *with, const window_INPUT *two);
    uint16_t channels[16]; /* channels of each piece */
};

/* Copy a window inside of its rows, with contiguous pixels. */
INLINED void gather_inside_INPUT(const convolution_INPUT *c, window_INPUT from, input_t *to)
{
    for (int32_t p = 0; p < c->pieces; ++p) {
        const int32_t n = c->channels[p];
        const int32_t count = c->kernel_width * n;
        for (int32_t ky = 0; ky < c->kernel_height; ++ky) {
            const input_t *const row = *from.rows++;
            to = row != NULL ? columned_INPUT(to, row + from.x * n, count)
                             : fill_INPUT(to, c->input_zero, count);
        }
    }
}

NOT_INLINED void gather_INPUT(const convolution_INPUT *c, window_INPUT from, input_t *to)
{
    if (from.x >= 0 && from.x + c->kernel_width <= c->width && c->dilation_x == 1) {
        gather_inside_INPUT(c, from, to);
        return;
    }
    fill_column_INPUT(to, c->input_zero, c->depth);
    const int32_t before = from.x < 0 ? min_i32(-from.x, c->kernel_width) : 0;
    const int32_t end = max_i32(min_i32(c->kernel_width, c->width - from.x), before);
    for (int32_t p = 0; p < c->pieces; ++p) {
        const int32_t n = c->channels[p];
        for (int32_t ky = 0; ky < c->kernel_height; ++ky) {
            const input_t *const row = *from.rows++;
            if (row != NULL && c->dilation_x == 1) {
                (void)columned_INPUT(
                    to + before * n, row + (from.x + before) * n, (end - before) * n);
            } else if (row != NULL) {
                for (int32_t kx = 0; kx < c->kernel_width; ++kx) {
                    const int32_t x = from.x + kx * c->dilation_x;
                    if (x >= 0 && x < c->width) {
                        (void)copy_INPUT(to + kx * n, row + x * n, n);
                    }
                }
            }
            to += c->kernel_width * n;
        }
    }
}

/* Copy two windows into columns (im2col). */
NOT_INLINED run_INPUT *gathered_INPUT(
    const convolution_INPUT *c, const with_INPUT *with, const window_INPUT *two)
{
    input_t *const second = with->columns + c->depth;
    (void)fill_INPUT(second - 4, 0, 4);
    gather_INPUT(c, two[0], with->columns);
    if (two[0].x != two[1].x || two[0].rows != two[1].rows) {
        (void)fill_INPUT(second + c->depth - 4, 0, 4);
        gather_INPUT(c, two[1], second);
    }
    *with->runs = (run_INPUT){with->columns, second, c->depth / 4};
    return with->runs + 1;
}

/* Read windows in place that are one run of one row, inside of it. */
NOT_INLINED run_INPUT *single_INPUT(
    const convolution_INPUT *c, const with_INPUT *with, const window_INPUT *two)
{
    const int32_t n = c->channels[0];
    run_INPUT *const to = with->runs;
    to->first = *two[0].rows + two[0].x * n;
    to->second = *two[1].rows + two[1].x * n;
    to->blocks = c->depth / 4;
    return to + 1;
}

/* Read windows in place that are inside of their rows. All pieces have complete blocks of
   channels. */
NOT_INLINED run_INPUT *inside_INPUT(
    const convolution_INPUT *c, const with_INPUT *with, const window_INPUT *two)
{
    run_INPUT *to = with->runs;
    const input_t *const *a = two[0].rows;
    const input_t *const *b = two[1].rows;
    for (int32_t p = 0; p < c->pieces; ++p) {
        const int32_t n = c->channels[p];
        for (int32_t ky = 0; ky < c->kernel_height; ++ky) {
            to->first = *a != NULL ? *a + two[0].x * n : with->outside;
            to->second = *b != NULL ? *b + two[1].x * n : with->outside;
            to->blocks = c->kernel_width * n / 4;
            ++a;
            ++b;
            ++to;
        }
    }
    return to;
}

/* Read windows in place, as above; they may exceed their rows or be dilated. */
NOT_INLINED run_INPUT *bordered_INPUT(
    const convolution_INPUT *c, const with_INPUT *with, const window_INPUT *two)
{
    const int32_t last = c->width - c->kernel_width;
    if (two[0].x >= 0 && two[0].x <= last && two[1].x >= 0 && two[1].x <= last &&
        c->dilation_x == 1) {
        return inside_INPUT(c, with, two);
    }
    run_INPUT *to = with->runs;
    const input_t *const *a = two[0].rows;
    const input_t *const *b = two[1].rows;
    for (int32_t p = 0; p < c->pieces; ++p) {
        const int32_t n = c->channels[p];
        for (int32_t ky = 0; ky < c->kernel_height; ++ky) {
            bool a_before = false;
            bool b_before = false;
            for (int32_t kx = 0; kx < c->kernel_width; ++kx) {
                const int32_t xa = two[0].x + kx * c->dilation_x;
                const int32_t xb = two[1].x + kx * c->dilation_x;
                const bool a_inside = *a != NULL && xa >= 0 && xa < c->width;
                const bool b_inside = *b != NULL && xb >= 0 && xb < c->width;
                const bool follows = kx > 0 && c->dilation_x == 1;
                if (follows && a_inside == a_before && b_inside == b_before) {
                    to[-1].blocks += n / 4;
                } else {
                    to->first = a_inside ? *a + xa * n : with->outside;
                    to->second = b_inside ? *b + xb * n : with->outside;
                    to->blocks = n / 4;
                    ++to;
                }
                a_before = a_inside;
                b_before = b_inside;
            }
            ++a;
            ++b;
        }
    }
    return to;
}

/* Move a window to the next pixel of the result, in the line or in the next line. */
INLINED void next_INPUT(const convolution_INPUT *c, window_INPUT *at)
{
    at->x += c->stride_x;
    if (at->x == c->out_width * c->stride_x - c->left) {
        at->x = -c->left;
        at->rows += c->pieces * c->kernel_height;
    }
}
