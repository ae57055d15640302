/* DSP extension: two channels of three windows at a time, $X inputs, for ROUND_TWICE_SMALL.

   A halfword of weights is 256 a + b, of two channels a and b of one input. As it stands it gives
   sums T = 256 A + B, which may wrap; its low byte gives B, and A is (T - B) / 256: all of it, as
   |A| < 2^23 is shown at build time. Inputs are widened to 16 bits, once for all channels: a block
   of four is its even ones of each window, then its odd ones of each.

   ``numbers`` of a pair: T's bias, B's bias, then of a and of b the two numbers of
   ``short.h``. */
typedef struct {
    const convolution_$X *c;
    const int32_t *weights, *numbers;
    const $X_t *outside;
    int16_t *wide;
    $X_t *column; /* a window, where its pixels are no whole blocks */
    bool flat;    /* windows are pixels of whole blocks that follow each other */
} triples_$X;

/* A line's end: ``second`` and ``third`` are where the results of these windows go, from ``out``. */
typedef struct {
    const int32_t *numbers;
    $X_t *out;
    const int16_t *wide;
    int32_t skipped; /* bytes of code: blocks that are not a multiple of four */
    const $X_t *out_end;
    int32_t second, third;
    const int16_t *wide_end;
    const int32_t *weights;
} three_$X;

#if defined(__ARM_FEATURE_DSP)
#define TRIPLE_BLOCK_BYTES 68
#define TRIPLE_PRODUCTS(w) \
    "smlad r0, r6, " w ", r0\n smlad r1, r7, " w ", r1\n smlad r2, r8, " w ", r2\n" \
    "sxtb16 " w ", " w "\n" \
    "smlad r3, r6, " w ", r3\n smlad r4, r7, " w ", r4\n smlad r5, r8, " w ", r5\n"
/* Twice a sum in ``s`` -> the stored value: r7 multiplier, r8 shift, r9 what is added. */
#define TRIPLE_ROUNDED(s) \
    "smmlar " s ", " s ", r7, r6\n asr " s ", " s ", r8\n" SATURATE_$S " " s ", #8, " s ", asr #1\n"
#define TRIPLE_FIRST(s, b) \
    "sub " s ", " s ", " b "\n add r6, r9, " s ", asr #31\n asr " s ", " s ", #7\n" \
    TRIPLE_ROUNDED(s)
#define TRIPLE_SECOND(s) \
    "add r6, r9, " s ", asr #31\n lsl " s ", " s ", #1\n" TRIPLE_ROUNDED(s)
/* All channels of three windows. A window that is stored last is stored over one before it: where
   there are fewer than three, those that are missing are put where the last one goes. */
__attribute__((naked, noinline, unused)) static void three_windows_$X(
    __attribute__((unused)) const three_$X *t)
{
    __asm volatile(
        "push {r4-r11, lr}\n"
        "sub sp, sp, #28\n"
        "ldm r0, {r1, r2, r3, r4, r5, r6, r7, r8, r12}\n"
        "mov lr, r8\n"
        "adr r0, 2f\n"
        "add r4, r4, r0\n"
        "add r4, r4, #1\n"
        "mov r0, sp\n"
        "stm r0, {r1-r7}\n"
        "1:\n"
        "ldr r6, [sp]\n"
        "ldr r11, [sp, #8]\n"
        "ldm r6!, {r0, r3}\n"
        "str r6, [sp]\n"
        "mov r1, r0\n"
        "mov r2, r0\n"
        "mov r4, r3\n"
        "mov r5, r3\n"
        "ldr pc, [sp, #12]\n"
        ".balign 4\n"
        "2:\n"
        ".rept 4\n"
        "ldrd r9, r10, [r12], #8\n"
        "ldm.w r11!, {r6, r7, r8}\n"
        TRIPLE_PRODUCTS("r9")
        "ldm.w r11!, {r6, r7, r8}\n"
        TRIPLE_PRODUCTS("r10")
        ".endr\n"
        "cmp r11, lr\n"
        "bne.w 2b\n"
        "ldrd r10, r11, [sp]\n"
        "ldm r10!, {r7, r8}\n asr r9, r8, #8\n lsl r9, r9, r8\n"
        TRIPLE_FIRST("r0", "r3")
        TRIPLE_FIRST("r1", "r4")
        TRIPLE_FIRST("r2", "r5")
        "ldm r10!, {r7, r8}\n asr r9, r8, #8\n lsl r9, r9, r8\n"
        TRIPLE_SECOND("r3")
        TRIPLE_SECOND("r4")
        TRIPLE_SECOND("r5")
        "ldr r6, [sp, #16]\n"
        "ldrd r7, r8, [sp, #20]\n"
        "strb r2, [r11, r8]\n"
        "strb r1, [r11, r7]\n"
        "strb r0, [r11], #1\n"
        "strb r5, [r11, r8]\n"
        "strb r4, [r11, r7]\n"
        "strb r3, [r11], #1\n"
        "strd r10, r11, [sp]\n"
        "cmp r11, r6\n"
        "bne.w 1b\n"
        "add sp, sp, #28\n"
        "pop {r4-r11, pc}\n");
}
#else
#define TRIPLE_BLOCK_BYTES 0
NOT_INLINED void three_windows_$X(const three_$X *t)
{
    const int32_t depth = (int32_t)(t->wide_end - t->wide) / 3;
    const int32_t channels = (int32_t)(t->out_end - t->out);
    const int32_t to[3] = {0, t->second, t->third};
    for (int32_t at = 2; at >= 0; --at) {
        const int16_t *w = (const int16_t *)(const void *)t->weights;
        const int32_t *n = t->numbers;
        for (int32_t o = 0; o < channels; o += 2) {
            uint32_t both = (uint32_t)n[0];
            int32_t second = n[1];
            for (int32_t i = 0; i < depth; ++i, ++w) {
                const int32_t x = t->wide[i / 2 * 6 + i % 2 + 2 * at];
                both += (uint32_t)(x * *w);
                second += x * (int8_t)*w;
            }
            const int32_t first = (int32_t)(both - (uint32_t)second) >> 8;
            t->out[to[at] + o] = ($X_t)rounded_$S(first, n + 2);
            t->out[to[at] + o + 1] = ($X_t)rounded_$S(second, n + 4);
            n += 6;
        }
    }
}
#endif

/* Inputs that follow each other, widened for one of three windows: returns where its next go. */
INLINED int16_t *widened_$X(const $X_t *x, int32_t count, int16_t *to)
{
    for (; count > 0; count -= 4) {
#if defined(__ARM_FEATURE_DSP)
        const uint32_t four = load_4(x);
        const uint32_t even = even_$S(four);
        const uint32_t odd = odd_$S(four);
        (void)memcpy(to, &even, 4);
        (void)memcpy(to + 6, &odd, 4);
#else
        to[0] = x[0];
        to[1] = x[2];
        to[6] = x[1];
        to[7] = x[3];
#endif
        to += 12;
        x += 4;
    }
    return to;
}

/* Three windows that follow each other, ``depth`` inputs each. */
#if defined(__ARM_FEATURE_DSP)
__attribute__((naked, noinline, unused)) static void widen_three_$X(
    __attribute__((unused)) const $X_t *x, __attribute__((unused)) int32_t depth,
    __attribute__((unused)) int16_t *to)
{
    __asm volatile(
        "push {r4-r8, lr}\n"
        "add r8, r0, r1\n"
        "lsl lr, r1, #1\n"
        "1:\n"
        "ldr r5, [r0, r1]\n"
        "ldr r6, [r0, lr]\n"
        "ldr r4, [r0], #4\n"
        WIDENED_$S " r3, r4\n"
        WIDENED_$S " r7, r5\n"
        WIDENED_$S " r12, r6\n"
        WIDENED_$S " r4, r4, ror #8\n"
        WIDENED_$S " r5, r5, ror #8\n"
        WIDENED_$S " r6, r6, ror #8\n"
        "stm r2!, {r3, r7, r12}\n"
        "stm r2!, {r4, r5, r6}\n"
        "cmp r0, r8\n"
        "bne 1b\n"
        "pop {r4-r8, pc}\n");
}
#else
NOT_INLINED void widen_three_$X(const $X_t *x, int32_t depth, int16_t *to)
{
    for (int32_t i = 0; i < 3; ++i) {
        (void)widened_$X(x + i * depth, depth, to + 2 * i);
    }
}
#endif

/* A window is widened: one of three. */
NOT_INLINED void widen_window_$X(const triples_$X *t, window_$X from, int16_t *to)
{
    const convolution_$X *const c = t->c;
    if (t->column != NULL) {
        (void)fill_$X(t->column + c->depth - 4, 0, 4);
        gather_$X(c, from, t->column);
        (void)widened_$X(t->column, c->depth, to);
        return;
    }
    for (int32_t p = 0; p < c->pieces; ++p) {
        const int32_t n = c->channels[p];
        for (int32_t ky = 0; ky < c->kernel_height; ++ky) {
            const $X_t *const row = *from.rows++;
            const int32_t end = from.x + c->kernel_width;
            if (row != NULL && c->dilation_x == 1 && from.x >= 0 && end <= c->width) {
                to = widened_$X(row + from.x * n, c->kernel_width * n, to);
                continue;
            }
            for (int32_t kx = 0; kx < c->kernel_width; ++kx) {
                const int32_t x = from.x + kx * c->dilation_x;
                const bool inside = row != NULL && x >= 0 && x < c->width;
                to = widened_$X(inside ? row + x * n : t->outside, n, to);
            }
        }
    }
}

/* ``pixels`` of the result from the first line on. */
NOT_INLINED void convolve_triples_$X(
    const triples_$X *t, const $X_t *const *rows, $X_t *out, int32_t pixels)
{
    const convolution_$X *const c = t->c;
    const int32_t n = c->out_channels;
    const requantisation to = c->to;
    const bool full = to.low == ($L) && to.high == ($L) + 255;
    window_$X at = {rows, -c->left};
    three_$X three = {t->numbers, out, t->wide, 0, out, n, 2 * n, t->wide + 3 * c->depth,
        t->weights};
    three.skipped = (-(c->depth / 4) & 3) * TRIPLE_BLOCK_BYTES;
    for (; pixels > 0; pixels -= 3) {
        const int32_t count = min_i32(pixels, 3);
        if (t->flat && count == 3) {
            widen_three_$X(*rows + at.x * c->depth, c->depth, t->wide);
            at.x += 3;
        } else {
            for (int32_t i = 0; i < count; ++i) {
                widen_window_$X(t, at, t->wide + 2 * i);
                next_$X(c, &at);
            }
        }
        three.out = out;
        three.out_end = out + n;
        three.second = count > 1 ? n : 0;
        three.third = count > 2 ? 2 * n : three.second;
        three_windows_$X(&three);
        for (int32_t i = 0; i < (full ? 0 : count * n); ++i) {
            out[i] = ($X_t)clamped(out[i], to.low, to.high);
        }
        out += count * n;
    }
}

/* All lines of whole tensors, three at a time, so that windows go by threes across lines.

   ``rows`` has room for the rows under the windows of three lines. */
NOT_INLINED void convolve_triples_lines_$X(const triples_$X *t, const lines_$X *l,
    const $X_t *const *pieces, $X_t *out, const $X_t **rows)
{
    const convolution_$X *const c = t->c;
    for (int32_t line = 0; line < l->out_height; line += 3) {
        const int32_t end = min_i32(line + 3, l->out_height);
        const $X_t **to = rows;
        for (int32_t y = line; y < end; ++y) {
            for (int32_t p = 0; p < c->pieces; ++p) {
                to = point_$X(l, pieces[p], c->width * c->channels[p], y, to);
            }
        }
        const int32_t pixels = (end - line) * c->out_width;
        convolve_triples_$X(t, rows, out, pixels);
        out += pixels * c->out_channels;
    }
}
