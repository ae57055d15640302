/* The clock of RISC-V: the count of retired instructions. */
#ifndef CLOCK_H
#define CLOCK_H

#include "csr.h"
#include "port.h"

void port_clock_start(void) {}

uint64_t port_clock(void)
{
    uint32_t high;
    uint32_t low;
    uint32_t again;
    do {
        READ_CSR("minstreth", high);
        READ_CSR("minstret", low);
        READ_CSR("minstreth", again);
    } while (high != again);
    return ((uint64_t)high << 32) | low;
}

#endif
