# hrx_kernels(NAME SOURCE TARGETS targets...): compiles one freestanding C++ file (hrx/kernels/device.h) for each target:
# gfxNNNN gives NAME.gfxNNNN.hsaco, sm_NN gives NAME.sm_NN.ptx, in ${CMAKE_BINARY_DIR}/hrx-kernels, and the build target
# NAME. hrx_NAME_IMAGES becomes the list of files. Without clang 19 the images are taken from ONEBIT_HRX_PREBUILT_KERNELS
# (a folder of such files, made by another build); without both the list is empty.
set(ONEBIT_HRX_PREBUILT_KERNELS "" CACHE PATH "folder of kernel images made by another build, used where clang 19 is missing")
get_filename_component(onebit_hrx_root ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)
set(ONEBIT_HRX_ROOT ${onebit_hrx_root} CACHE INTERNAL "the repository")
find_program(ONEBIT_HRX_CLANG clang-19 HINTS /usr/lib/llvm-19/bin)
find_program(ONEBIT_HRX_LLD ld.lld HINTS /usr/lib/llvm-19/bin NO_DEFAULT_PATH)
set(onebit_hrx_kernel_flags_list -x c++ -std=c++20 -O2 -ffreestanding -nostdinc -nogpulib -fno-exceptions -fno-rtti
    -fno-threadsafe-statics -fconvergent-functions -ffp-contract=fast -Wall -Wextra -Werror)
set(onebit_hrx_kernel_flags ${onebit_hrx_kernel_flags_list} CACHE INTERNAL "flags of all kernels")
# The version of PTX is the one of sm_80 in hrx/loom/targets.h, not that of a CUDA which may be on the machine.
set(onebit_hrx_nvptx_flags_list --target=nvptx64-nvidia-cuda --cuda-path=/nonexistent --cuda-feature=+ptx75)
set(onebit_hrx_nvptx_flags ${onebit_hrx_nvptx_flags_list} CACHE INTERNAL "flags of all kernels for NVIDIA GPUs")

function(hrx_kernels name source)
    cmake_parse_arguments(K "" "" "TARGETS" ${ARGN})
    get_filename_component(source ${source} ABSOLUTE)
    set(folder ${CMAKE_BINARY_DIR}/hrx-kernels)
    set(images "")
    foreach(target ${K_TARGETS})
        if(target MATCHES "^gfx")
            set(image ${name}.${target}.hsaco)
            string(SUBSTRING ${target} 3 2 generation)
            set(flags --target=amdgcn-amd-amdhsa -mcpu=${target})
        else()
            set(image ${name}.${target}.ptx)
            string(SUBSTRING ${target} 3 2 generation)
            set(flags ${onebit_hrx_nvptx_flags} -march=${target} -S)
        endif()
        list(APPEND flags -DHRX_TARGET_GENERATION=${generation})
        if(ONEBIT_HRX_CLANG AND ONEBIT_HRX_LLD)
            add_custom_command(OUTPUT ${folder}/${image}
                COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
                COMMAND ${ONEBIT_HRX_CLANG} ${flags} ${onebit_hrx_kernel_flags} -I${ONEBIT_HRX_ROOT} ${source}
                    -MD -MF ${folder}/${image}.d -MT ${folder}/${image} -o ${folder}/${image}
                DEPENDS ${source} DEPFILE ${folder}/${image}.d COMMENT "Kernel image ${image}" VERBATIM)
        elseif(EXISTS ${ONEBIT_HRX_PREBUILT_KERNELS}/${image})
            add_custom_command(OUTPUT ${folder}/${image}
                COMMAND ${CMAKE_COMMAND} -E copy ${ONEBIT_HRX_PREBUILT_KERNELS}/${image} ${folder}/${image}
                DEPENDS ${ONEBIT_HRX_PREBUILT_KERNELS}/${image} COMMENT "Kernel image ${image} of another build" VERBATIM)
        else()
            message(STATUS "No kernel image ${image}: neither clang 19 nor ${ONEBIT_HRX_PREBUILT_KERNELS}/${image}")
            continue()
        endif()
        list(APPEND images ${folder}/${image})
    endforeach()
    add_custom_target(${name} DEPENDS ${images})
    set(hrx_${name}_IMAGES ${images} PARENT_SCOPE)
endfunction()

# hrx_embed_images(OUTPUT images...): writes a C++ file that defines builtin_image_table of builtin_images.h.
function(hrx_embed_images output)
    set(blocks "")
    set(entries "")
    set(index 0)
    foreach(image ${ARGN})
        get_filename_component(file ${image} NAME)
        string(REGEX MATCH "\\.(gfx[0-9a-f]+|sm_[0-9a-z]+)\\." matched ${file})
        set(target ${CMAKE_MATCH_1})
        string(APPEND blocks "asm(\".pushsection .rodata\\n.balign 64\\nhrx_image_${index}:\\n"
            ".incbin \\\"${image}\\\"\\nhrx_image_${index}_end:\\n.byte 0\\n.popsection\\n\");\n"
            "extern \"C\" __attribute__((visibility(\"hidden\"))) const std::byte hrx_image_${index}[], hrx_image_${index}_end[];\n")
        string(APPEND entries "    {\"${target}\", hrx_image_${index}, hrx_image_${index}_end},\n")
        math(EXPR index "${index} + 1")
    endforeach()
    file(CONFIGURE OUTPUT ${output} CONTENT
"// Written by hrx_embed_images of cmake/HrxKernels.cmake.
#include \"hrx/runtime/builtin_images.h\"

${blocks}
namespace onebit::hrx::runtime {
const BuiltinImage builtin_image_table[] = {
${entries}    {nullptr, nullptr, nullptr},
};
}  // namespace onebit::hrx::runtime
")
    set_source_files_properties(${output} PROPERTIES OBJECT_DEPENDS "${ARGN}")
endfunction()

# loom_kernels(NAME sources...): a static library with the kernels of these files (hrx/kernels/specialise.h), their
# bitcode and generic images, as kernel_set() of hrx/kernels/kernel_set.h finds them. The files FAMILY.pack and FAMILY.cpp
# in ${CMAKE_BINARY_DIR}/hrx-kernels are all that another build needs: without clang 19 they are taken from
# ONEBIT_HRX_PREBUILT_KERNELS, and a family that is missing there is left out. A program links one such library.
set(ONEBIT_LOOM_TARGETS gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1200 gfx1201 sm_80 sm_90 CACHE STRING
    "chips with generic images of all kernels")
function(loom_kernels name)
    set(folder ${CMAKE_BINARY_DIR}/hrx-kernels)
    file(MAKE_DIRECTORY ${folder})
    list(JOIN ONEBIT_LOOM_TARGETS "," targets)
    set(declarations "")
    set(entries "")
    set(tables "")
    foreach(source ${ARGN})
        get_filename_component(family ${source} NAME_WE)
        cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${ONEBIT_HRX_ROOT} OUTPUT_VARIABLE relative)
        set(made ${folder}/${family}.pack ${folder}/${family}.cpp)
        if(TARGET loom-pack AND ONEBIT_HRX_CLANG)
            foreach(vendor amdgcn nvptx)
                set(bitcode ${folder}/${family}.${vendor}.bc)
                set(flags --target=amdgcn-amd-amdhsa)
                if(vendor STREQUAL nvptx)
                    set(flags ${onebit_hrx_nvptx_flags} -march=sm_80)
                endif()
                add_custom_command(OUTPUT ${bitcode}
                    COMMAND ${ONEBIT_HRX_CLANG} ${flags} ${onebit_hrx_kernel_flags} -DHRX_LOOM=1 -I${ONEBIT_HRX_ROOT}
                        -Xclang -disable-llvm-passes -emit-llvm -c ${source} -MD -MF ${bitcode}.d -MT ${bitcode} -o ${bitcode}
                    DEPENDS ${source} DEPFILE ${bitcode}.d COMMENT "Bitcode of ${relative} for ${vendor}" VERBATIM)
            endforeach()
            add_custom_command(OUTPUT ${made}
                COMMAND loom-pack --family ${family} --source ${relative} --amdgcn ${folder}/${family}.amdgcn.bc
                    --nvptx ${folder}/${family}.nvptx.bc --library $<TARGET_FILE:loom> --folder ${folder} --targets ${targets}
                DEPENDS loom loom-pack ${folder}/${family}.amdgcn.bc ${folder}/${family}.nvptx.bc
                COMMENT "Generic images of ${relative}" VERBATIM)
        elseif(EXISTS ${ONEBIT_HRX_PREBUILT_KERNELS}/${family}.pack AND EXISTS ${ONEBIT_HRX_PREBUILT_KERNELS}/${family}.cpp)
            foreach(file ${family}.pack ${family}.cpp)
                add_custom_command(OUTPUT ${folder}/${file}
                    COMMAND ${CMAKE_COMMAND} -E copy ${ONEBIT_HRX_PREBUILT_KERNELS}/${file} ${folder}/${file}
                    DEPENDS ${ONEBIT_HRX_PREBUILT_KERNELS}/${file} COMMENT "${file} of another build" VERBATIM)
            endforeach()
        else()
            message(STATUS "No kernels of ${relative}: neither clang 19 nor ${ONEBIT_HRX_PREBUILT_KERNELS}/${family}.pack")
            continue()
        endif()
        set_source_files_properties(${folder}/${family}.cpp PROPERTIES OBJECT_DEPENDS ${folder}/${family}.pack
            COMPILE_OPTIONS "-Wa,-I,${folder}")
        list(APPEND tables ${folder}/${family}.cpp)
        string(APPEND declarations "std::span<const Kernel> loom_family_${family}();\n")
        string(APPEND entries "    loom_family_${family},\n")
    endforeach()
    set(list ${CMAKE_CURRENT_BINARY_DIR}/${name}_families.cpp)
    file(CONFIGURE OUTPUT ${list} CONTENT
"// Written by loom_kernels of cmake/HrxKernels.cmake.
#include \"hrx/kernels/kernel_table.h\"

namespace onebit::loom {
${declarations}
const FamilyFunction kernel_families[] = {
${entries}    nullptr,
};
}  // namespace onebit::loom
")
    add_library(${name} STATIC ${ONEBIT_HRX_ROOT}/hrx/kernels/kernel_set.cpp ${list} ${tables})
    onebit_own(${name})
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_link_libraries(${name} PUBLIC onebit-loom)
endfunction()
