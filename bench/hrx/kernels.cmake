# Built on demand: cmake --build DIR --target hrx-kernel-bench
if(TARGET onebit-kernels)
    add_executable(hrx-kernel-bench EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/kernels.cpp
        ${ONEBIT_HRX_ROOT}/tests/hrx-kernels/reference_quants.cpp)
    onebit_own(hrx-kernel-bench)
    target_link_libraries(hrx-kernel-bench PRIVATE hrx onebit-kernels onebit-base)
endif()
