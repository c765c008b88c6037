# The library by Emscripten: WebAssembly with 128-bit vectors, for browsers (docs/web.md). Included by CMakeLists.txt.
#
# One build makes all modules. Files are compiled once, except those in which threads or test cases make a difference:
# the variants of these are libraries that are linked in front of cairn_static, so the linker finds them first.

set(CAIRN_PIC OFF) # nothing is loaded at run time
# Bytes count more than natively. Loops over elements have vectors, which -Os would leave out, and what CMakeLists.txt
# unrolls stays unrolled. That holds for f32: src/cpu/each_type.h compiles other types for size.
set(CMAKE_C_FLAGS_RELEASE "-Oz -DNDEBUG") # of the linker, too
set(CAIRN_LOOPS -O2)
set_property(SOURCE src/ops/contract/winograd.c APPEND PROPERTY COMPILE_OPTIONS -O2)
set(CAIRN_ENGINE -O2)
set(CAIRN_UNROLLED -O2)
set(CAIRN_COLD -Oz)
# Objects may use atomics, which costs nothing where none are used: so one object serves with and without threads.
add_compile_options(-msimd128 -msign-ext -mbulk-memory -matomics -Wno-pragma-clang-attribute
                    -Wno-pass-failed) # a loop that calls a function for each element has no vectors
add_link_options(--js-library ${PROJECT_SOURCE_DIR}/web/webgpu.js -sWASM_BIGINT=1 -sALLOW_MEMORY_GROWTH=1
                 -sMAXIMUM_MEMORY=4GB -sNODEJS_CATCH_EXIT=0 -sNODEJS_CATCH_REJECTION=0)
# A thread that the pool does not have is refused: the page would have to return before a new one starts.
set(CAIRN_WEB_THREADS -pthread -Wno-pthreads-mem-growth "-sPTHREAD_POOL_SIZE=Module['cairnThreads']||3"
    -sPTHREAD_POOL_SIZE_STRICT=2)
# Programs are one file each, for node or a page, whose environment is in Module.env (web/tests/program.js). Tests do
# without the optimizer of WebAssembly, which takes longer than the tests gain by it.
set(CAIRN_WEB_PROGRAM -sEXIT_RUNTIME=1 -sSINGLE_FILE=1 --pre-js ${PROJECT_SOURCE_DIR}/web/tests/program.js)
set(CAIRN_WEB_TEST ${CAIRN_WEB_PROGRAM} -O1)

# clang compiles, with the flags that emcc would give it: emcc itself takes as long to start as a file to compile.
execute_process(COMMAND em-config LLVM_ROOT OUTPUT_VARIABLE llvm OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_C_COMPILER} --cflags OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
                COMMAND_ERROR_IS_FATAL ANY)
set(CMAKE_C_COMPILE_OBJECT "${llvm}/clang ${flags} <DEFINES> <INCLUDES> <FLAGS> -o <OBJECT> -c <SOURCE>")

# What a page offers in the place of what a system does: WebGPU by the browser, and no shared libraries.
function(cairn_use_web_sources list)
    list(FILTER ${list} EXCLUDE REGEX "/src/(gpu/load|core/library)\\.c$")
    list(APPEND ${list} ${PROJECT_SOURCE_DIR}/web/load.c ${PROJECT_SOURCE_DIR}/web/library.c)
    set(${list} ${${list}} PARENT_SCOPE)
endfunction()

# Files that CMakeLists.txt compiles for speed, though no loop over elements is in them.
function(cairn_compile_for_size)
    file(GLOB files CONFIGURE_DEPENDS src/ops/map/*.c src/ops/optim/*.c)
    list(FILTER files EXCLUDE REGEX "_cpu\\.c$")
    set_property(SOURCE ${files} src/cpu/cpu.c src/cpu/gemm_plan.c src/cpu/processor.c src/cpu/workers.c APPEND PROPERTY
                 COMPILE_OPTIONS $<$<CONFIG:Release>:${CAIRN_COLD}>)
endfunction()

# A library of those files of the list that have a line which matches.
function(cairn_add_web_variant target line)
    foreach(file ${ARGN})
        file(STRINGS ${file} found REGEX "${line}" LIMIT_COUNT 1)
        if(found)
            list(APPEND files ${file})
        endif()
    endforeach()
    add_library(${target} STATIC EXCLUDE_FROM_ALL ${files})
    set_target_properties(${target} PROPERTIES C_VISIBILITY_PRESET hidden)
    target_include_directories(${target} PRIVATE include src ${PROJECT_BINARY_DIR}/generated)
    add_dependencies(${target} cairn_objects) # which makes the generated headers
    set(${target}_files ${files} PARENT_SCOPE)
endfunction()

function(cairn_add_web_variants)
    cairn_add_web_variant(cairn_without_cases "CN_CASES" ${ARGN})
    target_compile_definitions(cairn_without_cases PRIVATE CAIRN_NO_CASES)
    target_compile_options(cairn_without_cases PRIVATE -Wno-unneeded-internal-declaration) # lists of cases
    cairn_add_web_variant(cairn_with_threads "atomic|pthread_|_Thread_local" ${ARGN})
    target_compile_options(cairn_with_threads PRIVATE -pthread)
    set_property(TARGET cairn_with_threads PROPERTY CAIRN_WITH_THREADS ON)
    set_property(SOURCE ${cairn_with_threads_files} APPEND PROPERTY COMPILE_OPTIONS
                 $<$<NOT:$<BOOL:$<TARGET_PROPERTY:CAIRN_WITH_THREADS>>>:-mno-atomics>)
endfunction()

# A module for pages and workers, FOLDER/NAME.js and NAME.wasm, that exports these C functions and methods of
# Emscripten. NAME is single, threads or async: for a GPU in a browser that cannot suspend WebAssembly. Libraries that
# follow have files in the place of cairn_static's.
function(cairn_link_web_module target name folder functions methods)
    set(wait suspending)
    if(name STREQUAL threads)
        target_link_libraries(${target} PRIVATE cairn_with_threads)
        target_link_options(${target} PRIVATE ${CAIRN_WEB_THREADS})
        string(APPEND methods ,PThread)
    elseif(name STREQUAL async)
        set(wait asyncify)
        target_link_options(${target} PRIVATE -sASYNCIFY=1 -sASYNCIFY_IMPORTS=wgpuInstanceProcessEvents
                            -sASYNCIFY_STACK_SIZE=65536)
    endif()
    target_link_libraries(${target} PRIVATE ${ARGN} cairn_without_cases cairn_static)
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/web/numbers.c)
    target_link_options(${target} PRIVATE --no-entry -sMODULARIZE=1 -sEXPORT_ES6=1 -sUSE_ES6_IMPORT_META=0
        -sENVIRONMENT=web,worker -sFILESYSTEM=0 "SHELL:--js-library ${PROJECT_SOURCE_DIR}/web/files.js"
        "SHELL:--js-library ${PROJECT_SOURCE_DIR}/web/numbers.js"
        -sEXPORTED_FUNCTIONS=${functions},_malloc,_free -sEXPORTED_RUNTIME_METHODS=${methods}
        "SHELL:--pre-js ${PROJECT_SOURCE_DIR}/web/pre.js" "SHELL:--pre-js ${PROJECT_SOURCE_DIR}/web/wait_${wait}.js")
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} SUFFIX .js
                          RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${PROJECT_SOURCE_DIR}/web/webgpu.js
                 ${PROJECT_SOURCE_DIR}/web/files.js
                 ${PROJECT_SOURCE_DIR}/web/numbers.js ${PROJECT_SOURCE_DIR}/web/pre.js ${PROJECT_SOURCE_DIR}/web/wait_${wait}.js)
endfunction()

# ---- The package: wasm/NAME.js and wasm/NAME.wasm beside cairn.js, its tables and its types

# build/operators.json is made by a native build (scripts/web.sh).
function(cairn_add_web_package)
    set(operators ${PROJECT_SOURCE_DIR}/build/operators.json)
    set(made ${PROJECT_BINARY_DIR}/generated/web)
    find_package(Python3 REQUIRED COMPONENTS Interpreter)
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/cairn/*.h)
    add_custom_command(OUTPUT ${made}/functions.c ${made}/tables.js ${made}/cairn.d.ts
        COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/web/generate.py ${operators} ${made}
        DEPENDS ${operators} ${headers} web/generate.py web/cairn.d.ts tools/check_signatures.py VERBATIM)
    add_library(cairn_web_table OBJECT EXCLUDE_FROM_ALL ${made}/functions.c)
    target_link_libraries(cairn_web_table PRIVATE cairn_static)
    add_custom_target(cairn_web)
    foreach(name async single threads) # the slowest first: they are linked side by side
        add_executable(cairn_web_${name} EXCLUDE_FROM_ALL $<TARGET_OBJECTS:cairn_web_table>)
        cairn_link_web_module(cairn_web_${name} ${name} wasm _cairn_web_functions
                              stackSave,stackAlloc,stackRestore,addFunction)
        target_link_options(cairn_web_${name} PRIVATE -sALLOW_TABLE_GROWTH=1) # callbacks join the table
        add_dependencies(cairn_web cairn_web_${name})
    endforeach()
endfunction()

# ---- The page's own modules: web/rooms, and what they need of the library
#
# Their CPU kernels are compiled as for an instruction set beside the baseline, called "rooms": without f64 and
# the types that such sets leave out (src/cpu/isa.h), which no room uses. Their table takes the place of the baseline's.
# Loops of kernels are unrolled only where that makes a room faster, and loops in other files are compiled for size.

# The arguments are files that other builds compile for speed.
function(cairn_add_web_page)
    file(GLOB rooms CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/web/rooms/*.c)
    file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*_cpu.c)
    list(FILTER kernels EXCLUDE REGEX "/(recurrent|ctc|fft|depthwise|whole)_cpu\\.c$") # kernels.c has empty tables
    add_library(cairn_rooms OBJECT EXCLUDE_FROM_ALL ${rooms} ${kernels})
    target_include_directories(cairn_rooms PRIVATE include src)
    target_compile_definitions(cairn_rooms PRIVATE CN__ISA=rooms cn__kernel_tables_rooms=cn__kernel_tables_baseline)
    set_property(TARGET cairn_rooms PROPERTY CAIRN_ROOMS ON)
    list(FILTER kernels EXCLUDE REGEX "/(batch_norm|gather|gemm|max_pool|taps)_cpu\\.c$")
    set_property(SOURCE ${kernels} APPEND PROPERTY COMPILE_OPTIONS
                 $<$<BOOL:$<TARGET_PROPERTY:CAIRN_ROOMS>>:-fno-unroll-loops>)
    set(for_speed ${ARGN})
    list(FILTER for_speed EXCLUDE REGEX "_cpu\\.c$")
    cairn_add_web_variant(cairn_small "" ${for_speed})
    target_compile_definitions(cairn_small PRIVATE CAIRN_NO_CASES)
    target_compile_options(cairn_small PRIVATE -Wno-unneeded-internal-declaration) # lists of cases
    set_property(TARGET cairn_small PROPERTY CAIRN_SMALL ON)
    set_property(SOURCE ${for_speed} APPEND PROPERTY COMPILE_OPTIONS
                 $<$<BOOL:$<TARGET_PROPERTY:CAIRN_SMALL>>:-Oz>)
    add_custom_target(cairn_web_page)
    foreach(name single threads)
        add_executable(cairn_web_page_${name} EXCLUDE_FROM_ALL $<TARGET_OBJECTS:cairn_rooms>)
        cairn_link_web_module(cairn_web_page_${name} ${name} rooms _room_functions,_room_names UTF8ToString cairn_small)
        target_link_options(cairn_web_page_${name} PRIVATE -sMALLOC=emmalloc -sTEXTDECODER=2
                            -sBINARYEN_EXTRA_PASSES=-Oz,--converge) # all for fewer bytes
        add_dependencies(cairn_web_page cairn_web_page_${name})
    endforeach()
endfunction()
