/* ``pixels`` of a row of a convolution, $X inputs, from rows that may lie anywhere.

   A window reads ``kernel_width`` pixels of each source: the rows under it, of each input. Where a
   pixel is a multiple of four channels it is read in place, else gathered into ``columns``.
   ``runs`` has room for three of each source. */
typedef struct {
    int32_t sources;
    int32_t width, out_channels;
    int32_t kernel_width, stride_x, left;
    int32_t depth; /* bytes of a column, where windows are gathered */
    requantisation to;
    uint16_t channels[10]; /* of a pixel of each source */
} convolution_row_$X;

typedef struct {
    const $X_t *first, *second;
    int32_t blocks;
} run_$X;

/* The pixels of one source under the window at ``x0``: those outside, inside, and outside again. */
INLINED int32_t clip_$X(const convolution_row_$X *c, int32_t x0, int32_t *inside)
{
    const int32_t before = x0 < 0 ? min_i32(-x0, c->kernel_width) : 0;
    *inside = max_i32(min_i32(c->kernel_width, c->width - x0), before) - before;
    return before;
}

NOT_INLINED void gather_row_$X(
    const convolution_row_$X *c, const $X_t *const *rows, const $X_t *outside, int32_t x0, $X_t *to)
{
    int32_t inside;
    const int32_t before = clip_$X(c, x0, &inside);
    for (int32_t s = 0; s < c->sources; ++s) {
        const int32_t n = c->channels[s];
        fill_$X(to, outside[0], before * n);
        to += before * n;
        copy_$X(to, rows[s] + (x0 + before) * n, inside * n);
        to += inside * n;
        fill_$X(to, outside[0], (c->kernel_width - before - inside) * n);
        to += (c->kernel_width - before - inside) * n;
    }
}

/* The runs of the window at the border of the image. */
NOT_INLINED int32_t border_runs_$X(const convolution_row_$X *c, const $X_t *const *rows,
    const $X_t *outside, int32_t x0, run_$X *runs)
{
    int32_t inside;
    int32_t count = 0;
    const int32_t before = clip_$X(c, x0, &inside);
    const int32_t after = c->kernel_width - before - inside;
    for (int32_t s = 0; s < c->sources; ++s) {
        const int32_t n = c->channels[s];
        if (before > 0) {
            runs[count++] = (run_$X){outside, NULL, before * n / 4};
        }
        if (inside > 0) {
            runs[count++] = (run_$X){rows[s] + (x0 + before) * n, NULL, inside * n / 4};
        }
        if (after > 0) {
            runs[count++] = (run_$X){outside, NULL, after * n / 4};
        }
    }
    return count;
}

INLINED void two_pixels_$X(const convolution_row_$X *c,
    const run_$X *runs, int32_t count, const int8_t *w, const int32_t *bias,
    const int32_t *multipliers, const int8_t *shifts, uint8_t *out, bool full)
{
    const int32_t n = c->out_channels;
    const requantisation to = c->to;
    const int32_t twice = 2 * to.zero_point + 1;
    const run_$X *const end = runs + count;
    const run_$X alone = *runs;
    for (int32_t o = 0; o + 1 < n; o += 2) {
        int32_t sums[4] = {bias[o], bias[o + 1], bias[o], bias[o + 1]};
        if (count == 1) {
            w = dot_2x2_$X(alone.first, alone.second, w, alone.blocks, sums);
        } else {
            const run_$X *run = runs;
            do {
                w = dot_2x2_$X(run->first, run->second, w, run->blocks, sums);
                ++run;
            } while (run != end);
        }
        const int32_t m0 = multipliers[o * to.step];
        const int32_t m1 = multipliers[(o + 1) * to.step];
        const int32_t s0 = ~(int32_t)shifts[o * to.step];
        const int32_t s1 = ~(int32_t)shifts[(o + 1) * to.step];
        out[o] = stored_row_$X(sums[0], m0, s0, twice, &to, full);
        out[o + 1] = stored_row_$X(sums[1], m1, s1, twice, &to, full);
        out[n + o] = stored_row_$X(sums[2], m0, s0, twice, &to, full);
        out[n + o + 1] = stored_row_$X(sums[3], m1, s1, twice, &to, full);
    }
}

/* One pixel of four channels: ``w`` are the weights of two of them, ``v`` of the other two. */
INLINED void dot_two_pairs_$X(
    const $X_t *x, const int8_t *w, const int8_t *v, int32_t blocks, int32_t *sums)
{
#if defined(__ARM_FEATURE_DSP)
    int32_t s0 = sums[0];
    int32_t s1 = sums[1];
    int32_t s2 = sums[2];
    int32_t s3 = sums[3];
    const int8_t *const end = w + 8 * blocks;
    do {
        const uint32_t a = load_4(w);
        const uint32_t b = load_4(w + 4);
        const uint32_t in = load_4(x);
        x += 4;
        w += 8;
        const uint32_t even = even_$S(in);
        const uint32_t odd = odd_$S(in);
        s0 = add_products(even, even_s8(a), s0);
        s1 = add_products(even, even_s8(b), s1);
        s0 = add_products(odd, odd_s8(a), s0);
        s1 = add_products(odd, odd_s8(b), s1);
        const uint32_t c = load_4(v);
        const uint32_t d = load_4(v + 4);
        v += 8;
        s2 = add_products(even, even_s8(c), s2);
        s3 = add_products(even, even_s8(d), s3);
        s2 = add_products(odd, odd_s8(c), s2);
        s3 = add_products(odd, odd_s8(d), s3);
    } while (w != end);
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
#else
    (void)dot_1x2_$X(x, w, blocks, sums);
    (void)dot_1x2_$X(x, v, blocks, sums + 2);
#endif
}

/* One pixel, four channels at a time, for ROUND_TWICE_SMALL. Returns where the weights end. */
NOT_INLINED const int8_t *one_pixel_$X(const convolution_row_$X *c, const run_$X *runs,
    int32_t count, const int8_t *w, const int32_t *bias, const int32_t *multipliers,
    const int8_t *shifts, uint8_t *out, bool full)
{
    const int32_t n = c->out_channels;
    const requantisation to = c->to;
    int32_t pair = 0; /* bytes of the weights of two channels */
    for (int32_t i = 0; i < count; ++i) {
        pair += 8 * runs[i].blocks;
    }
    for (int32_t o = 0; o + 3 < n; o += 4) {
        int32_t sums[4] = {bias[o], bias[o + 1], bias[o + 2], bias[o + 3]};
        for (int32_t i = 0; i < count; ++i) {
            dot_two_pairs_$X(runs[i].first, w, w + pair, runs[i].blocks, sums);
            w += 8 * runs[i].blocks;
        }
        w += pair;
        const int32_t at = o * to.step;
        if (full) {
            store_four_$X(sums, multipliers + at, shifts + at, &to, true, out + o);
        } else {
            store_four_$X(sums, multipliers + at, shifts + at, &to, false, out + o);
        }
    }
    return w;
}

/* One pixel from channel ``o`` on, for any rounding. */
NOT_INLINED void rest_of_pixel_$X(const convolution_row_$X *c, const run_$X *runs, int32_t count,
    int32_t o, const int8_t *w, const int32_t *bias, const int32_t *multipliers,
    const int8_t *shifts, uint8_t *out)
{
    const int32_t n = c->out_channels;
    const int32_t step = c->to.step;
    for (; o < n; o += 2) {
        int32_t sums[2] = {bias[o], o + 1 < n ? bias[o + 1] : 0};
        for (int32_t i = 0; i < count; ++i) {
            w = dot_1x2_$X(runs[i].first, w, runs[i].blocks, sums);
        }
        for (int32_t k = 0; k < 2 && o + k < n; ++k) {
            const int32_t at = (o + k) * step;
            out[o + k] = (uint8_t)requantised(&c->to, sums[k], multipliers[at], shifts[at]);
        }
    }
}

NOT_INLINED void convolve_row_$X(const convolution_row_$X *c, const $X_t *const *rows,
    const int8_t *weights, const int32_t *bias, const int32_t *multipliers, const int8_t *shifts,
    const $X_t *outside, uint8_t *out, int32_t pixels, $X_t *columns, run_$X *runs)
{
    const bool small = c->to.rounding == ROUND_TWICE_SMALL;
    const bool full = c->to.low == ($L) && c->to.high == ($L) + 255;
    const int32_t step = c->stride_x;
    const bool even = c->out_channels % 2 == 0;
    int32_t ox = 0;
    while (ox < pixels) {
        const int32_t x0 = ox * step - c->left;
        const bool two = small && even && ox + 1 < pixels;
        bool pair = two;
        int32_t count = 1;
        if (columns != NULL) {
            gather_row_$X(c, rows, outside, x0, columns);
            if (two) {
                gather_row_$X(c, rows, outside, x0 + step, columns + c->depth);
            }
            runs[0] = (run_$X){columns, columns + c->depth, c->depth / 4};
        } else if (x0 >= 0 && x0 + c->kernel_width <= c->width) {
            pair = two && x0 + step + c->kernel_width <= c->width;
            count = c->sources;
            for (int32_t s = 0; s < count; ++s) {
                const int32_t n = c->channels[s];
                const $X_t *const first = rows[s] + x0 * n;
                runs[s] = (run_$X){first, first + step * n, c->kernel_width * n / 4};
            }
        } else {
            pair = false;
            count = border_runs_$X(c, rows, outside, x0, runs);
        }
        if (!pair) {
            const int8_t *w = weights;
            int32_t o = 0;
            if (small) {
                w = one_pixel_$X(
                    c, runs, count, w, bias, multipliers, shifts, out, full);
                o = c->out_channels & ~3;
            }
            rest_of_pixel_$X(c, runs, count, o, w, bias, multipliers, shifts, out);
        } else if (full && count == 1) {
            two_pixels_$X(c, runs, 1, weights, bias, multipliers, shifts, out, true);
        } else if (full) {
            two_pixels_$X(c, runs, count, weights, bias, multipliers, shifts, out, true);
        } else {
            two_pixels_$X(c, runs, count, weights, bias, multipliers, shifts, out, false);
        }
        ox += pair ? 2 : 1;
        out += (pair ? 2 : 1) * c->out_channels;
    }
}
