#ifndef REPORT_H
#define REPORT_H
/* Writes one line for people to stderr; the line is lost when nobody reads them. */
__attribute__((format(printf, 1, 2))) void report(const char *format, ...);
#endif
