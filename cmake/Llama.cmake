# llama.cpp, unmodified: which of its parts are built, and how.
if(NOT EXISTS "${ONEBIT_LLAMA_DIR}/CMakeLists.txt")
    message(FATAL_ERROR "ONEBIT_LLAMA_DIR is '${ONEBIT_LLAMA_DIR}', expected the llama.cpp source. Use make build, which fetches it.")
endif()

set(BUILD_SHARED_LIBS ON)
set(LLAMA_BUILD_COMMON ON)
set(LLAMA_BUILD_TOOLS ON)
set(LLAMA_BUILD_SERVER ON)
set(LLAMA_BUILD_TESTS OFF)
set(LLAMA_BUILD_EXAMPLES OFF)
set(LLAMA_BUILD_APP OFF)
set(LLAMA_USE_PREBUILT_UI OFF)
set(LLAMA_BUILD_UI OFF)
set(GGML_CCACHE OFF)
set(GGML_VULKAN ${ONEBIT_VULKAN})
set(GGML_CUDA ${ONEBIT_CUDA})
set(GGML_BACKEND_DL ${ONEBIT_DYNAMIC_BACKENDS})
if(ONEBIT_SANITIZE)
    # OpenMP's runtime is not instrumented and its barriers look like races
    set(GGML_OPENMP OFF)
endif()

if(ONEBIT_VULKAN AND ONEBIT_SHADER_TOOLS)
    set(Vulkan_GLSLC_EXECUTABLE ${ONEBIT_SHADER_TOOLS}/bin/glslc CACHE FILEPATH "" FORCE)
    set(Vulkan_INCLUDE_DIR ${ONEBIT_SHADER_TOOLS}/include CACHE PATH "" FORCE)
    set(SPIRV-Headers_DIR ${ONEBIT_SHADER_TOOLS}/usr/share/cmake/SPIRV-Headers CACHE PATH "" FORCE)
endif()

if(ONEBIT_WEB_PAGE)
    # its CMake script takes a finished page that is newer than the sources for its own
    set(LLAMA_BUILD_UI ON)
    file(COPY ${ONEBIT_WEB_PAGE}/ DESTINATION ${CMAKE_BINARY_DIR}/llama.cpp/tools/ui/dist)
    file(TOUCH ${CMAKE_BINARY_DIR}/llama.cpp/tools/ui/dist/index.html)
endif()

add_subdirectory(${ONEBIT_LLAMA_DIR} llama.cpp EXCLUDE_FROM_ALL)

foreach(target ggml ggml-base ggml-cpu llama mtmd)
    onebit_instrument(${target})
endforeach()

# ggml-cpu is compiled for this very processor: a compiler cache must not hand its objects to another. A definition would
# not do, since the cache looks at preprocessed text.
if(EXISTS /proc/cpuinfo)
    file(STRINGS /proc/cpuinfo onebit_cpu REGEX "^flags" LIMIT_COUNT 1)
    string(SHA256 onebit_cpu "${onebit_cpu}")
    string(SUBSTRING ${onebit_cpu} 0 16 onebit_cpu)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/host_cpu/onebit_host_cpu.h CONTENT "typedef int onebit_host_cpu_${onebit_cpu};\n")
    target_compile_options(ggml-cpu PRIVATE -include ${CMAKE_BINARY_DIR}/host_cpu/onebit_host_cpu.h)
endif()

# ggml-cpu's code for AMX keeps the weights a second time, in an order of its own, and some virtual machines offer the
# instructions but end who uses them.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_compile_options(ggml-cpu PRIVATE -mno-amx-tile -mno-amx-int8 -mno-amx-bf16)
endif()

# llama.cpp's own tests are not part of ours, but this one is a tool that our tests and users run
add_executable(test-backend-ops EXCLUDE_FROM_ALL ${ONEBIT_LLAMA_DIR}/tests/test-backend-ops.cpp)
target_link_libraries(test-backend-ops PRIVATE llama llama-common ggml)
target_include_directories(test-backend-ops PRIVATE ${ONEBIT_LLAMA_DIR}/ggml/src)

# random models of every architecture, compared between devices
add_executable(test-llama-archs EXCLUDE_FROM_ALL ${ONEBIT_LLAMA_DIR}/tests/test-llama-archs.cpp)
target_link_libraries(test-llama-archs PRIVATE llama llama-common ggml)
target_include_directories(test-llama-archs PRIVATE ${ONEBIT_LLAMA_DIR}/ggml/src ${ONEBIT_LLAMA_DIR}/src)

add_custom_target(llama-programs ALL
    DEPENDS llama-server llama-bench llama-perplexity llama-quantize test-backend-ops test-llama-archs)
if(ONEBIT_SANITIZE)
    set_target_properties(llama-programs PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
