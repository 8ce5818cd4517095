# tests/setup.sh: for tests, examples and benchmarks (bash, sourced): installs what is missing and configures a build.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

fail() { # fail <exit code> <message>
  echo "${0##*/}: $2" >&2
  exit "$1"
}

has() { command -v "$1" >/dev/null 2>&1; }

# The header search of a compiler and nothing else: true if it finds <Eigen/Core> or the like.
has_header() { # has_header <compiler> <header> [<flag>...]
  echo "#include <$2>" | "$1" -x c++ -std=c++20 "${@:3}" -fsyntax-only - >/dev/null 2>&1
}

major() { "$1" -dumpversion 2>/dev/null | cut -d. -f1; }

# Prints the Debian packages that are needed and not there, for a compiler and for tests ("yes" or "no").
missing_packages() { # missing_packages <compiler> <with tests>
  local compiler=$1 with_tests=$2
  if [ "$compiler" = g++ ]; then
    has g++ || echo g++
  else
    has "$compiler" || echo "${compiler/clang++/clang}"
    # clang uses the standard library of g++
    has g++ || echo g++
  fi
  has cmake || echo cmake
  has ninja || has make || echo ninja-build
  local probe=$compiler
  has "$probe" || probe=g++
  local eigen=(-isystem /usr/include/eigen3 -isystem /usr/local/include/eigen3)
  # Without any compiler the packages that bring headers cannot be looked for; apt knows whether it has them.
  if ! has "$probe"; then
    echo libeigen3-dev
    [ "$with_tests" = no ] || echo catch2
  else
    has_header "$probe" Eigen/Core "${eigen[@]}" || [ -n "${Eigen3_DIR:-}" ] || echo libeigen3-dev
    if [ "$with_tests" = yes ]; then
      has_header "$probe" catch2/catch.hpp || has_header "$probe" catch2/catch_test_macros.hpp ||
        [ -n "${Catch2_DIR:-}" ] || echo catch2
    fi
  fi
  has python3 || echo python3
}

# Installs Debian packages, by a newer list of them where the machine's own does not do. All that is said is in
# build/apt.log.
apt_list=old
apt_install() { # apt_install <package>...
  has apt-get || return 1
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    has sudo || return 1
    as_root=(sudo)
  fi
  local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@")
  "${install[@]}" >>"$here/build/apt.log" 2>&1 && return
  [ $apt_list = old ] || return 1
  apt_list=new
  { "${as_root[@]}" apt-get update && "${install[@]}"; } >>"$here/build/apt.log" 2>&1
}

# The same, or the script ends and says what to do.
apt_need() { # apt_need <package>...
  has apt-get || fail 1 "these are missing, and there is no apt-get to install them: $* (Debian's names).
Install them and run this again."
  [ "$(id -u)" -eq 0 ] || has sudo || fail 1 "these are missing: $*. Run this as root, or install sudo, or:
  apt-get install $*"
  echo "installing $*" >&2
  # Catch2's package has another name from version 3 on.
  apt_install "$@" || { [[ " $* " = *" catch2 "* ]] && apt_install "${@/#catch2/libcatch2-dev}"; } || {
    tail -5 "$here/build/apt.log" >&2
    fail 1 "apt-get could not install $*; all it said is in build/apt.log. Is this machine online?"
  }
}

install_missing() { # install_missing <compiler> <with tests>
  local packages
  mapfile -t packages < <(missing_packages "$@")
  if [ ${#packages[@]} -gt 0 ]; then
    # Optional: makes building again quicker. Only asked for when apt is needed anyway.
    has ccache || packages+=(ccache)
    apt_need "${packages[@]}"
    mapfile -t packages < <(missing_packages "$@")
    [ ${#packages[@]} -eq 0 ] || fail 1 "still missing after apt-get install: ${packages[*]}"
  fi
  # For single checks of the tests, which are left out where this fails.
  if [ "$2" = yes ]; then
    local package
    { has clang-format-19 || echo clang-format-19
      has mpirun.openmpi || printf '%s\n' openmpi-bin libopenmpi-dev
      has mpirun.mpich || printf '%s\n' mpich libmpich-dev
      has_header "$1" png.h || echo libpng-dev
      has_header "$1" turbojpeg.h || echo libturbojpeg0-dev
    } | while read -r package; do apt_install "$package" </dev/null || true; done
  fi
  local version
  version=$(major "$1")
  case $1 in
    g++) [ "$version" -ge 12 ] || fail 1 "g++ $version is too old for C++20 as Sinter uses it: 12 or later is needed" ;;
    clang*) [ "$version" -ge 14 ] || fail 1 "clang $version is too old for C++20 as Sinter uses it: 14 or later is needed" ;;
  esac
}

# True if there is an MPI for C++, which is installed where it is missing and can be.
install_mpi() {
  has mpicxx && has mpirun && return 0
  echo "installing openmpi-bin libopenmpi-dev" >&2
  apt_install openmpi-bin libopenmpi-dev || return 1
  has mpicxx && has mpirun
}

# Configures build/<folder> from a preset, quietly unless it fails. A folder that an older configuration left in a state
# that no longer works (another place, generator or compiler) is started anew.
configure() { # configure <preset> <compiler> <folder> [<cmake argument>...]
  local preset=$1 compiler=$2 folder=$here/build/$3 generator=(-G "Unix Makefiles") log=$here/build/$3.log old=no
  if has ninja; then generator=(-G Ninja); fi
  if [ -f "$folder/CMakeCache.txt" ]; then old=yes; fi
  while ! (cd "$here" && cmake --preset "$preset" -B "$folder" "${generator[@]}" "-DCMAKE_CXX_COMPILER=$compiler" "${@:4}") \
    >"$log" 2>&1; do
    if [ "$old" = no ]; then
      cat "$log" >&2
      fail 1 "configuring failed"
    fi
    old=no
    rm -rf "$folder"
  done
}

mkdir -p "$here/build"
