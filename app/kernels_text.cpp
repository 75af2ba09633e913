#include "app/kernels_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hrx/loom/library.h"

namespace onebit {
namespace {

std::string constant_text(const loom::Constant& constant) {
    std::string text(constant.name);
    if (constant.is_option) text += "=" + std::to_string(constant.standard);
    return text + " (" + std::to_string(constant.minimum) + " to " + std::to_string(constant.maximum) + ")";
}

nlohmann::json constant_json(const loom::Constant& constant) {
    nlohmann::json json{{"name", constant.name},
                        {"kind", constant.is_option ? "option" : "argument"},
                        {"minimum", constant.minimum},
                        {"maximum", constant.maximum}};
    if (constant.is_option) json["default"] = constant.standard;
    return json;
}

bool executed(std::string_view target) {
    const loom::Target* known = loom::find_target(target);
    return known != nullptr && known->executed;
}

std::string value_text(const loom::Request& request, const loom::Constant& constant) {
    const auto at = request.constants.find(constant.name);
    return std::string(constant.name) +
           (at == request.constants.end() ? " at run time" : "=" + std::to_string(at->second));
}

void add_line(std::string* text, const char* label, const std::string& value) {
    std::string line(label);
    line.resize(std::max<size_t>(line.size() + 1, 13), ' ');
    *text += line + value + "\n";
}

}  // namespace

Result<KernelView> look_at_kernel(const loom::Request& request) {
    const auto library = loom::Library::open();
    if (!library.ok()) return library.error();
    const auto image = (*library)->compile(request, LOOM_IMAGE);
    if (!image.ok()) return image.error();
    const auto code = (*library)->compile(request, LOOM_ASSEMBLY);
    if (!code.ok()) return code.error();
    KernelView view;
    view.image_bytes = image->bytes.size();
    view.code.assign(reinterpret_cast<const char*>(code->bytes.data()), code->bytes.size());
    if (request.target->is_amd()) {
        const auto info = loom::read_image_info(request.kernel->name, image->bytes);
        if (!info.ok()) return info.error();
        view.info = *info;
        view.occupancy =
            loom::estimate_occupancy(*request.target, info->vector_registers, info->lds_bytes, request.workgroup());
    }
    return view;
}

std::string kernels_to_text(std::span<const loom::Kernel> kernels) {
    std::string text;
    size_t width = 0;
    for (const loom::Kernel& kernel : kernels) width = std::max(width, kernel.name.size());
    for (const loom::Kernel& kernel : kernels) {
        std::string line(kernel.name);
        line.resize(width + 2, ' ');
        line += std::string(kernel.source) + "  " + std::to_string(kernel.workgroup) + " work-items";
        for (const loom::Constant& constant : kernel.constants) line += "  " + constant_text(constant);
        text += line + "\n";
    }
    if (kernels.empty()) return "no kernels: this build had no clang 19\n";
    std::string targets;
    for (const loom::Image& image : kernels.front().images) {
        targets += (targets.empty() ? "" : ", ") + std::string(image.target) + (executed(image.target) ? "" : "*");
    }
    return text + std::to_string(kernels.size()) + " kernels for " + targets + " (* not executed anywhere)\n";
}

std::string kernels_to_json(std::span<const loom::Kernel> kernels) {
    nlohmann::json list = nlohmann::json::array();
    for (const loom::Kernel& kernel : kernels) {
        nlohmann::json json{{"name", kernel.name},
                            {"source", kernel.source},
                            {"workgroup", kernel.workgroup},
                            {"argument_bytes", kernel.argument_bytes},
                            {"constants", nlohmann::json::array()},
                            {"images", nlohmann::json::array()}};
        for (const loom::Constant& constant : kernel.constants) json["constants"].push_back(constant_json(constant));
        for (const loom::Image& image : kernel.images) {
            json["images"].push_back(
                {{"target", image.target}, {"bytes", image.bytes.size()}, {"executed", executed(image.target)}});
        }
        list.push_back(std::move(json));
    }
    return list.dump(2) + "\n";
}

std::string view_to_text(const loom::Request& request, const KernelView& view) {
    std::string text, constants;
    add_line(&text, "kernel", std::string(request.kernel->name));
    add_line(&text, "source", std::string(request.kernel->source));
    add_line(
        &text, "chip",
        std::string(request.target->name) + (request.target->executed ? "" : ", not executed anywhere by the tests"));
    for (const loom::Constant& constant : request.kernel->constants) {
        constants += (constants.empty() ? "" : ", ") + value_text(request, constant);
    }
    add_line(&text, "constants", constants.empty() ? "none" : constants);
    add_line(&text, "group", std::to_string(request.workgroup()) + " work-items");
    add_line(&text, "image", std::to_string(view.image_bytes) + " bytes");
    if (view.info) {
        const loom::ImageInfo& info = *view.info;
        add_line(&text, "registers",
                 std::to_string(info.vector_registers) + " vector, " + std::to_string(info.scalar_registers) +
                     " scalar; spilled " + std::to_string(info.spilled_vector_registers) + " and " +
                     std::to_string(info.spilled_scalar_registers));
        add_line(&text, "LDS", std::to_string(info.lds_bytes) + " bytes, and what the launch adds");
        add_line(&text, "scratch", std::to_string(info.scratch_bytes) + " bytes a work-item");
        add_line(&text, "occupancy",
                 "about " + std::to_string(view.occupancy.waves()) + " of 16 waves (registers " +
                     std::to_string(view.occupancy.by_registers) + ", LDS " + std::to_string(view.occupancy.by_lds) +
                     ")");
    } else {
        add_line(&text, "registers", "the driver decides");
    }
    return text + "\n" + view.code;
}

std::string view_to_json(const loom::Request& request, const KernelView& view) {
    nlohmann::json json{{"name", request.kernel->name},     {"source", request.kernel->source},
                        {"target", request.target->name},   {"executed", request.target->executed},
                        {"workgroup", request.workgroup()}, {"constants", request.constants},
                        {"image_bytes", view.image_bytes},  {"code", view.code}};
    if (view.info) {
        const loom::ImageInfo& info = *view.info;
        json["registers"] = {{"vector", info.vector_registers},
                             {"scalar", info.scalar_registers},
                             {"spilled_vector", info.spilled_vector_registers},
                             {"spilled_scalar", info.spilled_scalar_registers}};
        json["lds_bytes"] = info.lds_bytes;
        json["scratch_bytes"] = info.scratch_bytes;
        json["code_bytes"] = info.code_bytes;
        json["occupancy_waves"] = {{"estimate", view.occupancy.waves()},
                                   {"by_registers", view.occupancy.by_registers},
                                   {"by_lds", view.occupancy.by_lds}};
    }
    return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace onebit
