/* Convolutions of any window over one tensor or several joined along the channels ($X inputs).

   A window that is contiguous in memory is read in place; any other is gathered into a column of
   the workspace first, two columns at a time. */
typedef struct {
    int32_t pieces;
    int32_t height, width;
    int32_t out_height, out_width, out_channels;
    int32_t kernel_height, kernel_width;
    int32_t stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t channels; /* of all pieces */
    int32_t blocks;   /* of four inputs in a window, the last one filled up with weights of 0 */
    int32_t in_place; /* whether windows are contiguous */
    int32_t input_zero;
    requantisation to;
    uint16_t piece_channels[16];
} convolution_$X;

NOT_INLINED void gather_$X(
    const convolution_$X *c, const $X_t *const *pieces, int32_t oy, int32_t ox, $X_t *to)
{
    const int32_t y0 = oy * c->stride_y - c->top;
    const int32_t x0 = ox * c->stride_x - c->left;
    const bool runs = c->pieces == 1 && c->dilation_x == 1;
    for (int32_t ky = 0; ky < c->kernel_height; ++ky) {
        const int32_t y = y0 + ky * c->dilation_y;
        if (y < 0 || y >= c->height) {
            fill_$X(to, c->input_zero, c->kernel_width * c->channels);
            to += c->kernel_width * c->channels;
        } else if (runs) {
            const int32_t before = x0 < 0 ? min_i32(-x0, c->kernel_width) : 0;
            const int32_t end = max_i32(min_i32(c->kernel_width, c->width - x0), before);
            const int32_t inside = (end - before) * c->channels;
            fill_$X(to, c->input_zero, before * c->channels);
            to += before * c->channels;
            copy_$X(to, pieces[0] + (y * c->width + x0 + before) * c->channels, inside);
            to += inside;
            fill_$X(to, c->input_zero, (c->kernel_width - end) * c->channels);
            to += (c->kernel_width - end) * c->channels;
        } else {
            for (int32_t kx = 0; kx < c->kernel_width; ++kx) {
                const int32_t x = x0 + kx * c->dilation_x;
                for (int32_t p = 0; p < c->pieces; ++p) {
                    const int32_t n = c->piece_channels[p];
                    if (x < 0 || x >= c->width) {
                        fill_$X(to, c->input_zero, n);
                    } else {
                        copy_$X(to, pieces[p] + (y * c->width + x) * n, n);
                    }
                    to += n;
                }
            }
        }
    }
}

/* Two columns, all pairs of channels, for ROUND_TWICE_SMALL. Returns where the weights end. */
INLINED const int8_t *pairs_$X(const convolution_$X *c,
    const $X_t *x0, const $X_t *x1, const int8_t *w, const int32_t *bias,
    const int32_t *multipliers, const int8_t *shifts, uint8_t *out, bool whole)
{
    const int32_t n = c->out_channels;
    const int32_t blocks = c->blocks;
    const requantisation to = c->to;
    for (int32_t o = 0; o + 1 < n; o += 2) {
        int32_t sums[4] = {bias[o], bias[o + 1], bias[o], bias[o + 1]};
        w = dot_2x2_$X(x0, x1, w, blocks, sums);
        const scale first = scale_of(&to, multipliers, shifts, o);
        const scale second = scale_of(&to, multipliers, shifts, o + 1);
        const int32_t v0 = scaled_small(sums[0], first);
        const int32_t v1 = scaled_small(sums[1], second);
        const int32_t v2 = scaled_small(sums[2], first);
        const int32_t v3 = scaled_small(sums[3], second);
        out[o] = (uint8_t)(whole ? clamped_$S(v0) : clamped(v0, to.low, to.high));
        out[o + 1] = (uint8_t)(whole ? clamped_$S(v1) : clamped(v1, to.low, to.high));
        out[n + o] = (uint8_t)(whole ? clamped_$S(v2) : clamped(v2, to.low, to.high));
        out[n + o + 1] = (uint8_t)(whole ? clamped_$S(v3) : clamped(v3, to.low, to.high));
    }
    return w;
}

/* One column and four channels: two pairs that read each input once. */
INLINED void dot_1x4_$X(const $X_t *x0, const int8_t *w, int32_t blocks, int32_t *sums)
{
    int32_t s0 = sums[0];
    int32_t s1 = sums[1];
    int32_t s2 = sums[2];
    int32_t s3 = sums[3];
    const int8_t *v = w + 8 * blocks;
#if defined(__ARM_FEATURE_DSP)
    const int8_t *const end = v;
    do {
        uint32_t odd = load_4(x0);
        x0 += 4;
        const uint32_t even = even_$S(odd);
        odd = odd_$S(odd);
        uint32_t a = load_4(w);
        s0 = add_products(even, even_s8(a), s0);
        s0 = add_products(odd, odd_s8(a), s0);
        a = load_4(w + 4);
        w += 8;
        s1 = add_products(even, even_s8(a), s1);
        s1 = add_products(odd, odd_s8(a), s1);
        a = load_4(v);
        s2 = add_products(even, even_s8(a), s2);
        s2 = add_products(odd, odd_s8(a), s2);
        a = load_4(v + 4);
        v += 8;
        s3 = add_products(even, even_s8(a), s3);
        s3 = add_products(odd, odd_s8(a), s3);
    } while (w != end);
#else
    for (; blocks > 0; --blocks) {
        for (int32_t i = 0; i < 4; ++i) {
            const int32_t x = x0[i];
            s0 += x * w[i];
            s1 += x * w[i + 4];
            s2 += x * v[i];
            s3 += x * v[i + 4];
        }
        w += 8;
        v += 8;
        x0 += 4;
    }
#endif
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

/* One column or two, from channel ``o`` on, for any rounding. */
NOT_INLINED void rest_$X(const convolution_$X *c, const $X_t *const *columns, int32_t count,
    int32_t o, const int8_t *w, const int32_t *bias, const int32_t *multipliers,
    const int8_t *shifts, uint8_t *out)
{
    const int32_t n = c->out_channels;
    const int32_t step = c->to.step;
    for (; o < n; o += 4) {
        const int32_t width = min_i32(n - o, 4);
        for (int32_t i = 0; i < count; ++i) {
            int32_t sums[4];
            for (int32_t k = 0; k < 4; ++k) {
                sums[k] = k < width ? bias[o + k] : 0;
            }
            if (width > 2) {
                dot_1x4_$X(columns[i], w, c->blocks, sums);
            } else {
                (void)dot_1x2_$X(columns[i], w, c->blocks, sums);
            }
            for (int32_t k = 0; k < width; ++k) {
                const int32_t at = (o + k) * step;
                out[i * n + o + k] =
                    (uint8_t)requantised(&c->to, sums[k], multipliers[at], shifts[at]);
            }
        }
        w += 16 * c->blocks;
    }
}

NOT_INLINED void convolve_$X(const convolution_$X *c, const $X_t *const *pieces,
    const int8_t *weights, const int32_t *bias, const int32_t *multipliers, const int8_t *shifts,
    uint8_t *out, $X_t *gathered)
{
    const int32_t pixels = c->out_height * c->out_width;
    const int32_t depth = 4 * c->blocks;
    const bool small = c->to.rounding == ROUND_TWICE_SMALL;
    const bool whole = c->to.low == ($L) && c->to.high == ($L) + 255;
    int32_t oy = 0;
    int32_t ox = 0;
    if (!c->in_place) {
        fill_$X(gathered + depth - 4, 0, 4);
        fill_$X(gathered + 2 * depth - 4, 0, 4);
    }
    for (int32_t pixel = 0; pixel < pixels; pixel += 2) {
        const int32_t count = pixel + 1 < pixels ? 2 : 1;
        const $X_t *columns[2];
        if (c->in_place) {
            columns[0] = pieces[0] + pixel * c->channels;
            columns[1] = columns[0] + c->channels;
        } else {
            columns[0] = gathered;
            columns[1] = gathered + depth;
            for (int32_t i = 0; i < count; ++i) {
                gather_$X(c, pieces, oy, ox, gathered + i * depth);
                if (++ox == c->out_width) {
                    ox = 0;
                    ++oy;
                }
            }
        }
        const int8_t *w = weights;
        int32_t o = 0;
        if (small && count == 2) {
            w = whole ? pairs_$X(c, columns[0], columns[1], w, bias, multipliers, shifts, out, true)
                      : pairs_$X(
                            c, columns[0], columns[1], w, bias, multipliers, shifts, out, false);
            o = c->out_channels & ~1;
        }
        rest_$X(c, columns, count, o, w, bias, multipliers, shifts, out);
        out += count * c->out_channels;
    }
}
