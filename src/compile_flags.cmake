# SPDX-License-Identifier: Apache-2.0
# Flags of every target, as an interface library. -ffp-contract=off is part of the sampling contract.
add_library(tssample_flags INTERFACE)
target_compile_options(tssample_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-ffp-contract=off;-ffunction-sections;-fdata-sections;-Wall;-Wextra>)
if(TSSAMPLE_WERROR)
  target_compile_options(tssample_flags INTERFACE
    $<$<COMPILE_LANGUAGE:C,CXX>:-Werror;-Wpedantic;-Wshadow> $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)
endif()
if(TSSAMPLE_SANITIZE)
  target_compile_options(tssample_flags INTERFACE
    -fsanitize=${TSSAMPLE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    -Wno-maybe-uninitialized)  # GCC sees what is not there in instrumented code
  target_link_options(tssample_flags INTERFACE -fsanitize=${TSSAMPLE_SANITIZE})
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O3")
set(CMAKE_C_FLAGS_RELEASE "-O3")
