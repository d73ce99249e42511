# SPDX-License-Identifier: Apache-2.0
# cmake --install: library, header, pkg-config file, CMake package, Python binding.
include(CMakePackageConfigHelpers)
install(TARGETS tssample EXPORT tssample-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/tssample.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES capi/python/tssample.py capi/python/tssample_c.py capi/python/tssample_memory.py
  DESTINATION ${CMAKE_INSTALL_DATADIR}/tssample/python)
# Why from the file's own place: `cmake --install --prefix` may put it anywhere.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(TSSAMPLE_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH TSSAMPLE_PC_UP "/p/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/p")
  string(REGEX REPLACE "/$" "" TSSAMPLE_PC_UP "${TSSAMPLE_PC_UP}")
  set(TSSAMPLE_PC_PREFIX "\${pcfiledir}/${TSSAMPLE_PC_UP}")
endif()
foreach(DIR INCLUDEDIR LIBDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${DIR}}")
    set(TSSAMPLE_PC_${DIR} "${CMAKE_INSTALL_${DIR}}")
  else()
    set(TSSAMPLE_PC_${DIR} "\${prefix}/${CMAKE_INSTALL_${DIR}}")
  endif()
endforeach()
configure_file(capi/tssample.pc.in tssample.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tssample.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(EXPORT tssample-targets NAMESPACE tssample:: FILE tssample-config.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tssample)
write_basic_package_version_file(tssample-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tssample-config-version.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tssample)
