# Sanitizers reach our code and the parts of llama.cpp that touch a model's bytes, so that its own loader is checked too.
# The rest of llama.cpp is compiled as in the plain build, and then comes from the compiler cache.
if(ONEBIT_SANITIZE STREQUAL "address")
    set(onebit_sanitize_options -fsanitize=address,undefined -fno-sanitize-recover=undefined)
elseif(ONEBIT_SANITIZE STREQUAL "thread")
    set(onebit_sanitize_options -fsanitize=thread)
elseif(ONEBIT_SANITIZE)
    message(FATAL_ERROR "ONEBIT_SANITIZE is '${ONEBIT_SANITIZE}', expected address, thread or nothing")
endif()
if(ONEBIT_SANITIZE)
    add_link_options(${onebit_sanitize_options})
endif()

# onebit_instrument(TARGET): compiles it with the sanitizers of this build, if any.
function(onebit_instrument target)
    if(ONEBIT_SANITIZE)
        target_compile_options(${target} PRIVATE ${onebit_sanitize_options} -fno-omit-frame-pointer -O1 -g1)
    endif()
endfunction()
