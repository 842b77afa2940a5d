# SPDX-License-Identifier: Apache-2.0
# The program itself, run as a user would. Python's standard library alone.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
if(TARGET muster)
  foreach(area resources run continue checkpoints commands damage kept storage)
    add_test(NAME cli.${area} COMMAND ${Python3_EXECUTABLE}
                                      ${CMAKE_CURRENT_SOURCE_DIR}/${area}_test.py
    )
    set_tests_properties(
      cli.${area} PROPERTIES LABELS cli TIMEOUT 240 ENVIRONMENT "MUSTER=$<TARGET_FILE:muster>"
    )
  endforeach()
endif()

# A program of a user's with functions as trials.
if(TARGET muster_library)
  find_package(OpenMP COMPONENTS CXX)
  muster_program(
    library_program SOURCES library_program.cpp LINKS muster_library
                            $<$<BOOL:${OpenMP_CXX_FOUND}>:OpenMP::OpenMP_CXX>
  )
  add_test(NAME cli.library COMMAND ${Python3_EXECUTABLE}
                                    ${CMAKE_CURRENT_SOURCE_DIR}/library_test.py
  )
  set_tests_properties(
    cli.library
    PROPERTIES LABELS cli
               TIMEOUT 240
               ENVIRONMENT
               "MUSTER=$<TARGET_FILE:muster>;LIBRARY_PROGRAM=$<TARGET_FILE:library_program>"
  )
endif()
