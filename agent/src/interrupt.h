#ifndef INTERRUPT_H
#define INTERRUPT_H
#include <stdint.h>
#include <sys/types.h>

#include "process.h"

/* Writes some of the bytes to the terminal of a process, as if they were typed. As write(2). */
ssize_t interrupt_write(struct process *process, const uint8_t *bytes, size_t size);
/* An end of file was typed. */
void interrupt_note_end(struct process *process);
#endif
