#ifndef REAPER_H
#define REAPER_H
/* Collects every child that ends, adopted orphans included. */
void reaper_start(void);
void reaper_watch(void);
#endif
