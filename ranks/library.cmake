# library.cmake - how a library over ranks is built and installed: libtally_mpi and libtally_nccl, each beside
# libtally and knowing tally.h only.
find_package(Threads REQUIRED)
include(GNUInstallDirs)

# tally_ranks_library(NAME SOURCES FILE... PUBLIC LIBRARY... PRIVATE LIBRARY...): makes the targets tally_NAME_static,
# tally_NAME_shared and tally::tally_NAME out of one object whose only global names are the public ones, as in src.
# PUBLIC libraries are also those of whoever links it.
function(tally_ranks_library name)
  cmake_parse_arguments(PARSE_ARGV 1 own "" "" "SOURCES;PUBLIC;PRIVATE")
  set(objects tally_${name}_objects)
  set(whole ${CMAKE_CURRENT_BINARY_DIR}/tally_${name}_whole.o)
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION OFF)
  add_library(${objects} OBJECT ${own_SOURCES} ${PROJECT_SOURCE_DIR}/ranks/explain.c)
  target_compile_options(${objects} PRIVATE -fno-lto)
  target_include_directories(${objects} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/ranks)
  target_link_libraries(${objects} PRIVATE tally_flags ${own_PUBLIC})
  set_target_properties(${objects} PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
  add_custom_command(OUTPUT ${whole}
    COMMAND ${CMAKE_LINKER} -r -o ${whole} $<TARGET_OBJECTS:${objects}>
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${whole}
    DEPENDS ${objects} $<TARGET_OBJECTS:${objects}> COMMAND_EXPAND_LISTS VERBATIM COMMENT "")
  set_source_files_properties(${whole} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  add_custom_target(tally_${name}_whole DEPENDS ${whole})
  foreach(kind static shared)
    set(library tally_${name}_${kind})
    string(TOUPPER ${kind} KIND)
    add_library(${library} ${KIND} ${whole})
    add_library(tally::${library} ALIAS ${library})
    add_dependencies(${library} tally_${name}_whole)
    target_include_directories(${library} PUBLIC
      $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_link_libraries(${library} PUBLIC tally_${kind} ${own_PUBLIC} PRIVATE Threads::Threads ${own_PRIVATE})
    set_target_properties(${library} PROPERTIES OUTPUT_NAME tally_${name} LINKER_LANGUAGE C)
  endforeach()
  set_target_properties(tally_${name}_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    INSTALL_RPATH "$ORIGIN") # it finds the libtally beside it
  if(BUILD_SHARED_LIBS)
    add_library(tally::tally_${name} ALIAS tally_${name}_shared)
  else()
    add_library(tally::tally_${name} ALIAS tally_${name}_static)
  endif()
endfunction()

# tally_install_ranks_library(NAME HEADER...): installs both libraries, the headers, and what find_package(tally
# COMPONENTS NAME) and pkg-config need. MPI_NAME and MPI_FLAG, if set, tell readers of the .pc file
# which MPI it was built for, and their compiler by a definition.
function(tally_install_ranks_library name)
  install(TARGETS tally_${name}_static tally_${name}_shared EXPORT tally-${name}-targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${name}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${name})
  install(FILES ${ARGN} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT ${name})
  install(EXPORT tally-${name}-targets NAMESPACE tally:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tally COMPONENT ${name})
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/folders.cmake @ONLY CONTENT [[
set(PC_IN "@CMAKE_CURRENT_SOURCE_DIR@/tally_@name@.pc.in")
set(PC "@CMAKE_CURRENT_BINARY_DIR@/tally_@name@.pc")
set(LIBDIR "@CMAKE_INSTALL_LIBDIR@")
set(INCLUDEDIR "@CMAKE_INSTALL_INCLUDEDIR@")
set(PROJECT_VERSION "@PROJECT_VERSION@")
set(CMAKE_DL_LIBS "@CMAKE_DL_LIBS@")
set(MPI_NAME "@MPI_NAME@")
set(MPI_FLAG "@MPI_FLAG@")
]])
  install(CODE "include(\"${CMAKE_CURRENT_BINARY_DIR}/folders.cmake\")
include(\"${PROJECT_SOURCE_DIR}/src/install_pc.cmake\")" COMPONENT ${name})
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tally_${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT ${name})
endfunction()
