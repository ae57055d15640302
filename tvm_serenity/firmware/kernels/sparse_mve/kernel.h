#pragma once
#include "../common/instance.h"
#include "../common/requantise.h"
/* MVE: dense layers and 1x1 convolutions of INPUT from weights that are not 0, four windows or one
   window at a time, sixteen products an instruction.

   Inputs are in segments of 256, so that a byte is the index of one in its segment; inputs of a
   vector of indices are gathered. ``counts``: the weights of each segment, of one output after the
   other. Unsigned inputs are converted to signed ones; the bias compensates for it. */
typedef struct {
    int32_t channels, out_channels, segments;
    requantisation to; /* _SMALL */
} sparse_segments_INPUT;

typedef struct {
    const int8_t *weights;
    const uint8_t *indices;
    const uint16_t *counts;
    const int32_t *bias, *multipliers;
    const int8_t *shifts;
} sparse_segments_with_INPUT;

#if defined(__ARM_FEATURE_MVE)
#if INPUT_SIGNED
#define GATHERED_SIGNED_INPUT
#else
#define GATHERED_SIGNED_INPUT "vadd.i8 q2, q2, q3\n\t"
#endif
#define GATHERED_INPUT(x, sum) \
    "vldrb.u8 q2, [" x ", q0]\n\t" \
    GATHERED_SIGNED_INPUT \
    "vmladava.s8 " sum ", q1, q2\n\t"
/* Add the products of a segment to the sums of windows that are ``n`` inputs apart. */
INLINED void segment_4_INPUT(
    const uint8_t *i, const int8_t *w, int32_t count, const input_t *x, int32_t n, int32_t *sums)
{
    register const uint8_t *indices __asm("r1") = i;
    register const int8_t *weights __asm("r3") = w;
    register const input_t *x0 __asm("r5") = x;
    register const input_t *x1 __asm("r9") = x + n;
    register const input_t *x2 __asm("r11") = x + 2 * n;
    register const input_t *x3 __asm("r12") = x + 3 * n;
    register int32_t s0 __asm("r2") = sums[0];
    register int32_t s1 __asm("r4") = sums[1];
    register int32_t s2 __asm("r6") = sums[2];
    register int32_t s3 __asm("r8") = sums[3];
    __asm volatile("vmov.i8 q3, #128\n\t"
                   "dlstp.8 lr, %[count]\n"
                   "1:\n\t"
                   "vldrb.8 q0, [r1], #16\n\t"
                   "vldrb.8 q1, [r3], #16\n\t"
                   GATHERED_INPUT("r5", "r2")
                   GATHERED_INPUT("r9", "r4")
                   GATHERED_INPUT("r11", "r6")
                   GATHERED_INPUT("r12", "r8")
                   "letp lr, 1b"
                   : "+r"(s0), "+r"(s1), "+r"(s2), "+r"(s3), "+r"(indices), "+r"(weights)
                   : "r"(x0), "r"(x1), "r"(x2), "r"(x3), [count] "r"(count)
                   : "lr", "q0", "q1", "q2", "q3", "memory");
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}
INLINED int32_t segment_1_INPUT(
    const uint8_t *i, const int8_t *w, int32_t count, const input_t *x, int32_t sum)
{
    register const uint8_t *indices __asm("r1") = i;
    register const int8_t *weights __asm("r3") = w;
    register const input_t *x0 __asm("r5") = x;
    register int32_t s0 __asm("r2") = sum;
    __asm volatile("vmov.i8 q3, #128\n\t"
                   "dlstp.8 lr, %[count]\n"
                   "1:\n\t"
                   "vldrb.8 q0, [r1], #16\n\t"
                   "vldrb.8 q1, [r3], #16\n\t"
                   GATHERED_INPUT("r5", "r2")
                   "letp lr, 1b"
                   : "+r"(s0), "+r"(indices), "+r"(weights)
                   : "r"(x0), [count] "r"(count)
                   : "lr", "q0", "q1", "q2", "q3", "memory");
    return s0;
}
/* Requantise and store the sums of one output of four windows, ``to`` bytes from ``out``. */
INLINED void finish_4_INPUT(const sparse_segments_INPUT *c, const sparse_segments_with_INPUT *with, int32_t o,
    const int32_t *sums, uint8_t *out, const int32_t *to)
{
    const int32x4_t m = vdupq_n_s32(with->multipliers[o * c->to.step]);
    const int32x4_t r = vdupq_n_s32(with->shifts[o * c->to.step]);
    const int32x4_t made = requantised_four(&c->to, vldrwq_s32(sums), m, r);
    vstrbq_scatter_offset_s32((int8_t *)out + o, vldrwq_u32((const uint32_t *)to), made);
}
/* The same of up to four outputs from ``o`` on, of one window. */
INLINED void finish_1_INPUT(const sparse_segments_INPUT *c, const sparse_segments_with_INPUT *with, int32_t o,
    const int32_t *sums, uint8_t *out, int32_t count)
{
    int32x4_t m = vdupq_n_s32(with->multipliers[0]);
    int32x4_t r = vdupq_n_s32(with->shifts[0]);
    if (c->to.step != 0) {
        m = vldrwq_s32(with->multipliers + o);
        r = vldrbq_s32(with->shifts + o);
    }
    const int32x4_t made = requantised_four(&c->to, vldrwq_s32(sums), m, r);
    vstrbq_p_s32((int8_t *)out + o, made, vctp32q((uint32_t)count));
}
#else
INLINED int32_t segment_1_INPUT(
    const uint8_t *i, const int8_t *w, int32_t count, const input_t *x, int32_t sum)
{
    for (; count > 0; --count) {
        sum += (INPUT_SIGNED ? x[*i] : x[*i] - 128) * *w++;
        ++i;
    }
    return sum;
}
INLINED void segment_4_INPUT(
    const uint8_t *i, const int8_t *w, int32_t count, const input_t *x, int32_t n, int32_t *sums)
{
    for (int32_t k = 0; k < 4; ++k) {
        sums[k] = segment_1_INPUT(i, w, count, x + k * n, sums[k]);
    }
}
INLINED void finish_4_INPUT(const sparse_segments_INPUT *c, const sparse_segments_with_INPUT *with, int32_t o,
    const int32_t *sums, uint8_t *out, const int32_t *to)
{
    for (int32_t k = 0; k < 4; ++k) {
        out[to[k] + o] = (uint8_t)requantised(
            &c->to, sums[k], with->multipliers[o * c->to.step], with->shifts[o * c->to.step]);
    }
}
INLINED void finish_1_INPUT(const sparse_segments_INPUT *c, const sparse_segments_with_INPUT *with, int32_t o,
    const int32_t *sums, uint8_t *out, int32_t count)
{
    for (int32_t k = 0; k < count; ++k) {
        const int32_t at = (o + k) * c->to.step;
        out[o + k] =
            (uint8_t)requantised(&c->to, sums[k], with->multipliers[at], with->shifts[at]);
    }
}
#endif

/* All outputs of four windows. */
NOT_INLINED void gather_four_INPUT(
    const sparse_segments_INPUT *c, const sparse_segments_with_INPUT *with, const input_t *x, uint8_t *out)
{
    const int32_t n = c->out_channels;
    const int32_t to[4] = {0, n, 2 * n, 3 * n};
    const uint8_t *indices = with->indices;
    const int8_t *weights = with->weights;
    const uint16_t *counts = with->counts;
    for (int32_t o = 0; o < n; ++o) {
        const int32_t bias = with->bias[o];
        int32_t sums[4] = {bias, bias, bias, bias};
        for (int32_t segment = 0; segment < c->segments; ++segment) {
            const int32_t count = *counts++;
            if (count > 0) {
                segment_4_INPUT(indices, weights, count, x + segment * 256, c->channels, sums);
            }
            indices += count;
            weights += count;
        }
        finish_4_INPUT(c, with, o, sums, out, to);
    }
}

/* All outputs of one window. */
NOT_INLINED void gather_one_INPUT(
    const sparse_segments_INPUT *c, const sparse_segments_with_INPUT *with, const input_t *x, uint8_t *out)
{
    const uint8_t *indices = with->indices;
    const int8_t *weights = with->weights;
    const uint16_t *counts = with->counts;
    for (int32_t o = 0; o < c->out_channels; o += 4) {
        const int32_t outputs = min_i32(c->out_channels - o, 4);
        int32_t sums[4] = {0, 0, 0, 0};
        for (int32_t k = 0; k < outputs; ++k) {
            int32_t sum = with->bias[o + k];
            for (int32_t segment = 0; segment < c->segments; ++segment) {
                const int32_t count = *counts++;
                if (count > 0) {
                    sum = segment_1_INPUT(indices, weights, count, x + segment * 256, sum);
                }
                indices += count;
                weights += count;
            }
            sums[k] = sum;
        }
        finish_1_INPUT(c, with, o, sums, out, outputs);
    }
}

/* Compute ``pixels`` pixels of the result from pixels that follow each other. */
NOT_INLINED void gather_windows_INPUT(const sparse_segments_INPUT *c, const sparse_segments_with_INPUT *with,
    const input_t *x, uint8_t *out, int32_t pixels)
{
    for (; pixels >= 4; pixels -= 4) {
        gather_four_INPUT(c, with, x, out);
        x += 4 * c->channels;
        out += 4 * c->out_channels;
    }
    for (; pixels > 0; --pixels) {
        gather_one_INPUT(c, with, x, out);
        x += c->channels;
        out += c->out_channels;
    }
}
