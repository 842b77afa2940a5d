# SPDX-License-Identifier: Apache-2.0
# Installs BUILD_DIR below WORK_DIR, then configures, builds and runs against that: the consumer, the
# program that docs/library.md begins with, and examples/digits_cpp, all copied out of the tree.

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
set(programs ${WORK_DIR}/programs)
file(COPY ${CONSUMER_DIR}/ DESTINATION ${programs})
file(COPY ${SOURCE_DIR}/examples/digits_cpp DESTINATION ${programs})
file(READ ${SOURCE_DIR}/docs/library.md page)
string(FIND "${page}" "```cpp\n" begin)
math(EXPR begin "${begin} + 7")
string(SUBSTRING "${page}" ${begin} -1 page)
string(FIND "${page}" "```" length)
string(SUBSTRING "${page}" 0 ${length} page)
file(WRITE ${programs}/first.cpp "${page}")

function(build_project source build)
  must_succeed(
    ${CMAKE_COMMAND} -S ${source} -B ${build} -G ${GENERATOR}
    -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix -DCMAKE_CXX_COMPILER=${CXX_COMPILER}
    -DCMAKE_CXX_COMPILER_LAUNCHER=${CXX_LAUNCHER} -DCMAKE_CXX_FLAGS=${flags}
  )
  must_succeed(${CMAKE_COMMAND} --build ${build})
endfunction()
build_project(${programs} ${WORK_DIR}/build)
build_project(${programs}/digits_cpp ${WORK_DIR}/build_digits)

must_succeed(${WORK_DIR}/build/consumer)
set(expected "{\"lr\": 0.1, \"layers\": 3} {cpu: 2, memory: 2GiB}\n")
if(NOT out STREQUAL expected)
  message(FATAL_ERROR "the consumer printed ${out}instead of ${expected}")
endif()

set(run ${CMAKE_COMMAND} -E chdir ${WORK_DIR})
must_succeed(${run} ${WORK_DIR}/build/first --node-resources cpu=2,memory=1GiB --quiet)
if(NOT out MATCHES "00019 +Completed" OR NOT out MATCHES "best: 000")
  message(FATAL_ERROR "the program of docs/library.md printed ${out}")
endif()
must_succeed(
  ${run} ${WORK_DIR}/build_digits/digits_cpp --samples 2 --epochs 1 --node-resources cpu=2
  --quiet
)
if(NOT out MATCHES "best of 2: trial 0000")
  message(FATAL_ERROR "digits_cpp printed ${out}")
endif()
file(REMOVE_RECURSE ${WORK_DIR})
