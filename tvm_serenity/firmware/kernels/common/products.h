#pragma once
#include "instance.h"
#include "requantise.h"
/* Products of two variable int8 matrices, one row of the first matrix at a time.

   ``extents``: of the axes of batches and rows, and the steps of the operands along them.
   ``a_step``: from one element of a row to the next. ``b_step``: from a column of the second matrix
   to the next if its columns are contiguous, otherwise from a row to the next. */
typedef struct {
    int32_t extents[3];
    int32_t a_steps[3], b_steps[3], out_steps[3];
    int32_t inner, columns;
    int32_t a_step, b_step;
    int32_t a_zero, b_zero;
    int32_t multiplier, shift;
    requantisation to;
} products;

/* A row of the result; ``buffer`` holds a row of the first matrix. */
typedef void row_of_products(
    const products *p, const int8_t *a, const int8_t *b, int8_t *out, void *buffer);

NOT_INLINED void each_row(const products *p, const int8_t *a, const int8_t *b, int8_t *out,
    row_of_products *row, void *buffer)
{
    for (int32_t i = 0; i < p->extents[0]; ++i) {
        for (int32_t j = 0; j < p->extents[1]; ++j) {
            for (int32_t k = 0; k < p->extents[2]; ++k) {
                row(p, a + i * p->a_steps[0] + j * p->a_steps[1] + k * p->a_steps[2],
                    b + i * p->b_steps[0] + j * p->b_steps[1] + k * p->b_steps[2],
                    out + i * p->out_steps[0] + j * p->out_steps[1] + k * p->out_steps[2], buffer);
            }
        }
    }
}
