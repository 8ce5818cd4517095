#!/usr/bin/env python3
"""Runs a command, and ends it for what it does, not for how long it takes on a busy machine.

  guard.py COMMAND...
  guard.py --self-test

A process of the command that uses an hour of processor time is ended. All of them are when they hang: for two minutes none has used the
processor, waited for it, or waited for a disk. Exits as the command does; with 128 + n where signal n ended it.
"""
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

PROCESSOR_SECONDS = 3600
QUIET_LOOKS = 120  # a second apart, more on a busy machine


def fields_of(stat):
    """The state of a process or thread, its parent, and so on; None if it has ended."""
    try:
        return stat.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def processes_of(root):
    """{process: its processor time, or None while a thread of it can run} for root and all below it; empty without /proc."""
    everything = {int(stat.parent.name): fields for stat in Path("/proc").glob("[0-9]*/stat") if (fields := fields_of(stat))}

    def below(process):
        while process in everything and process != root:
            process = int(everything[process][1])
        return process == root

    def state(process):
        threads = {fields[0] for stat in Path(f"/proc/{process}").glob("task/*/stat") if (fields := fields_of(stat))}
        # utime, stime, and those of the children that it has waited for
        return None if threads & {"R", "D"} else tuple(everything[process][11:15])

    return {process: state(process) for process in everything if below(process)}


def end(processes, with_signal):
    for process in processes:
        try:
            os.kill(process, with_signal)
        except ProcessLookupError:
            pass


def guarded(command, quiet_looks=QUIET_LOOKS):
    """The exit code of the command."""
    process = subprocess.Popen(command)
    before, quiet = None, 0
    while process.poll() is None:
        try:
            process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            now = processes_of(process.pid)
            quiet = quiet + 1 if now and now == before and None not in now.values() else 0
            before = now
            if quiet == quiet_looks:
                print(f"{command[0]} hangs: nothing in it has used the processor in {quiet_looks} looks, a second apart", flush=True)
                end(now, signal.SIGTERM)  # Catch2 then tells which test it is
            elif quiet > quiet_looks + 5:
                end(now, signal.SIGKILL)
    code = process.returncode
    if code < 0:
        print(f"{command[0]} was ended by {signal.Signals(-code).name}"
              + (f": a process may use {PROCESSOR_SECONDS} s of processor time" if -code == signal.SIGXCPU else ""))
    return code if code >= 0 else 128 - code


def self_test():
    burn = f"{sys.executable} -c 'import time\nwhile time.process_time() < 4: pass'"
    cases = [("the exit code is the command's", ["sh", "-c", "exit 7"], 7),
             ("a command that waits for one that works does not hang", ["sh", "-c", f"{burn}; exit 5"], 5),
             ("a command that waits for nothing hangs", ["sleep", "100000"], 128 + signal.SIGTERM),
             ("so does one that does not let itself be ended", ["sh", "-c", "trap '' TERM; sleep 100000; sleep 100000"], 128 + signal.SIGKILL)]
    wrong = [f"{name}: exit code {code}, not {expected}" for name, command, expected in cases
             if (code := guarded(command, quiet_looks=2)) != expected]
    resource.setrlimit(resource.RLIMIT_CPU, (1, 2))
    if guarded([sys.executable, "-c", "while True: pass"]) != 128 + signal.SIGXCPU:
        wrong.append("a command that uses the processor for too long is not ended")
    print("\n".join(wrong) or "guard: 5 of 5 passed")
    return 1 if wrong else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS + 10))
    sys.exit(guarded(sys.argv[1:]))


if __name__ == "__main__":
    main()
