/* Runs a blob once on this machine, for comparisons before it is written. */
#include "$N_blob.h"

#include <string.h>

int32_t serenity_blob(const void *blob, uint32_t size, void *arena, uint32_t arena_bytes,
    const void *const *inputs, void *const *outputs);

int32_t serenity_blob(const void *blob, uint32_t size, void *arena, uint32_t arena_bytes,
    const void *const *inputs, void *const *outputs)
{
    $N_model model;
    const int32_t loaded = $N_load(&model, blob, size, arena, arena_bytes);
    if (loaded != $U_OK) {
        return loaded;
    }
    for (uint32_t i = 0; i < $N_input_count(&model); ++i) {
        const $N_edge edge = $N_input(&model, i);
        (void)memcpy(edge.data, inputs[i], edge.size_bytes);
    }
    const int32_t ran = $N_run(&model);
    for (uint32_t i = 0; i < $N_output_count(&model); ++i) {
        const $N_edge edge = $N_output(&model, i);
        (void)memcpy(outputs[i], edge.data, edge.size_bytes);
    }
    return ran;
}
