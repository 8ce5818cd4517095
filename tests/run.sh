#!/usr/bin/env bash
# tests/run.sh: installs what is missing, builds, and runs the tests.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: bash tests/run.sh [options]

Installs what is missing (with apt-get, as root or with sudo), builds in build/ and runs the tests, without the slow ones.

  --all               run the slow tests too, and optimise more of the others; takes half an hour more
  --since REVISION    run the slow tests whose inputs changed since this revision of git
  --budget SECONDS    with --since: as many of them as take so long on two cores; says which do not run
  --sanitize          build with AddressSanitizer and UndefinedBehaviorSanitizer (build/asan-ubsan)
  --thread-sanitize   build with ThreadSanitizer (build/tsan)
  --debug             build without optimisation and with Eigen's assertions (build/debug)
  --clang             build with clang++ (a folder of its own)
  -R REGEX            run only the tests whose name matches, slow ones too; -N lists the names
  -N                  build nothing new, list the tests
  -j JOBS             compile jobs and tests at a time (default: 2)
  -h, --help          this text

Exit code: 0 if all tests passed, 1 if one failed or nothing could be built, 2 for a wrong option.
TEXT
}

preset=default compiler=g++ jobs=2 regex='' list=no all=no since='' budget=''
wrong() {
  echo "run.sh: $1" >&2
  usage >&2
  exit 2
}
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --sanitize) preset=asan-ubsan ;;
    --thread-sanitize) preset=tsan ;;
    --debug) preset=debug ;;
    --clang) compiler=clang++ ;;
    --all) all=yes ;;
    -N) list=yes ;;
    -R | -j | --since | --budget)
      [ $# -ge 2 ] && [ -n "$2" ] || wrong "$1 needs a value"
      case $1 in
        -R) regex=$2 ;;
        -j) jobs=$2 ;;
        --since) since=$2 ;;
        --budget) budget=$2 ;;
      esac
      shift ;;
    -j*) jobs=${1#-j} ;;
    *) wrong "unknown option $1" ;;
  esac
  shift
done
[[ $jobs =~ ^[1-9][0-9]*$ ]] || wrong "-j needs a positive number, not '$jobs'"
[[ $budget =~ ^[0-9]*$ ]] || wrong "--budget needs a number of seconds, not '$budget'"
[ -z "$budget" ] || [ -n "$since" ] || wrong "--budget goes with --since"
[ -z "$since" ] || { [ "$all" = no ] && [ -z "$regex" ]; } || wrong "--since goes with neither --all nor -R"

source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
install_missing "$compiler" yes

folder=$preset
[ "$compiler" = g++ ] || folder=${preset/default/clang}
[ "$compiler" = g++ ] || [ "$preset" = default ] || folder=$preset-clang
optimised=OFF
[ "$all" = no ] || optimised=ON
configure "$preset" "$compiler" "$folder" -DSINTER_TESTS=ON -DSINTER_EXAMPLES=ON "-DSINTER_TEST_MORE_OPTIMISED=$optimised"
choice=()
if [ -n "$regex" ]; then
  choice=(-R "$regex")
elif [ -n "$since" ]; then
  git -C "$here" rev-parse --quiet --verify "$since^{commit}" >/dev/null || wrong "git knows no revision $since"
  omitted=$(python3 "$here/tests/since.py" "$since" "$here/build/$folder/slow_tests.txt" ${budget:+--budget "$budget"})
  [ -z "$omitted" ] || choice=(-E "$omitted")
elif [ "$all" = no ]; then
  choice=(-LE '^slow$')
fi
if [ "$list" = yes ]; then
  ctest --test-dir "$here/build/$folder" -N "${choice[@]}"
  exit
fi
echo "building in build/$folder"
SECONDS=0
cmake --build "$here/build/$folder" -j "$jobs"
build_seconds=$SECONDS

# Stacks with names, and no complaint about what the process still holds at its end on purpose.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
log=$here/build/$folder/ctest.log
set +e
ctest --test-dir "$here/build/$folder" -j "$jobs" --output-on-failure --no-tests=error "${choice[@]}" 2>&1 | tee "$log"
code=${PIPESTATUS[0]}
set -e

# ctest: "97% tests passed, 1 tests failed out of 33"
read -r failed total < <(sed -n 's/^.*tests passed, \([0-9]*\) tests failed out of \([0-9]*\).*$/\1 \2/p' "$log" | tail -1) || true
if [ -z "${total:-}" ]; then
  echo "run.sh: no test was run" >&2
  exit 1
fi
# ctest has told the processor time of each room, as "room-<name> = ...".
echo "build: $build_seconds s, tests: $((SECONDS - build_seconds)) s"
echo "$((total - failed)) passed, $failed failed"
exit "$((code == 0 ? 0 : 1))"
