"""tests/tools.py: what the test scripts share: running compilers, two at a time, and not repeating what has passed."""
import concurrent.futures
import functools
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include"
JOBS = min(2, os.cpu_count() or 1)
OWN_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"](sinter/[^">]+)[">]', re.M)


def headers():
    """Every header of the library, sorted."""
    return sorted(INCLUDE.rglob("*.hpp"))


def run(command, **options):
    """Exit code and output (stdout and stderr together) of a command, in the C locale. guard.py ends it if it hangs."""
    environment = {**os.environ, "LC_ALL": "C", "LANGUAGE": "C"}
    try:
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=environment, **options)
    except FileNotFoundError:
        sys.exit(f"{command[0]}: not found")
    return done.returncode, done.stdout.decode("utf-8", "replace")


def parallel(function, items):
    """[function(item) for item in items], two at a time."""
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        return list(pool.map(function, items))


@functools.cache
def includes_of(file):
    """The library's own headers that a file includes, whether inside #if or not."""
    return [INCLUDE / name for name in OWN_INCLUDE.findall(file.read_text(encoding="utf-8"))]


def closure(file, known=None):
    """The file and all own headers that it reaches."""
    known = set() if known is None else known
    if file not in known and file.is_file():
        known.add(file)
        for header in includes_of(file):
            closure(header, known)
    return known


@functools.cache
def cuda_headers():
    return {header for header in headers() if "#include <cuda_runtime.h>" in header.read_text(encoding="utf-8")}


def needs_cuda(header):
    """Does it reach CUDA's runtime? sinter.hpp includes that backend only where a CUDA compiler reads it."""
    return header.name != "sinter.hpp" and not cuda_headers().isdisjoint(closure(header))


def compiler_kind(compiler):
    """'gcc', 'clang' or 'nvcc'."""
    code, text = run([compiler, "--version"])
    if code != 0:
        sys.exit(f"{compiler} --version failed:\n{text}")
    return "nvcc" if "nvcc" in text else "clang" if "clang" in text else "gcc"


def eigen_flags(directories):
    """-isystem for Eigen; `directories` as CMake gives them, joined by colons."""
    return [word for directory in directories.split(":") if directory for word in ("-isystem", directory)]


class Passed:
    """Remembers in a folder which checks have passed, by a hash of all that they depend on."""

    def __init__(self, folder, *context):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.context = repr(context)
        self.contents = {}

    def key(self, *parts):
        digest = hashlib.sha256(self.context.encode())
        for part in parts:
            if isinstance(part, Path):
                if part not in self.contents:
                    self.contents[part] = part.read_bytes()
                digest.update(str(part).encode() + b"\0" + self.contents[part])
            else:
                digest.update(repr(part).encode())
        return digest.hexdigest()

    def __contains__(self, key):
        return (self.folder / key).is_file()

    def add(self, key):
        (self.folder / key).touch()


def report(what, failures, total, skipped=0):
    """Prints each failure with its text, then a summary; exits with 1 if there was any."""
    for name, text in failures:
        print(f"---- {name}\n{text.rstrip()}")
    unchanged = f" ({skipped} unchanged since they passed)" if skipped else ""
    print(f"{what}: {total - len(failures)} of {total} passed{unchanged}")
    for name, _ in failures:
        print(f"  failed: {name}")
    sys.exit(1 if failures else 0)
