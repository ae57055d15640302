/* A layer makes row y of its output from rows that may lie anywhere in the arena.

   The offset of the band that holds a row is in `offsets`; the rows of a band follow each other. */
typedef struct {
    row_count first; /* of its bands in `offsets` */
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
} row_slot; /* reads `count` rows from (y * step + first) / divisor on; 0: row listed[first + y] */

/* Kinds of layers: a call makes a row; rows that follow each other; what lies at a fixed place. */
enum { MAKES_ROWS, MAKES_PIXELS, MAKES_ALL };

typedef struct {
    void (*run)($Pconst uint8_t *const *rows, uint8_t *out, uint32_t y_or_count);
    const void *outside; /* stands for a row outside of the feature */
    row_count slot;      /* its first one */
    row_count together;  /* rows in one call */
    row_count height;
    row_index out; /* the feature it makes rows of */
    uint8_t slots : 6;
    uint8_t kind : 2;
} row_layer;
