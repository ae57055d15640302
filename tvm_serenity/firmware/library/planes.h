/* DSP extension: depthwise convolutions of 3x3, one channel at a time, for ROUND_TWICE_SMALL.

   A channel's rows are copied, widened to 16 bits, into a plane whose borders hold zero points: so
   two taps of a row are one word. Four results of a row are made at a time. The plane has room for
   all rows, or for those of some lines of the result: then the rows that the next lines read as well
   are moved up. ``numbers`` of a channel: twice the bias, the multiplier, and three words of weights,
   a row each, whose last bytes are those of the second number of ``short.h``: its lowest first. */
typedef struct {
    int32_t height, width, channels, out_height, out_width;
    int32_t stride_x, stride_y, top, left;
    int32_t plane_rows, pitch; /* in inputs: a multiple of four */
    int32_t input_zero, low, high;
} planes_$X;

/* Lines of the result in the plane; offsets and sizes in bytes. */
typedef struct {
    const int32_t *numbers;
    $X_t *out;
    const int16_t *plane;
    int32_t pitch, two_pitches, channels;
    int32_t fours;   /* of a line that are made by fours: how far the plane's pointer goes */
    int32_t onwards; /* from the end of a line to the next */
    int32_t rest;    /* results after the fours */
    int32_t lines;
} plane_$X;

#if defined(__ARM_FEATURE_DSP)
/* Sums r6 to r9 of a row: P holds the first two weights, Q the last two; r10 to r12 are inputs. The
   ``first`` row's sums begin with r6, which holds the bias; others with themselves. */
#define PLANE_AFTER(s) s
#define PLANE_BIAS(s) "r6"
#define PLANE_AFTER_KEPT
#define PLANE_BIAS_KEPT "mov r9, r6\n"
#define PLANE_ONE(P, Q, first) \
    "ldrd r10, r11, [lr]\n smlad r6, r10, " P ", r6\n smlabt r6, r11, " Q ", r6\n"
#define PLANE_TWO_1(P, Q, first) \
    "ldrd r10, r11, [lr]\n" \
    "smlad r7, r11, " Q ", " first("r7") "\n smlad r6, r10, " P ", r6\n" \
    "smlatb r7, r10, " P ", r7\n smlabt r6, r11, " Q ", r6\n"
#define PLANE_FOUR_1(P, Q, first) \
    "ldrd r10, r11, [lr]\n ldr r12, [lr, #8]\n" \
    "smlad r9, r12, " Q ", " first("r9") "\n smlad r8, r11, " P ", " first("r8") "\n" \
    "smlad r7, r11, " Q ", " first("r7") "\n smlad r6, r10, " P ", r6\n" \
    "smlatb r9, r11, " P ", r9\n smlabt r8, r12, " Q ", r8\n" \
    "smlatb r7, r10, " P ", r7\n smlabt r6, r11, " Q ", r6\n"
#define PLANE_TWO_2(P, Q, first) \
    "ldrd r10, r11, [lr]\n ldr r12, [lr, #8]\n" \
    "smlad r7, r11, " P ", " first("r7") "\n smlad r6, r10, " P ", r6\n" \
    "smlabt r7, r12, " Q ", r7\n smlabt r6, r11, " Q ", r6\n"
#define PLANE_FOUR_2(P, Q, first) \
    "ldrd r10, r11, [lr]\n ldr r12, [lr, #8]\n" \
    first##_KEPT \
    "smlad r8, r12, " P ", " first("r8") "\n" \
    "smlad r7, r11, " P ", " first("r7") "\n smlad r6, r10, " P ", r6\n" \
    "smlabt r7, r12, " Q ", r7\n smlabt r6, r11, " Q ", r6\n" \
    "ldrd r10, r11, [lr, #12]\n" \
    "smlad r9, r10, " P ", r9\n" \
    "smlabt r8, r10, " Q ", r8\n smlabt r9, r11, " Q ", r9\n"
/* Three rows, then back to the first, ``step`` bytes on; then r5, r10, r11, r12 for rounding. */
#define PLANE_ROWS(SUM, step) \
    SUM("r0", "r1", PLANE_BIAS) \
    "ldr r4, [sp, #32]\n add lr, lr, r4\n" SUM("r2", "r3", PLANE_AFTER) \
    "add lr, lr, r4\n ldrd r4, r5, [sp, #24]\n" SUM("r4", "r5", PLANE_AFTER) \
    "ldr r4, [sp, #36]\n sub lr, lr, r4\n add lr, lr, #" step "\n" \
    "add r4, sp, #4\n ldm r4, {r5, r10, r11, r12}\n"
#define PLANE_ROUNDED(s) \
    "add r4, r12, " s ", asr #31\n smmlar " s ", " s ", r10, r4\n asr " s ", " s ", r11\n" \
    SATURATE_$S " " s ", #8, " s ", asr #1\n"
#define PLANE_TAPS(P, Q) \
    "sxtb16 r11, " P "\n sxtb16 r12, " P ", ror #8\n" \
    "pkhbt " P ", r11, r12, lsl #16\n pkhtb " Q ", r11, r12\n" \
    "sadd16 " P ", " P ", " P "\n sadd16 " Q ", " Q ", " Q "\n"
/* Stack: 0 twice the bias, 4 out, 8 multiplier, 12 shift, 16 what is added, 20 channels, 24 weights
   of the last row, 32 pitch, 36 two pitches, 40 fours, 44 onwards, 48 where the rest is made,
   52 lines, 56 end, 64 rest. */
#define PLANE_LINES(FOUR, TWO, four_bytes, two_bytes, one_bytes) \
    "push {r4-r11, lr}\n" \
    "sub sp, sp, #68\n" \
    "ldm r0!, {r1, r5, lr}\n" \
    "ldm r0, {r2, r3, r4, r6, r7, r8, r9}\n" \
    "strd r2, r3, [sp, #32]\n" \
    "str r4, [sp, #20]\n" \
    "strd r6, r7, [sp, #40]\n" \
    "str r8, [sp, #64]\n" \
    "adr r4, 5f\n" \
    "cmp r8, #1\n" \
    "it eq\n adreq r4, 7f\n" \
    "it hi\n adrhi r4, 6f\n" \
    "add r8, r4, #1\n" \
    "strd r8, r9, [sp, #48]\n" \
    "ldm r1!, {r6, r7}\n" \
    "ldm r1, {r0, r2, r4}\n" \
    "lsr r8, r0, #24\n lsr r9, r2, #24\n asr r10, r4, #24\n" \
    "orr r9, r9, r10, lsl #8\n lsl r9, r9, r8\n" \
    "str r6, [sp]\n" \
    "strd r5, r7, [sp, #4]\n" \
    "strd r8, r9, [sp, #12]\n" \
    PLANE_TAPS("r0", "r1") PLANE_TAPS("r2", "r3") PLANE_TAPS("r4", "r5") \
    "strd r4, r5, [sp, #24]\n" \
    "1:\n" \
    "ldr r4, [sp, #40]\n" \
    "cmp r4, #0\n" \
    "beq.w 3f\n" \
    "add r4, r4, lr\n" \
    "str r4, [sp, #56]\n" \
    "2:\n" \
    "ldr r6, [sp]\n" \
    PLANE_ROWS(FOUR, four_bytes) \
    PLANE_ROUNDED("r6") PLANE_ROUNDED("r7") PLANE_ROUNDED("r8") PLANE_ROUNDED("r9") \
    "ldr r10, [sp, #20]\n" \
    "ldr r4, [sp, #56]\n" \
    "strb r6, [r5]\n strb r7, [r5, r10]\n add r5, r5, r10, lsl #1\n" \
    "strb r8, [r5]\n strb r9, [r5, r10]\n add r5, r5, r10, lsl #1\n" \
    "str r5, [sp, #4]\n" \
    "cmp lr, r4\n" \
    "bne.w 2b\n" \
    "3:\n" \
    "ldr pc, [sp, #48]\n" \
    ".balign 4\n" \
    "6:\n" \
    "ldr r6, [sp]\n" \
    PLANE_ROWS(TWO, two_bytes) \
    PLANE_ROUNDED("r6") PLANE_ROUNDED("r7") \
    "ldr r10, [sp, #20]\n" \
    "strb r6, [r5]\n strb r7, [r5, r10]\n add r5, r5, r10, lsl #1\n" \
    "str r5, [sp, #4]\n" \
    "ldr r4, [sp, #64]\n" \
    "cmp r4, #3\n" \
    "bne.w 5f\n" \
    ".balign 4\n" \
    "7:\n" \
    "ldr r6, [sp]\n" \
    PLANE_ROWS(PLANE_ONE, one_bytes) \
    PLANE_ROUNDED("r6") \
    "ldr r10, [sp, #20]\n" \
    "strb r6, [r5]\n add r5, r5, r10\n" \
    "str r5, [sp, #4]\n" \
    ".balign 4\n" \
    "5:\n" \
    "ldr r4, [sp, #44]\n" \
    "ldr r5, [sp, #52]\n" \
    "add lr, lr, r4\n" \
    "subs r5, r5, #1\n" \
    "str r5, [sp, #52]\n" \
    "bne.w 1b\n" \
    "add sp, sp, #68\n" \
    "pop {r4-r11, pc}\n"
__attribute__((naked, noinline, unused)) static void plane_lines_1_$X(
    __attribute__((unused)) const plane_$X *p)
{
    __asm volatile(PLANE_LINES(PLANE_FOUR_1, PLANE_TWO_1, "8", "4", "2"));
}
__attribute__((naked, noinline, unused)) static void plane_lines_2_$X(
    __attribute__((unused)) const plane_$X *p)
{
    __asm volatile(PLANE_LINES(PLANE_FOUR_2, PLANE_TWO_2, "16", "8", "4"));
}
#else
INLINED void plane_lines_$X(const plane_$X *p, int32_t stride)
{
    const int32_t width = p->fours / (2 * stride) + p->rest;
    const int8_t *const weights = (const int8_t *)(const void *)(p->numbers + 2);
    const int32_t twice = weights[11] * 256 + (uint8_t)weights[7];
    const int32_t numbers[2] = {p->numbers[1], twice * 256 + weights[3]};
    $X_t *out = p->out;
    for (int32_t line = 0; line < p->lines; ++line) {
        for (int32_t i = 0; i < width; ++i) {
            const int16_t *at = p->plane + line * (p->onwards / 2 + width * stride) + i * stride;
            int32_t sum = p->numbers[0] / 2;
            for (int32_t ky = 0; ky < 3; ++ky) {
                for (int32_t kx = 0; kx < 3; ++kx) {
                    sum += at[kx] * weights[4 * ky + kx];
                }
                at += p->pitch / 2;
            }
            *out = ($X_t)rounded_$S(sum, numbers);
            out += p->channels;
        }
    }
}
NOT_INLINED void plane_lines_1_$X(const plane_$X *p) { plane_lines_$X(p, 1); }
NOT_INLINED void plane_lines_2_$X(const plane_$X *p) { plane_lines_$X(p, 2); }
#endif

/* Rows of a channel, ``count`` inputs of each, into the plane; offsets in bytes. */
typedef struct {
    const $X_t *from;
    int16_t *to;
    int32_t rows, channels, fours, rest, on_from, on_to;
} filled_$X;

#if defined(__ARM_FEATURE_DSP)
__attribute__((naked, noinline, unused)) static void fill_plane_$X(
    __attribute__((unused)) const filled_$X *f)
{
    __asm volatile(
        "push {r4-r11, lr}\n"
        "ldm r0!, {r1, r2, r12}\n"
        "ldr r3, [r0], #4\n"
        "lsl r4, r3, #1\n"
        "add r5, r4, r3\n"
        "1:\n"
        "ldrd lr, r6, [r0]\n"
        "cmp lr, #0\n"
        "beq 3f\n"
        "2:\n"
        LOADED_$S " r8, [r1]\n"
        LOADED_$S " r9, [r1, r3]\n"
        LOADED_$S " r10, [r1, r4]\n"
        LOADED_$S " r11, [r1, r5]\n"
        "add r1, r1, r3, lsl #2\n"
        "strh r8, [r2], #2\n"
        "strh r9, [r2], #2\n"
        "strh r10, [r2], #2\n"
        "strh r11, [r2], #2\n"
        "subs lr, lr, #1\n"
        "bne 2b\n"
        "3:\n"
        "cbz r6, 5f\n"
        "4:\n"
        LOADED_$S " r8, [r1]\n"
        "add r1, r1, r3\n"
        "strh r8, [r2], #2\n"
        "subs r6, r6, #1\n"
        "bne 4b\n"
        "5:\n"
        "ldrd r8, r9, [r0, #8]\n"
        "add r1, r1, r8\n"
        "add r2, r2, r9\n"
        "subs r12, r12, #1\n"
        "bne 1b\n"
        "pop {r4-r11, pc}\n");
}
#else
NOT_INLINED void fill_plane_$X(const filled_$X *f)
{
    const $X_t *from = f->from;
    int16_t *to = f->to;
    for (int32_t row = 0; row < f->rows; ++row) {
        for (int32_t i = 0; i < 4 * f->fours + f->rest; ++i) {
            *to++ = *from;
            from += f->channels;
        }
        from += f->on_from;
        to += f->on_to / 2;
    }
}
#endif

/* Rows of zero points: the last of a plane's left border is followed by them. */
INLINED void fill_outside_$X(const planes_$X *p, int16_t *to, int32_t rows)
{
    for (int32_t i = 0; i < rows * p->pitch; ++i) {
        to[i] = (int16_t)p->input_zero;
    }
}

/* All lines: of a whole tensor ``in``, or of one line from ``rows``. */
NOT_INLINED void depthwise_planes_$X(const planes_$X *p, const $X_t *in, const $X_t *const *rows,
    const int32_t *numbers, int16_t *plane, $X_t *out)
{
    const int32_t n = p->channels;
    const int32_t pitch = p->pitch;
    const int32_t stride_y = p->stride_y;
    const int32_t most = (p->plane_rows - 3) / stride_y + 1;
    plane_$X lines = {numbers, out, plane, 2 * pitch, 4 * pitch, n, 0, 0, p->out_width % 4, 0};
    lines.fours = (p->out_width - lines.rest) * p->stride_x * 2;
    lines.onwards = 2 * (stride_y * pitch - p->out_width * p->stride_x);
    const int32_t count = min_i32(p->width, pitch - p->left);
    filled_$X filled = {in, plane, 0, n, count / 4, count % 4, (p->width - count) * n,
        2 * (pitch - count)};
    const bool whole = most >= p->out_height && rows == NULL;
    fill_outside_$X(p, plane, p->plane_rows);
    for (int32_t c = 0; c < n; ++c) {
        int32_t held = 0;
        int32_t y = -p->top;
        lines.out = out + c;
        for (int32_t line = 0; line < p->out_height; line += most) {
            lines.lines = min_i32(most, p->out_height - line);
            const int32_t needed = (lines.lines - 1) * stride_y + 3;
            for (int32_t r = held; r < needed; r += max_i32(filled.rows, 1)) {
                const int32_t at = y + r;
                const bool inside = at >= 0 && at < p->height;
                filled.rows = inside ? min_i32(needed - r, p->height - at) : 0;
                if (rows != NULL) {
                    filled.rows = rows[at] != NULL;
                }
                if (filled.rows > 0) {
                    filled.from = (rows != NULL ? rows[at] : in + at * p->width * n) + c;
                }
                filled.to = plane + r * pitch + p->left;
                if (filled.rows > 0) {
                    fill_plane_$X(&filled);
                } else if (!whole) {
                    fill_outside_$X(p, plane + r * pitch, 1);
                }
            }
            if (p->stride_x == 1) {
                plane_lines_1_$X(&lines);
            } else {
                plane_lines_2_$X(&lines);
            }
            const int32_t moved = lines.lines * stride_y;
            const int16_t *from = plane + moved * pitch;
            held = max_i32(needed - moved, 0);
            if (line + most < p->out_height) {
                for (int32_t i = 0; i < held * pitch; i += 4) {
                    (void)memcpy(plane + i, from + i, 8);
                }
            }
            y += moved;
            lines.out += lines.lines * p->out_width * n;
        }
        lines.numbers += 5;
    }
    if (p->low > ($L) || p->high < ($L) + 255) {
        for (int32_t i = 0; i < p->out_height * p->out_width * n; ++i) {
            out[i] = ($X_t)clamped(out[i], p->low, p->high);
        }
    }
}
