"""Starts one rank's Python and waits for it: a small program that imports nothing of gradtape.

python supervisor.py RANK SIZE COMMAND ...

If the rank dies without a report, the supervisor prints how, and waits a moment before it ends
itself. The launcher ends the other ranks as soon as it sees that, and they also need time to print.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time

#: The variable with the process that started all ranks of this host.
LAUNCHER = "GRADTAPE_LAUNCHER"
#: The variable with the file descriptor to which the rank writes its state, one byte at a time.
STATE = "GRADTAPE_STATE_FD"
#: The states: in ``init``, joined with the others, knowing why the job ends, ending as expected.
JOINING, JOINED, INFORMED, DONE = b"i", b"j", b"e", b"d"
#: Seconds for the other ranks to print their reports.
GRACE = 1.0
#: Seconds after which a rank reports that it waits for others to join.
LONG = 60.0
#: Signals that launchers and schedulers send to the process that they started.
FORWARDED = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT")


def main() -> int:
    rank, size, *command = sys.argv[1:]
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    environment = {**os.environ, STATE: str(writing), LAUNCHER: str(os.getppid())}
    # the rank needs the files that the launcher opened for MPI
    child = subprocess.Popen(command, env=environment, close_fds=False)
    os.close(writing)
    for name in FORWARDED:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda number, _: child.send_signal(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal
    told: list[bytes] = []
    shared: set[str] = set()
    listening = threading.Thread(target=listen, args=(reading, told, rank, size), daemon=True)
    listening.start()
    threading.Thread(target=look, args=(child, told, shared), daemon=True).start()
    code = child.wait()
    listening.join(0.1)  # children of the rank may keep the pipe open
    if INFORMED in told:
        pass  # it has printed why; a library may end the process by a signal once others are gone
    elif code < 0:
        print_for_rank(
            rank, size, f"process {child.pid} was ended by signal {-code} ({named(-code)})"
        )
    elif DONE not in told:
        how = f"ended with exit code {code}, by os._exit or in native code, before its script did"
        print_for_rank(rank, size, f"process {child.pid} {how}")
    if INFORMED not in told and (code < 0 or DONE not in told):
        time.sleep(GRACE)
    code = 128 - code if code < 0 else code or (DONE not in told)
    if code and JOINED not in told:
        for pid in processes_on_host():
            shared |= memory(pid)
        for path in shared:
            with contextlib.suppress(OSError):
                os.unlink(path)
    if code:
        end_all(code, JOINED in told)
    return code


def listen(reading: int, states: list[bytes], rank: str, size: str) -> None:
    """Record the rank's states, and report a long wait for others to join."""

    def remind() -> None:
        if states == [JOINING]:
            waits = (
                f"has waited in gt.distributed.init() for {LONG:g} s: check that all ranks call it"
            )
            print_for_rank(rank, size, waits)

    while state := os.read(reading, 1):
        states.append(state)
        if state == JOINING:
            reminder = threading.Timer(LONG, remind)
            reminder.daemon = True
            reminder.start()


def look(child: "subprocess.Popen[bytes]", states: list[bytes], shared: set[str]) -> None:
    """Record the rank's shared memory from when it starts MPI until the name is removed."""
    while child.poll() is None and states in ([], [JOINING]):
        if states:
            shared |= memory(child.pid)
        time.sleep(0.01)


def memory(pid: int) -> set[str]:
    """Return the files of MPICH's shared memory that a process has mapped."""
    try:
        with open(f"/proc/{pid}/maps") as file:
            return set(re.findall(r" (/dev/shm/mpich_shm_\S+)$", file.read(), re.MULTILINE))
    except OSError:
        return set()


def processes_on_host() -> list[int]:
    """Return the processes of all ranks that the same launcher started on this host."""
    parents: dict[int, int] = {}
    with contextlib.suppress(OSError):
        for name in filter(str.isdecimal, os.listdir("/proc")):
            with (
                contextlib.suppress(OSError, ValueError, IndexError),
                open(f"/proc/{name}/stat") as file,
            ):
                parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
    supervisors = {pid for pid, parent in parents.items() if parent == os.getppid()}
    return [pid for pid, parent in parents.items() if parent in supervisors]


def end_all(code: int, joined: bool) -> None:
    """Have the launcher end the other ranks, with this rank's exit code if the launcher takes one.

    MPICH's launcher ends them by itself if a rank ends by a signal, or after the rank has joined.
    Otherwise the others would wait for it to join.
    """
    pipe = os.environ.get("PMI_FD", "")
    if not pipe.isdecimal():
        return
    if "HYDI_CONTROL_FD" in os.environ:
        try:
            os.write(int(pipe), f"cmd=abort exitcode={code}\n".encode())
        except OSError:
            pass
        else:
            time.sleep(GRACE)  # the launcher ends this process too
    if not joined:
        os.kill(os.getpid(), signal.SIGKILL)


def named(number: int) -> str:
    """Return a signal's name and its usual cause."""
    known = {
        "SIGKILL": "kill -9, or the system ran out of memory",
        "SIGSEGV": "native code accessed invalid memory",
        "SIGABRT": "native code aborted",
        "SIGBUS": "a full /dev/shm, or invalid memory in native code",
        "SIGFPE": "native code divided by zero",
        "SIGILL": "native code built for another processor",
        "SIGXCPU": "the limit of processor time is reached",
    }
    try:
        name = signal.Signals(number).name
    except ValueError:
        return "unknown"
    return f"{name}: {known[name]}" if name in known else name


def print_for_rank(rank: str, size: str, what: str) -> None:
    host = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "host")
    sys.stderr.write(f"[rank {rank} of {size} on {host}] {what}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    os._exit(main())  # at once: the launcher ends the other ranks when this process ends
