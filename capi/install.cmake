# SPDX-License-Identifier: Apache-2.0
# cmake --install: library, header, pkg-config file, CMake package, Python binding.
include(CMakePackageConfigHelpers)
install(TARGETS tssample EXPORT tssample-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/tssample.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY capi/python/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tssample/python FILES_MATCHING PATTERN "*.py")
configure_file(capi/tssample.pc.in tssample.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tssample.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(EXPORT tssample-targets NAMESPACE tssample:: FILE tssample-config.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tssample)
write_basic_package_version_file(tssample-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tssample-config-version.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tssample)
