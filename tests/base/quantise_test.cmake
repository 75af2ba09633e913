# If this fails, a broken-off or failed quantisation leaves a partial model behind that later builds take for a whole one.
# cmake -DSCRIPT= -DFOLDER= -P quantise_test.cmake
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
file(WRITE "${FOLDER}/source.gguf" "not a model")

function(run type expected)
    execute_process(COMMAND ${CMAKE_COMMAND} -DSOURCE=${FOLDER}/source.gguf -DMODEL=${FOLDER}/out/model.gguf
            -DTYPE=${type} ${ARGN} -P ${SCRIPT}
        RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE message)
    if(expected STREQUAL "fails" AND (result EQUAL 0 OR NOT message MATCHES "model.gguf"))
        message(FATAL_ERROR "${type}: expected a failure that names the model, found '${result}': ${message}")
    elseif(expected STREQUAL "works" AND NOT result EQUAL 0)
        message(FATAL_ERROR "${type}: expected success, found '${result}': ${message}")
    endif()
endfunction()

# a quantiser that writes a part of the file and fails, and one that does not exist
file(WRITE "${FOLDER}/broken" "#!/bin/sh\nprintf half >\"$2\"\nexit 1\n")
file(CHMOD "${FOLDER}/broken" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
run(Q8_0 fails -DQUANTIZER=${FOLDER}/broken)
run(Q8_0 fails -DQUANTIZER=${FOLDER}/none)
file(GLOB left "${FOLDER}/out/*")
if(left)
    message(FATAL_ERROR "expected nothing to be left, found ${left}")
endif()
run(F16 works)
run(Q8_0 fails -DQUANTIZER=${FOLDER}/broken)
file(READ "${FOLDER}/out/model.gguf" content)
file(GLOB left "${FOLDER}/out/*")
if(NOT content STREQUAL "not a model" OR NOT left STREQUAL "${FOLDER}/out/model.gguf")
    message(FATAL_ERROR "expected the former model and nothing else, found '${content}' in ${left}")
endif()
