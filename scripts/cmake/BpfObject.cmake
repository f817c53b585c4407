# SPDX-License-Identifier: GPL-2.0-only
# bpf_skeleton(name source [flags...]): compile one BPF object and generate NAME.skel.h from it.
find_program(CLANG clang REQUIRED)
find_program(LLVM_STRIP NAMES llvm-strip llvm-strip-14 REQUIRED)
find_program(BPFTOOL bpftool PATHS /usr/sbin /sbin REQUIRED)

function(bpf_skeleton name source)
  set(obj ${CMAKE_CURRENT_BINARY_DIR}/${name}.bpf.o)
  set(skel ${CMAKE_CURRENT_BINARY_DIR}/skel/${name}.skel.h)
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bpf/*.h ${CMAKE_SOURCE_DIR}/bpf/shared/*)
  # v3: atomic fetch-and-add needs it (Linux 5.12).
  add_custom_command(OUTPUT ${skel}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/skel
    COMMAND ${CLANG} -g -O2 -mcpu=v3 -target bpf -D__TARGET_ARCH_x86 -Wall -Wextra
            -Wno-unused-parameter -Werror ${ARGN} -I${CMAKE_SOURCE_DIR}/bpf
            -I/usr/include/${CMAKE_LIBRARY_ARCHITECTURE} -c ${source} -o ${obj}
    COMMAND ${LLVM_STRIP} -g ${obj}
    COMMAND ${BPFTOOL} gen skeleton ${obj} name ${name}_bpf > ${skel}
    DEPENDS ${source} ${headers} VERBATIM)
  add_custom_target(${name}_skel DEPENDS ${skel})
endfunction()
