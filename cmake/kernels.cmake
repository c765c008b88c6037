# Kernel files (src/**/NAME_cpu.c) are compiled once for each instruction set: see src/cpu/isa.h.

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(CAIRN_ISAS baseline avx2 avx512)
else()
    set(CAIRN_ISAS baseline) # NEON and WASM SIMD are part of what their compilers take for granted
endif()
set(CAIRN_FLAGS_baseline "")
set(CAIRN_FLAGS_avx2 -mavx2 -mfma)
set(CAIRN_FLAGS_avx512 -mavx512f -mavx512dq -mavx512vl -mavx512bw -mavx2 -mfma -mprefer-vector-width=512)

# Adds the objects of the kernel files to the list named by `objects`.
function(cairn_add_kernels objects)
    file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*_cpu.c)
    foreach(isa ${CAIRN_ISAS})
        set(target cairn_kernels_${isa})
        add_library(${target} OBJECT ${kernels})
        set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ${CAIRN_PIC} C_VISIBILITY_PRESET hidden)
        target_include_directories(${target} PRIVATE include src)
        target_compile_definitions(${target} PRIVATE CN__ISA=${isa})
        # nothing of the user's runs below a kernel: no exception has to find its way through one
        target_compile_options(${target} PRIVATE ${CAIRN_FLAGS_${isa}} $<$<CONFIG:Release>:-fno-asynchronous-unwind-tables>)
        list(APPEND found $<TARGET_OBJECTS:${target}>)
    endforeach()
    if("avx2" IN_LIST CAIRN_ISAS)
        set_property(TARGET cairn_kernels_baseline PROPERTY CAIRN_FALLBACK ON)
    endif()
    set(${objects} ${found} PARENT_SCOPE)
endfunction()
