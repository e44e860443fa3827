#ifndef CONNECTION_H
#define CONNECTION_H
#include <stdbool.h>
#include <stdint.h>

#include "cursor.h"

void connection_watch(void);
/* Closes the connections of a host that no longer exists. */
void connection_restart(void);
/* Whether a program inside may have one more, and the host can be informed. */
bool connection_may_accept(void);
void connection_accepted(int fd, uint16_t port);

int handle_connect(uint32_t request, struct cursor *payload);
int handle_connection_write(uint32_t request, struct cursor *payload);
int handle_connection_close(uint32_t request, struct cursor *payload);
int handle_connection_window(uint32_t request, struct cursor *payload);
#endif
