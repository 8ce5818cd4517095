#!/usr/bin/env python3
"""Objects of one configuration link; objects of two do not, and the linker names both configurations.

Compiles main.cpp and other.cpp with equal and with different flags, for several levels of optimisation and linkers,
and once with the umbrella header; with --nvcc, one of the two objects comes from nvcc.
"""
import argparse
import platform
import re
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools

HERE = Path(__file__).resolve().parent
if platform.machine() in ("x86_64", "AMD64"):
    FLAGS = {"sse2": ["-march=x86-64"], "avx2_fma": ["-mavx2", "-mfma"]}
else:
    FLAGS = {"neon" if platform.machine() == "aarch64" else "vsx": [], "scalar": ["-DEIGEN_DONT_VECTORIZE"]}
FIRST, SECOND = FLAGS
MODES = [["-O0"], ["-O1", "-g"], ["-O2"], ["-O3", "-fPIC"], ["-O2", "-ffunction-sections", "-Wl,--gc-sections"],
         ["-O1", "-fsanitize=address"], ["-O2", "-flto"]]


class Builder:
    def __init__(self, options, folder):
        self.compiler, self.nvcc, self.folder = options.compiler, options.nvcc, Path(folder)
        self.eigen = tools.eigen_flags(options.eigen)
        self.count = 0

    def object(self, source, flags, header="sinter/config.hpp", include=tools.INCLUDE, nvcc=False):
        self.count += 1
        result = self.folder / f"{Path(source).stem}_{self.count}.o"
        common = ["-std=c++20", f"-DSINTER_ODR_HEADER=<{header}>", f"-I{include}", *self.eigen]
        if nvcc:
            host = [f"-Xcompiler={flag}" for flag in flags]
            command = [self.nvcc, "--expt-relaxed-constexpr", "-x", "cu", f"-ccbin={self.compiler}", *common, *host, "-c", HERE / source, "-o", result]
        else:
            command = [self.compiler, *common, *flags, "-Wno-unused-command-line-argument", "-c", HERE / source, "-o", result]
        code, text = tools.run(command)
        if code != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}\n{text}")
        return result

    def link(self, objects, flags=(), nvcc=False):
        """None if the program links and runs, else the linker's message."""
        self.count += 1
        program = self.folder / f"program_{self.count}"
        code, text = tools.run([self.nvcc if nvcc else self.compiler, *flags, *objects, "-o", program])
        if code != 0:
            return text
        code, text = tools.run([program])
        if code != 0:
            raise RuntimeError(f"the linked program fails with exit code {code}\n{text}")
        return None


def must_link(message):
    return f"equal configurations do not link:\n{message}" if message else None


def must_not_link(message, *configurations):
    if message is None:
        return "different configurations link without an error"
    missing = [name for name in configurations if not re.search(rf"\bsinter_(?:v\d+_\d+_\d+_)?{name}\b", message)]
    return f"the linker does not name {' and '.join(missing)}:\n{message}" if missing else None


def pair(builder, first, second, link_flags=(), expected=(), nvcc=False, **options):
    """Compiles main with `first` and other with `second`, links, and judges."""
    message = builder.link([builder.object("main.cpp", first, nvcc=nvcc, **options), builder.object("other.cpp", second, nvcc=nvcc, **options)],
                           link_flags, nvcc)
    return must_not_link(message, *expected) if expected else must_link(message)


def usable(builder, mode):
    """Whether this machine's compiler and linker make any program at all this way (ASan's runtime, LTO plug-ins)."""
    source = builder.folder / "empty.cpp"
    source.write_text("int main() {}\n")
    code, _ = tools.run([builder.compiler, *mode, source, "-o", builder.folder / "empty"])
    return code == 0


def checks(builder):
    """(name, function that returns None or what is wrong)."""
    first, second = FLAGS[FIRST], FLAGS[SECOND]
    linkers = [name for name in ("bfd", "lld") if shutil.which(f"ld.{name}")]
    for mode in MODES:
        for linker in linkers:
            use = [*mode, f"-fuse-ld={linker}"]
            name = " ".join(use)
            if not usable(builder, use):
                print(f"left out, since this machine cannot link an empty program so: {name}")
                continue
            yield f"{name}: equal", lambda m=mode, u=use: pair(builder, m + first, m + first, u)
            yield f"{name}: different", lambda m=mode, u=use: pair(builder, m + first, m + second, u, (FIRST, SECOND))
    yield "umbrella: equal", lambda: pair(builder, first, first, header="sinter/sinter.hpp")
    yield "umbrella: different", lambda: pair(builder, first, second, (), (FIRST, SECOND), header="sinter/sinter.hpp")
    yield "without packets", lambda: pair(builder, first, [*first, "-DEIGEN_MAX_ALIGN_BYTES=0"], (), (FIRST, "scalar"))
    mixed = [*second, "-DSINTER_ALLOW_MIXED_CONFIGURATIONS"]
    yield "mixing allowed", lambda: pair(builder, first, mixed)

    def static_library():
        archive = builder.folder / "libother.a"
        code, text = tools.run(["ar", "rcs", archive, builder.object("other.cpp", second)])
        if code != 0:
            return text
        return must_not_link(builder.link([builder.object("main.cpp", first), archive]), FIRST, SECOND)

    yield "static library", static_library

    def version():
        other = builder.folder / "include/sinter/config.hpp"
        other.parent.mkdir(parents=True)
        text = (tools.INCLUDE / "sinter/config.hpp").read_text(encoding="utf-8")
        other.write_text(re.sub(r"(#define SINTER_VERSION_MINOR) \d+", r"\1 987", text))
        message = builder.link([builder.object("main.cpp", first),
                                builder.object("other.cpp", first, include=builder.folder / "include")])
        if message is None:
            return "objects of different versions link without an error"
        versions = set(re.findall(r"sinter_v\d+_(\d+)_\d+_", message))
        return None if len(versions) == 2 else f"the linker does not name both versions:\n{message}"

    yield "different versions", version


def nvcc_checks(builder):
    first, second = FLAGS[FIRST], FLAGS[SECOND]
    objects = {}

    def link_with(flags, header):
        if "cuda" not in objects:
            objects["cuda"] = builder.object("main.cpp", first, header="sinter/sinter.hpp", nvcc=True)
        return builder.link([objects["cuda"], builder.object("other.cpp", flags, header=header)], nvcc=True)

    yield "nvcc and host compiler: equal", lambda: must_link(link_with(first, "sinter/sinter.hpp"))
    yield "nvcc and host compiler: different", lambda: must_not_link(link_with(second, "sinter/config.hpp"), FIRST, SECOND)
    by_cub = [*first, "-DSINTER_WITH_CUB_FOLDS=1"]
    yield "folds by CUB: equal", lambda: pair(builder, by_cub, by_cub, nvcc=True)
    yield "folds by CUB: different", lambda: pair(builder, first, by_cub, (), ("with_cub_folds", "without_cub_folds"), nvcc=True)
    by_cudnn = [*first, "-DSINTER_WITH_CUDNN=1"]
    yield "convolutions by cuDNN: equal", lambda: pair(builder, by_cudnn, by_cudnn, nvcc=True)
    yield "convolutions by cuDNN: different", lambda: pair(builder, first, by_cudnn, (), ("with_cudnn", "without_cudnn"), nvcc=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--nvcc", help="check objects of nvcc with those of the compiler instead")
    parser.add_argument("--eigen", default="/usr/include/eigen3", help="Eigen's include folders, joined by colons")
    parser.add_argument("--scratch", type=Path, default=Path("build/odr"))
    options = parser.parse_args()
    options.scratch.mkdir(parents=True, exist_ok=True)
    failures, total, skipped = [], 0, 0
    passed = tools.Passed(options.scratch / "passed", options.compiler, tools.run([options.compiler, "--version"])[1],
                          options.nvcc, *[file.read_bytes() for file in sorted(HERE.iterdir()) if file.is_file()])
    umbrella = sorted(tools.closure(tools.INCLUDE / "sinter/sinter.hpp"))
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        builder = Builder(options, folder)
        for name, check in (nvcc_checks(builder) if options.nvcc else checks(builder)):
            total += 1
            whole = options.nvcc or name.startswith("umbrella")
            key = passed.key(name, *(umbrella if whole else [tools.INCLUDE / "sinter/config.hpp"]))
            if key in passed:
                skipped += 1
                continue
            try:
                problem = check()
            except RuntimeError as error:
                problem = str(error)
            if problem:
                failures.append((name, problem))
            else:
                passed.add(key)
    tools.report(f"configurations with {Path(options.nvcc or options.compiler).name}", failures, total, skipped)


if __name__ == "__main__":
    main()
