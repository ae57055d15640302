#pragma once
#include "instance.h"
/* A complete tensor of INPUT as contiguous rows. */
typedef struct {
    int32_t height, out_height;
    int32_t kernel_height, stride_y, dilation_y, top;
} lines_INPUT;

/* Point at the rows under the windows of a line of the result, NULL for rows outside; a row has
   ``row`` elements. Return the end of the written pointers. */
INLINED const input_t **point_INPUT(
    const lines_INPUT *l, const input_t *in, int32_t row, int32_t line, const input_t **rows)
{
    int32_t y = line * l->stride_y - l->top;
    for (int32_t ky = 0; ky < l->kernel_height; ++ky) {
        *rows++ = y >= 0 && y < l->height ? in + y * row : NULL;
        y += l->dilation_y;
    }
    return rows;
}
