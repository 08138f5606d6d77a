"""Starts a server and holds threads of it still: all that serve requests, between SIGUSR1 and SIGUSR2.

The server is a child of this process, because others may not be traced everywhere. It ends with it.
"""

import ctypes
import os
import signal
import subprocess
import sys

SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17
WALL = 0x40000000
PR_SET_PDEATHSIG = 1

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def trace(request, thread):
    if libc.ptrace(request, thread, None, None) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"ptrace {request:#x} of {thread}: {os.strerror(code)}")


def serving(process):
    """Returns the threads of the public listener, which have the name of its service."""
    folder = f"/proc/{process}/task"
    names = {thread: open(f"{folder}/{thread}/comm").read().strip() for thread in os.listdir(folder)}
    found = [int(thread) for thread, name in names.items() if name == "gateway"]
    assert found, f"no thread of the name gateway among {sorted(names.values())}"
    return found


signals = {signal.SIGUSR1, signal.SIGUSR2}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)


def prepare():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


server = subprocess.Popen(sys.argv[1:], preexec_fn=prepare)
held = []
while True:
    if signal.sigwait(signals) == signal.SIGUSR1:
        for thread in serving(server.pid):
            trace(SEIZE, thread)
            trace(INTERRUPT, thread)
            os.waitpid(thread, WALL)
            held.append(thread)
    else:
        while held:
            trace(DETACH, held.pop())
