#include "server/catalog/gguf_types.h"

#include <iterator>

namespace onebit {
namespace {

constexpr const char* kUseQ4_0 = "take a Q4_0 file of the model: it is repacked for the processor while it loads";
constexpr const char* kUseIq4Nl =
    "take an IQ4_NL file of the model, which is repacked while it loads; BitNet files of type I2_S, which use the same "
    "number, have to be converted to TQ2_0 from the original weights";
constexpr const char* kUseQ4_1 = "take a Q4_0 or Q4_K_M file of the model, or convert the original weights again";

constexpr GgufType kTypes[kGgufTypeCount] = {
    {"F32", 1, 4, nullptr},          {"F16", 1, 2, nullptr},          {"Q4_0", 32, 18, nullptr},
    {"Q4_1", 32, 20, nullptr},       {"Q4_2", 0, 0, kUseQ4_1},        {"Q4_3", 0, 0, kUseQ4_1},
    {"Q5_0", 32, 22, nullptr},       {"Q5_1", 32, 24, nullptr},       {"Q8_0", 32, 34, nullptr},
    {"Q8_1", 32, 36, nullptr},       {"Q2_K", 256, 84, nullptr},      {"Q3_K", 256, 110, nullptr},
    {"Q4_K", 256, 144, nullptr},     {"Q5_K", 256, 176, nullptr},     {"Q6_K", 256, 210, nullptr},
    {"Q8_K", 256, 292, nullptr},     {"IQ2_XXS", 256, 66, nullptr},   {"IQ2_XS", 256, 74, nullptr},
    {"IQ3_XXS", 256, 98, nullptr},   {"IQ1_S", 256, 50, nullptr},     {"IQ4_NL", 32, 18, nullptr},
    {"IQ3_S", 256, 110, nullptr},    {"IQ2_S", 256, 82, nullptr},     {"IQ4_XS", 256, 136, nullptr},
    {"I8", 1, 1, nullptr},           {"I16", 1, 2, nullptr},          {"I32", 1, 4, nullptr},
    {"I64", 1, 8, nullptr},          {"F64", 1, 8, nullptr},          {"IQ1_M", 256, 56, nullptr},
    {"BF16", 1, 2, nullptr},         {"Q4_0_4_4", 0, 0, kUseQ4_0},    {"Q4_0_4_8", 0, 0, kUseQ4_0},
    {"Q4_0_8_8", 0, 0, kUseQ4_0},    {"TQ1_0", 256, 54, nullptr},     {"TQ2_0", 256, 66, nullptr},
    {"IQ4_NL_4_4", 0, 0, kUseIq4Nl}, {"IQ4_NL_4_8", 0, 0, kUseIq4Nl}, {"IQ4_NL_8_8", 0, 0, kUseIq4Nl},
    {"MXFP4", 32, 17, nullptr},      {"NVFP4", 64, 36, nullptr},      {"Q1_0", 128, 18, nullptr},
    {"Q2_0", 64, 18, nullptr},
};

// by llama.cpp's llama_ftype; the gaps are file types that it has removed
constexpr const char* kFileTypes[] = {
    "F32",    "F16",     "Q4_0",   "Q4_1",   "",       "",       "",       "Q8_0",  "Q5_0",    "Q5_1",   "Q2_K",
    "Q3_K_S", "Q3_K_M",  "Q3_K_L", "Q4_K_S", "Q4_K_M", "Q5_K_S", "Q5_K_M", "Q6_K",  "IQ2_XXS", "IQ2_XS", "Q2_K_S",
    "IQ3_XS", "IQ3_XXS", "IQ1_S",  "IQ4_NL", "IQ3_S",  "IQ3_M",  "IQ2_S",  "IQ2_M", "IQ4_XS",  "IQ1_M",  "BF16",
    "",       "",        "",       "TQ1_0",  "TQ2_0",  "MXFP4",  "NVFP4",  "Q1_0",  "Q2_0",
};

}  // namespace

const GgufType* gguf_type(uint32_t type) { return type < kGgufTypeCount ? &kTypes[type] : nullptr; }

std::string gguf_file_type_name(uint64_t file_type) {
    constexpr uint64_t kGuessed = 1024;
    file_type &= ~kGuessed;
    return file_type < std::size(kFileTypes) ? kFileTypes[file_type] : "";
}

const char* llama_release() { return ONEBIT_LLAMA_TAG; }

}  // namespace onebit
