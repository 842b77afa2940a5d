# SPDX-License-Identifier: Apache-2.0
# The Python module against the real report server.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
muster_program(report_listener SOURCES report_listener.cpp LINKS muster_report)
add_test(
  NAME cli.python
  COMMAND
    ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${PROJECT_SOURCE_DIR}/python/src
    MUSTER_TEST_LISTENER=$<TARGET_FILE:report_listener> ${Python3_EXECUTABLE} -m unittest discover
    -s ${PROJECT_SOURCE_DIR}/tests/python
)
set_tests_properties(cli.python PROPERTIES LABELS cli TIMEOUT 120)
