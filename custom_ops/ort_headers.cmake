# Where ONNX Runtime's C headers are: a path given by the user, the system, or a download (docs/building.md).
# Sets ZYFA_ORT_INCLUDE_DIR to the folder that holds onnxruntime_c_api.h.

set(ZYFA_ORT_MIN_API 27)

function(zyfa_ort_api_version dir out)
  set(version 0)
  if(EXISTS "${dir}/onnxruntime_c_api.h")
    file(STRINGS "${dir}/onnxruntime_c_api.h" line REGEX "^#define ORT_API_VERSION [0-9]+")
    string(REGEX REPLACE ".* ([0-9]+).*" "\\1" version "${line}")
  endif()
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

function(zyfa_find_ort_headers)
  if(NOT ZYFA_ORT_INCLUDE_DIR AND DEFINED ENV{ZYFA_ORT_INCLUDE_DIR})
    set(ZYFA_ORT_INCLUDE_DIR "$ENV{ZYFA_ORT_INCLUDE_DIR}")
  endif()
  if(ZYFA_ORT_INCLUDE_DIR)
    zyfa_ort_api_version("${ZYFA_ORT_INCLUDE_DIR}" found)
    if(found LESS ZYFA_ORT_MIN_API)
      message(FATAL_ERROR "ZYFA_ORT_INCLUDE_DIR: expected a folder with onnxruntime_c_api.h of API version "
                          "${ZYFA_ORT_MIN_API} or later, got ${ZYFA_ORT_INCLUDE_DIR} with version ${found}")
    endif()
  else()
    find_path(ZYFA_ORT_SYSTEM_DIR onnxruntime_c_api.h PATH_SUFFIXES onnxruntime onnxruntime/core/session)
    zyfa_ort_api_version("${ZYFA_ORT_SYSTEM_DIR}" found)
    if(found GREATER_EQUAL ZYFA_ORT_MIN_API)
      set(ZYFA_ORT_INCLUDE_DIR "${ZYFA_ORT_SYSTEM_DIR}")
    else()
      set(ZYFA_ORT_INCLUDE_DIR "${CMAKE_BINARY_DIR}/ort-headers")
      zyfa_ort_api_version("${ZYFA_ORT_INCLUDE_DIR}" found)
      if(found LESS ZYFA_ORT_MIN_API)
        find_package(Python3 REQUIRED COMPONENTS Interpreter)
        execute_process(
          COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/custom_ops/fetch_ort_headers.py"
                  --min-api "${ZYFA_ORT_MIN_API}" "${ZYFA_ORT_INCLUDE_DIR}"
          RESULT_VARIABLE failed)
        if(failed)
          message(FATAL_ERROR "no ONNX Runtime headers of API version ${ZYFA_ORT_MIN_API} or later; "
                              "set ZYFA_ORT_INCLUDE_DIR to a folder that holds onnxruntime_c_api.h")
        endif()
        zyfa_ort_api_version("${ZYFA_ORT_INCLUDE_DIR}" found)
      endif()
    endif()
  endif()
  message(STATUS "ONNX Runtime headers: ${ZYFA_ORT_INCLUDE_DIR} (API version ${found})")
  set(ZYFA_ORT_INCLUDE_DIR "${ZYFA_ORT_INCLUDE_DIR}" PARENT_SCOPE)
endfunction()
