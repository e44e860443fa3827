#ifndef REMOVAL_H
#define REMOVAL_H
#include <stdbool.h>
#include <sys/types.h>

/* Recursive removal may take long, so a child does it and the reply comes when that ends. */
void removal_ended(pid_t pid, int status);
/* Drops replies of unfinished removals: their host no longer exists. */
void removal_restart(void);

/* tree.c: removes a folder and all in it; follows no symlink. Returns an errno. */
int remove_tree(const char *path);
#endif
