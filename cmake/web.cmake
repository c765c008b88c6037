# The library by Emscripten: WebAssembly with 128-bit vectors, for browsers (docs/web.md). Included by CMakeLists.txt.
#
# CAIRN_WEB_THREADS: with threads, which a page has only if it is cross-origin isolated.

option(CAIRN_WEB_THREADS "WebAssembly with threads" OFF)
set(CAIRN_PIC OFF) # nothing is loaded at run time
add_compile_options(-msimd128)
if(CAIRN_WEB_THREADS)
    add_compile_options(-pthread)
    # A thread that the pool does not have is refused: the page would have to return before a new one starts.
    add_link_options(-pthread -Wno-pthreads-mem-growth "-sPTHREAD_POOL_SIZE=Module['cairnThreads']||3"
                     -sPTHREAD_POOL_SIZE_STRICT=2)
endif()
add_link_options(--js-library ${PROJECT_SOURCE_DIR}/web/webgpu.js -sWASM_BIGINT=1 -sALLOW_MEMORY_GROWTH=1
                 -sMAXIMUM_MEMORY=4GB -sNODEJS_CATCH_EXIT=0 -sNODEJS_CATCH_REJECTION=0)
# Test programs are one file each, for node or a page, whose environment is in Module.env (web/tests/program.js).
set(CAIRN_WEB_PROGRAM -g1 -sEXIT_RUNTIME=1 -sSINGLE_FILE=1 --pre-js ${PROJECT_SOURCE_DIR}/web/tests/program.js)

# What a page offers in the place of what a system does: WebGPU by the browser, and no shared libraries.
function(cairn_use_web_sources list)
    list(FILTER ${list} EXCLUDE REGEX "/src/(gpu/load|core/library)\\.c$")
    list(APPEND ${list} ${PROJECT_SOURCE_DIR}/web/load.c ${PROJECT_SOURCE_DIR}/web/library.c)
    set(${list} ${${list}} PARENT_SCOPE)
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
    add_custom_target(cairn_web)
    if(CAIRN_WEB_THREADS)
        set(names threads)
    else()
        set(names single async) # async: for a GPU in a browser that cannot suspend WebAssembly
    endif()
    foreach(name ${names})
        add_executable(cairn_web_${name} EXCLUDE_FROM_ALL ${made}/functions.c)
        set(wait suspending)
        if(name STREQUAL async)
            set(wait asyncify)
            target_link_options(cairn_web_${name} PRIVATE -sASYNCIFY=1 -sASYNCIFY_IMPORTS=wgpuInstanceProcessEvents
                                -sASYNCIFY_STACK_SIZE=65536)
        endif()
        cairn_link_web_module(cairn_web_${name} ${name} ${wait} wasm _cairn_web_functions
                              FS,stackSave,stackAlloc,stackRestore,addFunction)
        target_link_options(cairn_web_${name} PRIVATE -O3 -sALLOW_TABLE_GROWTH=1) # callbacks join the table
        add_dependencies(cairn_web cairn_web_${name})
    endforeach()
endfunction()

# A module for pages and workers, FOLDER/NAME.js and NAME.wasm, that exports these C functions and methods of Emscripten.
function(cairn_link_web_module target name wait folder functions methods)
    target_link_libraries(${target} PRIVATE cairn_static)
    target_link_options(${target} PRIVATE --no-entry -sMODULARIZE=1 -sEXPORT_ES6=1 -sUSE_ES6_IMPORT_META=0
        -sENVIRONMENT=web,worker -sFORCE_FILESYSTEM=1 -sEXPORTED_FUNCTIONS=${functions},_malloc,_free
        -sEXPORTED_RUNTIME_METHODS=${methods}$<$<BOOL:${CAIRN_WEB_THREADS}>:,PThread>
        "SHELL:--pre-js ${PROJECT_SOURCE_DIR}/web/pre.js" "SHELL:--pre-js ${PROJECT_SOURCE_DIR}/web/wait_${wait}.js")
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} SUFFIX .js
                          RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
endfunction()

# ---- The page's own module: web/rooms, and what it needs of the library. Optimised for its size
#
# Its CPU kernels are compiled as for an instruction set beside the baseline, called "rooms": without the types that such
# sets leave out (src/cpu/isa.h), which no room uses. Their table takes the place of the baseline's.

function(cairn_add_web_page)
    set(name single)
    if(CAIRN_WEB_THREADS)
        set(name threads)
    endif()
    file(GLOB rooms CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/web/rooms/*.c)
    file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*_cpu.c)
    list(FILTER kernels EXCLUDE REGEX "/(recurrent|ctc|fft)_cpu\\.c$") # kernels.c has empty tables of these
    add_executable(cairn_web_page EXCLUDE_FROM_ALL ${rooms} ${kernels})
    target_include_directories(cairn_web_page PRIVATE src)
    target_compile_definitions(cairn_web_page PRIVATE CN__ISA=rooms cn__kernel_tables_rooms=cn__kernel_tables_baseline)
    cairn_link_web_module(cairn_web_page ${name} suspending rooms _room_functions,_room_names FS)
    target_link_options(cairn_web_page PRIVATE -Oz)
endfunction()
