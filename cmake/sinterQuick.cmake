# sinter_quick(<target>...): for code that changes all the time. The target links sinter::compiled, which is optimised whatever the build
# type, compiles its own files without optimisation, and has the umbrella header precompiled.
function(sinter_quick)
  foreach(target IN LISTS ARGN)
    target_link_libraries(${target} PRIVATE sinter::compiled)
    target_compile_options(${target} PRIVATE -O0)
    target_precompile_headers(${target} PRIVATE <sinter/sinter.hpp>)
  endforeach()
  get_target_property(options sinter_compiled COMPILE_OPTIONS)
  if(NOT "-O2" IN_LIST options)
    target_compile_options(sinter_compiled PRIVATE -O2)
  endif()
endfunction()
