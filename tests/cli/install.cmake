# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` leaves is enough for a project of somebody else's.

add_test(
  NAME cli.install
  COMMAND
    ${CMAKE_COMMAND} -DBUILD_DIR=${PROJECT_BINARY_DIR} -DGENERATOR=${CMAKE_GENERATOR}
    -DCXX_COMPILER=${CMAKE_CXX_COMPILER} -DCXX_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}
    -DSANITIZE=${MUSTER_SANITIZE} -DSOURCE_DIR=${PROJECT_SOURCE_DIR}
    -DWORK_DIR=${CMAKE_CURRENT_BINARY_DIR}/install_test
    -DCONSUMER_DIR=${CMAKE_CURRENT_SOURCE_DIR}/install_consumer -P
    ${CMAKE_CURRENT_SOURCE_DIR}/install_consumer/run.cmake
)
set_tests_properties(cli.install PROPERTIES LABELS cli TIMEOUT 300)
