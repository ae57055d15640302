/* Lines of a convolution of any window, $X inputs, one tensor or several joined along the channels.

   ``rows`` are those under the windows of a line, wherever they lie: those of the first piece, of
   the next, ..., then those of the next line. NULL is a row outside. What two windows read at a
   time are runs of inputs that follow each other, in blocks of four. */
typedef struct {
    const $X_t *first, *second;
    int32_t blocks;
} run_$X;

/* Where a window begins: the rows under it, and its first pixel of them. */
typedef struct {
    const $X_t *const *rows;
    int32_t x;
} window_$X;

/* The numbers of a layer, and room to work. */
typedef struct {
    const int8_t *weights;
    const int32_t *bias, *multipliers;
    const int8_t *shifts;
    const $X_t *outside; /* pixels of zero points, as many as a window has in a row */
    $X_t *columns;       /* two windows, where they are gathered */
    run_$X *runs;
} with_$X;

typedef struct convolution_$X convolution_$X;
struct convolution_$X {
    int32_t pieces, kernel_height;
    int32_t width, out_width, out_channels;
    int32_t kernel_width, stride_x, dilation_x, left;
    int32_t depth; /* of a column: inputs in a window, made a multiple of four by weights of 0 */
    int32_t input_zero;
    requantisation to;
    /* How two windows, or twice the same, are read: returns where their runs end. */
    run_$X *(*read)(const convolution_$X *c, const with_$X *with, const window_$X *two);
    uint16_t channels[16]; /* of each piece */
};

NOT_INLINED void gather_$X(const convolution_$X *c, window_$X from, $X_t *to)
{
    const int32_t before = from.x < 0 ? min_i32(-from.x, c->kernel_width) : 0;
    const int32_t end = max_i32(min_i32(c->kernel_width, c->width - from.x), before);
    for (int32_t p = 0; p < c->pieces; ++p) {
        const int32_t n = c->channels[p];
        for (int32_t ky = 0; ky < c->kernel_height; ++ky) {
            const $X_t *const row = *from.rows++;
            if (row == NULL) {
                to = fill_$X(to, c->input_zero, c->kernel_width * n);
            } else if (c->dilation_x == 1) {
                to = fill_$X(to, c->input_zero, before * n);
                to = copy_$X(to, row + (from.x + before) * n, (end - before) * n);
                to = fill_$X(to, c->input_zero, (c->kernel_width - end) * n);
            } else {
                for (int32_t kx = 0; kx < c->kernel_width; ++kx) {
                    const int32_t x = from.x + kx * c->dilation_x;
                    const bool inside = x >= 0 && x < c->width;
                    to = inside ? copy_$X(to, row + x * n, n) : fill_$X(to, c->input_zero, n);
                }
            }
        }
    }
}

/* Windows are gathered into columns. */
NOT_INLINED run_$X *gathered_$X(
    const convolution_$X *c, const with_$X *with, const window_$X *two)
{
    $X_t *const second = with->columns + c->depth;
    (void)fill_$X(second - 4, 0, 4);
    gather_$X(c, two[0], with->columns);
    if (two[0].x != two[1].x || two[0].rows != two[1].rows) {
        (void)fill_$X(second + c->depth - 4, 0, 4);
        gather_$X(c, two[1], second);
    }
    *with->runs = (run_$X){with->columns, second, c->depth / 4};
    return with->runs + 1;
}

/* Windows are one run of one row that none leaves, read in place. */
NOT_INLINED run_$X *single_$X(
    const convolution_$X *c, const with_$X *with, const window_$X *two)
{
    const int32_t n = c->channels[0];
    run_$X *const to = with->runs;
    to->first = *two[0].rows + two[0].x * n;
    to->second = *two[1].rows + two[1].x * n;
    to->blocks = c->depth / 4;
    return to + 1;
}

/* Windows are read in place: none leaves its rows. All pieces have whole blocks of channels. */
NOT_INLINED run_$X *inside_$X(
    const convolution_$X *c, const with_$X *with, const window_$X *two)
{
    run_$X *to = with->runs;
    const $X_t *const *a = two[0].rows;
    const $X_t *const *b = two[1].rows;
    for (int32_t p = 0; p < c->pieces; ++p) {
        const int32_t n = c->channels[p];
        for (int32_t ky = 0; ky < c->kernel_height; ++ky) {
            to->first = *a != NULL ? *a + two[0].x * n : with->outside;
            to->second = *b != NULL ? *b + two[1].x * n : with->outside;
            to->blocks = c->kernel_width * n / 4;
            ++a;
            ++b;
            ++to;
        }
    }
    return to;
}

/* Windows are read in place, as above, and may leave their rows or have pixels that lie apart. */
NOT_INLINED run_$X *bordered_$X(
    const convolution_$X *c, const with_$X *with, const window_$X *two)
{
    const int32_t last = c->width - c->kernel_width;
    if (two[0].x >= 0 && two[0].x <= last && two[1].x >= 0 && two[1].x <= last &&
        c->dilation_x == 1) {
        return inside_$X(c, with, two);
    }
    run_$X *to = with->runs;
    const $X_t *const *a = two[0].rows;
    const $X_t *const *b = two[1].rows;
    for (int32_t p = 0; p < c->pieces; ++p) {
        const int32_t n = c->channels[p];
        for (int32_t ky = 0; ky < c->kernel_height; ++ky) {
            bool a_before = false;
            bool b_before = false;
            for (int32_t kx = 0; kx < c->kernel_width; ++kx) {
                const int32_t xa = two[0].x + kx * c->dilation_x;
                const int32_t xb = two[1].x + kx * c->dilation_x;
                const bool a_inside = *a != NULL && xa >= 0 && xa < c->width;
                const bool b_inside = *b != NULL && xb >= 0 && xb < c->width;
                const bool follows = kx > 0 && c->dilation_x == 1;
                if (follows && a_inside == a_before && b_inside == b_before) {
                    to[-1].blocks += n / 4;
                } else {
                    to->first = a_inside ? *a + xa * n : with->outside;
                    to->second = b_inside ? *b + xb * n : with->outside;
                    to->blocks = n / 4;
                    ++to;
                }
                a_before = a_inside;
                b_before = b_inside;
            }
            ++a;
            ++b;
        }
    }
    return to;
}

/* Two pixels, pairs of channels, for ROUND_TWICE_SMALL. */
INLINED void two_pixels_$X(const convolution_$X *c, const with_$X *with,
    const run_$X *end, uint8_t *out, bool alone, int32_t range)
{
    const int32_t n = c->out_channels;
    const requantisation to = c->to;
    const int32_t twice = 2 * to.zero_point + 1;
    const int8_t *w = with->weights;
    const int32_t *const bias = with->bias;
    const int32_t *const multipliers = with->multipliers;
    const int8_t *const shifts = with->shifts;
    const run_$X only = *with->runs;
    for (int32_t o = 0; o + 1 < n; o += 2) {
        int32_t sums[4] = {bias[o], bias[o + 1], bias[o], bias[o + 1]};
        if (alone) {
            w = dot_2x2_$X(only.first, only.second, w, only.blocks, sums);
        } else {
            const run_$X *run = with->runs;
            do {
                w = dot_2x2_$X(run->first, run->second, w, run->blocks, sums);
                ++run;
            } while (run != end);
        }
        const int32_t m0 = multipliers[o * to.step];
        const int32_t m1 = multipliers[(o + 1) * to.step];
        const int32_t s0 = ~(int32_t)shifts[o * to.step];
        const int32_t s1 = ~(int32_t)shifts[(o + 1) * to.step];
        out[o] = stored(sums[0], m0, s0, twice, &to, range);
        out[o + 1] = stored(sums[1], m1, s1, twice, &to, range);
        out[n + o] = stored(sums[2], m0, s0, twice, &to, range);
        out[n + o + 1] = stored(sums[3], m1, s1, twice, &to, range);
    }
}

/* One pixel of four channels: ``w`` are the weights of two of them, ``v`` of the other two. */
INLINED void dot_1x4_$X(
    const $X_t *x, const int8_t *w, const int8_t *v, int32_t blocks, int32_t *sums)
{
    int32_t s0 = sums[0];
    int32_t s1 = sums[1];
    int32_t s2 = sums[2];
    int32_t s3 = sums[3];
#if defined(__ARM_FEATURE_DSP)
    const int8_t *const end = w + 8 * blocks;
    do {
        uint32_t odd = load_4(x);
        x += 4;
        const uint32_t even = even_$S(odd);
        odd = odd_$S(odd);
        uint32_t a = load_4(w);
        s0 = add_products(even, even_s8(a), s0);
        s0 = add_products(odd, odd_s8(a), s0);
        a = load_4(w + 4);
        w += 8;
        s1 = add_products(even, even_s8(a), s1);
        s1 = add_products(odd, odd_s8(a), s1);
        __asm volatile("" ::: "memory"); /* loads stay behind: registers are few */
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
            const int32_t in = x[i];
            s0 += in * w[i];
            s1 += in * w[i + 4];
            s2 += in * v[i];
            s3 += in * v[i + 4];
        }
        w += 8;
        v += 8;
        x += 4;
    }
#endif
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

/* One or two pixels from channel ``o`` on, four channels at a time, for any rounding. */
NOT_INLINED void pixels_$X(const convolution_$X *c, const with_$X *with, const run_$X *end,
    int32_t count, int32_t o, uint8_t *out)
{
    const requantisation to = c->to;
    const with_$X numbers = *with;
    const int32_t n = c->out_channels;
    const int32_t depth = c->depth;
    const bool full = to.low == ($L) && to.high == ($L) + 255;
    const bool short_form = to.rounding == ROUND_TWICE_SMALL && full;
    for (; short_form && o + 3 < n; o += 4) {
        const int32_t at = o * to.step;
        for (int32_t i = 0; i < count; ++i) {
            const int32_t *const b = numbers.bias + o;
            const int8_t *w = numbers.weights + o * depth;
            int32_t sums[4] = {b[0], b[1], b[2], b[3]};
            const run_$X *run = numbers.runs;
            do {
                const $X_t *const x = i == 0 ? run->first : run->second;
                dot_1x4_$X(x, w, w + 2 * depth, run->blocks, sums);
                w += 8 * run->blocks;
            } while (++run != end);
            store_four(sums, numbers.multipliers + at, numbers.shifts + at, &to, FULL_$S,
                out + i * n + o);
        }
    }
    for (; o < n; o += 4) {
        const int32_t width = min_i32(n - o, 4);
        const int32_t *const b = numbers.bias + o;
        const int32_t *const m = numbers.multipliers + o * to.step;
        const int8_t *const s = numbers.shifts + o * to.step;
        for (int32_t i = 0; i < count; ++i) {
            const int8_t *w = numbers.weights + o * depth;
            uint8_t *const four = out + i * n + o;
            int32_t sums[4] = {b[0], 0, 0, 0};
            if (width == 4) {
                sums[1] = b[1];
                sums[2] = b[2];
                sums[3] = b[3];
            } else if (width > 1) {
                sums[1] = b[1];
                sums[2] = width > 2 ? b[2] : 0;
            }
            for (const run_$X *run = numbers.runs; run != end; ++run) {
                const $X_t *const x = i == 0 ? run->first : run->second;
                if (width > 2) {
                    dot_1x4_$X(x, w, w + 2 * depth, run->blocks, sums);
                } else {
                    dot_1x2_$X(x, w, run->blocks, sums);
                }
                w += 8 * run->blocks;
            }
            for (int32_t k = 0; k < width; ++k) {
                const int32_t at = k * to.step;
                four[k] = (uint8_t)requantised(&to, sums[k], m[at], s[at]);
            }
        }
    }
}

/* Move a window to the next pixel of the result: along the line, or to the next one. */
INLINED void next_$X(const convolution_$X *c, window_$X *at)
{
    at->x += c->stride_x;
    if (at->x == c->out_width * c->stride_x - c->left) {
        at->x = -c->left;
        at->rows += c->pieces * c->kernel_height;
    }
}

/* ``pixels`` of the result from the first line on. */
NOT_INLINED void convolve_$X(const convolution_$X *c, const with_$X *with,
    const $X_t *const *rows, uint8_t *out, int32_t pixels)
{
    const bool small = c->to.rounding == ROUND_TWICE_SMALL;
    const bool full = c->to.low == ($L) && c->to.high == ($L) + 255;
    window_$X at = {rows, -c->left};
    for (; pixels > 0; pixels -= 2) {
        const int32_t count = min_i32(pixels, 2);
        window_$X two[2] = {at, at};
        next_$X(c, &at);
        if (count == 2) {
            two[1] = at;
            next_$X(c, &at);
        }
        const run_$X *const end = c->read(c, with, two);
        int32_t o = 0;
        if (small && count == 2) {
            o = c->out_channels & ~1;
            if (!full) {
                two_pixels_$X(c, with, end, out, false, BOUNDED);
            } else if (end != with->runs + 1) {
                two_pixels_$X(c, with, end, out, false, FULL_$S);
            } else {
                two_pixels_$X(c, with, end, out, true, FULL_$S);
            }
        }
        if (o < c->out_channels) {
            pixels_$X(c, with, end, count, o, out);
        }
        out += count * c->out_channels;
    }
}

/* All lines of whole tensors, two at a time, so that windows pair across lines of odd width.

   ``rows`` has room for the rows under the windows of two lines. */
NOT_INLINED void convolve_lines_$X(const convolution_$X *c, const with_$X *with,
    const lines_$X *l, const $X_t *const *pieces, uint8_t *out, const $X_t **rows)
{
    for (int32_t line = 0; line < l->out_height; line += 2) {
        const int32_t end = min_i32(line + 2, l->out_height);
        const $X_t **to = rows;
        for (int32_t y = line; y < end; ++y) {
            for (int32_t p = 0; p < c->pieces; ++p) {
                to = point_$X(l, pieces[p], c->width * c->channels[p], y, to);
            }
        }
        const int32_t pixels = (end - line) * c->out_width;
        convolve_$X(c, with, rows, out, pixels);
        out += pixels * c->out_channels;
    }
}
