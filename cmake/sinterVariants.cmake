# sinter_variants(<target> <file>...): compiles files of a target for several sets of vector instructions, of which the program takes the
# largest that its processor has when it starts; see docs/shipping.md. The functions that a file defines at namespace scope, and does not
# declare inline, can be called from the target's other files; they call each other inside of one set. Where the processor or the binary
# tools are others than x86-64 and GNU's, the files are compiled once.
#
# Each object keeps its functions to itself (ld -r, objcopy), so that inline functions of the standard library or of Eigen
# that were compiled for a larger set never serve the rest of the program. What functions keep from call to call, such as the thread
# pool, is shared by all.

# Whether the machine and the tools can do it, and the flags of the project, the folder and the targets named leave the choice of instructions
# open.
function(sinter_variants_available result)
  set(${result} OFF PARENT_SCOPE)
  string(TOUPPER "CMAKE_CXX_FLAGS_${CMAKE_BUILD_TYPE}" flags_of_kind)
  get_directory_property(options COMPILE_OPTIONS)
  foreach(target IN LISTS ARGN)
    get_target_property(own ${target} COMPILE_OPTIONS)
    list(APPEND options ${own})
  endforeach()
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$" AND CMAKE_SYSTEM_NAME STREQUAL Linux AND CMAKE_OBJCOPY AND CMAKE_NM AND CMAKE_LINKER
      AND CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang" AND NOT "${CMAKE_CXX_FLAGS} ${${flags_of_kind}} ${options}" MATCHES "-march=|-mavx|-fsanitize")
    set(${result} ON PARENT_SCOPE)
  endif()
endfunction()

function(sinter_variants target)
  sinter_variants_available(available ${target})
  foreach(file IN LISTS ARGN)
    if(NOT available)
      target_sources(${target} PRIVATE ${file})
      continue()
    endif()
    get_filename_component(path ${file} ABSOLUTE)
    get_filename_component(name ${file} NAME_WLE)
    string(MAKE_C_IDENTIFIER ${name} stem)
    while(TARGET ${target}_${stem}_baseline)  # another file of that name, from another folder
      string(APPEND stem _)
    endwhile()
    set(parts "")
    set(outputs "")
    set(archives "")
    set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}_variants)
    file(MAKE_DIRECTORY ${folder})
    foreach(set IN ITEMS baseline avx2 avx512)
      set(part ${target}_${stem}_${set})
      add_library(${part} STATIC EXCLUDE_FROM_ALL ${path})  # an archive of one object: files can depend on it, with any generator
      target_link_libraries(${part} PRIVATE $<TARGET_PROPERTY:${target},LINK_LIBRARIES>)
      target_include_directories(${part} PRIVATE $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
      target_compile_definitions(${part} PRIVATE $<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>)
      target_compile_options(${part} PRIVATE $<TARGET_PROPERTY:${target},COMPILE_OPTIONS> -USINTER_COMPILED -DSINTER_ALLOW_MIXED_CONFIGURATIONS -fno-lto -fPIC
        $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)  # objcopy makes no unique symbol local
      if(set STREQUAL avx2)
        target_compile_options(${part} PRIVATE -mavx2 -mfma -mf16c)
      elseif(set STREQUAL avx512)
        target_compile_options(${part} PRIVATE -mavx2 -mfma -mf16c -mavx512f -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512)
      endif()
      list(APPEND parts ${set} $<TARGET_FILE:${part}>)
      list(APPEND archives ${part})
      list(APPEND outputs ${folder}/${stem}_${set}.o)
    endforeach()
    add_custom_command(OUTPUT ${outputs} ${folder}/${stem}_choice.cpp
      COMMAND ${CMAKE_COMMAND} "-DNM=${CMAKE_NM}" "-DOBJCOPY=${CMAKE_OBJCOPY}" "-DLD=${CMAKE_LINKER}" "-DFOLDER=${folder}" "-DSTEM=${stem}"
        "-DPARTS=$<JOIN:${parts},|>" -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/sinterVariantsJoin.cmake
      DEPENDS ${archives} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/sinterVariantsJoin.cmake VERBATIM COMMAND_EXPAND_LISTS
      COMMENT "Keeping the variants of ${file} apart")
    set_source_files_properties(${outputs} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    target_sources(${target} PRIVATE ${outputs} ${folder}/${stem}_choice.cpp)
  endforeach()
endfunction()
