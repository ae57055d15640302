/* The clock of Cortex-M: SysTick, which counts down, and its wraps. */
#ifndef CLOCK_H
#define CLOCK_H

#include "port.h"

#define SYST_CSR (*(volatile uint32_t *)0xE000E010u)
#define SYST_RVR (*(volatile uint32_t *)0xE000E014u)
#define SYST_CVR (*(volatile uint32_t *)0xE000E018u)
#define SYST_RELOAD 0xFFFFFFu

void SysTick_Handler(void);

static volatile uint32_t wraps;

void SysTick_Handler(void) { ++wraps; }

void port_clock_start(void)
{
    wraps = 0;
    SYST_RVR = SYST_RELOAD;
    SYST_CVR = 0;
    SYST_CSR = 7;
    while (SYST_CVR == 0u) {
    }
}

uint64_t port_clock(void)
{
    uint32_t before;
    uint32_t count;
    do {
        before = wraps;
        count = SYST_CVR;
    } while (before != wraps);
    return ((uint64_t)before << 24) + (SYST_RELOAD - count);
}

#endif
