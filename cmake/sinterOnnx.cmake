# sinter_add_onnx(<target> <name> <model.onnx>): turns a model of ONNX into C++ when the target is built. The target includes "<name>.hpp",
# which has the struct models::<name>; the macro <NAME>_WEIGHTS is the path of its file of weights. Needs Python 3 with the package onnx.
function(sinter_add_onnx target name model)
  find_package(Python3 3.8 REQUIRED COMPONENTS Interpreter)
  get_filename_component(model ${model} ABSOLUTE)
  set(converter ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/onnx_to_sinter.py)
  file(GLOB parts CONFIGURE_DEPENDS ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/sinter_onnx/*.py)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/onnx/${name})
  add_custom_command(OUTPUT ${folder}/${name}.hpp ${folder}/${name}.safetensors
    COMMAND ${Python3_EXECUTABLE} ${converter} ${model} --name ${name} --out ${folder}
    DEPENDS ${model} ${converter} ${parts} COMMENT "Converting ${model}" VERBATIM)
  target_sources(${target} PRIVATE ${folder}/${name}.hpp)
  target_include_directories(${target} PRIVATE ${folder})
  string(TOUPPER ${name} macro)
  target_compile_definitions(${target} PRIVATE ${macro}_WEIGHTS="${folder}/${name}.safetensors")
endfunction()
