#ifndef DRAIN_H
#define DRAIN_H
/* Takes over a descriptor whose process has exited: later output of its children is read and dropped, so that they are
   neither blocked nor killed by a closed pipe. */
void drain_adopt(int fd);
void drain_watch(void);
#endif
