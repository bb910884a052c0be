# Warnings, sanitizers, floating point and ccache, for GCC 12+ and Clang 14+.

# Ours only: headers of libraries are system headers.
add_library(hierarchos_warnings INTERFACE)
target_compile_options(hierarchos_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wunused -Wcast-qual -Wformat=2
  -Wimplicit-fallthrough -Wdouble-promotion
  -Wno-missing-field-initializers  # designated initialisers leave the rest at its default on purpose
  $<$<BOOL:${HIERARCHOS_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(hierarchos_warnings INTERFACE -Wduplicated-cond -Wlogical-op)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 warns falsely inside std::string and std::vector at -O2 (GCC bugs 105651, 105329, 106199).
    target_compile_options(hierarchos_warnings INTERFACE -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds)
  endif()
endif()

# Results must not depend on which products a compiler chooses to contract; kernels that want FMA say so themselves.
add_compile_options(-ffp-contract=off)
# No paths of the checkout in objects: builds are reproducible, and worktrees share the compiler cache.
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)

if(HIERARCHOS_SANITIZE)
  add_compile_options(-fsanitize=${HIERARCHOS_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HIERARCHOS_SANITIZE})
endif()

if(CMAKE_CXX_COMPILER_ID MATCHES "Clang|GNU" AND NOT APPLE)
  add_link_options(-Wl,--as-needed)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX,C>:-fcolor-diagnostics>)
  else()
    add_compile_options($<$<COMPILE_LANGUAGE:CXX,C>:-fdiagnostics-color=auto>)
  endif()
endif()

find_program(CCACHE_PROGRAM ccache)
mark_as_advanced(CCACHE_PROGRAM)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths below the checkout are hashed relative to the build folder.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      ${CCACHE_PROGRAM})
endif()
