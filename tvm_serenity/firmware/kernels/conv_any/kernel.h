#pragma once
#include "../common/instance.h"
#include "../common/dot.h"
#include "../common/requantise.h"
#include "../common/convolution.h"
#include "microkernel.h"
#include "microkernel_mve.h"
/* Lines of a convolution from its windows; weights: WEIGHT_BITS bytes per block of two channels. */
/* Two pixels, channels in pairs, for ROUND_TWICE_SMALL. */
INLINED void two_pixels_FORMAT(const convolution_INPUT *c, const with_INPUT *with,
    const run_INPUT *end, uint8_t *out, bool alone, int32_t range)
{
    const int32_t n = c->out_channels;
    const requantisation to = c->to;
    const int32_t twice = 2 * to.zero_point + 1;
    const int8_t *w = with->weights;
    const int32_t *const bias = with->bias;
    const int32_t *const multipliers = with->multipliers;
    const int8_t *const shifts = with->shifts;
    const run_INPUT only = *with->runs;
    for (int32_t o = 0; o + 1 < n; o += 2) {
        const int32_t b0 = begun_WEIGHT(bias[o]);
        const int32_t b1 = begun_WEIGHT(bias[o + 1]);
        int32_t sums[4] = {b0, b1, b0, b1};
        if (alone) {
            w = dot_2x2_FORMAT(only.first, only.second, w, only.blocks, sums);
        } else {
            const run_INPUT *run = with->runs;
            do {
                w = dot_2x2_FORMAT(run->first, run->second, w, run->blocks, sums);
                ++run;
            } while (run != end);
        }
        const int32_t m0 = multipliers[o * to.step];
        const int32_t m1 = multipliers[(o + 1) * to.step];
        const int32_t s0 = ~(int32_t)shifts[o * to.step];
        const int32_t s1 = ~(int32_t)shifts[(o + 1) * to.step];
        out[o] = stored(summed_WEIGHT(sums[0]), m0, s0, twice, &to, range);
        out[o + 1] = stored(summed_WEIGHT(sums[1]), m1, s1, twice, &to, range);
        out[n + o] = stored(summed_WEIGHT(sums[2]), m0, s0, twice, &to, range);
        out[n + o + 1] = stored(summed_WEIGHT(sums[3]), m1, s1, twice, &to, range);
    }
}

/* One or two pixels from channel ``o`` on, four channels at a time, for every rounding. */
NOT_INLINED void pixels_FORMAT(const convolution_INPUT *c, const with_INPUT *with, const run_INPUT *end,
    int32_t count, int32_t o, uint8_t *out)
{
    const requantisation to = c->to;
    const with_INPUT numbers = *with;
    const int32_t n = c->out_channels;
    const int32_t depth = c->depth;
#if !defined(__ARM_FEATURE_MVE) || !INPUT_SIGNED || WEIGHT_BITS == 8
    const bool full = to.low == (INPUT_MIN) && to.high == (INPUT_MIN) + 255;
    const bool short_form = to.rounding == ROUND_TWICE_SMALL && full;
    for (; short_form && o + 3 < n; o += 4) {
        const int32_t at = o * to.step;
        for (int32_t i = 0; i < count; ++i) {
            const int32_t *const b = numbers.bias + o;
            const int8_t *w = numbers.weights + o * depth / (8 / WEIGHT_BITS);
            int32_t sums[4] = {begun_WEIGHT(b[0]), begun_WEIGHT(b[1]), begun_WEIGHT(b[2]), begun_WEIGHT(b[3])};
            const run_INPUT *run = numbers.runs;
            do {
                const input_t *const x = i == 0 ? run->first : run->second;
                dot_1x4_FORMAT(x, w, w + 2 * depth / (8 / WEIGHT_BITS), run->blocks, sums);
                w += WEIGHT_BITS * run->blocks;
            } while (++run != end);
            all_summed_WEIGHT(sums);
            store_four(sums, numbers.multipliers + at, numbers.shifts + at, &to, FULL_SIGN,
                out + i * n + o);
        }
    }
#endif
    for (; o < n; o += 4) {
        const int32_t width = min_i32(n - o, 4);
        const int32_t *const b = numbers.bias + o;
        const int32_t *const m = numbers.multipliers + o * to.step;
        const int8_t *const s = numbers.shifts + o * to.step;
        for (int32_t i = 0; i < count; ++i) {
            const int8_t *w = numbers.weights + o * depth / (8 / WEIGHT_BITS);
            uint8_t *const four = out + i * n + o;
            int32_t sums[4] = {begun_WEIGHT(b[0]), 0, 0, 0};
            if (width == 4) {
                sums[1] = begun_WEIGHT(b[1]);
                sums[2] = begun_WEIGHT(b[2]);
                sums[3] = begun_WEIGHT(b[3]);
            } else if (width > 1) {
                sums[1] = begun_WEIGHT(b[1]);
                sums[2] = width > 2 ? begun_WEIGHT(b[2]) : 0;
            }
            for (const run_INPUT *run = numbers.runs; run != end; ++run) {
                const input_t *const x = i == 0 ? run->first : run->second;
                if (width > 2) {
                    dot_1x4_FORMAT(x, w, w + 2 * depth / (8 / WEIGHT_BITS), run->blocks, sums);
                } else {
                    dot_1x2_FORMAT(x, w, run->blocks, sums);
                }
                w += WEIGHT_BITS * run->blocks;
            }
            for (int32_t k = 0; k < width; ++k) {
                const int32_t at = k * to.step;
                four[k] = (uint8_t)requantised(&to, summed_WEIGHT(sums[k]), m[at], s[at]);
            }
        }
    }
}

/* Compute ``pixels`` pixels of the result from the first line on. */
NOT_INLINED void convolve_FORMAT(const convolution_INPUT *c, const with_INPUT *with,
    const input_t *const *rows, uint8_t *out, int32_t pixels)
{
    const bool small = c->to.rounding == ROUND_TWICE_SMALL;
#if !defined(__ARM_FEATURE_MVE) || !INPUT_SIGNED || WEIGHT_BITS == 8
    const bool full = c->to.low == (INPUT_MIN) && c->to.high == (INPUT_MIN) + 255;
#endif
    window_INPUT at = {rows, -c->left};
    for (; pixels > 0; pixels -= 2) {
        const int32_t count = min_i32(pixels, 2);
        window_INPUT two[2] = {at, at};
        next_INPUT(c, &at);
        if (count == 2) {
            two[1] = at;
            next_INPUT(c, &at);
        }
        const run_INPUT *const end = c->read(c, with, two);
        int32_t o = 0;
#if defined(__ARM_FEATURE_MVE) && INPUT_SIGNED && WEIGHT_BITS == 4
        const bool right = small || c->to.rounding == ROUND_ONCE_SMALL;
        if (right && (count == 2 || end == with->runs + 1)) {
            tile_4_outputs_FORMAT(c, with, end, count == 2, out);
            o = c->out_channels;
        }
#else
        if (small && count == 2) {
            o = c->out_channels & ~1;
            if (!full) {
                two_pixels_FORMAT(c, with, end, out, false, BOUNDED);
            } else if (end != with->runs + 1) {
                two_pixels_FORMAT(c, with, end, out, false, FULL_SIGN);
            } else {
                two_pixels_FORMAT(c, with, end, out, true, FULL_SIGN);
            }
        }
#endif
        if (o < c->out_channels) {
            pixels_FORMAT(c, with, end, count, o, out);
        }
        out += count * c->out_channels;
    }
}

/* All lines of complete tensors, two at a time, so that pairs of windows span lines of odd width.

   ``rows`` holds the rows under the windows of two lines. */
NOT_INLINED void convolve_lines_FORMAT(const convolution_INPUT *c, const with_INPUT *with,
    const lines_INPUT *l, const input_t *const *pieces, uint8_t *out, const input_t **rows)
{
    for (int32_t line = 0; line < l->out_height; line += 2) {
        const int32_t end = min_i32(line + 2, l->out_height);
        const input_t **to = rows;
        for (int32_t y = line; y < end; ++y) {
            for (int32_t p = 0; p < c->pieces; ++p) {
                to = point_INPUT(l, pieces[p], c->width * c->channels[p], y, to);
            }
        }
        const int32_t pixels = (end - line) * c->out_width;
        convolve_FORMAT(c, with, rows, out, pixels);
        out += pixels * c->out_channels;
    }
}
