# The package's Python tools are needed while the package is being built: shown under their installed names, without the
# front door, which needs more than a build environment has.
# The command that runs Python with zyfa_ort.kernels importable.
function(zyfa_python_stage command)
  find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)
  set(stage "${PROJECT_BINARY_DIR}/python")
  file(WRITE "${stage}/zyfa_ort/__init__.py" "")
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/kernels" "${stage}/zyfa_ort/kernels" SYMBOLIC)
  set(${command} "${CMAKE_COMMAND}" -E env --modify "PYTHONPATH=path_list_prepend:${stage}" "${Python_EXECUTABLE}" -P -B
    PARENT_SCOPE)
endfunction()
