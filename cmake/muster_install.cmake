# SPDX-License-Identifier: Apache-2.0
# `cmake --install` and find_package(muster): one exported library, muster::muster.

get_property(folders GLOBAL PROPERTY MUSTER_FOLDERS)
add_library(muster_all INTERFACE)
add_library(muster::muster ALIAS muster_all)
set_target_properties(muster_all PROPERTIES EXPORT_NAME muster)
target_link_libraries(muster_all INTERFACE ${folders})
