#ifndef LAUNCH_H
#define LAUNCH_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct launch {
    /* what to run */
    char **arguments, **environment; /* NULL-terminated */
    const char *folder;
    uid_t uid;
    gid_t gid;
    bool terminal;
    int input, output, error; /* become 0, 1 and 2 */
    /* where a failure came from */
    const char *failed_step;
};

/* Returns 0 once the program runs, else the errno of the step that failed; then nothing is left behind. */
int launch(struct launch *launch, pid_t *pid);
#endif
