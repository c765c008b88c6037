# What is different on Windows: POSIX's functions come from src/windows, which is included before every file.
foreach(header sys/mman.h sys/ioctl.h sys/file.h sys/resource.h sys/wait.h dlfcn.h fnmatch.h) # Windows lacks them
    file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/posix/${header} CONTENT "")
endforeach()
add_compile_options("$<$<COMPILE_LANGUAGE:C>:SHELL:-include ${PROJECT_SOURCE_DIR}/src/windows/posix.h>"
                    -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_BINARY_DIR}/posix)
add_compile_definitions(__USE_MINGW_ANSI_STDIO=1 _FILE_OFFSET_BITS=64) # C's formats, not Microsoft's
# gcc takes Microsoft's formats for those of printf; and everything that is exported says so.
add_compile_options(-Wno-format -Wno-attributes)
# Stacks are aligned to 16 bytes, which gcc forgets for vectors of 32 and 64: the assembler makes their moves unaligned.
add_compile_options(-Wa,-muse-unaligned-vector-move)
add_link_options(-static -Wl,--stack,8388608) # no library of the compiler is needed at run time
set_property(SOURCE tests/support/edges.c APPEND PROPERTY COMPILE_DEFINITIONS _USE_MATH_DEFINES) # M_PI
# Programs that fork, or look at the inside of a POSIX system.
set(CAIRN_POSIX_TESTS "/test_(graphs|io_faults|misuse|checkpoint|gpu[a-z_]*|saving|look|workers|names|onnx|onnx_write)\\.c$")
