#pragma once
#include "instance.h"
#include "convolution.h"
#include "epilogue.h"
/* Convolutions, two windows of INPUT at a time, read in place or copied: a function for the core
   computes all channels of both windows. */
typedef struct {
    int32_t skipped; /* bytes of code to skip if the blocks are no multiple of four */
    const input_t *first, *second, *first_end;
} stretch_INPUT;

/* ``second``: the distance of the second window's results from ``out``. */
typedef struct {
    const stretch_INPUT *stretches;
    const int32_t *numbers;
    input_t *out;
    const stretch_INPUT *stretches_end;
    const input_t *out_end;
    int32_t second;
    const void *weights;
} tile_INPUT;

/* Groups of four channels in plain C. Weights: ``[groups, inputs, 4]``, with ``more`` added.
   Numbers of a group: four biases, then the two numbers of ``epilogue.h`` for each channel. */
INLINED void tile_2x4_plain_INPUT(const tile_INPUT *t, int32_t windows, int32_t more, bool once)
{
    const uint8_t *weights = (const uint8_t *)t->weights;
    const int32_t *n = t->numbers;
    for (input_t *out = t->out; out != t->out_end; out += 4) {
        const uint8_t *w = weights;
        for (int32_t at = 0; at < windows; ++at) {
            int32_t sums[4] = {n[0], n[1], n[2], n[3]};
            w = weights;
            for (const stretch_INPUT *s = t->stretches; s != t->stretches_end; ++s) {
                const input_t *const x = at == 0 ? s->first : s->second;
                const int32_t count = (int32_t)(s->first_end - s->first);
                for (int32_t i = 0; i < count; ++i) {
                    for (int32_t k = 0; k < 4; ++k) {
                        const int32_t weight = more == 0 ? (int8_t)w[k] : w[k] - more;
                        sums[k] += x[i] * weight;
                    }
                    w += 4;
                }
            }
            for (int32_t k = 0; k < 4; ++k) {
                const int32_t *const m = n + 4 + 2 * k;
                out[k + at * t->second] =
                    (input_t)(once ? once_SIGN(sums[k], m) : rounded_SIGN(sums[k], m));
            }
        }
        weights = w;
        n += 12;
    }
}

/* The functions of the core for two windows and for one. Both compute complete groups of channels
   from blocks of four inputs; a block has ``block_bytes`` of code, and a group has its bytes of
   weights and of numbers. */
typedef struct {
    void (*two)(const tile_INPUT *t);
    void (*one)(const tile_INPUT *t);
    int32_t channels;
    int32_t two_block_bytes, one_block_bytes;
    int32_t weight_bytes, numbers;
} microkernels_INPUT;

typedef struct {
    const convolution_INPUT *c;
    const void *weights;
    const int32_t *numbers;
    const with_INPUT *with;
    stretch_INPUT *stretches; /* one for each possible run */
    const microkernels_INPUT *kernels;
} two_windows_INPUT;

/* The channels after the last complete group are computed into a buffer, as a group. */
NOT_INLINED void convolve_last_channels_INPUT(const two_windows_INPUT *t, tile_INPUT two, int32_t count)
{
    const microkernels_INPUT *const m = t->kernels;
    const int32_t n = t->c->out_channels;
    const int32_t part = n % m->channels;
    const int32_t groups = n / m->channels;
    input_t made[8];
    input_t *const out = two.out + n - part;
    two.numbers += groups * m->numbers;
    two.weights = (const int8_t *)two.weights + groups * (t->c->depth / 4) * m->weight_bytes;
    two.out = made;
    two.out_end = made + m->channels;
    two.second = count == 2 ? m->channels : 0;
    (count == 2 ? m->two : m->one)(&two);
    for (int32_t i = 0; i < part; ++i) {
        out[i] = made[i];
        if (count == 2) {
            out[n + i] = made[m->channels + i];
        }
    }
}

/* Compute ``pixels`` pixels of the result from the first line on. */
NOT_INLINED void convolve_two_windows_INPUT(
    const two_windows_INPUT *t, const input_t *const *rows, input_t *out, int32_t pixels)
{
    const convolution_INPUT *const c = t->c;
    const int32_t n = c->out_channels;
    const requantisation to = c->to;
    const bool full = to.low == (INPUT_MIN) && to.high == (INPUT_MIN) + 255;
    window_INPUT at = {rows, -c->left};
    const microkernels_INPUT *const m = t->kernels;
    const int32_t whole = n - n % m->channels;
    tile_INPUT two = {t->stretches, t->numbers, out, t->stretches, out, n, t->weights};
    for (; pixels > 0; pixels -= 2) {
        const int32_t count = min_i32(pixels, 2);
        window_INPUT windows[2] = {at, at};
        next_INPUT(c, &at);
        if (count == 2) {
            windows[1] = at;
            next_INPUT(c, &at);
        }
        const int32_t block_bytes = count == 2 ? m->two_block_bytes : m->one_block_bytes;
        const run_INPUT *const end = c->read(c, t->with, windows);
        stretch_INPUT *s = t->stretches;
        for (const run_INPUT *run = t->with->runs; run != end; ++run) {
            s->skipped = (-run->blocks & 3) * block_bytes;
            s->first = run->first;
            s->second = count == 2 ? run->second : run->first;
            s->first_end = run->first + 4 * run->blocks;
            ++s;
        }
        two.stretches_end = s;
        two.out = out;
        two.out_end = out + whole;
        two.second = count == 2 ? n : 0;
        if (whole > 0) {
            (count == 2 ? m->two : m->one)(&two);
        }
        if (whole < n) {
            convolve_last_channels_INPUT(t, two, count);
        }
        for (int32_t i = 0; i < (full ? 0 : count * n); ++i) {
            out[i] = (input_t)clamped(out[i], to.low, to.high);
        }
        out += count * n;
    }
}

/* All lines of complete tensors, two at a time; ``rows`` holds the rows under the windows. */
NOT_INLINED void convolve_two_windows_lines_INPUT(const two_windows_INPUT *t, const lines_INPUT *l,
    const input_t *const *pieces, input_t *out, const input_t **rows)
{
    const convolution_INPUT *const c = t->c;
    for (int32_t line = 0; line < l->out_height; line += 2) {
        const int32_t end = min_i32(line + 2, l->out_height);
        const input_t **to = rows;
        for (int32_t y = line; y < end; ++y) {
            for (int32_t p = 0; p < c->pieces; ++p) {
                to = point_INPUT(l, pieces[p], c->width * c->channels[p], y, to);
            }
        }
        const int32_t pixels = (end - line) * c->out_width;
        convolve_two_windows_INPUT(t, rows, out, pixels);
        out += pixels * c->out_channels;
    }
}
