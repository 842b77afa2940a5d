# SPDX-License-Identifier: Apache-2.0
# What every target of muster has in common: the language level, the warnings, the sanitizers.

find_program(MUSTER_CCACHE ccache)
if(MUSTER_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${MUSTER_CCACHE})
endif()

add_library(muster_options INTERFACE)
# g++ 12 says "may be used uninitialized" of moved variants and optionals that are not; the lint's
# analyzer and the sanitizers look for the real ones.
target_compile_features(muster_options INTERFACE cxx_std_20)
target_compile_options(
  muster_options
  INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
            -Woverloaded-virtual -Wno-missing-field-initializers -Wno-maybe-uninitialized
            # With -O3 it also takes a literal put before a string for memory that overlaps.
            $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-restrict>
)
if(MUSTER_WERROR)
  target_compile_options(muster_options INTERFACE -Werror)
endif()
# Set in tests/: what only tests compile has no checks for undefined behaviour of its own, which take
# half of the time that it needs to compile. What it calls has them.
define_property(TARGET PROPERTY MUSTER_TEST_CODE INITIALIZE_FROM_VARIABLE MUSTER_TEST_CODE)
if(MUSTER_SANITIZE)
  target_compile_options(
    muster_options
    INTERFACE -fsanitize=address
              $<$<NOT:$<BOOL:$<TARGET_PROPERTY:MUSTER_TEST_CODE>>>:-fsanitize=undefined>
              -fno-sanitize-recover=all -fno-omit-frame-pointer
  )
  target_link_options(muster_options INTERFACE -fsanitize=address,undefined)
endif()
if(MUSTER_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    message(FATAL_ERROR "MUSTER_FUZZ takes clang: cmake --preset fuzz")
  endif()
  # What the standard library asserts is found, too. Warnings are the other builds' business.
  target_compile_options(
    muster_options INTERFACE -w -fsanitize=fuzzer-no-link,address,undefined
                             -fno-sanitize-recover=all -fno-omit-frame-pointer
  )
  target_compile_definitions(muster_options INTERFACE _GLIBCXX_ASSERTIONS)
  target_link_options(muster_options INTERFACE -fsanitize=address,undefined)
endif()
if(MUSTER_PLANTED_FAULTS)
  target_compile_definitions(muster_options INTERFACE MUSTER_PLANTED_FAULTS=1)
endif()

# muster_folder(NAME [USES folder...] [LINKS target...])
#
# Makes the static library of src/NAME from every .cpp in it. USES names the folders it may include;
# LINKS the third-party targets, which stay private to the folder.
function(muster_folder name)
  cmake_parse_arguments(arg "" "" "USES;LINKS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_library(muster_${name} STATIC ${sources})
  add_library(muster::${name} ALIAS muster_${name})
  set_target_properties(
    muster_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON
  )
  target_include_directories(
    muster_${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>
    PRIVATE ${PROJECT_SOURCE_DIR}/src
  )
  target_compile_features(muster_${name} PUBLIC cxx_std_20)
  target_link_libraries(muster_${name} PRIVATE $<BUILD_INTERFACE:muster_options> ${arg_LINKS})
  foreach(folder IN LISTS arg_USES)
    target_link_libraries(muster_${name} PUBLIC muster_${folder})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY MUSTER_FOLDERS muster_${name})
endfunction()

# muster_program(NAME SOURCE... LINKS target...): an executable that may see the private headers.
function(muster_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(
    ${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include
                    ${PROJECT_SOURCE_DIR}/tests
  )
  target_link_libraries(${name} PRIVATE muster_options ${arg_LINKS})
endfunction()
