# Debian packages by CPack: libtally0, libtally-dev and tally, from the components library, dev and
# command. `make deb` configures a build for them and makes them.
set(CPACK_GENERATOR DEB)
# Debian wants a maintainer, NAME <ADDRESS>: whoever makes the packages, as Debian's own tools have it.
set(maintainer "Local build <root@localhost>")
if(DEFINED ENV{DEBEMAIL} AND DEFINED ENV{DEBFULLNAME})
  set(maintainer "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
set(TALLY_MAINTAINER "${maintainer}" CACHE STRING "Maintainer of the Debian packages; DEBFULLNAME and DEBEMAIL give it, too")
set(CPACK_PACKAGE_CONTACT "${TALLY_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "exact and reproducible parallel reduction")
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_SET_DESTDIR ON) # tally.pc names the prefix, not the folder of the packaging
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL library dev command)
if(NOT TALLY_CLI)
  list(REMOVE_ITEM CPACK_COMPONENTS_ALL command)
endif()
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(why "A sum of floating numbers by Tally is the exact real sum, rounded once. It
does not depend on the thread count, the instruction set, the device, or how a
stream was cut into pieces.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libtally${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
# Programs linked with it depend on it, and the loader is told of it.
file(WRITE ${PROJECT_BINARY_DIR}/shlibs
  "libtally ${PROJECT_VERSION_MAJOR} libtally${PROJECT_VERSION_MAJOR} (>= ${PROJECT_VERSION})\n")
file(WRITE ${PROJECT_BINARY_DIR}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/shlibs ${PROJECT_BINARY_DIR}/triggers)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "${why}\n.\nThis package has the shared library.")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libtally-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libtally${PROJECT_VERSION_MAJOR} (= ${PROJECT_VERSION}), libc6-dev")
set(CPACK_COMPONENT_DEV_DESCRIPTION
  "${why}\n.\nThis package has the header, the static library, and what pkg-config and\nCMake need.")
set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME tally)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION math)
set(CPACK_DEBIAN_COMMAND_PACKAGE_RECOMMENDS "g++") # for tally explain --kernel
set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS python3) # with pyarrow: Arrow and Parquet files
set(CPACK_COMPONENT_COMMAND_DESCRIPTION "${why}\n.\nThis package has the command.")
include(CPack)

# What a package of Debian's has besides; scripts/make-deb writes the changelog.
if(TALLY_DEB)
  foreach(COMPONENT LIBRARY DEV COMMAND)
    string(TOLOWER ${COMPONENT} component)
    install(FILES ${CMAKE_CURRENT_LIST_DIR}/copyright ${PROJECT_BINARY_DIR}/changelog.gz COMPONENT ${component}
      DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${COMPONENT}_PACKAGE_NAME})
  endforeach()
endif()
