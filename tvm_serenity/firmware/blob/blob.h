/* Models as data: load a blob, fill its inputs, run it, read its outputs.

   The loader finds blobs that are incomplete or damaged, and those for another core or with kernels
   that this set lacks. It does not protect from blobs that are made to do harm: check a signature
   before you load what others may have written. */

/* Results of $N_load and $N_run. */
#define $U_OK 0
#define $U_NO_MODEL (-1)       /* a pointer is NULL, or no blob was loaded */
#define $U_TRUNCATED (-2)      /* the blob is longer than the room */
#define $U_NO_BLOB (-3)        /* no blob, or one of another version of the format */
#define $U_DAMAGED (-4)        /* the checksum or an offset is wrong */
#define $U_WRONG_CORE (-5)     /* the blob is for kernels of another core */
#define $U_MISALIGNED (-6)     /* blob or arena are not aligned as they must be */
#define $U_SMALL_ARENA (-7)    /* the arena has fewer bytes than the model needs */
#define $U_MISSING_KERNEL (-8) /* this set lacks a kernel of the model */
#define $U_LARGE_LAYER (-9)    /* a layer needs larger local arrays than this set has */

/* A loaded model: its fields are for the loader alone. */
typedef struct {
    const uint8_t *blob;
    uint8_t *arena;
    uint8_t kernels[$U_KERNELS];
} $N_model;

/* An input or output: its elements in the arena, real = scale * (stored - zero_point). Without
   quantisation the scale is 0. An input may be a state: its elements are `initial` in the first run,
   later those that output number `state` had after the run before. */
typedef struct {
    void *data;
    uint32_t size_bytes;
    uint32_t type; /* one of $U_TYPE_... */
    float scale;
    int32_t zero_point;
    int32_t state; /* -1: no state */
    int32_t initial;
} $N_edge;

/* Check a blob of at most `room_bytes` and keep it in `model`. The blob stays where it is, the
   arena is the model's until another one is loaded. Returns $U_OK or the reason. */
int32_t $N_load($N_model *model, const void *blob, uint32_t room_bytes, void *arena,
    uint32_t arena_bytes);

/* Run a loaded model once. It reuses the memory of its inputs: fill them before each run. Outputs
   are valid until the next run, or until an input is filled. */
int32_t $N_run(const $N_model *model);

/* Inputs and outputs of a loaded model by their numbers; of numbers that it has not, `data` is
   NULL. */
uint32_t $N_input_count(const $N_model *model);
uint32_t $N_output_count(const $N_model *model);
$N_edge $N_input(const $N_model *model, uint32_t index);
$N_edge $N_output(const $N_model *model, uint32_t index);
