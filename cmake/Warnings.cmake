# onebit_own(TARGET): what every target of our own code gets.
function(onebit_own target)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Werror)
    onebit_instrument(${target})
    # GCC 12 warns wrongly about "literal" + std::string (its bug 105651)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
        target_compile_options(${target} PRIVATE -Wno-restrict)
    endif()
    target_compile_features(${target} PUBLIC cxx_std_20)
    target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
endfunction()

# onebit_seldom_hot(TARGET): compiles it with less effort, where nothing runs long: a third of the compiler's time.
function(onebit_seldom_hot target)
    if(NOT ONEBIT_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL "Release")
        target_compile_options(${target} PRIVATE -O1)
    endif()
endfunction()
