/* A line of a depthwise convolution, $X inputs: every output channel reads its own input channel.

   ``rows`` are those under the windows, wherever they lie; NULL is one outside. ``taps`` points at
   each input pixel under the window; pixels outside point at ``outside``, a pixel of zero points.
   Four channels are summed at a time. */
NOT_INLINED void depthwise_line_$N(const depthwise_$N *d, const $X_t *const *rows,
    const int8_t *weights, const int32_t *bias, const int32_t *multipliers, const int8_t *shifts,
    const $X_t *outside, uint8_t *out)
{
    const $X_t *taps[MOST_TAPS_$N];
    const int32_t n = d->channels;
    const int32_t count = d->kernel_height * d->kernel_width;
    const requantisation to = d->to;
    const bool small = to.rounding == ROUND_TWICE_SMALL;
    const bool full = to.low == ($L) && to.high == ($L) + 255;
    const int32_t whole = small ? n - n % 4 : 0;
#if defined(__ARM_FEATURE_MVE) && $B == 8
    const bool vectors = (small || to.rounding == ROUND_ONCE_SMALL) && n >= 8;
    const numbers_$N numbers = {weights, bias, multipliers, shifts};
#endif
    const int32_t reach = (d->kernel_width - 1) * d->dilation_x;
    bool inside = false;
    int32_t moved = 0; /* elements from where the taps point: inside, only x changes */
    for (int32_t ox = 0; ox < d->out_width; ++ox) {
        const int32_t x0 = ox * d->stride_x - d->left;
        moved += d->stride_x * n;
        if (!inside || x0 + reach >= d->width) {
            inside = taps_under_$N(d, rows, outside, x0, taps);
            moved = 0;
        }
#if defined(__ARM_FEATURE_MVE) && $B == 8
        if (vectors) {
            eights_$N(d, &numbers, taps, moved, out);
            out += n;
            continue;
        }
#endif
        for (int32_t c = 0; c < whole; c += 4) {
            int32_t sums[4] = {begun_$W(bias[c]), begun_$W(bias[c + 1]), begun_$W(bias[c + 2]),
                begun_$W(bias[c + 3])};
            const int8_t *const w = weights + c / (8 / $B);
            sum_taps_$N(taps, count, moved + c, w, n / (8 / $B), sums);
            all_summed_$W(sums);
            const int32_t at = c * to.step;
            if (full) {
                store_four(sums, multipliers + at, shifts + at, &to, FULL_$S, out + c);
            } else {
                store_four(sums, multipliers + at, shifts + at, &to, BOUNDED, out + c);
            }
        }
        for (int32_t c = whole; c < n; ++c) {
            const int32_t at = c * to.step;
            int32_t sum = begun_$W(bias[c]);
            for (int32_t i = 0; i < count; ++i) {
                sum += taps[i][moved + c] * tap_$W(weights, i * n + c);
            }
            out[c] = (uint8_t)requantised(&to, summed_$W(sum), multipliers[at], shifts[at]);
        }
        out += n;
    }
}

/* All lines of a whole tensor; ``rows`` has room for those under a window. */
NOT_INLINED void depthwise_lines_$N(const depthwise_$N *d, const lines_$X *l, const $X_t *in,
    const int8_t *weights, const int32_t *bias, const int32_t *multipliers, const int8_t *shifts,
    const $X_t *outside, uint8_t *out, const $X_t **rows)
{
    for (int32_t line = 0; line < l->out_height; ++line) {
        (void)point_$X(l, in, d->width * d->channels, line, rows);
        depthwise_line_$N(d, rows, weights, bias, multipliers, shifts, outside, out);
        out += d->out_width * d->channels;
    }
}
