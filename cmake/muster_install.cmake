# SPDX-License-Identifier: Apache-2.0
# `cmake --install` and find_package(muster): one exported library, muster::muster. It stands for
# the static libraries of all folders, which are exported with it, and carries the public headers.

get_property(folders GLOBAL PROPERTY MUSTER_FOLDERS)
file(GLOB_RECURSE public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/muster/*.hpp)
add_library(muster_all INTERFACE)
add_library(muster::muster ALIAS muster_all)
set_target_properties(muster_all PROPERTIES EXPORT_NAME muster)
target_compile_features(muster_all INTERFACE cxx_std_20)
target_link_libraries(muster_all INTERFACE ${folders})
target_sources(
  muster_all INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES
                       ${public_headers}
)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/muster)
install(
  TARGETS muster_all ${folders}
  EXPORT muster
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/muster
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
)
install(EXPORT muster NAMESPACE muster:: FILE musterTargets.cmake DESTINATION ${package_dir})
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/musterConfig.cmake.in ${PROJECT_BINARY_DIR}/musterConfig.cmake
  INSTALL_DESTINATION ${package_dir}
)
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/musterConfigVersion.cmake COMPATIBILITY SameMinorVersion
)
install(FILES ${PROJECT_BINARY_DIR}/musterConfig.cmake
              ${PROJECT_BINARY_DIR}/musterConfigVersion.cmake DESTINATION ${package_dir}
)
