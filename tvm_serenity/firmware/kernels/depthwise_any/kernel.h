#pragma once
#include "../common/instance.h"
#include "../common/dot.h"
#include "../common/requantise.h"
#include "../common/depthwise.h"
#include "../common/rows.h"
#include "microkernel_mve.h"
/* A line of a depthwise convolution of INPUT: every output channel reads its own input channel.

   ``rows``: the rows under the windows, at any address; NULL: a row outside. ``taps``: pointers to
   the input pixels under the window; pixels outside are ``outside``, a pixel of zero points. Four
   channels are summed at a time. */
NOT_INLINED void depthwise_line_FORMAT(const depthwise_FORMAT *d, const input_t *const *rows,
    const int8_t *weights, const int32_t *bias, const int32_t *multipliers, const int8_t *shifts,
    const input_t *outside, uint8_t *out)
{
    const input_t *taps[MOST_TAPS_FORMAT];
    const int32_t n = d->channels;
    const int32_t count = d->kernel_height * d->kernel_width;
    const requantisation to = d->to;
    const bool small = to.rounding == ROUND_TWICE_SMALL;
    const bool full = to.low == (INPUT_MIN) && to.high == (INPUT_MIN) + 255;
    const int32_t whole = small ? n - n % 4 : 0;
#if defined(__ARM_FEATURE_MVE) && WEIGHT_BITS == 8
    const bool vectors = (small || to.rounding == ROUND_ONCE_SMALL) && n >= 8;
    const numbers_FORMAT numbers = {weights, bias, multipliers, shifts};
#endif
    const int32_t reach = (d->kernel_width - 1) * d->dilation_x;
    bool inside = false;
    int32_t moved = 0; /* elements from where the taps point: inside, only x changes */
    for (int32_t ox = 0; ox < d->out_width; ++ox) {
        const int32_t x0 = ox * d->stride_x - d->left;
        moved += d->stride_x * n;
        if (!inside || x0 + reach >= d->width) {
            inside = taps_under_FORMAT(d, rows, outside, x0, taps);
            moved = 0;
        }
#if defined(__ARM_FEATURE_MVE) && WEIGHT_BITS == 8
        if (vectors) {
            eights_FORMAT(d, &numbers, taps, moved, out);
            out += n;
            continue;
        }
#endif
        for (int32_t c = 0; c < whole; c += 4) {
            int32_t sums[4] = {begun_WEIGHT(bias[c]), begun_WEIGHT(bias[c + 1]), begun_WEIGHT(bias[c + 2]),
                begun_WEIGHT(bias[c + 3])};
            const int8_t *const w = weights + c / (8 / WEIGHT_BITS);
            sum_taps_FORMAT(taps, count, moved + c, w, n / (8 / WEIGHT_BITS), sums);
            all_summed_WEIGHT(sums);
            const int32_t at = c * to.step;
            if (full) {
                store_four(sums, multipliers + at, shifts + at, &to, FULL_SIGN, out + c);
            } else {
                store_four(sums, multipliers + at, shifts + at, &to, BOUNDED, out + c);
            }
        }
        for (int32_t c = whole; c < n; ++c) {
            const int32_t at = c * to.step;
            int32_t sum = begun_WEIGHT(bias[c]);
            for (int32_t i = 0; i < count; ++i) {
                sum += taps[i][moved + c] * tap_WEIGHT(weights, i * n + c);
            }
            out[c] = (uint8_t)requantised(&to, summed_WEIGHT(sum), multipliers[at], shifts[at]);
        }
        out += n;
    }
}

/* All lines of a complete tensor; ``rows`` holds the rows under a window. */
NOT_INLINED void depthwise_lines_FORMAT(const depthwise_FORMAT *d, const lines_INPUT *l, const input_t *in,
    const int8_t *weights, const int32_t *bias, const int32_t *multipliers, const int8_t *shifts,
    const input_t *outside, uint8_t *out, const input_t **rows)
{
    for (int32_t line = 0; line < l->out_height; ++line) {
        (void)point_INPUT(l, in, d->width * d->channels, line, rows);
        depthwise_line_FORMAT(d, rows, weights, bias, multipliers, shifts, outside, out);
        out += d->out_width * d->channels;
    }
}
