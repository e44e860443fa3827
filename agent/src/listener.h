#ifndef LISTENER_H
#define LISTENER_H
#include <stdint.h>

#include "cursor.h"

void listener_watch(void);
/* The sockets stay, because programs know their ports; the next host asks for them again. */
void listener_restart(void);

int handle_listen(uint32_t request, struct cursor *payload);
#endif
