#ifndef LAUNCH_H
#define LAUNCH_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "identity.h"

struct launch {
    /* what to run */
    char **arguments, **environment; /* NULL-terminated */
    const char *folder;
    struct identity identity;
    bool gains; /* set-user-ID programs work */
    bool terminal;
    int input, output, error; /* become 0, 1 and 2 */
    /* where a failure came from */
    const char *failed_step;
};

/* Returns 0 once the program runs, else the errno of the step that failed; then nothing is left behind. */
int launch(struct launch *launch, pid_t *pid);
#endif
