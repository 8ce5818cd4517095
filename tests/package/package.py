#!/usr/bin/env python3
"""Builds and runs a small separate project that uses the library in one of the ways a user would."""
import argparse
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools

HERE = Path(__file__).resolve().parent
SINGLE = tools.ROOT / "single_include"


def must(command, **options):
    code, text = tools.run(command, **options)
    if code != 0:
        sys.exit(f"$ {' '.join(map(str, command))}\n{text}\nfailed with exit code {code}")
    return text


def settings(options):
    """What every configure step needs: the compiler, and ccache where it is."""
    words = [f"-DCMAKE_CXX_COMPILER={options.compiler}", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1"]
    if shutil.which("ninja"):
        words += ["-G", "Ninja"]
    if shutil.which("ccache"):
        words.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
    return words


def build(kind, options, folder, *extra):
    out = folder / "build"
    must(["cmake", "-S", HERE / kind, "-B", out, f"-DSINTER_SOURCE={tools.ROOT}", *settings(options), *extra])
    must(["cmake", "--build", out])
    return out / "main"


def installed(options, folder, *extra):
    """The folder where the library is installed."""
    prefix = folder / "prefix"
    must(["cmake", "-S", tools.ROOT, "-B", folder / "library", "-DSINTER_TESTS=OFF", "-DSINTER_EXAMPLES=OFF",
          *settings(options), *extra])
    must(["cmake", "--install", folder / "library", "--prefix", prefix])
    leaks = [file for file in prefix.rglob("*.cmake") if str(tools.ROOT) in file.read_text(encoding="utf-8")]
    if leaks:
        sys.exit(f"the installed {leaks[0].name} refers to the source folder")
    return prefix


def find_package(options, folder):
    """From an installed library; once more without zlib, where the program gzip unpacks files in its place."""
    prefix = f"-DCMAKE_PREFIX_PATH={installed(options, folder)}"
    cache = (folder / "library/CMakeCache.txt").read_text(encoding="utf-8")
    with_zlib = "SINTER_WITH_ZLIB:BOOL=ON" in cache
    main = build("find_package", options, folder, prefix)
    without = build("find_package", options, folder / "without_zlib", prefix, "-DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON")
    table = folder / "table.csv.gz"
    table.write_bytes(gzip.compress(b"1,2\n3,4\n"))
    for program, zlib in ((main, with_zlib), (without, False)):
        code, text = tools.run(["env", f"PATH={folder}", program, table])
        if (code == 0) != zlib or ("10\n" if zlib else "program gzip, which was not found") not in text:
            sys.exit(f"{program} {'with' if zlib else 'without'} zlib, where there is no gzip:\n{text}")
        if shutil.which("gzip") and must([program, table]) != "10\n":
            sys.exit(f"{program} does not read {table}")
    pictures = {line[0]: line for line in (row.split("\t") for row in (tools.ROOT / "tests/io/data/images.tsv").read_text().splitlines())
                if line[1] == "unchanged"}
    for name, option in (("one.png", "PNG"), ("grey.jpg", "JPEG")):
        _, _, _, pixels, data = pictures[name]
        (folder / name).write_bytes(bytes.fromhex(data))
        code, text = tools.run([main, folder / name])
        expected = f"{sum(bytes.fromhex(pixels))}\n" if f"SINTER_WITH_{option}:BOOL=ON" in cache else f"compile with -DSINTER_WITH_{option}=1"
        if expected not in text:
            sys.exit(f"{main} {folder / name} must give {expected}:\n{text}")
    for option, missing, name in (("ZLIB", "CMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON", "zlib"), ("OPENSSL", "CMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON", "OpenSSL 3"),
                                  ("PNG", "CMAKE_DISABLE_FIND_PACKAGE_PNG=ON", "libpng"), ("JPEG", "SINTER_TURBOJPEG_LIBRARY=", "libturbojpeg")):
        code, text = tools.run(["cmake", "-S", tools.ROOT, "-B", folder / f"no_{option}", "-DSINTER_TESTS=OFF", "-DSINTER_EXAMPLES=OFF",
                                *settings(options), f"-DSINTER_WITH_{option}=ON", f"-D{missing}"])
        if code == 0 or f"{name} was not found" not in " ".join(text.split()):
            sys.exit(f"SINTER_WITH_{option} without {name} must be an error:\n{text}")
    return main


def vcpkg(options, folder):
    """What the port installs, with each set of features; vcpkg itself is not needed."""
    port = tools.ROOT / "packaging/vcpkg/ports/sinter"
    manifest = json.loads((port / "vcpkg.json").read_text(encoding="utf-8"))
    if manifest["version"] != version():
        sys.exit(f"vcpkg.json has version {manifest['version']}, and config.hpp {version()}")
    for feature in ("zlib", "none"):
        prefix = folder / feature
        must(["cmake", f"-DPREFIX={prefix}", f"-DFEATURES={feature}", f"-DCONFIGURE={';'.join(settings(options))}", "-P", HERE / "vcpkg/run.cmake"])
        share = prefix / "share/sinter"
        if not {"copyright", "usage", "sinter.cpp", "sinterTargets.cmake"} <= {file.name for file in share.iterdir()}:
            sys.exit(f"{share} holds only {sorted(file.name for file in share.iterdir())}")
        if sorted(file.name for file in prefix.iterdir()) != ["include", "share"] or [file.name for file in (prefix / "share").iterdir()] != ["sinter"]:
            sys.exit(f"the port installs beside include and share/sinter: {[str(file) for file in prefix.glob('*/*')]}")
        if ('if("ON")' in (share / "sinterConfig.cmake").read_text(encoding="utf-8")) != (feature == "zlib"):
            sys.exit(f"the feature zlib is not as asked for: {feature}")
        main = build("find_package", options, folder / f"uses_{feature}", f"-DCMAKE_PREFIX_PATH={prefix}")
    return main


def conan(options, folder):
    """The recipe for Conan 2 makes a package, and its test runs; Eigen and zlib are those of the system."""
    if not shutil.which("conan"):
        return print("conan is not installed: no package was made")
    command = ["env", f"CONAN_HOME={folder}", "conan"]
    must([*command, "profile", "detect"])
    profile = folder / "profile"
    profile.write_text("include(default)\n[settings]\ncompiler.cppstd=20\n[platform_requires]\neigen/3.4.0\nzlib/1.2.13\n", encoding="utf-8")
    text = must([*command, "create", tools.ROOT / "packaging/conan", "-pr:a", profile, "-nr", "-c",
                 f"tools.cmake.cmake_layout:test_folder={folder}/test"])
    if f"\nSinter {version()}\n[[0.5, 0.5, 0.5]," not in text:
        sys.exit(f"the test of the package printed something unexpected:\n{text}")
    print(f"conan: sinter/{version()}")


def native(options, folder):
    """A program with kernels, cuDNN and NCCL, which is looked at here, from an installed library and from the single header; one that uses
    neither library must not load them."""
    if not options.nvcc:
        sys.exit("needs --nvcc")
    on = ["-DSINTER_WITH_CUDNN=ON", "-DSINTER_WITH_NCCL=ON"]
    code, text = tools.run(["cmake", "-S", tools.ROOT, "-B", folder / "without_cuda", "-DSINTER_TESTS=OFF", "-DSINTER_EXAMPLES=OFF",
                            *settings(options), *on])
    if code == 0 or not re.search(r"SINTER_WITH_CUDA\s+is\s+OFF", text):
        sys.exit(f"SINTER_WITH_CUDNN without SINTER_WITH_CUDA must be an error:\n{text}")
    toolkit = f"-DCUDAToolkit_ROOT={Path(shutil.which(options.nvcc)).resolve().parent.parent}"
    prefix = folder / "prefix"
    try:
        installed(options, folder, "-DSINTER_WITH_CUDA=ON", toolkit, *on)
    except SystemExit as stop:
        missing = re.search(r"(\w+)\.h or\s+lib\1\s+was\s+not\s+found", str(stop))
        if not missing:
            raise
        return print(f"{missing[1]} is not installed: nothing was built with it")
    # Who asks for the host only needs none of it.
    must([build("find_package", options, folder / "host_only", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON")])
    main = build("native", options, folder, f"-DCMAKE_PREFIX_PATH={prefix}", toolkit, f"-DCMAKE_CUDA_COMPILER={options.nvcc}",
                 f"-DCMAKE_CUDA_HOST_COMPILER={options.compiler}", "-DCMAKE_CUDA_ARCHITECTURES=90")
    for program, loads in ((main, True), (main.with_name("mixed"), False)):
        needed = must(["readelf", "-d", program])
        for library in ("libcudnn.", "libnccl."):
            if (f"[{library}" in needed) != loads:
                sys.exit(f"{program.name} {'does not load' if loads else 'loads'} {library}so:\n{needed}")
    must([main.with_name("mixed")])
    single = folder / "single"
    must([options.nvcc, "-std=c++20", "--expt-relaxed-constexpr", f"-ccbin={options.compiler}", "-arch=sm_90", f"-I{SINGLE}",
          *tools.eigen_flags(options.eigen), "-DSINTER_WITH_CUDNN=1", "-DSINTER_WITH_NCCL=1", HERE / "native/main.cu", "-o", single, "-lcudnn", "-lnccl"])
    must([single])
    print(must([main]))


def mpi(options, folder):
    """A program of sinter::mpi from an installed library and from the single header; who asks for the host only needs no MPI."""
    if not shutil.which("mpicxx") or not shutil.which("mpirun"):
        return print("MPI is not installed: nothing was built with it")
    prefix = f"-DCMAKE_PREFIX_PATH={installed(options, folder, '-DSINTER_WITH_MPI=ON')}"
    must([build("find_package", options, folder / "host_only", prefix, "-DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON")])
    main = build("mpi", options, folder, prefix)
    launch = ["env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1", "mpirun", "-n", "2"]
    single = folder / "single"
    must(["env", f"OMPI_CXX={options.compiler}", f"MPICH_CXX={options.compiler}", "mpicxx", "-std=c++20", f"-I{SINGLE}", *tools.eigen_flags(options.eigen),
          "-DSINTER_WITH_MPI=1", "-DSINTER_WITH_RANKS=1", "-DONE_HEADER", HERE / "mpi/main.cpp", "-o", single, "-pthread"])
    for program in (main, single):
        text = must([*launch, program], stdin=subprocess.DEVNULL)
        if sorted(text.splitlines()) != ["rank 0 of 2: 3", "rank 1 of 2: 3"]:
            sys.exit(f"{program} printed something unexpected:\n{text}")
    print("mpi: 2 programs")


def compiled(options, folder):
    """sinter::compiled from an installed library, beside a file without it; then the same without CMake, and what must not link."""
    main = build("compiled", options, folder, f"-DCMAKE_PREFIX_PATH={installed(options, folder)}")
    base = [options.compiler, "-std=c++20", "-O1", f"-I{SINGLE}", *tools.eigen_flags(options.eigen)]

    def object(name, source, *flags):
        result = folder / f"{name}.o"
        must([*base, *flags, "-c", source, "-o", result])
        return result

    once = folder / "once.cpp"
    once.write_text("#define SINTER_IMPLEMENTATION\n#include <sinter/sinter.hpp>\n", encoding="utf-8")
    implementation = object("once", once)
    declared = object("main", HERE / "compiled/main.cpp", "-DSINTER_COMPILED=1")
    whole = object("header_only", HERE / "compiled/header_only.cpp")
    must([options.compiler, declared, whole, implementation, "-pthread", "-o", folder / "by_hand"])
    must([folder / "by_hand"])
    again = shutil.copy(implementation, folder / "again.o")
    for objects, word in (((declared, implementation, again), "multiple definition"), ((declared,), "undefined reference")):
        code, text = tools.run([options.compiler, *objects, whole, "-pthread", "-o", folder / "wrong"])
        if code == 0 or word not in text:
            sys.exit(f"{len(objects)} objects: the linker must find {word}s:\n{text[:2000]}")
    for program in (main, main.with_name("quick")):
        if must([program]) != "1 3\n":
            sys.exit(f"{program} found other results, or other threads, in the file without sinter::compiled")
    print("compiled: 3 programs")


def wide_functions(program):
    """The functions of a program that use wider registers than every x86-64 processor has: those that objects keep to themselves, and others."""
    shared = set()
    for line in must(["nm", program]).splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in "TWuVi":
            shared.add((int(words[0], 16), words[2]))
    own, others, function = set(), set(), None
    for line in must(["objdump", "-d", "--no-show-raw-insn", program]).splitlines():
        if head := re.match(r"^([0-9a-f]+) <(.*)>:$", line):
            function = (int(head[1], 16), head[2])
        elif re.search(r"%[yz]mm|\tv[a-z]", line):
            (others if function in shared else own).add(function[1])
    return own, others


def shipping(options, folder):
    """A program without -march from an installed library runs on each set of instructions that the processor has, and on an old processor."""
    main = build("shipping", options, folder, f"-DCMAKE_PREFIX_PATH={installed(options, folder)}", "-DCMAKE_CXX_FLAGS_RELEASE=-O2")
    if not (main.parent / "main_variants").is_dir():
        return print("no variants on this machine: nothing was chosen")
    losses = {}
    for name in ("baseline", "avx2", "avx512"):
        code, text = tools.run(["env", f"SINTER_ISA={name}", main])
        if "which this processor does not have; it has" in text and code == 1 and name != "baseline":
            continue
        if code != 0 or f"kernels for {name}\n" not in text:
            sys.exit(f"SINTER_ISA={name}:\n{text}")
        losses[name] = float(text.split()[-1])
    if max(losses.values()) - min(losses.values()) > 1e-4:
        sys.exit(f"the sets compute different losses: {losses}")
    code, text = tools.run(["env", "SINTER_ISA=mmx", main])
    if code != 1 or "SINTER_ISA is 'mmx', which is none of the sets that this processor may have; it has" not in text:
        sys.exit(f"SINTER_ISA=mmx must be refused:\n{text}")
    own, others = wide_functions(main)
    wrong = [name for name in others if not name.endswith((".avx2", ".avx512"))]
    if not own or wrong:
        sys.exit(f"functions of a wider set that all of the program may call: {wrong[:5]}; of the sets: {len(own)}")
    if shutil.which("qemu-x86_64"):
        if "kernels for baseline" not in must(["qemu-x86_64", "-cpu", "Nehalem", main]):
            sys.exit("an old processor must run the baseline")
    else:
        print("there is no qemu-x86_64: no old processor was tried")
    print(f"losses of the sets: {losses}")


def single_header(options, folder):
    for include in (tools.INCLUDE, SINGLE):
        code, text = tools.run([options.compiler, "-std=c++17", f"-I{include}", *tools.eigen_flags(options.eigen), "-fsyntax-only", HERE / "main.cpp"])
        if code == 0 or "compile with -std=c++20" not in text or len(text.splitlines()) > 14:
            sys.exit(f"C++17 must be refused in a few lines:\n{text}")
    compiler = (["ccache"] if shutil.which("ccache") else []) + [options.compiler]
    objects = [compiler, "-std=c++20", "-O1", f"-I{SINGLE}", *[f"-I{path}" for path in options.eigen.split(":")]]
    must([*objects[0], *objects[1:], "-c", HERE / "main.cpp", "-o", folder / "main.o"])
    must([options.compiler, folder / "main.o", "-pthread", "-o", folder / "main"])
    return folder / "main"


def nvcc(options, folder):
    """The same program as host code of nvcc; then a program of one file for g++ and one for nvcc, which share tensors."""
    if not options.nvcc:
        sys.exit("needs --nvcc")
    cuda = [options.nvcc, "-std=c++20", "--expt-relaxed-constexpr", f"-ccbin={options.compiler}", *tools.eigen_flags(options.eigen)]
    must([*cuda, "-x", "cu", f"-I{tools.INCLUDE}", HERE / "main.cpp", "-o", folder / "main"])
    for include in (tools.INCLUDE, SINGLE):
        must([*cuda, "-x", "cu", f"-I{include}", "-c", HERE / "mixed/gpu.cu", "-o", folder / "gpu.o"])
        must([options.compiler, "-std=c++20", f"-I{include}", *tools.eigen_flags(options.eigen), "-c", HERE / "mixed/main.cpp", "-o",
              folder / "mixed.o"])
        must([*cuda[:1], folder / "gpu.o", folder / "mixed.o", "-o", folder / "mixed"])
        must([folder / "mixed"])
    # The same objects sort by CUB where one more is among them.
    code, text = tools.run([*cuda, f"-I{SINGLE}", "-c", HERE / "mixed/sorts.cu", "-o", folder / "sorts.o"])
    if code != 0 and "device_radix_sort.cuh" in text and "No such file" in text:
        print("CUB is not installed: nothing was built with it")
    elif code != 0:
        sys.exit(text)
    else:
        must([*cuda[:1], folder / "sorts.o", folder / "gpu.o", folder / "mixed.o", "-o", folder / "mixed_sorts"])
        must([folder / "mixed_sorts", "cub"])
    return folder / "main"


def main():
    kinds = {
        "compiled": compiled,
        "shipping": shipping,
        "add_subdirectory": lambda o, folder: build("add_subdirectory", o, folder),
        "fetch_content": lambda o, folder: build("fetch_content", o, folder),
        "find_package": find_package,
        "mpi": mpi,
        "single_header": single_header,
        "nvcc": nvcc,
        "native": native,
        "vcpkg": vcpkg,
        "conan": conan,
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=kinds)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--nvcc")
    parser.add_argument("--eigen", default="/usr/include/eigen3", help="Eigen's include folders, joined by colons")
    parser.add_argument("--scratch", type=Path, default=Path("build/package"))
    options = parser.parse_args()
    os.environ["CMAKE_BUILD_PARALLEL_LEVEL"] = "2"
    # The same folder each time, so that ccache knows it; empty each time.
    folder = options.scratch.resolve() / options.kind
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    program = kinds[options.kind](options, folder)
    if not program:
        return
    output = must([program])
    if not re.match(r"Sinter \d+\.\d+\.\d+\n", output) or len(re.findall(r"\b2\b", output)) < 6:
        sys.exit(f"the program printed something unexpected:\n{output}")
    print(output)


if __name__ == "__main__":
    main()
