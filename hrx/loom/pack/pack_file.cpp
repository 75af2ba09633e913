#include "hrx/loom/pack/pack_file.h"

#include "base/cache_folder.h"

namespace onebit::loom {
namespace {

constexpr size_t alignment = 64;

class PackWriter {
public:
    PackWriter(std::string family, std::string source) : family_(std::move(family)), source_(std::move(source)) {}

    void add(const PackedEntry& entry) {
        const std::string number = std::to_string(count_++);
        const PackedKernel& kernel = entry.kernel;
        std::string constants = "{}", images = "{}";
        if (!kernel.constants.empty()) {
            constants = "constants_" + number;
            tables_ += "constexpr Constant " + constants + "[] = {\n";
            for (const PackedConstant& c : kernel.constants) {
                tables_ += "    {\"" + c.name + "\", " + (c.is_option ? "true" : "false") + ", " + text(c.offset) +
                           ", " + text(c.standard) + ", " + text(c.minimum) + ", " + text(c.maximum) + "},\n";
            }
            tables_ += "};\n";
        }
        if (!entry.images.empty()) {
            images = "images_" + number;
            tables_ += "constexpr Image " + images + "[] = {\n";
            for (const PackedImage& image : entry.images) {
                tables_ += "    {\"" + image.target + "\", " + place(image.bytes) + "},\n";
            }
            tables_ += "};\n";
        }
        kernels_ += "    {\"" + kernel.name + "\", \"" + source_ + "\", " + text(kernel.workgroup) + ", " +
                    text(kernel.argument_bytes) + ", " + constants + ", " + place(kernel.amdgcn) + ", " +
                    place(kernel.nvptx) + ", " + images + "},\n";
    }

    // pack: as the assembler finds it.
    std::string source_text(const std::string& pack) const {
        const std::string symbol = "loom_pack_" + family_;
        std::string text = "// Written by loom-pack from " + source_ + ".\n#include \"hrx/kernels/kernel_table.h\"\n\n";
        text += "asm(\".pushsection .rodata\\n.balign 64\\n.globl " + symbol + "\\n.hidden " + symbol + "\\n" + symbol +
                ":\\n.incbin \\\"" + pack + "\\\"\\n.byte 0\\n.popsection\\n\");\n";
        text += "extern \"C\" __attribute__((visibility(\"hidden\"))) const std::byte " + symbol + "[" +
                std::to_string(bytes_.size() + 1) + "];\n\n";
        text += "namespace onebit::loom {\nnamespace {\n\n";
        text +=
            "[[maybe_unused]] constexpr std::span<const std::byte> part(size_t offset, size_t size) {\n    return {" +
            symbol + " + offset, size};\n}\n\n";
        text += tables_ + "constexpr Kernel kernels[] = {\n" + kernels_ + "};\n\n}  // namespace\n\n";
        text += "std::span<const Kernel> loom_family_" + family_ +
                "() { return kernels; }\n\n}  // namespace onebit::loom\n";
        return text;
    }
    const std::vector<std::byte>& bytes() const { return bytes_; }

private:
    static std::string text(uint32_t number) { return std::to_string(number) + "u"; }

    std::string place(const std::vector<std::byte>& part) {
        if (part.empty()) return "{}";
        bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
        const size_t offset = bytes_.size();
        bytes_.insert(bytes_.end(), part.begin(), part.end());
        return "part(" + std::to_string(offset) + ", " + std::to_string(part.size()) + ")";
    }

    std::string family_, source_, tables_, kernels_;
    std::vector<std::byte> bytes_;
    size_t count_ = 0;
};

}  // namespace

Result<void> write_pack(const std::filesystem::path& folder, const std::string& family, const std::string& source,
                        const std::vector<PackedEntry>& entries) {
    PackWriter writer(family, source);
    for (const PackedEntry& entry : entries) writer.add(entry);
    const std::filesystem::path pack = folder / (family + ".pack"), table = folder / (family + ".cpp");
    ONEBIT_RETURN_IF_ERROR(publish_file(pack, writer.bytes(), 0644));
    const std::string text = writer.source_text(family + ".pack");
    return publish_file(table, std::as_bytes(std::span(text)), 0644);
}

}  // namespace onebit::loom
