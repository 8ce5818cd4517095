#!/usr/bin/env bash
# tests/release.sh: makes what a release consists of, and tries each part.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: bash tests/release.sh [FOLDER]

Makes in FOLDER (default: build/release), from the last commit:

  sinter-VERSION.tar.gz            the sources
  sinter.hpp                       the single header
  libsinter-dev_VERSION_all.deb    a package for Debian and its relatives, where dpkg is
  SHA256SUMS

and trains the README's network with the sources, the header and the package. It refuses where a file is not committed, where the
single header is stale, or where CHANGELOG.md has no section of the version in include/sinter/config.hpp.
TEXT
}
[ $# -le 1 ] || { usage >&2; exit 2; }
case ${1:-} in
  -h | --help) usage; exit 0 ;;
  -*) usage >&2; exit 2 ;;
esac

source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
out=${1:-$here/build/release}
version=$(sed -n 's/^#define SINTER_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' "$here/include/sinter/config.hpp" | paste -sd.)
[ -z "$(git -C "$here" status --porcelain)" ] || fail 1 "files are not committed: git status names them"
grep -q "^## $version\b" "$here/CHANGELOG.md" || fail 1 "CHANGELOG.md has no section ## $version"
python3 "$here/single_include/amalgamate.py" --check >/dev/null || fail 1 "the single header is stale: python3 single_include/amalgamate.py"
install_missing g++ no

mkdir -p "$out"
out=$(cd "$out" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
name=sinter-$version
git -C "$here" archive --prefix="$name/" -o "$out/$name.tar.gz" HEAD
tar -xzf "$out/$name.tar.gz" -C "$scratch"
source=$scratch/$name
cp "$source/single_include/sinter/sinter.hpp" "$out/sinter.hpp"

train() { # train <what> <flags>...: the README's program, with the library from these folders
  g++ -std=c++20 -O1 "${@:2}" -isystem /usr/include/eigen3 "$source/examples/00_spirals.cpp" -pthread -o "$scratch/program"
  "$scratch/program" | tail -1 | grep -q "of the points are told apart" || fail 1 "the README's program fails with $1"
  echo "trains with $1"
}
mkdir "$scratch/header" && mkdir "$scratch/header/sinter" && cp "$out/sinter.hpp" "$scratch/header/sinter/"
train "the sources" -I "$source/include"
train "the single header" -I "$scratch/header"

packages=()
if has dpkg-deb; then
  cmake -S "$source" -B "$scratch/package" -DSINTER_TESTS=OFF -DSINTER_EXAMPLES=OFF >/dev/null
  (cd "$scratch/package" && cpack >/dev/null)
  cp "$scratch"/package/*.deb "$out/"
  packages=("libsinter-dev_${version}_all.deb")
  dpkg-deb -x "$out/${packages[0]}" "$scratch/installed"
  train "the package" -I "$scratch/installed/usr/include"
fi
cd "$out"
sha256sum "$name.tar.gz" sinter.hpp "${packages[@]}" >SHA256SUMS
cat SHA256SUMS
