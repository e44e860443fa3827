#ifndef TERMINAL_H
#define TERMINAL_H
#include <stdint.h>
#include <sys/types.h>

/* Opens a pseudo terminal that belongs to the user. Returns an errno. */
int terminal_open(int *master, int *slave, uid_t uid, gid_t gid, uint16_t rows, uint16_t columns);
/* On either end. Returns an errno. */
int terminal_resize(int fd, uint16_t rows, uint16_t columns);
/* The character that means end of file to whoever reads the terminal. */
uint8_t terminal_end_of_file(int fd);
/* How many bytes come before the first one that, written to the master now, would become a signal and discard what was
   written before it and not read yet. */
size_t terminal_before_signal(int master, const uint8_t *bytes, size_t size);
/* Discards what was written to the master and not read yet. */
void terminal_forget_input(int master);
#endif
