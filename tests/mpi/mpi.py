#!/usr/bin/env python3
"""Ranks under mpirun: all calls and each fault, with Open MPI and with MPICH, as far as they are installed (exit code 77 if none is).

The exit code of mpirun is not believed: MPICH's can be 0 where ranks died. Every rank has to print its closing line, or, after a fault,
the job has to end, at least one survivor has to name the fault, no rank may claim that all went well, and no process may be left.
"""
import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools

HERE = Path(__file__).resolve().parent
LAUNCH = {"openmpi": ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none"], "mpich": ["mpirun.mpich"]}
TIMEOUT, CHECKED, LARGEST = 3, 100, 2**31 - 1
MISMATCH = "mismatch: rank 0 calls all_reduce of 8 float 'bucket', its collective number 2, and rank 1 calls "
# scenario, ranks, timeout, compared calls, largest count, text that a survivor says ("" where all may be killed first)
WELL = [("calls", 1, 60, CHECKED, LARGEST), ("calls", 2, 60, CHECKED, LARGEST), ("calls", 4, 60, 2, LARGEST), ("calls", 3, 60, CHECKED, 300),
        ("train", 3, 60, CHECKED, LARGEST)]
HUGE = [("huge", 2, 300, CHECKED, LARGEST)]
FAULTS = [("kill", 3, TIMEOUT, CHECKED, ""),
          ("kill", 3, TIMEOUT, 1, ""),
          ("stop", 3, TIMEOUT, CHECKED, "all_reduce number 2 'bucket': timeout: waited for rank 1 in vain"),
          ("stop", 3, TIMEOUT, 1, "all_reduce number 2 'bucket': timeout: not all ranks took part; set SINTER_COMM_CHECK=1"),
          ("leave", 3, TIMEOUT, CHECKED, "all_reduce number 2 'bucket': timeout: waited for rank 1 in vain"),
          ("throw", 3, 60, CHECKED, "aborted by rank 1: an exception left the block of its communicator"),
          ("abort", 3, 60, CHECKED, "aborted by rank 1: disk full"),
          ("order", 3, 60, CHECKED, MISMATCH + "broadcast of 8 float 'weights' from rank 0"),
          ("size", 3, 60, CHECKED, MISMATCH + "all_reduce of 9 float 'bucket'"),
          ("message", 3, 60, CHECKED, "rank 0 calls send of 3 float with tag 5, and rank 1 calls receive of 3 float with tag 6")]


def processes_of(program):
    found = []
    for exe in Path("/proc").glob("[0-9]*/exe"):
        try:
            if Path(os.readlink(exe)) == program:
                found.append(int(exe.parent.name))
        except OSError:
            pass
    return found


def launch(mpi, program, scenario, ranks, timeout, checked, largest):
    """(exit code, {rank: closing line}, all that was printed)."""
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    words = [*LAUNCH[mpi], "-n", ranks, program, scenario, timeout, checked, largest]
    # Neither a terminal nor pipes that a rank left behind could hold open.
    log = program.with_suffix(".log")
    with open(log, "wb") as out:
        job = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment)
        code = job.wait()
    text = log.read_text(errors="replace")
    lines = {int(line.split()[1]): line.split("closing: ", 1)[1] for line in text.splitlines() if " closing: " in line and line.startswith("rank ")}
    return code, lines, text


def problem_of(mpi, program, case, is_fault):
    scenario, ranks, timeout, checked, last = case
    code, lines, text = launch(mpi, program, scenario, ranks, timeout, checked, LARGEST if is_fault else last)
    if not is_fault:
        if code != 0 or lines != {rank: "fine" for rank in range(ranks)}:
            return f"exit code {code}, closing lines {lines}\n{text[-2000:]}"
        return None
    if "fine" in [line for rank, line in lines.items() if (rank, scenario) != (1, "leave")]:
        return f"a rank says that all went well: {lines}"
    survivors = [line for rank, line in lines.items() if rank != 1]
    if last and not any(last in line for line in survivors):
        return f"no survivor says '{last}': {lines}\n{text[-2000:]}"
    for _ in range(100):
        left = processes_of(program)
        if not left:
            return None
        time.sleep(0.1)
    for process in left:
        os.kill(process, signal.SIGKILL)
    return f"{len(left)} processes were left"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--eigen", default="/usr/include/eigen3", help="Eigen's include folders, joined by colons")
    parser.add_argument("--scratch", type=Path, default=Path("build/mpi"))
    parser.add_argument("--huge", action="store_true", help="only the call of more than 2^31 elements")
    options = parser.parse_args()
    scratch = options.scratch.resolve()
    scratch.mkdir(parents=True, exist_ok=True)
    passed, failures, found = 0, [], []
    for mpi in LAUNCH:
        if not shutil.which(f"mpicxx.{mpi}") or not shutil.which(LAUNCH[mpi][0]):
            print(f"{mpi} is not installed: nothing was run with it")
            continue
        found.append(mpi)
        program = scratch / f"ranks_{mpi}"
        code, text = tools.run(["env", f"OMPI_CXX={options.compiler}", f"MPICH_CXX={options.compiler}", f"mpicxx.{mpi}", "-std=c++20", "-O0", "-Wall",
                                "-Wextra", "-Wpedantic", "-Wshadow", "-DSINTER_WITH_MPI=1", f"-I{tools.INCLUDE}",
                                *tools.eigen_flags(options.eigen), HERE / "ranks.cpp", "-o", program, "-pthread"])
        if code != 0 or "include/sinter" in text:
            sys.exit(f"{mpi}:\n{text}")
        cases = [(case, False) for case in HUGE] if options.huge else [(case, False) for case in WELL] + [(case, True) for case in FAULTS]
        for case, is_fault in cases:
            problem = problem_of(mpi, program, case, is_fault)
            if problem:
                failures.append(f"{mpi}, {case[0]}, {case[1]} ranks, {case[3]} calls compared: {problem}")
            else:
                passed += 1
    print("\n".join(failures))
    print(f"mpi: {passed} of {passed + len(failures)} passed")
    sys.exit(77 if not found else 1 if failures else 0)


if __name__ == "__main__":
    main()
