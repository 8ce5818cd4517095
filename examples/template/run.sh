#!/usr/bin/env bash
# examples/template/run.sh [FOLDER]: copies this project into an empty folder, by default a new one, builds it there, trains, saves, loads.
set -euo pipefail
template=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$template/../../tests/setup.sh"
mkdir -p "$here/build"
install_missing g++ no
folder=${1:-$(mktemp -d)}
mkdir -p "$folder"
if [ -n "$(ls -A "$folder")" ]; then
  echo "run.sh: $folder is not empty; name another folder" >&2
  exit 2
fi
cp "$template"/{CMakeLists.txt,*.hpp,*.cpp} "$folder"
cmake -S "$folder" -B "$folder/build" -DSINTER_SOURCE="$here"
cmake --build "$folder/build" -j 2
ctest --test-dir "$folder/build" --verbose --output-on-failure
echo "the project is in $folder"
