#pragma once
#include "instance.h"
#include "plane.h"
/* Depthwise convolutions of 3x3 with a plane per channel, as described in ``plane.h``. */

/* Rows of zero points, from the last element of the plane's left border on. */
INLINED void fill_outside_INPUT(const planes_INPUT *p, int16_t *to, int32_t rows)
{
    for (int32_t i = 0; i < rows * p->pitch; ++i) {
        to[i] = (int16_t)(p->input_zero + p->offset);
    }
}

/* All lines of a complete tensor ``in``, or one line from ``rows``. */
NOT_INLINED void depthwise_planes_INPUT(const planes_INPUT *p, const input_t *in, const input_t *const *rows,
    const int32_t *numbers, int16_t *plane, input_t *out)
{
    const int32_t n = p->channels;
    const int32_t pitch = p->pitch;
    const int32_t stride_y = p->stride_y;
    const int32_t most = (p->plane_rows - 3) / stride_y + 1;
    plane_INPUT lines = {numbers, out, plane, 2 * pitch, 4 * pitch, n, 0, 0, p->out_width % 4, 0};
    lines.grouped = (p->out_width - lines.rest) * p->stride_x * 2;
    lines.onwards = 2 * (stride_y * pitch - p->out_width * p->stride_x);
    const int32_t count = min_i32(p->width, pitch - p->left);
    filled_INPUT filled = {in, plane, 0, n, count / 4, count % 4, (p->width - count) * n,
        2 * (pitch - count), p->offset};
    const bool whole = most >= p->out_height && rows == NULL;
    fill_outside_INPUT(p, plane, p->plane_rows);
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
                    fill_plane_INPUT(&filled);
                } else if (!whole) {
                    fill_outside_INPUT(p, plane + r * pitch, 1);
                }
            }
            p->make(&lines);
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
    if (p->low > (INPUT_MIN) || p->high < (INPUT_MIN) + 255) {
        for (const input_t *const end = out + p->out_height * p->out_width * n; out != end; ++out) {
            *out = (input_t)clamped(*out, p->low, p->high);
        }
    }
}
