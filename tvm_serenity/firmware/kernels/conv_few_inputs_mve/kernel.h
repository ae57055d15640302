#pragma once
#include "../common/instance.h"
#include "../common/dot.h"
#include "../common/requantise.h"
#include "../common/convolution.h"
#include "microkernel.h"
/* Lines of a convolution in strips of windows, INPUT inputs of one tensor, read in place or
   copied. */

/* Copy ``count`` windows inside of their rows, from ``x0`` on, into columns of ``depth`` inputs. */
INLINED void inner_columns_FORMAT(const convolution_INPUT *c, const input_t *const *rows, int32_t x0,
    int32_t count, input_t *columns)
{
    const int32_t n = c->channels[0];
    const int32_t length = c->kernel_width * n;
    for (int32_t ky = 0; ky < c->kernel_height; ++ky) {
        const input_t *from = rows[ky] + x0 * n;
        input_t *to = columns + ky * length;
#if defined(__ARM_FEATURE_MVE)
        if (length <= 16) {
            register const input_t *r0 __asm("r0") = from;
            register input_t *r1 __asm("r1") = to;
            __asm volatile("vctp.8 %2\n\t"
                           "dls lr, %5\n"
                           "1:\n\t"
                           "vpstt\n\t"
                           "vldrbt.8 q0, [r0]\n\t"
                           "vstrbt.8 q0, [r1]\n\t"
                           "add r0, %3\n\t"
                           "add r1, %4\n\t"
                           "le lr, 1b"
                           : "+r"(r0), "+r"(r1)
                           : "r"(length), "r"(c->stride_x * n), "r"(c->depth), "r"(count)
                           : "lr", "q0", "cc", "memory");
            continue;
        }
#endif
        for (int32_t i = 0; i < count; ++i) {
            (void)copy_INPUT(to, from, length);
            from += c->stride_x * n;
            to += c->depth;
        }
    }
}

/* Copy ``count`` windows of a line, from pixel ``ox`` on, into columns. */
NOT_INLINED void columns_FORMAT(const convolution_INPUT *c, const input_t *const *rows, int32_t ox,
    int32_t count, input_t *to)
{
    bool all = true;
    for (int32_t ky = 0; ky < c->kernel_height; ++ky) {
        all = all && rows[ky] != NULL;
    }
    for (int32_t i = 0; i < count;) {
        const int32_t x = (ox + i) * c->stride_x - c->left;
        int32_t made = 1;
        if (all && x >= 0 && x + c->kernel_width <= c->width) {
            made = min_i32((c->width - c->kernel_width - x) / c->stride_x + 1, count - i);
            inner_columns_FORMAT(c, rows, x, made, to);
        } else {
            gather_INPUT(c, (window_INPUT){rows, x}, to);
        }
        to += made * c->depth;
        i += made;
    }
}

/* A line, with ``most`` windows copied at a time; 0: windows are contiguous pixels, read in place.
   */
NOT_INLINED void convolve_strips_FORMAT(const convolution_INPUT *c, const with_INPUT *with,
    summed_strip_FORMAT sum, int32_t most, const input_t *const *rows, uint8_t *out, int32_t pixels)
{
    if (most == 0) {
        sum(c, with, &(strip_FORMAT){*rows, c->stride_x * c->channels[0], pixels, out});
        return;
    }
    for (int32_t ox = 0; ox < pixels; ox += most) {
        const int32_t count = min_i32(pixels - ox, most);
        columns_FORMAT(c, rows, ox, count, with->columns);
        sum(c, with, &(strip_FORMAT){with->columns, c->depth, count, out + ox * c->out_channels});
    }
}

/* All lines of a complete tensor; ``rows`` holds the rows under a window. */
NOT_INLINED void convolve_lines_strips_FORMAT(const convolution_INPUT *c, const with_INPUT *with,
    summed_strip_FORMAT sum, int32_t most, const lines_INPUT *l, const input_t *const *pieces, uint8_t *out,
    const input_t **rows)
{
    for (int32_t line = 0; line < l->out_height; ++line) {
        (void)point_INPUT(l, *pieces, c->width * c->channels[0], line, rows);
        convolve_strips_FORMAT(c, with, sum, most, rows, out, c->out_width);
        out += c->out_width * c->out_channels;
    }
}
