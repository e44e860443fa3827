#ifndef HOSTFILES_H
#define HOSTFILES_H
/* On the host: what the server does with open files that Node cannot. Each returns an exit code. */

/* Sends "{", the first byte of a message, with `count` files from descriptor 4 on, to the socket on descriptor 3. */
int run_send_files(const char *count);

/* Writes the page of 4096 bytes on stdin to the file on descriptor 3, again and again, up to this many bytes. */
int run_fill_file(const char *bytes);

#endif
