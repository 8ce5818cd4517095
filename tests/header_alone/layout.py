#!/usr/bin/env python3
"""Checks what the headers say about themselves and about each other: first lines, umbrellas, and who may include whom, and that what
functions of sinter::compiled keep is shared."""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools

MAY_INCLUDE = {
    "core": "",
    "math": "core",
    "expr": "core math",
    "grad": "core math expr",
    "ops": "core math expr grad",
    "cpu": "core math expr ops grad",
    "cuda": "core math expr ops grad",
    "random": "core math expr grad ops",
    "io": "core math expr ops grad random nn",
    "data": "core math expr ops grad random io nn",
    "metrics": "core math expr grad",
    "nn": "core math expr ops grad random",
    "optim": "core math expr ops grad random nn",
    "parallel": "core math expr ops grad cpu cuda random nn optim data io",
    "ranks": "core math expr ops grad cpu cuda random nn optim data io parallel",
    "train": "core math expr ops grad random nn optim data io metrics parallel ranks",
    "linalg": "core math expr ops grad cpu",
    "sequences": "core math expr ops grad cpu cuda random nn",
}
ANYONE = {"config.hpp"}
# what -> the places that alone may include it
GUARDED = {
    r"Eigen/": r"math/packet\w*\.hpp|cpu/|linalg/",
    r"(cuda|cub|thrust|cooperative_groups|cublas|cudnn|nccl)\w*[./]": r"cuda/|ranks/nccl/",
    r"mpi\.h": r"ranks/mpi/",
    r"openssl/": r"ranks/socket/",
    r"zlib\.h": r"io/gzip\.hpp",
    r"png\.h": r"io/png\.hpp",
    r"(turbojpeg|jpeglib)\.h": r"io/jpeg\.hpp",
    r"(unistd|sched|pthread|fcntl|spawn|dirent|io|process|malloc|windows|sys/(mman|stat|file|wait))\.h": r"core/platform\.hpp|ranks/socket/|"
    r"io/(descriptor|folder|gzip|mapping|write)\.hpp",
    r"(sys/(socket|un)|netinet/\w+|arpa/inet|netdb|poll)\.h": r"ranks/socket/",
}
NEVER = {r"unsupported/": "unsupported Eigen", r"ranges$": "<ranges> is slow to compile", r"iostream$": "<iostream> has a "
         "static constructor; use <ostream> or <cstdio>"}


def room_of(name):
    """'ops' for 'ops/add.hpp' and for the umbrella 'ops.hpp'; '' for sinter.hpp, fwd.hpp and config.hpp."""
    room = name.split("/")[0].removesuffix(".hpp")
    return room if room in MAY_INCLUDE else ""


def cycle_from(header, path=(), seen=None):
    """The chain of includes that leads from a header back to itself, or None."""
    seen = set() if seen is None else seen
    for included in tools.includes_of(header):
        if path and included == path[0] or not path and included == header:
            return [*path, header, included]
        if included not in seen and included.is_file():
            seen.add(included)
            found = cycle_from(included, (*path, header), seen)
            if found:
                return found
    return None


POISONED = re.findall(r"^#define (\w+) SINTER_POISON$", (Path(__file__).resolve().parent / "poison.hpp").read_text(encoding="utf-8"), re.M)


DECLARED = re.compile(r"^\s*#\s*define (SINTER_\w+)|^\s*struct (\w+)[;: ]", re.M)
USED = re.compile(r"\b(SINTER_\w+)|\bclass (?:Problem|Fix) = (\w+_\w+)(?=[,>])")


def declared_in(header):
    return {macro or word for macro, word in DECLARED.findall(header.read_text(encoding="utf-8"))}


def names_of_elsewhere(text, parts, declared, everywhere):
    """The macros and the words of error messages that a header uses, though it does not reach their declaration. header_alone.py finds more,
    and takes long."""
    used = {macro or word for macro, word in USED.findall(re.sub(r"//[^\n]*", "", text))}
    return sorted(used & everywhere - set().union(*(declared[part] for part in parts)))


def problems():
    base = tools.INCLUDE / "sinter"
    poisoned = re.compile(r"\b(" + "|".join(POISONED) + r")\b")
    everything = tools.headers()
    reached = tools.closure(base / "sinter.hpp")
    declared = {header: declared_in(header) for header in everything}
    everywhere = set().union(*declared.values())
    umbrellas = {room: tools.closure(base / f"{room}.hpp") for room in MAY_INCLUDE if (base / room).is_dir()}
    for header in everything:
        name = header.relative_to(base).as_posix()
        room = room_of(name)
        lines = header.read_text(encoding="utf-8").splitlines() + ["", ""]
        if not re.fullmatch(rf"// sinter/{re.escape(name)}: \S.*[.;]?", lines[0]):
            yield name, f'the first line is not "// sinter/{name}: what it is for."'
        pragma = next((line for line in lines if line and not line.startswith("//")), "")
        if pragma != "#pragma once":
            yield name, "#pragma once does not follow the comment at the top"
        cycle = cycle_from(header)
        if cycle:
            yield name, "includes itself: " + " -> ".join(part.relative_to(base).as_posix() for part in cycle)
        if header not in reached:
            yield name, "sinter/sinter.hpp does not reach it"
        if "/" in name:
            if not room:
                yield name, f"{name.split('/')[0]}/ is not a room; the rooms are {', '.join(MAY_INCLUDE)}"
            elif header not in umbrellas[room]:
                yield name, f"sinter/{room}.hpp does not reach it"
        if name in ANYONE and tools.includes_of(header):
            yield name, "may not include anything of the library"
        if name == "fwd.hpp" and any(room_of(part.relative_to(base).as_posix()) not in ("", "core") for part in tools.closure(header)):
            yield name, "may include what declares, in core/, only"
        parts = tools.closure(header)
        if base / "config.hpp" not in parts and any("<Eigen/" in part.read_text(encoding="utf-8") for part in parts):
            yield name, "uses Eigen without sinter/config.hpp, which makes objects with other packets a link error"
        text = "\n".join(lines)
        for word in names_of_elsewhere(text, parts, declared, everywhere):
            yield name, f"uses {word}, which it does not include"
        # header_alone.py cannot compile those that need another library's headers.
        if not (tools.needs_cuda(header) or name.startswith("ranks/mpi/")):
            code = re.sub(r'//[^\n]*|"(\\.|[^"\\\n])*"', "", text)
            for word in sorted(set(poisoned.findall(code))):
                yield name, f"uses the name {word}, which other libraries define as a macro"
            if "stable_sort" in code:
                yield name, "uses std::stable_sort, of which clang 19 warns with the library of g++ 12; std::sort with a second key does the same"
        for held in re.findall(r"^#if SINTER_DEFINES$(.*?)^#endif  // SINTER_DEFINES$", text, re.M | re.S):
            for static in re.findall(r"^ +static (?!constexpr|const )[^(]*[={;]", held, re.M):
                yield name, f"'{static.strip()}' in a function that sinter::compiled holds: files of sinter_variants() would have another"
        for included in re.findall(r'^\s*#\s*include\s*[<"]([^">]+)[">]', text, re.M):
            if included.startswith("sinter/"):
                other = included.removeprefix("sinter/")
                other_room = room_of(other)
                if not (base / other).is_file():
                    yield name, f"includes {included}, which does not exist"
                elif room and not other_room and other not in ANYONE:
                    yield name, f"includes the umbrella {included}"
                elif room and other_room and other_room != room and other_room not in MAY_INCLUDE[room].split():
                    yield name, f"includes {included}, but {room}/ may only include {MAY_INCLUDE[room] or 'itself'}"
                elif room and other.startswith("math/packet") and room not in ("math", "cpu"):
                    yield name, f"includes {included}, which is for math/ and cpu/ only"
                elif "/detail/" in other and other_room != room:
                    yield name, f"includes {included}, which serves {other_room}/ only"
                continue
            if re.search(r'^\s*#\s*include\s*"' + re.escape(included), text, re.M):
                yield name, f'includes "{included}"; own headers are named "sinter/...", others in <>'
            for pattern, place in GUARDED.items():
                if re.match(pattern, included) and not re.match(place, name):
                    yield name, f"includes <{included}>, which is for {place} only".replace("\\", "")
            for pattern, why in NEVER.items():
                if re.match(pattern, included):
                    yield name, f"includes <{included}>: {why}"


def main():
    found = list(problems())
    for name, problem in found:
        print(f"include/sinter/{name}: {problem}")
    count = len(tools.headers())
    print(f"layout: {count} headers, {len(found)} problems")
    sys.exit(1 if found or count == 0 else 0)


if __name__ == "__main__":
    main()
