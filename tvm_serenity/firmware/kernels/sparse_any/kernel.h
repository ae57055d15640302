#pragma once
#include "../common/instance.h"
#include "../common/requantise.h"
#include "../common/sparse.h"
/* Dense layers and 1x1 convolutions of any core, from weights that are not 0: four windows or one
   window at a time. */
typedef struct {
    int32_t channels, out_channels;
    requantisation to;
} sparse_FORMAT;

typedef struct {
    const uint8_t *codes;
    const int32_t *bias, *multipliers;
    const int8_t *shifts;
} sparse_with_FORMAT;

/* Requantise and store the sums of output ``o`` of windows that follow each other. */
INLINED void finish_FORMAT(const sparse_FORMAT *c, const sparse_with_FORMAT *with, int32_t o,
    const int32_t *sums, int32_t count, uint8_t *out)
{
    const requantisation *const to = &c->to;
    const int32_t m = with->multipliers[o * to->step];
    const int32_t r = with->shifts[o * to->step];
    const int32_t n = c->out_channels;
    out += o;
    if (to->rounding == ROUND_TWICE_SMALL) {
        const int32_t twice = 2 * to->zero_point + 1;
        out[0] = stored(sums[0], m, ~r, twice, to, BOUNDED);
        if (count == 4) {
            out[n] = stored(sums[1], m, ~r, twice, to, BOUNDED);
            out[2 * n] = stored(sums[2], m, ~r, twice, to, BOUNDED);
            out[3 * n] = stored(sums[3], m, ~r, twice, to, BOUNDED);
        }
        return;
    }
    for (int32_t i = 0; i < count; ++i) {
        out[i * n] = (uint8_t)requantised(to, sums[i], m, r);
    }
}

INLINED void four_windows_FORMAT(
    const sparse_FORMAT *c, const sparse_with_FORMAT *with, const input_t *x, uint8_t *out)
{
    const int32_t n = c->channels;
    const int32_t made = c->out_channels;
    const uint8_t *codes = with->codes;
    for (int32_t o = 0; o < made; ++o) {
        const uint8_t *const end = end_of_codes_WEIGHT(codes);
        const input_t *at = x;
        int32_t s0 = with->bias[o];
        int32_t s1 = s0;
        int32_t s2 = s0;
        int32_t s3 = s0;
        for (codes += 2; codes != end; codes += PAIR_BYTES_WEIGHT) {
            const uint32_t gaps = codes[GAPS_AT_WEIGHT];
            const int32_t first = first_packed_WEIGHT(codes);
            const int32_t second = second_packed_WEIGHT(codes);
            at += gaps & 15u;
            s0 += at[0] * first;
            s1 += at[n] * first;
            s2 += at[2 * n] * first;
            s3 += at[3 * n] * first;
            at += gaps >> 4;
            s0 += at[0] * second;
            s1 += at[n] * second;
            s2 += at[2 * n] * second;
            s3 += at[3 * n] * second;
        }
        const int32_t sums[4] = {s0, s1, s2, s3};
        finish_FORMAT(c, with, o, sums, 4, out);
    }
}

INLINED void one_window_FORMAT(
    const sparse_FORMAT *c, const sparse_with_FORMAT *with, const input_t *x, uint8_t *out)
{
    const uint8_t *codes = with->codes;
    for (int32_t o = 0; o < c->out_channels; ++o) {
        const uint8_t *const end = end_of_codes_WEIGHT(codes);
        const input_t *at = x;
        int32_t sum = with->bias[o];
        for (codes += 2; codes != end; codes += PAIR_BYTES_WEIGHT) {
            const uint32_t gaps = codes[GAPS_AT_WEIGHT];
            at += gaps & 15u;
            sum += *at * first_packed_WEIGHT(codes);
            at += gaps >> 4;
            sum += *at * second_packed_WEIGHT(codes);
        }
        finish_FORMAT(c, with, o, &sum, 1, out);
    }
}

/* Compute ``pixels`` pixels of the result from pixels that follow each other. */
NOT_INLINED void sparse_windows_FORMAT(const sparse_FORMAT *c, const sparse_with_FORMAT *with,
    const input_t *x, uint8_t *out, int32_t pixels)
{
    for (; pixels >= 4; pixels -= 4) {
        four_windows_FORMAT(c, with, x, out);
        x += 4 * c->channels;
        out += 4 * c->out_channels;
    }
    for (; pixels > 0; --pixels) {
        one_window_FORMAT(c, with, x, out);
        x += c->channels;
        out += c->out_channels;
    }
}
