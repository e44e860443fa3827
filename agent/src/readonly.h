#ifndef READONLY_H
#define READONLY_H
/* On the host: runs a command in a mount namespace of its own, where folders are read-only with all that is mounted in
   them. runsc asks its kernel to keep such folders read-only, and code inside could talk that kernel out of it.
   `arguments`: the folders, "--", the command. Returns an exit code on failure only. */
int run_read_only(char **arguments);
#endif
