# Writes every shader file into one C file, as bytes, and a header that declares them:
#
#   cmake -DROOT=src -DOUT=build/generated/gpu -DFILES="a.wgsl;b.wgsl" -P embed_shaders.cmake
#
# src/ops/block/softmax.wgsl becomes `const char cn__wgsl_softmax[]`, and a row of the table `cn__shaders`. Bytes are
# written as numbers, because C compilers promise no string literals longer than 4095 characters. Indentation and comments,
# a third of the text, stay behind; lines keep their numbers, and directives (//!) stay.

cmake_minimum_required(VERSION 3.21)

set(header "/* Written by cmake/embed_shaders.cmake: the text of every .wgsl file. */\n#ifndef CN_GPU_SHADERS_H\n#define CN_GPU_SHADERS_H\n\n")
set(bodies "/* Written by cmake/embed_shaders.cmake: the text of every .wgsl file. */\n#include \"gpu/shaders.h\"\n")
set(rows "")
set(names "")

foreach(file ${FILES})
    get_filename_component(name ${file} NAME_WE)
    if(name IN_LIST names)
        message(FATAL_ERROR "two shader files are called ${name}.wgsl: the name must be unique")
    endif()
    list(APPEND names ${name})
    file(RELATIVE_PATH path ${ROOT} ${file})
    file(READ ${file} text)
    string(REGEX REPLACE "\n[ \t]+" "\n" text "${text}")
    string(REGEX REPLACE "[ \t]*//[^!\n][^\n]*" "" text "${text}")
    string(HEX "${text}" bytes)
    string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
    string(APPEND header "extern const char cn__wgsl_${name}[];\n")
    string(APPEND bodies "\n/* ${path} */\nconst char cn__wgsl_${name}[] = {\n${bytes}0 };\n")
    string(APPEND rows "    { \"${path}\", cn__wgsl_${name} },\n")
endforeach()

string(APPEND header "
typedef struct cn__shader_file {
    const char *path, *text;
} cn__shader_file;
extern const cn__shader_file cn__shaders[]; /* all of them; path is NULL after the last */

#endif\n")
string(APPEND bodies "\nconst cn__shader_file cn__shaders[] = {\n${rows}    { 0 },\n};\n")
file(CONFIGURE OUTPUT ${OUT}/shaders.h CONTENT "${header}" @ONLY)
file(WRITE ${OUT}/shaders.c "${bodies}")
