#!/usr/bin/env bash
# examples/c_interface/run.sh: builds the library and the program of C that uses it, and runs that.
set -euo pipefail
example=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$example/../../tests/setup.sh"
mkdir -p "$here/build"
install_missing g++ no
cmake -S "$example" -B "$here/build/c_interface" -DSINTER_SOURCE="$here" -DSINTER_TESTS=OFF -DSINTER_EXAMPLES=OFF
cmake --build "$here/build/c_interface" -j 2
"$here/build/c_interface/main"
