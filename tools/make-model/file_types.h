// Types of model files, and which type each tensor has in one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ggml.h"
#include "llama.h"
#include "tools/make-model/shapes.h"

namespace onebit {

struct FileType {
    std::string name;  // such as Q4_K_M
    llama_ftype number = LLAMA_FTYPE_ALL_F32;
    ggml_type base = GGML_TYPE_F32;  // of most matrices
};

const std::vector<FileType>& file_types();
const FileType* find_file_type(std::string_view name);  // any case; nullptr: none of this name

// The type that llama.cpp's quantiser gives this tensor. Source of the rule: llama_tensor_get_type() and
// tensor_type_fallback() in llama.cpp's src/llama-quant.cpp; a test compares the two for every type and shape. Left out
// are its exceptions for Falcon, the 70B Llama and models of exactly 8 experts, which no shape here is.
// importance: whether the quantiser has an importance matrix, which changes three of the rules.
ggml_type tensor_type(const FileType& file, const ModelShape& shape, const TensorSpec& tensor, bool importance);

// Whether files of this type are only ever made with an importance matrix.
bool made_with_importance(const FileType& file);

}  // namespace onebit
