find_package(GTest REQUIRED)
include(GoogleTest)

# onebit_test(NAME SOURCES... LINK libraries... [LABELS one] [TIMEOUT seconds]): one GoogleTest program; each of its
# cases is a CTest test. ONEBIT_TEST_DATA names the folder of the quantised built-in models, ONEBIT_PROGRAM the binary.
function(onebit_test name)
    cmake_parse_arguments(T "" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
    if(NOT T_TIMEOUT)
        set(T_TIMEOUT 120)
    endif()
    # gtest_discover_tests loses all of a list but its first element: one label, one variable a property
    if(NOT T_LABELS)
        set(T_LABELS unit)
    endif()
    list(LENGTH T_LABELS count)
    if(count GREATER 1)
        message(FATAL_ERROR "${name}: expected one label, found '${T_LABELS}'")
    endif()
    add_executable(${name} ${T_SOURCES})
    onebit_own(${name})
    onebit_seldom_hot(${name})
    target_link_libraries(${name} PRIVATE ${T_LINK} GTest::gtest GTest::gmock GTest::gtest_main)
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX "${name}."
        PROPERTIES TIMEOUT ${T_TIMEOUT} LABELS "${T_LABELS}"
            ENVIRONMENT "ONEBIT_TEST_DATA=${CMAKE_BINARY_DIR}/models"
            ENVIRONMENT_MODIFICATION "ONEBIT_PROGRAM=set:${CMAKE_BINARY_DIR}/bin/1bit")
endfunction()
