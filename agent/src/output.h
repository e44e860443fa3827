#ifndef OUTPUT_H
#define OUTPUT_H
#include <stdbool.h>
#include <stdint.h>

#include "cursor.h"
#include "process.h"

void output_watch(void);
/* The leader was reaped with this wait status. */
void output_leader_exited(struct process *process, int status);
/* Queues OUTPUT and EXIT as windows and outbox allow; true when only the outbox kept it from queueing more. */
bool output_push(void);
/* A new host: every window is closed until it opens it. */
void output_restart(void);

int handle_window(uint32_t request, struct cursor *payload);
#endif
