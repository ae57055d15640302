/* What the harness needs beside port.h: files and the stack. Semihosting on a board, stdio here. */
#ifndef PORT_FILES_H
#define PORT_FILES_H

#include <stdint.h>

/* Read part of a file, from `offset` on; return the bytes read, or -1. */
int32_t port_read_at(const char *file, uint32_t offset, void *data, uint32_t size);

/* Create a file; append to the one created last. Return 0, or -1. */
int32_t port_create(const char *file);
int32_t port_append(const void *data, uint32_t size);

/* Bytes of stack used since start-up, by the mark painted there; 0 where it cannot be known. */
uint32_t port_stack_used(void);

#endif
