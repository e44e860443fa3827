#ifndef FILES_H
#define FILES_H
#include <stdint.h>

#include "cursor.h"

/* files.c: content */
int handle_file_read(uint32_t request, struct cursor *payload);
int handle_file_write(uint32_t request, struct cursor *payload);
/* entries.c: facts about files */
int handle_file_stat(uint32_t request, struct cursor *payload);
int handle_file_list(uint32_t request, struct cursor *payload);
/* names.c: names and attributes */
int handle_file_mkdir(uint32_t request, struct cursor *payload);
int handle_file_rename(uint32_t request, struct cursor *payload);
int handle_file_symlink(uint32_t request, struct cursor *payload);
int handle_file_link(uint32_t request, struct cursor *payload);
int handle_file_set(uint32_t request, struct cursor *payload);
/* attributes.c: extended attributes */
int handle_file_attributes(uint32_t request, struct cursor *payload);
int handle_file_set_attribute(uint32_t request, struct cursor *payload);
int handle_file_remove_attribute(uint32_t request, struct cursor *payload);
/* removal.c */
int handle_file_remove(uint32_t request, struct cursor *payload);

/* Takes on the identity that the request asks for, after checking what every file request must fulfil. Returns an errno;
   after 0 the caller has to call identity_leave. */
int file_enter(const struct cursor *payload, uint8_t as_root, const char *path);
#endif
