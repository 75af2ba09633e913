// loom-pack: a step of the build. Splits the bitcode of a kernel file, compiles the generic images of its kernels with
// the very libloom.so that the program loads, and writes them as C++ tables. Images come from a cache where the same
// bitcode was compiled by the same compiler before.
#include <algorithm>
#include <cstdio>
#include <map>
#include <sstream>

#include "base/cache_folder.h"
#include "hrx/loom/image_cache.h"
#include "hrx/loom/image_check.h"
#include "hrx/loom/library.h"
#include "hrx/loom/pack/bitcode.h"
#include "hrx/loom/pack/pack_file.h"

namespace onebit::loom {
namespace {

struct Options {
    std::string family, source, amdgcn, nvptx, library, folder;
    std::vector<std::string> targets;
};

// Views of a packed kernel as the program will have it.
class KernelView {
public:
    KernelView(const PackedKernel& kernel, const std::string& source) {
        for (const PackedConstant& c : kernel.constants) {
            constants_.push_back({c.name, c.is_option, c.offset, c.standard, c.minimum, c.maximum});
        }
        view_ = {kernel.name, source,        kernel.workgroup, kernel.argument_bytes,
                 constants_,  kernel.amdgcn, kernel.nvptx,     {}};
    }
    KernelView(const KernelView&) = delete;
    KernelView& operator=(const KernelView&) = delete;
    const Kernel& kernel() const { return view_; }

private:
    std::vector<Constant> constants_;
    Kernel view_;
};

class Builder {
public:
    explicit Builder(const Options& options) : options_(options) {
        auto user = cache_folder();
        if (!user.ok()) return;
        auto cache = ImageCache::open(*user / "kernel-build");
        if (cache.ok()) cache_.emplace(std::move(*cache));
    }

    Result<void> run() {
        auto kernels = collect();
        if (!kernels.ok()) return std::move(kernels).error();
        std::vector<PackedEntry> entries;
        for (auto& [name, kernel] : *kernels) {
            PackedEntry entry{std::move(kernel), {}};
            for (const std::string& target : options_.targets) {
                const bool amd = target.starts_with("gfx");
                if ((amd ? entry.kernel.amdgcn : entry.kernel.nvptx).empty()) continue;
                auto image = make_image(entry.kernel, target);
                if (!image.ok()) return std::move(image).error();
                entry.images.push_back({target, std::move(*image)});
            }
            entries.push_back(std::move(entry));
        }
        return write_pack(options_.folder, options_.family, options_.source, entries);
    }

private:
    // Kernels of both vendors by name; what they declare must agree.
    Result<std::map<std::string, PackedKernel>> collect() const {
        std::map<std::string, PackedKernel> all;
        for (const std::string& file : {options_.amdgcn, options_.nvptx}) {
            if (file.empty()) continue;
            auto kernels = split_bitcode(file, options_.source);
            if (!kernels.ok()) return std::move(kernels).error();
            for (PackedKernel& kernel : *kernels) {
                const auto at = all.find(kernel.name);
                if (at == all.end()) {
                    all.emplace(kernel.name, std::move(kernel));
                } else if (!at->second.same_declaration(kernel)) {
                    return Error{ErrorCode::invalid, options_.source + ", kernel " + kernel.name,
                                 "the same declarations for both vendors", "others for nvptx", ""};
                } else {
                    at->second.nvptx = std::move(kernel.nvptx);
                }
            }
        }
        return all;
    }

    Result<std::vector<std::byte>> make_image(const PackedKernel& kernel, const std::string& target) {
        const KernelView view(kernel, options_.source);
        auto request = make_request(view.kernel(), target, {});
        if (!request.ok()) return std::move(request).error();
        if (cache_) {
            if (auto image = cache_->get(*request)) return std::move(*image);
        }
        if (!library_) {
            auto opened = Library::open(options_.library);
            if (!opened.ok()) return std::move(opened).error();
            library_ = std::move(*opened);
        }
        auto compiled = library_->compile(*request, LOOM_IMAGE);
        if (!compiled.ok()) return std::move(compiled).error();
        ONEBIT_RETURN_IF_ERROR(check_image(kernel.name, *request->target, compiled->bytes));
        // the build goes on where the cache cannot be written
        if (cache_) (void)cache_->put(*request, compiled->bytes).ok();
        return std::move(compiled->bytes);
    }

    const Options& options_;
    std::optional<ImageCache> cache_;
    std::shared_ptr<const Library> library_;
};

Result<Options> parse(int argc, char** argv) {
    Options options;
    std::string list;
    const std::map<std::string, std::string*> known{
        {"--family", &options.family}, {"--source", &options.source},   {"--amdgcn", &options.amdgcn},
        {"--nvptx", &options.nvptx},   {"--library", &options.library}, {"--folder", &options.folder},
        {"--targets", &list}};
    for (int i = 1; i < argc; i += 2) {
        const auto at = known.find(argv[i]);
        if (at == known.end() || i + 1 == argc) {
            return Error{ErrorCode::usage, "loom-pack",
                         "--family NAME --source FILE --amdgcn BITCODE --nvptx BITCODE --library FILE --folder FOLDER "
                         "--targets LIST",
                         argv[i], ""};
        }
        *at->second = argv[i + 1];
    }
    std::istringstream names(list);
    for (std::string name; std::getline(names, name, ',');) options.targets.push_back(name);
    if (options.family.empty() || options.folder.empty() || options.targets.empty()) {
        return Error{ErrorCode::usage, "loom-pack", "--family, --folder and --targets", "less", ""};
    }
    return options;
}

}  // namespace
}  // namespace onebit::loom

int main(int argc, char** argv) {
    using namespace onebit;
    const auto options = loom::parse(argc, argv);
    if (!options.ok()) {
        std::fprintf(stderr, "%s\n", options.error().message().c_str());
        return exit_code(options.error().code);
    }
    if (const auto built = loom::Builder(*options).run(); !built.ok()) {
        std::fprintf(stderr, "%s\n", built.error().message().c_str());
        return exit_code(built.error().code);
    }
    return 0;
}
