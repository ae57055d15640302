/* A layer computes row y of its output from rows that may lie anywhere in the arena.

   `offsets` has the offset of each band; the rows of a band are contiguous. */
typedef struct {
    row_count first; /* index of its first band in `offsets` */
    row_count height;
    row_count together; /* rows in a band */
    row_size row_bytes;
} row_feature;

typedef struct {
    row_index feature;
    uint8_t divisor;
    int8_t step;
    uint8_t count;
    row_first first;
} row_slot; /* `count` rows from (y * step + first) / divisor on; divisor 0: row listed[first + y] */

/* Kinds of layers: a call computes a row; contiguous rows; tensors at fixed addresses. */
enum { MAKES_ROWS, MAKES_PIXELS, MAKES_ALL };

typedef struct {
    void (*run)($Pconst uint8_t *const *rows, uint8_t *out, uint32_t y_or_count);
    const void *outside; /* row that replaces rows outside of the feature */
    row_count slot;      /* index of its first slot */
    row_count together;  /* rows in one call */
    row_count height;
    row_index out; /* the feature whose rows it computes */
    uint8_t slots : 6;
    uint8_t kind : 2;
} row_layer;
