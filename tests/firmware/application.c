/* An application that serves any classifier called net: it fills input 0 with real values, runs,
   and says which class it found. Swapping the model changes no line of it. */
#include "net_model.h"
#include "port.h"
#include "port_files.h"

#define CHUNK 256u

static float real[CHUNK];

static int fill(void)
{
    NET_IN_0_TYPE *const in = NET_IN_0();
    for (uint32_t i = 0; i < NET_IN_0_ELEMENTS; ++i) {
        if (i % CHUNK == 0u) {
            const uint32_t left = NET_IN_0_ELEMENTS - i;
            const uint32_t size = (left < CHUNK ? left : CHUNK) * (uint32_t)sizeof(float);
            if (port_read_at("real.bin", i * (uint32_t)sizeof(float), real, size) !=
                (int32_t)size) {
                return -1;
            }
        }
        in[i] = net_in_0_stored(real[i % CHUNK]);
    }
    return 0;
}

int main(void)
{
    const net_inputs inputs = {0};
    const net_outputs outputs = {0};
    if (fill() != 0 || net_run(&inputs, &outputs) != 0) {
        return 1;
    }
    const net_class found = net_classify();
    port_report("index", found.index);
    port_puts(found.label);
    if (port_create("score.bin") != 0 ||
        port_append(&found.score, (uint32_t)sizeof found.score) != 0) {
        return 3;
    }
    return port_create("out.bin") != 0 || port_append(NET_OUT_0(), NET_OUT_0_BYTES) != 0;
}
