/* A layer makes row y of its output from rows that may lie anywhere in the arena.

   The offset of the band that holds a row is in `offsets`; the rows of a band follow each other. */
typedef struct {
    uint16_t first; /* of its bands in `offsets` */
    uint16_t height;
    uint16_t together; /* rows in a band */
    row_size row_bytes;
} row_feature;

typedef struct {
    uint8_t feature;
    uint8_t divisor;
    int8_t step;
    uint8_t count;
    int16_t first;
} row_slot; /* reads `count` rows from (y * step + first) / divisor on */

/* Kinds of layers: a call makes a row; rows that follow each other; all; adds a row to sums. */
enum { MAKES_ROWS, MAKES_PIXELS, MAKES_ALL, ADDS_ROWS };

typedef struct {
    void (*run)(const uint8_t *const *rows, uint8_t *out, uint32_t y_or_count);
    const void *outside; /* stands for a row outside of the feature */
    uint16_t slot;       /* its first one */
    uint16_t together;   /* rows in one call */
    uint16_t height;
    uint8_t out; /* the feature it makes */
    uint8_t slots : 6;
    uint8_t kind : 2;
} row_layer;
