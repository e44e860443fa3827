#ifndef DIVERT_H
#define DIVERT_H

/*
 * On the host: accepts connections that the firewall redirected, and hands each to the Node process that started this
 * one, with the address that it was meant for, which Node cannot ask for. Ends with that process.
 */
int run_divert(void);

#endif
