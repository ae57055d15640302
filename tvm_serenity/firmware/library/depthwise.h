/* Depthwise convolutions ($X inputs): every output channel reads its own input channel.

   ``taps`` points at each input pixel under the window; pixels outside point at ``outside``, a
   pixel of zero points. Four channels are summed at a time. */
enum { MOST_TAPS_$X = 32 };

typedef struct {
    int32_t height, width, channels;
    int32_t out_height, out_width;
    int32_t kernel_height, kernel_width;
    int32_t stride_y, stride_x, dilation_y, dilation_x, top, left;
    requantisation to;
} depthwise_$X;

static inline void sum_taps_$X(const $X_t *const *taps, int32_t count, int32_t channel,
    const int8_t *w, int32_t stride, int32_t *sums)
{
    int32_t s0 = sums[0];
    int32_t s1 = sums[1];
    int32_t s2 = sums[2];
    int32_t s3 = sums[3];
    const $X_t *const *const end = taps + count;
    do {
        const $X_t *const at = *taps++ + channel;
#if defined(__ARM_FEATURE_DSP)
        const uint32_t x = load_4(at);
        const uint32_t v = load_4(w);
        const uint32_t x02 = even_$S(x);
        const uint32_t x13 = odd_$S(x);
        const uint32_t w02 = even_s8(v);
        const uint32_t w13 = odd_s8(v);
        s0 = add_low_product(x02, w02, s0);
        s1 = add_low_product(x13, w13, s1);
        s2 = add_high_product(x02, w02, s2);
        s3 = add_high_product(x13, w13, s3);
#else
        s0 += at[0] * w[0];
        s1 += at[1] * w[1];
        s2 += at[2] * w[2];
        s3 += at[3] * w[3];
#endif
        w += stride;
    } while (taps != end);
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

NOT_INLINED void depthwise_convolve_$X(const depthwise_$X *d, const $X_t *in, const int8_t *weights,
    const int32_t *bias, const int32_t *multipliers, const int8_t *shifts, const $X_t *outside,
    uint8_t *out)
{
    const $X_t *taps[MOST_TAPS_$X];
    const int32_t n = d->channels;
    const int32_t whole = n - n % 4;
    const int32_t step = d->to.step;
    const requantisation to = d->to;
    const bool small = to.rounding == ROUND_TWICE_SMALL;
    const bool full = to.low == ($L) && to.high == ($L) + 255;
    for (int32_t oy = 0; oy < d->out_height; ++oy) {
        for (int32_t ox = 0; ox < d->out_width; ++ox) {
            int32_t count = 0;
            for (int32_t ky = 0; ky < d->kernel_height; ++ky) {
                const int32_t y = oy * d->stride_y - d->top + ky * d->dilation_y;
                for (int32_t kx = 0; kx < d->kernel_width; ++kx) {
                    const int32_t x = ox * d->stride_x - d->left + kx * d->dilation_x;
                    const bool inside = y >= 0 && y < d->height && x >= 0 && x < d->width;
                    taps[count] = inside ? in + (y * d->width + x) * n : outside;
                    ++count;
                }
            }
            for (int32_t c = 0; c < whole; c += 4) {
                int32_t sums[4] = {bias[c], bias[c + 1], bias[c + 2], bias[c + 3]};
                sum_taps_$X(taps, count, c, weights + c, n, sums);
                if (small) {
                    for (int32_t i = 0; i < 4; ++i) {
                        const scale by = scale_of(&to, multipliers, shifts, c + i);
                        const int32_t v = scaled_small(sums[i], by);
                        out[c + i] = (uint8_t)(full ? clamped_$S(v) : clamped(v, to.low, to.high));
                    }
                    continue;
                }
                for (int32_t i = 0; i < 4; ++i) {
                    const int32_t at = (c + i) * step;
                    out[c + i] = (uint8_t)requantised(&d->to, sums[i], multipliers[at], shifts[at]);
                }
            }
            for (int32_t c = whole; c < n; ++c) {
                int32_t sum = bias[c];
                for (int32_t i = 0; i < count; ++i) {
                    sum += taps[i][c] * weights[i * n + c];
                }
                out[c] = (uint8_t)requantised(&d->to, sum, multipliers[c * step], shifts[c * step]);
            }
            out += n;
        }
    }
}
