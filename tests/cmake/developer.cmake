# Settings of the tests and examples. Nothing here reaches a project that uses the library.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES AND sinter_top_level)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(sinter_developer INTERFACE)
target_link_libraries(sinter_developer INTERFACE sinter::sinter)
if(TARGET sinter::cuda)
  target_link_libraries(sinter_developer INTERFACE sinter::cuda)
endif()
if(TARGET sinter::mpi)
  target_link_libraries(sinter_developer INTERFACE sinter::mpi)
endif()
set(sinter_warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion)
target_compile_options(sinter_developer INTERFACE ${sinter_warnings})
if(SINTER_WERROR)
  target_compile_options(sinter_developer INTERFACE -Werror)
endif()
if(SINTER_NATIVE)
  target_compile_options(sinter_developer INTERFACE -march=native)
endif()
if(SINTER_SANITIZE)
  # Frame pointers for readable stacks; a report of undefined behaviour ends the test.
  target_compile_options(sinter_developer INTERFACE
    -fsanitize=${SINTER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g1)
  target_link_options(sinter_developer INTERFACE -fsanitize=${SINTER_SANITIZE})
  # g++ takes the sanitizer's own code for reads of what was not written.
  target_compile_options(sinter_developer INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()

# Tests and examples link what never changes; it has their flags.
target_link_libraries(sinter_compiled PRIVATE $<BUILD_INTERFACE:sinter_developer>)

# Compiling again what was compiled before costs nothing with ccache. It hashes -march=native as text only, so what the
# compiler makes of it on this machine goes into the hash by way of the compiler check.
find_program(SINTER_CCACHE ccache)
if(SINTER_CCACHE AND sinter_top_level AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(sinter_launcher ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    "CCACHE_COMPILERCHECK=%compiler% -march=native -### -E -x c++ /dev/null" ${SINTER_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${sinter_launcher})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(sinter_developer INTERFACE -fpch-preprocess)
  else()
    target_compile_options(sinter_developer INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endif()

find_package(Python3 3.8 QUIET COMPONENTS Interpreter)
if(NOT Python3_FOUND)
  message(FATAL_ERROR "Sinter's tests need Python 3.8 or later. On Debian or Ubuntu: apt-get install python3.")
endif()

# sinter_add_guarded_test(<name> <command>...): a ctest entry that ends when its command hangs or uses a lot of processor time; a busy
# machine makes no test fail. ctest itself waits for a day. Labels: the room, whose time ctest adds up; quick, unless sinter_slow()
# follows; nvcc if it needs that; gpu if it tests the backend for GPUs, which needs none.
function(sinter_add_guarded_test name)
  add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/guard.py ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT 86400)
  sinter_label(${name} quick)
endfunction()

function(sinter_label name speed)
  string(REGEX MATCH "^(compile_fail|header_alone|single_header|[a-z]+)" room ${name})
  set(labels room-${room} ${speed})
  if(name MATCHES "nvcc$|^cuda_|^package_native$")
    list(APPEND labels nvcc gpu)
  elseif(name STREQUAL cuda)
    list(APPEND labels gpu)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${labels}")
endfunction()

# sinter_slow(<name> <seconds> <input>...): tests/run.sh leaves the test out, unless --all or --since asks for it. Seconds: on two cores.
# Inputs: files and folders from the root of the repository; what they include counts too. tests/since.py reads the table.
file(WRITE ${PROJECT_BINARY_DIR}/slow_tests.txt "")
function(sinter_slow name seconds)
  if(TEST ${name})
    sinter_label(${name} slow)
    list(JOIN ARGN " " inputs)
    file(APPEND ${PROJECT_BINARY_DIR}/slow_tests.txt "${name} ${seconds} ${inputs}\n")
  endif()
endfunction()

# sinter_build_by_ctest(<target> <test>...): the target takes long to compile, so ctest compiles it, by an entry build_<first test>, where it
# runs one of the tests. They are slow tests; see sinter_slow().
function(sinter_build_by_ctest target name)
  set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  add_test(NAME build_${name} COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target ${target} -j 2)
  sinter_label(build_${name} slow)
  set_tests_properties(build_${name} PROPERTIES TIMEOUT 86400 PROCESSORS 2 RUN_SERIAL ON FIXTURES_SETUP ${name}_program)
  set_property(TEST ${name} ${ARGN} APPEND PROPERTY FIXTURES_REQUIRED ${name}_program)
endfunction()
