/* DSP extension: two channels of two windows at a time, $X inputs as they lie, for ROUND_TWICE_SMALL:
   what convolutions take that have no room for widened inputs. Weights and numbers: ``triples.h``. */
typedef struct {
    int32_t skipped; /* bytes of code: blocks that are not a multiple of four */
    const $X_t *first, *second, *first_end;
} stretch_$X;

typedef struct {
    const convolution_$X *c;
    const int32_t *weights, *numbers;
    const with_$X *with;
    stretch_$X *stretches; /* as many as there may be runs */
} twos_$X;

/* ``second`` is where the results of the second window go, from ``out``. */
typedef struct {
    const stretch_$X *stretches;
    const int32_t *numbers;
    $X_t *out;
    const stretch_$X *stretches_end;
    const $X_t *out_end;
    int32_t second;
    const int32_t *weights;
} two_$X;

#if defined(__ARM_FEATURE_DSP)
#define TWO_BLOCK_BYTES 68
#define TWO_PRODUCTS(x, y, w) \
    "smlad r0, " x ", " w ", r0\n smlad r1, " y ", " w ", r1\n sxtb16 " w ", " w "\n" \
    "smlad r2, " x ", " w ", r2\n smlad r3, " y ", " w ", r3\n"
/* Twice a sum in ``s`` -> the stored value: r5 multiplier, r6 shift, r7 what is added. */
#define TWO_ROUNDED(s) \
    "smmlar " s ", " s ", r5, r4\n asr " s ", " s ", r6\n" SATURATE_$S " " s ", #8, " s ", asr #1\n"
#define TWO_FIRST(s, b) \
    "sub " s ", " s ", " b "\n add r4, r7, " s ", asr #31\n asr " s ", " s ", #7\n" TWO_ROUNDED(s)
#define TWO_SECOND(s) "add r4, r7, " s ", asr #31\n lsl " s ", " s ", #1\n" TWO_ROUNDED(s)
/* All channels of two windows; the first is stored last. */
__attribute__((naked, noinline, unused)) static void two_windows_$X(
    __attribute__((unused)) const two_$X *t)
{
    __asm volatile(
        "push {r4-r11, lr}\n"
        "sub sp, sp, #28\n"
        "ldm r0, {r1, r2, r3, r4, r5, r6, r12}\n"
        "str r1, [sp, #24]\n"
        "mov r0, sp\n"
        "stm r0, {r1-r6}\n"
        "1:\n"
        "ldr r6, [sp, #4]\n"
        "ldr r4, [sp, #24]\n"
        "ldm r6!, {r0, r2}\n"
        "str r6, [sp, #4]\n"
        "mov r1, r0\n"
        "mov r3, r2\n"
        "3:\n"
        "ldm r4!, {r5, r10, r11, lr}\n"
        "str r4, [sp]\n"
        ".balign 4\n"
        "add pc, r5\n"
        "nop\n"
        "2:\n"
        ".rept 4\n"
        "ldr r4, [r10], #4\n"
        "ldr r5, [r11], #4\n"
        "ldrd r8, r9, [r12], #8\n"
        WIDENED_$S " r6, r4\n"
        WIDENED_$S " r7, r5\n"
        WIDENED_$S " r4, r4, ror #8\n"
        WIDENED_$S " r5, r5, ror #8\n"
        TWO_PRODUCTS("r6", "r7", "r8")
        TWO_PRODUCTS("r4", "r5", "r9")
        ".endr\n"
        "cmp r10, lr\n"
        "bne.w 2b\n"
        "ldr r4, [sp]\n"
        "ldr r5, [sp, #12]\n"
        "cmp r4, r5\n"
        "bne.w 3b\n"
        "ldrd r10, r11, [sp, #4]\n"
        "ldm r10!, {r5, r6}\n asr r7, r6, #8\n lsl r7, r7, r6\n"
        TWO_FIRST("r0", "r2")
        TWO_FIRST("r1", "r3")
        "ldm r10!, {r5, r6}\n asr r7, r6, #8\n lsl r7, r7, r6\n"
        TWO_SECOND("r2")
        TWO_SECOND("r3")
        "ldrd r6, r7, [sp, #16]\n"
        "strb r1, [r11, r7]\n"
        "strb r0, [r11], #1\n"
        "strb r3, [r11, r7]\n"
        "strb r2, [r11], #1\n"
        "strd r10, r11, [sp, #4]\n"
        "cmp r11, r6\n"
        "bne.w 1b\n"
        "add sp, sp, #28\n"
        "pop {r4-r11, pc}\n");
}
#else
#define TWO_BLOCK_BYTES 0
NOT_INLINED void two_windows_$X(const two_$X *t)
{
    const int16_t *weights = (const int16_t *)(const void *)t->weights;
    const int16_t *w = weights;
    const int32_t *n = t->numbers;
    for ($X_t *out = t->out; out != t->out_end; out += 2) {
        for (int32_t at = 1; at >= 0; --at) {
            uint32_t both = (uint32_t)n[0];
            int32_t second = n[1];
            w = weights;
            for (const stretch_$X *s = t->stretches; s != t->stretches_end; ++s) {
                const $X_t *const x = at == 0 ? s->first : s->second;
                const int32_t count = (int32_t)(s->first_end - s->first);
                for (int32_t i = 0; i < count; ++i, ++w) {
                    const int32_t in = x[(i & ~3) + (i >> 1 & 1) + 2 * (i & 1)];
                    both += (uint32_t)(in * *w);
                    second += in * (int8_t)*w;
                }
            }
            const int32_t first = (int32_t)(both - (uint32_t)second) >> 8;
            const int32_t to = at == 0 ? 0 : t->second;
            out[to] = ($X_t)rounded_$S(first, n + 2);
            out[to + 1] = ($X_t)rounded_$S(second, n + 4);
        }
        weights = w;
        n += 6;
    }
}
#endif

/* ``pixels`` of the result from the first line on. */
NOT_INLINED void convolve_twos_$X(
    const twos_$X *t, const $X_t *const *rows, $X_t *out, int32_t pixels)
{
    const convolution_$X *const c = t->c;
    const int32_t n = c->out_channels;
    const requantisation to = c->to;
    const bool full = to.low == ($L) && to.high == ($L) + 255;
    window_$X at = {rows, -c->left};
    two_$X two = {t->stretches, t->numbers, out, t->stretches, out, n, t->weights};
    for (; pixels > 0; pixels -= 2) {
        const int32_t count = min_i32(pixels, 2);
        window_$X windows[2] = {at, at};
        next_$X(c, &at);
        if (count == 2) {
            windows[1] = at;
            next_$X(c, &at);
        }
        const run_$X *const end = c->read(c, t->with, windows);
        stretch_$X *s = t->stretches;
        for (const run_$X *run = t->with->runs; run != end; ++run) {
            s->skipped = (-run->blocks & 3) * TWO_BLOCK_BYTES;
            s->first = run->first;
            s->second = count == 2 ? run->second : run->first;
            s->first_end = run->first + 4 * run->blocks;
            ++s;
        }
        two.stretches_end = s;
        two.out = out;
        two.out_end = out + n;
        two.second = count == 2 ? n : 0;
        two_windows_$X(&two);
        for (int32_t i = 0; i < (full ? 0 : count * n); ++i) {
            out[i] = ($X_t)clamped(out[i], to.low, to.high);
        }
        out += count * n;
    }
}

/* All lines of whole tensors, two at a time; ``rows`` has room for the rows under the windows. */
NOT_INLINED void convolve_twos_lines_$X(const twos_$X *t, const lines_$X *l,
    const $X_t *const *pieces, $X_t *out, const $X_t **rows)
{
    const convolution_$X *const c = t->c;
    for (int32_t line = 0; line < l->out_height; line += 2) {
        const int32_t end = min_i32(line + 2, l->out_height);
        const $X_t **to = rows;
        for (int32_t y = line; y < end; ++y) {
            for (int32_t p = 0; p < c->pieces; ++p) {
                to = point_$X(l, pieces[p], c->width * c->channels[p], y, to);
            }
        }
        const int32_t pixels = (end - line) * c->out_width;
        convolve_twos_$X(t, rows, out, pixels);
        out += pixels * c->out_channels;
    }
}
