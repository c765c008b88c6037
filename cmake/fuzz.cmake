# Fuzzers with clang's libFuzzer: tests/fuzz/fuzz_NAME.c → fuzz_NAME in the build directory of the preset "fuzz".
#
# What reads files and texts is instrumented. Kernels and operators are not: the tests run those under sanitizers, and
# instrumenting them takes minutes.

set(fuzz_checks -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
set(read_by_fuzzers ${sources})
list(FILTER read_by_fuzzers EXCLUDE REGEX "/src/(cpu|gpu|ops)/")
list(APPEND read_by_fuzzers ${PROJECT_SOURCE_DIR}/src/ops/signature.c)
set_property(SOURCE ${read_by_fuzzers} APPEND PROPERTY COMPILE_OPTIONS ${fuzz_checks} -fsanitize=fuzzer-no-link)

add_library(cairn_fuzz_support OBJECT tests/support/dicts.c tests/support/zips.c)
target_include_directories(cairn_fuzz_support PRIVATE tests src)
target_link_libraries(cairn_fuzz_support PRIVATE cairn_static)

file(GLOB fuzzers CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
foreach(source ${fuzzers})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source} $<TARGET_OBJECTS:cairn_fuzz_support>)
    target_include_directories(${name} PRIVATE tests tests/fuzz src)
    target_compile_options(${name} PRIVATE ${fuzz_checks} -fsanitize=fuzzer)
    target_link_options(${name} PRIVATE ${fuzz_checks} -fsanitize=fuzzer)
    target_link_libraries(${name} PRIVATE cairn_static)
endforeach()
