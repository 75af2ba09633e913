# What `make install` copies. llama.cpp's own install rules are not taken: its libraries go into a folder of ours, beside
# which a llama.cpp of the system can live, and its headers and programs stay out.
include(GNUInstallDirs)
set(onebit_private_libraries lib/1bit)  # not CMAKE_INSTALL_LIBDIR: the program finds it from its own place
set(onebit_doc_folder ${CMAKE_INSTALL_DATADIR}/doc/1bit)

set(onebit_libraries "")
foreach(target llama-server-impl llama-common llama mtmd ggml ggml-base ggml-cpu ggml-vulkan ggml-cuda)
    if(TARGET ${target})
        list(APPEND onebit_libraries ${target})
    endif()
endforeach()
# The same in the build folder, which may be moved then: CMake would end the path there with an empty entry, by which the
# loader takes libraries from whatever folder the program is called in.
set_target_properties(${onebit_libraries} PROPERTIES INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON)
set_target_properties(onebit PROPERTIES
    INSTALL_RPATH "$ORIGIN/../${onebit_private_libraries};$ORIGIN" BUILD_WITH_INSTALL_RPATH ON)
if(TARGET ggml-cuda)
    set_target_properties(ggml-cuda PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)  # CUDA's own libraries
endif()
install(TARGETS onebit RUNTIME DESTINATION bin)
install(TARGETS ${onebit_libraries}
    LIBRARY DESTINATION ${onebit_private_libraries} NAMELINK_SKIP
    PUBLIC_HEADER DESTINATION include COMPONENT headers EXCLUDE_FROM_ALL)

add_custom_target(installed)  # all of it and nothing else
add_dependencies(installed onebit ${onebit_libraries})
if(TARGET loom)
    install(TARGETS loom LIBRARY DESTINATION ${onebit_private_libraries} NAMELINK_SKIP)
    add_dependencies(installed loom)
endif()

install(FILES models/onebit-tiny-f16.gguf DESTINATION share/1bit/models)  # where models/builtin_model.cpp looks
install(FILES models/MODEL_CARD.md models/DATA.md DESTINATION ${onebit_doc_folder}/models)
install(FILES README.md LICENSE third_party/NOTICES.md DESTINATION ${onebit_doc_folder})
install(DIRECTORY docs/ DESTINATION ${onebit_doc_folder}/docs FILES_MATCHING PATTERN "*.md" PATTERN "*.yaml"
    PATTERN evidence EXCLUDE)

# texts that have to go with what is linked; NOTICES.md says whose they are
set(onebit_licences ${onebit_doc_folder}/licences)
install(FILES ${ONEBIT_LLAMA_DIR}/LICENSE DESTINATION ${onebit_licences} RENAME llama.cpp)
install(FILES ${ONEBIT_LLAMA_DIR}/vendor/cpp-httplib/LICENSE DESTINATION ${onebit_licences} RENAME cpp-httplib)
install(FILES ${ONEBIT_LLAMA_DIR}/licenses/LICENSE-jsonhpp DESTINATION ${onebit_licences} RENAME nlohmann-json)
foreach(package libcli11-dev libyaml-cpp-dev libssl-dev libvulkan-dev)
    install(FILES /usr/share/doc/${package}/copyright DESTINATION ${onebit_licences} RENAME ${package} OPTIONAL)
endforeach()

# completions and the man page, made by the program itself
foreach(form "bash;${CMAKE_INSTALL_DATADIR}/bash-completion/completions;1bit" "zsh;${CMAKE_INSTALL_DATADIR}/zsh/site-functions;_1bit"
        "fish;${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d;1bit.fish" "man;${CMAKE_INSTALL_MANDIR}/man1;1bit.1")
    list(GET form 0 kind)
    list(GET form 1 folder)
    list(GET form 2 name)
    install(CODE "
        set(file \"\${CMAKE_INSTALL_PREFIX}/${folder}/${name}\")
        message(STATUS \"Installing: \$ENV{DESTDIR}\${file}\")
        file(MAKE_DIRECTORY \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${folder}\")
        execute_process(COMMAND \"$<TARGET_FILE:onebit>\" completions ${kind} OUTPUT_FILE \"\$ENV{DESTDIR}\${file}\" COMMAND_ERROR_IS_FATAL ANY)
        list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${file}\")")
endforeach()
