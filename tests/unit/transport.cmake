# SPDX-License-Identifier: Apache-2.0
muster_test(unit transport_link_test.cpp LINKS muster_transport)
muster_test(unit transport_sockets_test.cpp LINKS muster_transport)
muster_test(unit launcher_test.cpp LINKS muster_transport)
muster_test(unit transport_network_test.cpp LINKS muster_transport TIMEOUT 240)
target_sources(
  transport_network_test PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/transport_loop.cpp
                                 ${PROJECT_SOURCE_DIR}/tests/support/transport_suite.cpp
)
