"""Runs a program in a real terminal for a test.

Its arguments are the program. Lines of JSON on stdin say what to do: {"send": text}, {"resize": [rows, columns]},
{"kill": signal number}, {"hang_up": true}, which closes the terminal. What the terminal shows goes to stdout. At the end
a line of JSON goes to stderr: the exit code, and whether the terminal's modes are what they were before.
"""

import fcntl, json, os, pty, select, struct, sys, termios


def set_size(descriptor, rows, columns):
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


master, slave = pty.openpty()
set_size(master, 30, 100)
before = termios.tcgetattr(slave)
child = os.fork()
if child == 0:
    os.close(master)
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for descriptor in (0, 1, 2):
        os.dup2(slave, descriptor)
    os.execvp(sys.argv[1], sys.argv[1:])

rest = b""
watched = [master, 0]
ended = None
while True:
    ready, _, _ = select.select(watched, [], [], 0.05)
    if master in ready:
        os.write(1, os.read(master, 65536))
    if 0 in ready:
        data = os.read(0, 65536)
        if not data:
            watched.remove(0)
        rest += data
        *lines, rest = rest.split(b"\n")
        for line in lines:
            order = json.loads(line)
            if "send" in order:
                os.write(master, order["send"].encode())
            if "resize" in order:
                set_size(master, *order["resize"])
            if "kill" in order:
                os.kill(child, order["kill"])
            if "hang_up" in order:
                watched.remove(master)
                os.close(slave)
                os.close(master)
                slave = None
    # The slave is open here, so that the master has no end of file: what is left is read before the end is told.
    if ended is None:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            ended = status
    elif not ready or ready == [0]:
        break

code = os.waitstatus_to_exitcode(ended)
same = slave is not None and termios.tcgetattr(slave) == before
sys.stderr.write(json.dumps({"code": code, "modes_restored": same}) + "\n")
