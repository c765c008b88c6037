# Programs that are linked with musl, and need nothing of the system they run on: Debian's wrapper of gcc.
set(CMAKE_C_COMPILER musl-gcc)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static -s -Wl,-z,stack-size=8388608") # stacks of threads as large as glibc's
set(CMAKE_FIND_ROOT_PATH /usr/lib/musl)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY) # headers of the system's libraries are made for glibc
