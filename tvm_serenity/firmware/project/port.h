/* What the harness needs from the machine it runs on: semihosting on a board, stdio on a host. */
#ifndef PORT_H
#define PORT_H

#include <stdint.h>

/* Print a line, or a name and a number. */
void port_puts(const char *text);
void port_report(const char *name, uint64_t value);

/* Read part of a file, from `offset` on; return the bytes read, or -1. */
int32_t port_read_at(const char *file, uint32_t offset, void *data, uint32_t size);

/* Create a file; append to the one created last. Return 0, or -1. */
int32_t port_create(const char *file);
int32_t port_append(const void *data, uint32_t size);

/* A clock that counts up; its unit is the machine's. */
void port_clock_start(void);
uint64_t port_clock(void);

/* Bytes of stack used since start-up, by the mark painted there; 0 where it cannot be known. */
uint32_t port_stack_used(void);

#endif
