#pragma once
#include "../common/instance.h"
#include "../common/dot.h"
#include "../common/requantise.h"
#include "../common/convolution.h"
#include "microkernel.h"
/* Lines of a convolution in groups of four channels, up to three windows of INPUT at a time. */

/* Windows are runs of rows, read in place. Windows that exceed their rows, or are dilated, are
   read pixel by pixel. Return the end of the runs. */
NOT_INLINED group_run_FORMAT *in_place_FORMAT(const convolution_INPUT *c, const with_INPUT *with,
    const window_INPUT *three, group_run_FORMAT *to)
{
    bool inside = c->dilation_x == 1;
    for (int32_t i = 0; i < 3; ++i) {
        inside = inside && three[i].x >= 0 && three[i].x <= c->width - c->kernel_width;
    }
    const int32_t steps = inside ? 1 : c->kernel_width;
    int32_t source = 0;
    for (int32_t p = 0; p < c->pieces; ++p) {
        const int32_t n = c->channels[p];
        for (int32_t ky = 0; ky < c->kernel_height; ++ky) {
            for (int32_t kx = 0; kx < steps; ++kx) {
                for (int32_t i = 0; i < 3; ++i) {
                    const input_t *const row = three[i].rows[source];
                    const int32_t x = three[i].x + kx * c->dilation_x;
                    const bool there = row != NULL && (inside || (x >= 0 && x < c->width));
                    to->at[i] = there ? row + x * n : with->outside;
                }
                to->inputs = inside ? c->kernel_width * n : n;
                ++to;
            }
            ++source;
        }
    }
    to->inputs = 0;
    return to;
}

/* Three windows of a line from ``x`` on, inside of their rows. */
INLINED group_run_FORMAT *inner_FORMAT(const convolution_INPUT *c, const with_INPUT *with,
    const input_t *const *rows, int32_t x, group_run_FORMAT *to)
{
    for (int32_t p = 0; p < c->pieces; ++p) {
        const int32_t n = c->channels[p];
        for (int32_t ky = 0; ky < c->kernel_height; ++ky) {
            const input_t *at = *rows++;
            int32_t step = c->stride_x * n;
            if (at == NULL) {
                at = with->outside;
                step = 0;
            } else {
                at += x * n;
            }
            *to++ = (group_run_FORMAT){{at, at + step, at + 2 * step}, c->kernel_width * n};
        }
    }
    to->inputs = 0;
    return to;
}

#if defined(__ARM_FEATURE_MVE)
/* Copy ``count`` bytes (at most 16) of every row, from ``x`` on; rows outside give ``zero``. */
INLINED void inner_column_FORMAT(
    const input_t *const *rows, int32_t many, int32_t x, int32_t count, int32_t zero, input_t *to)
{
    register const input_t *const *r0 __asm("r0") = rows;
    register input_t *r1 __asm("r1") = to;
    __asm volatile("vctp.8 %[count]\n\t"
                   "vdup.8 q1, %[zero]\n\t"
                   "dls lr, %[many]\n"
                   "1:\n\t"
                   "ldr r2, [r0], #4\n\t"
                   "cbz r2, 2f\n\t"
                   "add r2, %[x]\n\t"
                   "vpstt\n\t"
                   "vldrbt.8 q0, [r2]\n\t"
                   "vstrbt.8 q0, [r1]\n\t"
                   "add r1, %[count]\n\t"
                   "le lr, 1b\n\t"
                   "b 3f\n"
                   "2:\n\t"
                   "vpst\n\t"
                   "vstrbt.8 q1, [r1]\n\t"
                   "add r1, %[count]\n\t"
                   "le lr, 1b\n"
                   "3:"
                   : "+r"(r0), "+r"(r1)
                   : [count] "r"(count), [zero] "r"(zero), [many] "r"(many), [x] "r"(x)
                   : "r2", "lr", "q0", "q1", "cc", "memory");
}
#endif

/* Copy a window into a column (im2col). */
NOT_INLINED void column_FORMAT(const convolution_INPUT *c, window_INPUT from, input_t *to)
{
#if defined(__ARM_FEATURE_MVE)
    const int32_t n = c->channels[0];
    const int32_t row_length = c->kernel_width * n;
    const bool inside = from.x >= 0 && from.x + c->kernel_width <= c->width;
    const bool runs = c->pieces == 1 && c->dilation_x == 1 && row_length <= 16;
    if (runs && inside) {
        const int32_t x = from.x * n;
        inner_column_FORMAT(from.rows, c->kernel_height, x, row_length, c->input_zero, to);
        return;
    }
    if (runs) {
        const mve_pred16_t all = vctp8q((uint32_t)row_length);
        const mve_pred16_t before = vctp8q((uint32_t)max_i32(-from.x * n, 0));
        const int32_t end = max_i32(min_i32((c->width - from.x) * n, row_length), 0);
        const mve_pred16_t there = (mve_pred16_t)(vctp8q((uint32_t)end) & ~before);
        const uint8x16_t zeros = vdupq_n_u8((uint8_t)c->input_zero);
        for (int32_t ky = c->kernel_height; ky > 0; --ky) {
            const input_t *const row = *from.rows++;
            uint8x16_t values = zeros;
            if (row != NULL) {
                const uint8x16_t read = vldrbq_z_u8((const uint8_t *)row + from.x * n, there);
                values = vpselq_u8(read, zeros, there);
            }
            vstrbq_p_u8((uint8_t *)to, values, all);
            to += row_length;
        }
        return;
    }
#endif
    gather_INPUT(c, from, to);
}

/* How windows are read: as contiguous pixels; in place; copied two at a time. */
enum { READ_PLAIN_FORMAT, READ_IN_PLACE_FORMAT, READ_GATHERED_FORMAT };

/* Contiguous windows of one pixel. */
INLINED void convolve_plain_FORMAT(const convolution_INPUT *c, const with_INPUT *with, const input_t *x,
    uint8_t *out, int32_t pixels)
{
    const int32_t n = c->out_channels;
    const int32_t inputs = c->channels[0];
    while (pixels > 0) {
        const int32_t wide = pixels == 1 ? 1 : pixels == 2 || pixels == 4 ? 2 : 3;
        const group_run_FORMAT run = {{x, x + inputs, x + 2 * inputs}, inputs};
        uint8_t *const to[3] = {out, out + n, out + 2 * n};
        if (wide == 1) {
            groups_1_FORMAT(c, with, &run, &run + 1, to);
        } else if (wide == 2) {
            groups_2_FORMAT(c, with, &run, &run + 1, to);
        } else {
            groups_3_FORMAT(c, with, &run, &run + 1, to);
        }
        pixels -= wide;
        x += wide * inputs;
        out += wide * n;
    }
}

/* Compute ``pixels`` pixels of the result from the first line on. */
NOT_INLINED void convolve_groups_FORMAT(const convolution_INPUT *c, const with_INPUT *with,
    group_run_FORMAT *runs, int32_t reads, const input_t *const *rows, uint8_t *out, int32_t pixels)
{
    if (reads == READ_PLAIN_FORMAT) {
        convolve_plain_FORMAT(c, with, *rows, out, pixels);
        return;
    }
    const int32_t most = reads == READ_GATHERED_FORMAT ? 2 : 3;
    window_INPUT at = {rows, -c->left};
    const int32_t end_x = (c->out_width - 1) * c->stride_x - c->left;
    const int32_t last = min_i32(c->width - c->kernel_width, end_x);
    for (; pixels > 0; pixels -= most) {
        const int32_t third = at.x + 2 * c->stride_x;
        if (reads == READ_IN_PLACE_FORMAT && pixels > 2 && at.x >= 0 && third <= last &&
            c->dilation_x == 1) {
            const int32_t n = c->out_channels;
            uint8_t *const to[3] = {out, out + n, out + 2 * n};
            groups_3_FORMAT(c, with, runs, inner_FORMAT(c, with, at.rows, at.x, runs), to);
            at.x = third;
            next_INPUT(c, &at);
            out += 3 * n;
            continue;
        }
        window_INPUT windows[3];
        uint8_t *to[3];
        for (int32_t i = 0; i < 3; ++i) {
            windows[i] = at;
            to[i] = out;
            if (i + 1 < min_i32(pixels, most)) {
                next_INPUT(c, &at);
                out += c->out_channels;
            }
        }
        next_INPUT(c, &at);
        out += c->out_channels;
        if (reads == READ_IN_PLACE_FORMAT) {
            const group_run_FORMAT *const end = in_place_FORMAT(c, with, windows, runs);
            groups_3_FORMAT(c, with, runs, end, to);
        } else {
            input_t *const second = with->columns + c->depth;
            *runs = (group_run_FORMAT){{with->columns, second, second}, c->depth};
            column_FORMAT(c, windows[0], with->columns);
            if (pixels > 1) {
                column_FORMAT(c, windows[1], second);
                groups_2_FORMAT(c, with, runs, runs + 1, to);
            } else {
                groups_1_FORMAT(c, with, runs, runs + 1, to);
            }
        }
    }
}

/* Three windows of three lines from ``x`` on, one below the other; a window that exceeds its rows
   has up to three runs per row. */
NOT_INLINED group_run_FORMAT *below_FORMAT(const convolution_INPUT *c, const with_INPUT *with,
    const input_t *const *rows, int32_t x, group_run_FORMAT *to)
{
    const int32_t lines = c->pieces * c->kernel_height;
    const int32_t wide = c->kernel_width;
    const int32_t ends[4] = {0, max_i32(min_i32(-x, wide), 0),
        max_i32(min_i32(c->width - x, wide), 0), wide};
    for (int32_t p = 0; p < c->pieces; ++p) {
        const int32_t n = c->channels[p];
        for (int32_t ky = c->kernel_height; ky > 0; --ky) {
            for (int32_t part = 0; part < 3; ++part) {
                const int32_t first = ends[part];
                const int32_t count = ends[part + 1] - first;
                if (count > 0) {
                    for (int32_t i = 0; i < 3; ++i) {
                        const input_t *const row = part == 1 ? rows[i * lines] : NULL;
                        to->at[i] = row != NULL ? row + (x + first) * n : with->outside;
                    }
                    to->inputs = count * n;
                    ++to;
                }
            }
            ++rows;
        }
    }
    to->inputs = 0;
    return to;
}

/* Move three windows inside of their rows to the next pixel; runs of padding stay. */
INLINED void moved_FORMAT(const convolution_INPUT *c, const with_INPUT *with, group_run_FORMAT *run)
{
    const input_t *const outside = with->outside;
    for (int32_t p = 0; p < c->pieces; ++p) {
        const int32_t step = c->stride_x * c->channels[p];
#if defined(__ARM_FEATURE_MVE)
        __asm volatile("vdup.32 q1, %[step]\n\t"
                       "vmov.32 q1[3], %[zero]\n\t"
                       "dls lr, %[rows]\n"
                       "1:\n\t"
                       "vldrw.32 q0, [%[run]]\n\t"
                       "vcmp.i32 ne, q0, %[outside]\n\t"
                       "vpst\n\t"
                       "vaddt.i32 q0, q0, q1\n\t"
                       "vstrw.32 q0, [%[run]], #16\n\t"
                       "le lr, 1b"
                       : [run] "+r"(run)
                       : [step] "r"(step), [zero] "r"(0), [rows] "r"(c->kernel_height),
                       [outside] "r"(outside)
                       : "lr", "q0", "q1", "cc", "memory");
#else
        for (int32_t ky = c->kernel_height; ky > 0; --ky) {
            for (int32_t i = 0; i < 3; ++i) {
                run->at[i] += run->at[i] != outside ? step : 0;
            }
            ++run;
        }
#endif
    }
}

/* Three complete lines, column by column. */
NOT_INLINED void convolve_below_FORMAT(const convolution_INPUT *c, const with_INPUT *with,
    group_run_FORMAT *runs, const input_t *const *rows, uint8_t *out)
{
    const int32_t n = c->out_channels;
    const int32_t line = c->out_width * n;
    const int32_t last = c->width - c->kernel_width;
    const group_run_FORMAT *end = runs;
    int32_t x = -c->left;
    bool before = false; /* the previous windows are inside */
    for (int32_t ox = 0; ox < c->out_width; ++ox) {
        uint8_t *const to[3] = {out, out + line, out + 2 * line};
        const bool inside = x >= 0 && x <= last;
        if (inside && before) {
            moved_FORMAT(c, with, runs);
        } else {
            end = below_FORMAT(c, with, rows, x, runs);
        }
        before = inside;
        groups_3_FORMAT(c, with, runs, end, to);
        x += c->stride_x;
        out += n;
    }
}

/* All lines of complete tensors, three at a time; ``rows`` holds the rows under the windows of
   three lines. */
NOT_INLINED void convolve_lines_groups_FORMAT(const convolution_INPUT *c, const with_INPUT *with,
    group_run_FORMAT *runs, int32_t reads, const lines_INPUT *l, const input_t *const *pieces, uint8_t *out,
    const input_t **rows)
{
    for (int32_t line = 0; line < l->out_height; line += 3) {
        const int32_t end = min_i32(line + 3, l->out_height);
        const input_t **to = rows;
        for (int32_t y = line; y < end; ++y) {
            for (int32_t p = 0; p < c->pieces; ++p) {
                to = point_INPUT(l, pieces[p], c->width * c->channels[p], y, to);
            }
        }
        const int32_t pixels = (end - line) * c->out_width;
        if (reads == READ_IN_PLACE_FORMAT && end - line == 3 && c->dilation_x == 1) {
            convolve_below_FORMAT(c, with, runs, rows, out);
        } else {
            convolve_groups_FORMAT(c, with, runs, reads, rows, out, pixels);
        }
        out += pixels * c->out_channels;
    }
}
