#pragma once
#include "../common/instance.h"
#include "../common/requantise.h"
/* DSP extension: means of all pixels of INPUT, four channels at a time. Sums of pairs of channels
   are in halfwords, so there are at most 255 inputs. Halves are rounded away from 0. */
typedef struct {
    int32_t pixels, channels, low, high;
} averages_INPUT;

#if defined(__ARM_FEATURE_DSP)
#if INPUT_SIGNED
#define SUMMED_INPUT "sxtab16"
#else
#define SUMMED_INPUT "uxtab16"
#endif
INLINED const input_t *sum_word_INPUT(const input_t *in, int32_t channels, uint32_t *even, uint32_t *odd)
{
    uint32_t word;
    (void)memcpy(&word, in, 4);
    __asm(SUMMED_INPUT " %0, %0, %1" : "+r"(*even) : "r"(word));
    __asm(SUMMED_INPUT " %0, %0, %1, ror #8" : "+r"(*odd) : "r"(word));
    return in + channels;
}
#endif
/* ``pair[0]``: the sums of the first and third channel; ``pair[1]``: those of the others. */
INLINED void sum_pixels_INPUT(const input_t *in, int32_t pixels, int32_t channels, uint32_t *pair)
{
#if defined(__ARM_FEATURE_DSP)
    uint32_t even = 0;
    uint32_t odd = 0;
    for (; pixels >= 4; pixels -= 4) {
        in = sum_word_INPUT(in, channels, &even, &odd);
        in = sum_word_INPUT(in, channels, &even, &odd);
        in = sum_word_INPUT(in, channels, &even, &odd);
        in = sum_word_INPUT(in, channels, &even, &odd);
    }
    for (; pixels > 0; --pixels) {
        in = sum_word_INPUT(in, channels, &even, &odd);
    }
    pair[0] = even;
    pair[1] = odd;
#else
    int32_t sums[4] = {0, 0, 0, 0};
    for (; pixels > 0; --pixels) {
        for (int32_t i = 0; i < 4; ++i) {
            sums[i] += in[i];
        }
        in += channels;
    }
    for (int32_t i = 0; i < 2; ++i) {
        pair[i] = ((uint32_t)sums[i] & 0xffffu) | (uint32_t)sums[i + 2] << 16;
    }
#endif
}

NOT_INLINED void average_INPUT(const averages_INPUT *a, const input_t *in, input_t *out)
{
    const int32_t half = a->pixels / 2;
    for (int32_t c = 0; c < a->channels; c += 4) {
        uint32_t pair[2];
        sum_pixels_INPUT(in + c, a->pixels, a->channels, pair);
        for (int32_t i = 0; i < 4; ++i) {
            const uint32_t bits = pair[i & 1] >> (i & 2) * 8 & 0xffffu;
#if INPUT_SIGNED
            const int32_t sum = (int16_t)bits;
#else
            const int32_t sum = (int32_t)bits;
#endif
            const int32_t mean = (sum > 0 ? sum + half : sum - half) / a->pixels;
            out[c + i] = (input_t)clamped(mean, a->low, a->high);
        }
    }
}
