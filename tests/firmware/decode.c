/* An application that continues a text by the decoder called net, whose output 1 is the most
   likely token; it does so twice, and must say the same. */
#include "net_model.h"
#include "port.h"

#define COUNT 64u

static const int32_t prompt[] = {1, 5, 9};

static int continued(void)
{
    for (uint32_t i = 0; i < sizeof prompt / sizeof prompt[0]; ++i) {
        if (net_step(prompt[i]) != 0) {
            return 1;
        }
    }
    for (uint32_t i = 0; i < COUNT; ++i) {
        const int32_t token = *NET_OUT_1();
        port_report("token", (uint32_t)token);
        if (i + 1u < COUNT && net_step(token) != 0) {
            return 1;
        }
    }
    return 0;
}

int main(void)
{
    for (uint32_t time = 0; time < 2u; ++time) {
        net_restart();
        if (continued() != 0) {
            return 1;
        }
    }
    return 0;
}
