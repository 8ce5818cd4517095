#!/usr/bin/env bash
# tests/gpu/run.sh: on a machine with a GPU: builds, tests, sanitizes and times the CUDA backend in one call.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: bash tests/gpu/run.sh [options]

  --eigen DIR   Eigen's headers (default: /usr/include/eigen3)
  --catch DIR   the folder that holds catch2/ (default: the compiler's)
  --arch ARCH   what to compile for (default: native)
  --jobs N      compilers at a time (default: one per core)
  --seconds N   start nothing when so many seconds have passed (default: 530)
  --out DIR     where logs and figures go (default: build/gpu)
  --no-build    run what an earlier call built
  --build-only  compile everything and stop; needs no GPU
  -h, --help    this text

Needs nvcc and g++. cuDNN and NCCL are tested where they are installed. CUB is tested and timed beside Sinter where nvcc finds it, PyTorch timed
where python3 has it, and compute-sanitizer runs where it is installed.
Exit code: 0 if everything passed.
TEXT
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
eigen=/usr/include/eigen3 catch= arch=native out=$here/build/gpu build=yes only_build=no jobs=$(nproc) seconds=530
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --no-build) build=no ;;
    --build-only) only_build=yes ;;
    --eigen | --catch | --arch | --jobs | --seconds | --out)
      [ $# -ge 2 ] || { echo "run.sh: $1 needs a value" >&2; exit 2; }
      declare "${1#--}=$2"
      shift ;;
    *) echo "run.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

PATH=$PATH:/usr/local/cuda/bin
command -v nvcc >/dev/null || { echo "run.sh: nvcc, the compiler of the CUDA toolkit, is not there" >&2; exit 1; }
mkdir -p "$out"
flags=(-std=c++20 --expt-relaxed-constexpr -O2 "-arch=$arch" -Xcompiler=-march=native "-DSINTER_REPOSITORY=\"$here\"" -I "$here/include" -isystem "$eigen" -x cu)
[ -z "$catch" ] || flags=(-isystem "$catch" "${flags[@]}")

# For native_test.cu: the libraries with which a program compiles, links and starts.
macros=() libraries=() cub=()
find_library() { # find_library <name> <header> <something to call>
  printf '#include <%s>\nint main() { return %s == 0 && false; }\n' "$2" "$3" >"$out/$1_probe.cu"
  if nvcc "$out/$1_probe.cu" -o "$out/$1_probe" "-l$1" >"$out/$1_probe.log" 2>&1 && "$out/$1_probe" >>"$out/$1_probe.log" 2>&1; then
    macros+=("-DSINTER_WITH_${1^^}=1") libraries+=("-l$1")
    echo "$1: found"
  else
    echo "$1: not found ($out/$1_probe.log says more); what needs it is not tested"
  fi
}
find_cub() { # to cub: the object that has sorts done by CUB, where CUB is installed
  printf '#if !__has_include(<cub/device/device_radix_sort.cuh>)\n#error\n#endif\n' >"$out/cub_probe.cu"
  rm -f "$out"/{rival_cub,sort_by_cub_test,folds_by_cub_test,bench_by_cub}
  if nvcc -E "$out/cub_probe.cu" -o /dev/null 2>/dev/null; then
    cub=(cub.o)
    echo "cub: found"
  else
    echo "cub: not found; what needs it is neither tested nor timed"
  fi
}
compile() { # [object=<name>] compile <source> [<flag>...]: to $out/<name>.o
  local name begin=$SECONDS
  name=${object:-$(basename "$1" | cut -d. -f1)}
  nvcc "${flags[@]}" "${@:2}" -c "$1" -o "$out/$name.o" >"$out/$name.log" 2>&1 || {
    echo "compiling $1 failed:"
    tail -40 "$out/$name.log"
    touch "$out/not_compiled"
    return
  }
  echo "$name: $((SECONDS - begin)) s" >>"$out/compiling.txt"
}
link() { # link <program> <object>... [-l<library>...]
  local program=$1 objects=()
  shift
  while [ $# -gt 0 ] && [[ $1 != -l* ]]; do
    objects+=("$out/$1")
    shift
  done
  nvcc "-arch=$arch" "${objects[@]}" -o "$out/$program" -lcublasLt "$@"
}
tests=(map fold program half scan sort blas graph spill kernel_table pooling conv embedding attention sequences)
networks=(fcn_s alexnet_s resnet50 fcn_r alexnet_r resnet56)
over_devices=()
for source in "$here"/tests/{parallel,ranks}/*_test.cpp; do over_devices+=("$(basename "$source" _test.cpp)"); done
if [ $build = yes ]; then
  find_library cudnn cudnn.h 'cudnnGetVersion()'
  find_library nccl nccl.h 'ncclGetVersion(nullptr)'
  find_cub
  echo "compiling in $out"
  : >"$out/compiling.txt"
  rm -f "$out"/{not_compiled,conv_by_cudnn_test}
  sources=("$here"/tests/ops/table_[0-9]*_test.cpp "$here/tests/gpu/"{table,memory,runtime}_test.cu "$here/tests/gpu/bench.cu" "$here/tests/main.cpp"
    "$here/examples/01_digits.cpp")
  for test in "${tests[@]}"; do sources+=("$here/tests/cuda/${test}_test.cpp"); done
  sources+=("$here"/tests/{parallel,ranks}/*_test.cpp)
  [ ${#cub[@]} -eq 0 ] || sources+=("$here/tests/gpu/"{cub,rival_cub,folds_by_cub_test,bench_by_cub}.cu)
  for source in "${sources[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
    compile "$source" &
  done
  compile "$here/tests/gpu/native_test.cu" "${macros[@]}" &
  if [[ " ${macros[*]}" == *CUDNN* ]]; then object=conv_by_cudnn_test compile "$here/tests/cuda/conv_test.cpp" -DSINTER_WITH_CUDNN=1 & fi
  for network in "${networks[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
    python3 "$here/tests/bench/models.py" --device cuda --networks "$network" --build only --eigen "$eigen" \
      --flags "--expt-relaxed-constexpr -O2 -arch=$arch -Xcompiler=-march=native" >"$out/models_$network.log" 2>&1 || {
      tail -40 "$out/models_$network.log"
      touch "$out/not_compiled"
    } &
  done
  wait
  [ ! -e "$out/not_compiled" ] || exit 1
  parts=()
  for part in "$here"/tests/ops/table_[0-9]*_test.cpp; do parts+=("$(basename "$part" .cpp).o"); done
  link table_test "${parts[@]}" table_test.o main.o
  for test in "${tests[@]}" "${over_devices[@]}" memory runtime; do link "${test}_test" "${test}_test.o" main.o; done
  link native_test native_test.o main.o "${libraries[@]}"
  if [[ " ${macros[*]}" == *CUDNN* ]]; then link conv_by_cudnn_test conv_by_cudnn_test.o main.o -lcudnn; fi
  link bench bench.o "${cub[@]}"
  if [ ${#cub[@]} -gt 0 ]; then
    link sort_by_cub_test sort_test.o main.o "${cub[@]}"
    link folds_by_cub_test folds_by_cub_test.o main.o
    link rival_cub rival_cub.o
    link bench_by_cub bench_by_cub.o
  fi
  link digits 01_digits.o
  echo "built in $SECONDS s"
fi
if [ $only_build = yes ]; then exit; fi

failed=()
attempt() { # attempt <name> <command>...
  local name=$1
  shift
  echo "== $name, after $SECONDS s"
  if [ "$SECONDS" -ge "$seconds" ]; then
    echo "not run: no time left" | tee "$out/$name.txt"
    failed+=("$name (no time left)")
    return
  fi
  if ! timeout $((seconds - SECONDS < 240 ? seconds - SECONDS : 240)) "$@" 2>&1 | tee "$out/$name.txt" | tail -25; then failed+=("$name"); fi
}
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$out/device.txt"
nvcc --version | tail -2 | tee -a "$out/device.txt"
export SINTER_CUDA_MAP=0,0 # cuda<0> and cuda<1> on one GPU
for test in "${tests[@]}" table memory runtime native; do attempt "$test" "$out/${test}_test"; done
for test in sort_by_cub folds_by_cub conv_by_cudnn; do
  if [ -e "$out/${test}_test" ]; then attempt "$test" "$out/${test}_test"; fi
done
export SINTER_CUDA_MAP=0,0,0,0 # cuda<0> to cuda<3> on one GPU
for test in "${over_devices[@]}"; do attempt "$test" "$out/${test}_test"; done
unset SINTER_CUDA_MAP
if [ "$(nvidia-smi -L | wc -l)" -ge 2 ] && grep -q 'two GPUs' < <("$out/native_test" --list-tests '[two_gpus]'); then
  attempt native_two_gpus "$out/native_test" "[two_gpus]"
else
  echo "sums over GPUs were not run: they take two GPUs, and NCCL"
fi
attempt without_gpu env CUDA_VISIBLE_DEVICES= "$out/runtime_test" "[without_gpu]"
attempt digits "$out/digits" --device cuda --epochs 20 --data "$here/examples/data" --out "$out"
attempt bench "$out/bench"
echo "milliseconds, and the share of the copy's bytes per second:"
awk -F'\t' '$1 == "copy" { rate = $3 / $2 } { printf "  %-42s %10.4f ms", $1, $2; if ($3 > 0) printf "  %.2f", $3 / $2 / rate; print "" }' "$out/bench.txt"
beside() { # beside <name> <log>: the times of another over ours, row by row
  echo "$1's time / ours:"
  awk -F'\t' 'NF == 3 { row = $1; sub(/^(sinter|cub|torch fused|torch.compile|torch) /, "", row) }
    NR == FNR { ours[row] = $2; next }
    NF == 3 && row in ours { printf "  %-52s %8.2f\n", $1, $2 / ours[row] }' "$out/bench.txt" "$out/$2.txt"
}
if [ -e "$out/rival_cub" ]; then
  attempt rival_cub "$out/rival_cub"
  beside CUB rival_cub
  attempt bench_by_cub "$out/bench_by_cub"
  beside 'Sinter with folds by CUB' bench_by_cub
fi
if python3 -c 'import torch' 2>/dev/null; then
  attempt torch python3 "$here/tests/gpu/rival_torch.py"
  beside PyTorch torch
fi
attempt models python3 "$here/tests/bench/models.py" --device cuda --build no --svg "$out/models.svg"
if command -v compute-sanitizer >/dev/null; then
  export SINTER_CUDA_MAP=0,0
  for test in map fold scan sort graph conv attention; do attempt "memcheck_$test" compute-sanitizer --tool memcheck --error-exitcode 1 "$out/${test}_test"; done
  attempt racecheck_fold compute-sanitizer --tool racecheck --error-exitcode 1 "$out/fold_test" "rows of any width*,sums and extremes*"
  attempt racecheck_map compute-sanitizer --tool racecheck --error-exitcode 1 "$out/map_test" "gradients of operands*"
  attempt racecheck_scan compute-sanitizer --tool racecheck --error-exitcode 1 "$out/scan_test" "scans of rows*"
  attempt racecheck_sort compute-sanitizer --tool racecheck --error-exitcode 1 "$out/sort_test" "sort and topk*,unique*"
  attempt racecheck_attention compute-sanitizer --tool racecheck --error-exitcode 1 "$out/attention_test" "attention on a GPU takes any strides*,a formula and an added mask*"
  unset SINTER_CUDA_MAP
else
  echo "compute-sanitizer is not installed: nothing was sanitized"
fi
if [ ${#failed[@]} -gt 0 ]; then
  echo "failed: ${failed[*]}"
  exit 1
fi
echo "everything passed"
