#ifndef CONNECTION_H
#define CONNECTION_H
#include <stdint.h>

#include "cursor.h"

void connection_watch(void);
/* Closes the connections of a host that no longer exists. */
void connection_restart(void);

int handle_connect(uint32_t request, struct cursor *payload);
int handle_connection_write(uint32_t request, struct cursor *payload);
int handle_connection_close(uint32_t request, struct cursor *payload);
int handle_connection_window(uint32_t request, struct cursor *payload);
#endif
