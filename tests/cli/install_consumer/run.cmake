# SPDX-License-Identifier: Apache-2.0
# Installs BUILD_DIR below WORK_DIR, then configures, builds and runs the consumer against that.

function(must_succeed)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    list(JOIN ARGN " " line)
    message(FATAL_ERROR "this failed with ${code}: ${line}\n${out}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
must_succeed(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
foreach(
  path
  include/muster/value.hpp
  include/muster/experiment.hpp
)
  if(NOT EXISTS ${WORK_DIR}/prefix/${path})
    message(FATAL_ERROR "${path} was not installed")
  endif()
endforeach()

set(flags "")
if(SANITIZE)
  set(flags "-fsanitize=address,undefined")
endif()
must_succeed(
  ${CMAKE_COMMAND} -S ${CONSUMER_DIR} -B ${WORK_DIR}/build -G ${GENERATOR}
  -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix -DCMAKE_CXX_COMPILER=${CXX_COMPILER}
  -DCMAKE_CXX_COMPILER_LAUNCHER=${CXX_LAUNCHER} -DCMAKE_CXX_FLAGS=${flags}
)
must_succeed(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
must_succeed(${WORK_DIR}/build/consumer)
set(expected "{\"lr\": 0.1, \"layers\": 3} {cpu: 2, memory: 2GiB}\n")
if(NOT out STREQUAL expected)
  message(FATAL_ERROR "the consumer printed ${out}instead of ${expected}")
endif()
file(REMOVE_RECURSE ${WORK_DIR})
