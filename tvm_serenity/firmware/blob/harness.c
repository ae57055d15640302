/* Loads the blob in a slot of flash, runs it once on input<i>.bin, writes results.bin: a tag, a size
   and the bytes of each output. */
#include "$N_blob.h"

#include "port.h"
#include "port_files.h"

static uint8_t arena[$U_ARENA_BYTES] __attribute__((section(".bss.arena_$R")))
__attribute__((aligned($U_ARENA_ALIGNMENT)));
static $N_model model;

int main(void)
{
    char input[] = "input0.bin";
    port_clock_start();
    const uint64_t begun = port_clock();
    const int32_t loaded =
        $N_load(&model, (const void *)(uintptr_t)SLOT, ROOM, arena, (uint32_t)sizeof arena);
    port_report("load_ticks", port_clock() - begun);
    if (loaded != $U_OK) {
        port_report("refused", (uint64_t)(uint32_t)-loaded);
        port_puts("the loader refuses the blob");
        return 1;
    }
    for (uint32_t i = 0; i < $N_input_count(&model); ++i) {
        const $N_edge edge = $N_input(&model, i);
        input[5] = (char)('0' + (char)i);
        if (port_read_at(input, 0, edge.data, edge.size_bytes) != (int32_t)edge.size_bytes) {
            port_puts("an input is missing or too short");
            return 2;
        }
    }
    const uint64_t before = port_clock();
    const int32_t status = $N_run(&model);
    const uint64_t after = port_clock();
    port_report("ticks", after - before);
    port_report("stack", port_stack_used());
    port_report("status", (uint64_t)(uint32_t)status);
    if (status != $U_OK || port_create("results.bin") != 0) {
        return 3;
    }
    for (uint32_t i = 0; i < $N_output_count(&model); ++i) {
        const $N_edge edge = $N_output(&model, i);
        const uint32_t head[2] = {OUTPUT_TAG + i, edge.size_bytes};
        if (port_append(head, (uint32_t)sizeof head) != 0 ||
            port_append(edge.data, edge.size_bytes) != 0) {
            return 3;
        }
    }
    return 0;
}
