/* The words of a blob's header. */
typedef struct {
    uint32_t magic, version, size, checksum, core, alignment, arena_alignment, arena_bytes;
    uint32_t kernel_count, call_count, input_count, output_count;
    uint32_t kernels, calls, edges; /* offsets */
} header;

/* An input or output; its place is an offset in the arena. */
typedef struct {
    uint32_t place, size_bytes, type;
    float scale;
    int32_t zero_point;
    uint32_t state; /* the output that is the next value of an input, or NOTHING */
    int32_t initial;
} stored_edge;

/* What calls have in common; the arguments follow it. */
typedef struct {
    uint16_t kernel, arguments;
    uint32_t integers; /* offset */
} stored_step;

/* An argument: an offset in the arena, or in the blob plus CONSTANT; or the next one of the call. */
typedef struct {
    uint32_t place, size_bytes;
} stored_argument;

/* A call: the offset of its step, then the places that vary. */
typedef struct {
    uint32_t step;
} stored_call;

#define SUMMED_FROM 16u
#define CONSTANT 0x80000000u
#define NOTHING 0xFFFFFFFFu
#define VARIES 0xFFFFFFFEu
#define WORD 4u

/* CRC-32, four bits at a time. */
static uint32_t checksum(const uint8_t *at, uint32_t size)
{
    static const uint32_t table[16] = {
        0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u,
        0x4DB26158u, 0x5005713Cu, 0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu,
        0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu,
    };
    uint32_t sum = 0xFFFFFFFFu;
    for (const uint8_t *const end = at + size; at != end; ++at) {
        sum ^= *at;
        sum = (sum >> 4) ^ table[sum & 15u];
        sum = (sum >> 4) ^ table[sum & 15u];
    }
    return ~sum;
}

/* Whether `count` records of `bytes` lie in the first `size` bytes. */
static bool inside(uint32_t offset, uint32_t count, uint32_t bytes, uint32_t size)
{
    return offset % WORD == 0u && offset <= size && count <= (size - offset) / bytes;
}

static const header *header_of(const uint8_t *blob) { return (const header *)(const void *)blob; }

static const stored_step *step_at(const uint8_t *blob, uint32_t offset)
{
    return (const stored_step *)(const void *)(blob + offset);
}

static const stored_argument *arguments_of(const stored_step *step)
{
    return (const stored_argument *)(const void *)(step + 1);
}

/* The kernels of the blob, as numbers of this set. */
static int32_t find_kernels($N_model *model, const uint8_t *blob)
{
    const header *const h = header_of(blob);
    if (!inside(h->kernels, h->kernel_count, 2u * WORD, h->size)) {
        return $U_DAMAGED;
    }
    if (h->kernel_count > $U_KERNELS) {
        return $U_MISSING_KERNEL;
    }
    const uint32_t *digest = (const uint32_t *)(const void *)(blob + h->kernels);
    for (uint32_t i = 0; i < h->kernel_count; ++i, digest += 2) {
        uint32_t at = 0;
        while (at < $U_KERNELS && ($N_kernels[at].digest[0] != digest[0] ||
                                      $N_kernels[at].digest[1] != digest[1])) {
            ++at;
        }
        if (at == $U_KERNELS) {
            return $U_MISSING_KERNEL;
        }
        model->kernels[i] = (uint8_t)at;
    }
    return $U_OK;
}

static int32_t check_edges(const uint8_t *blob)
{
    const header *const h = header_of(blob);
    const uint32_t most = h->size / (uint32_t)sizeof(stored_edge);
    const uint32_t count = h->input_count + h->output_count;
    if (h->input_count > most || h->output_count > most ||
        !inside(h->edges, count, (uint32_t)sizeof(stored_edge), h->size)) {
        return $U_DAMAGED;
    }
    const stored_edge *edge = (const stored_edge *)(const void *)(blob + h->edges);
    for (uint32_t i = 0; i < count; ++i, ++edge) {
        if (edge->place > h->arena_bytes || edge->size_bytes > h->arena_bytes - edge->place ||
            (edge->state != NOTHING && edge->state >= h->output_count)) {
            return $U_DAMAGED;
        }
    }
    return $U_OK;
}

/* Whether an argument lies in the arena, or in the blob where the kernel only reads it. */
static bool place_inside(const header *h, uint32_t place, uint32_t size_bytes, bool written)
{
    if (place == NOTHING) {
        return !written;
    }
    const bool constant = (place & CONSTANT) != 0u;
    const uint32_t offset = place & ~CONSTANT;
    const uint32_t size = constant ? h->size : h->arena_bytes;
    return !(constant && written) && offset <= size && size_bytes <= size - offset;
}

static int32_t check_step(const $N_model *model, const uint8_t *blob, uint32_t offset)
{
    const header *const h = header_of(blob);
    if (!inside(offset, 1, (uint32_t)sizeof(stored_step), h->size)) {
        return $U_DAMAGED;
    }
    const stored_step *const step = step_at(blob, offset);
    const uint32_t first = offset + (uint32_t)sizeof(stored_step);
    if (step->kernel >= h->kernel_count ||
        !inside(first, step->arguments, (uint32_t)sizeof(stored_argument), h->size)) {
        return $U_DAMAGED;
    }
    const $N_kernel *const kernel = &$N_kernels[model->kernels[step->kernel]];
    const uint32_t words = (uint32_t)kernel->integers + kernel->extents;
    if (step->arguments != kernel->arguments || !inside(step->integers, words, WORD, h->size)) {
        return $U_DAMAGED;
    }
    const uint32_t *const extents =
        (const uint32_t *)(const void *)(blob + step->integers) + kernel->integers;
    for (uint32_t i = 0; i < kernel->extents; ++i) {
        if (extents[i] > kernel->most[i]) {
            return $U_LARGE_LAYER;
        }
    }
    return $U_OK;
}

/* Check a call at `*at` whose step is checked, and move on to the next one. */
static int32_t check_call(const $N_model *model, const uint8_t *blob, uint32_t *at)
{
    const header *const h = header_of(blob);
    const stored_step *const step = step_at(blob, *(const uint32_t *)(const void *)(blob + *at));
    const $N_kernel *const kernel = &$N_kernels[model->kernels[step->kernel]];
    const stored_argument *const argument = arguments_of(step);
    *at += WORD;
    for (uint32_t i = 0; i < step->arguments; ++i) {
        uint32_t place = argument[i].place;
        if (place == VARIES) {
            if (!inside(*at, 1, WORD, h->size)) {
                return $U_DAMAGED;
            }
            place = *(const uint32_t *)(const void *)(blob + *at);
            *at += WORD;
        }
        if (!place_inside(h, place, argument[i].size_bytes, (kernel->written >> i & 1u) != 0u)) {
            return $U_DAMAGED;
        }
    }
    return $U_OK;
}

static int32_t check_calls(const $N_model *model, const uint8_t *blob)
{
    const header *const h = header_of(blob);
    uint32_t at = h->calls;
    if (!inside(at, h->call_count, (uint32_t)sizeof(stored_call), h->size)) {
        return $U_DAMAGED;
    }
    for (uint32_t i = 0; i < h->call_count; ++i) {
        if (!inside(at, 1, (uint32_t)sizeof(stored_call), h->size)) {
            return $U_DAMAGED;
        }
        int32_t found = check_step(model, blob, *(const uint32_t *)(const void *)(blob + at));
        if (found == $U_OK) {
            found = check_call(model, blob, &at);
        }
        if (found != $U_OK) {
            return found;
        }
    }
    return $U_OK;
}

static int32_t check_header(
    const uint8_t *blob, uint32_t room_bytes, const uint8_t *arena, uint32_t arena_bytes)
{
    const header *const h = header_of(blob);
    if ((uintptr_t)blob % WORD != 0u) {
        return $U_MISALIGNED;
    }
    if (room_bytes < sizeof(header)) {
        return $U_TRUNCATED;
    }
    if (h->magic != $U_MAGIC || h->version != $U_VERSION) {
        return $U_NO_BLOB;
    }
    if (h->size > room_bytes) {
        return $U_TRUNCATED;
    }
    if (h->size < sizeof(header) ||
        checksum(blob + SUMMED_FROM, h->size - SUMMED_FROM) != h->checksum ||
        h->alignment == 0u || h->arena_alignment == 0u) {
        return $U_DAMAGED;
    }
    if (h->core != $U_CORE) {
        return $U_WRONG_CORE;
    }
    if ((uintptr_t)blob % h->alignment != 0u || (uintptr_t)arena % h->arena_alignment != 0u) {
        return $U_MISALIGNED;
    }
    return h->arena_bytes > arena_bytes ? $U_SMALL_ARENA : $U_OK;
}

int32_t $N_load($N_model *model, const void *blob, uint32_t room_bytes, void *arena,
    uint32_t arena_bytes)
{
    if (model == NULL || blob == NULL || arena == NULL) {
        return $U_NO_MODEL;
    }
    model->blob = NULL;
    int32_t found = check_header(blob, room_bytes, arena, arena_bytes);
    if (found == $U_OK) {
        found = find_kernels(model, blob);
    }
    if (found == $U_OK) {
        found = check_edges(blob);
    }
    if (found == $U_OK) {
        found = check_calls(model, blob);
    }
    if (found == $U_OK) {
        model->blob = blob;
        model->arena = arena;
    }
    return found;
}

int32_t $N_run(const $N_model *model)
{
    if (model == NULL || model->blob == NULL) {
        return $U_NO_MODEL;
    }
    const header *const h = header_of(model->blob);
    const uint32_t *call = (const uint32_t *)(const void *)(model->blob + h->calls);
    for (uint32_t i = 0; i < h->call_count; ++i) {
        const stored_step *const step = step_at(model->blob, *call++);
        const stored_argument *const argument = arguments_of(step);
        void *at[$U_ARGUMENTS];
        for (uint32_t j = 0; j < step->arguments; ++j) {
            const uint32_t place = argument[j].place == VARIES ? *call++ : argument[j].place;
            if (place == NOTHING) {
                at[j] = NULL;
            } else if ((place & CONSTANT) != 0u) {
                at[j] = (void *)(uintptr_t)(model->blob + (place & ~CONSTANT));
            } else {
                at[j] = model->arena + place;
            }
        }
        const uint8_t *const integers = model->blob + step->integers;
        $N_kernels[model->kernels[step->kernel]].run(at, (const int32_t *)(const void *)integers);
    }
    return $U_OK;
}

uint32_t $N_input_count(const $N_model *model)
{
    return model == NULL || model->blob == NULL ? 0u : header_of(model->blob)->input_count;
}

uint32_t $N_output_count(const $N_model *model)
{
    return model == NULL || model->blob == NULL ? 0u : header_of(model->blob)->output_count;
}

static $N_edge edge_of(const $N_model *model, uint32_t index)
{
    const header *const h = header_of(model->blob);
    const stored_edge *const e =
        (const stored_edge *)(const void *)(model->blob + h->edges) + index;
    const int32_t state = e->state == NOTHING ? -1 : (int32_t)e->state;
    return ($N_edge){model->arena + e->place, e->size_bytes, e->type, e->scale, e->zero_point,
        state, e->initial};
}

$N_edge $N_input(const $N_model *model, uint32_t index)
{
    const $N_edge none = {NULL, 0, 0, 0.0f, 0, -1, 0};
    return index < $N_input_count(model) ? edge_of(model, index) : none;
}

$N_edge $N_output(const $N_model *model, uint32_t index)
{
    const $N_edge none = {NULL, 0, 0, 0.0f, 0, -1, 0};
    return index < $N_output_count(model)
               ? edge_of(model, header_of(model->blob)->input_count + index)
               : none;
}
