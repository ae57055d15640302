#pragma once
#include "../common/instance.h"
#include "../common/rows.h"
/* MVE: the maximum of each window, 16 channels of a pixel at a time, INPUT inputs. */
typedef struct {
    int32_t width, out_width, channels;
    int32_t kernel_height, kernel_width;
    int32_t stride_x, dilation_x, left;
} max_pool_INPUT;

/* A line. ``rows``: the rows under the windows, at any address; NULL: a row outside. Pixels
   outside are not part of a window. */
NOT_INLINED void max_pool_line_INPUT(
    const max_pool_INPUT *p, const input_t *const *rows, input_t *out)
{
    const int32_t n = p->channels;
    const int32_t step = p->dilation_x * n;
    int32_t x = -p->left;
    for (int32_t ox = p->out_width; ox > 0; --ox) {
        int32_t first = 0;
        int32_t taps = p->kernel_width;
        for (; taps > 0 && x + first * p->dilation_x < 0; --taps) {
            ++first;
        }
        for (; taps > 0 && x + (first + taps - 1) * p->dilation_x >= p->width; --taps) {
        }
        const int32_t offset = (x + first * p->dilation_x) * n;
#if defined(__ARM_FEATURE_MVE)
        for (int32_t c = 0; c < n; c += 16) {
            const mve_pred16_t lanes = vctp8q((uint32_t)(n - c));
#if INPUT_SIGNED
            int8x16_t most = vdupq_n_s8(INPUT_MIN);
#else
            uint8x16_t most = vdupq_n_u8(INPUT_MIN);
#endif
            for (int32_t ky = 0; ky < p->kernel_height; ++ky) {
                const input_t *at = rows[ky];
                if (at == NULL) {
                    continue;
                }
                at += offset + c;
                for (int32_t tap = taps; tap > 0; --tap) {
#if INPUT_SIGNED
                    most = vmaxq_s8(most, vldrbq_z_s8(at, lanes));
#else
                    most = vmaxq_u8(most, vldrbq_z_u8(at, lanes));
#endif
                    at += step;
                }
            }
#if INPUT_SIGNED
            vstrbq_p_s8(out + c, most, lanes);
#else
            vstrbq_p_u8(out + c, most, lanes);
#endif
        }
#else
        for (int32_t c = 0; c < n; ++c) {
            input_t most = INPUT_MIN;
            for (int32_t ky = 0; ky < p->kernel_height; ++ky) {
                for (int32_t tap = 0; rows[ky] != NULL && tap < taps; ++tap) {
                    const input_t value = rows[ky][offset + tap * step + c];
                    most = value > most ? value : most;
                }
            }
            out[c] = most;
        }
#endif
        out += n;
        x += p->stride_x;
    }
}

/* All lines of a complete tensor; ``rows`` holds the rows under a window. */
NOT_INLINED void max_pool_lines_INPUT(const max_pool_INPUT *p, const lines_INPUT *l,
    const input_t *in, input_t *out, const input_t **rows)
{
    for (int32_t line = 0; line < l->out_height; ++line) {
        (void)point_INPUT(l, in, p->width * p->channels, line, rows);
        max_pool_line_INPUT(p, rows, out);
        out += p->out_width * p->channels;
    }
}
