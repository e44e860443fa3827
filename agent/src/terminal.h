#ifndef TERMINAL_H
#define TERMINAL_H
#include <stdint.h>
#include <sys/types.h>

/* Opens a pseudo terminal that belongs to the user. Returns an errno. */
int terminal_open(int *master, int *slave, uid_t uid, gid_t gid, uint16_t rows, uint16_t columns);
/* On either end. Returns an errno. */
int terminal_resize(int fd, uint16_t rows, uint16_t columns);
/* The character that means end of file to a reader of the terminal. */
uint8_t terminal_end_of_file(int fd);
/* Opens the other end once more, with these flags of open(2) too. Returns -1 and sets errno. */
int terminal_slave(int master, int flags);
#endif
