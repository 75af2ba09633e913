// Code objects and their symbols.
#include <algorithm>
#include <map>

#include "base/log.h"
#include "hrx/emulator/hsa_exports.h"

using namespace onebit::emulator;  // exported C functions live in the global namespace

namespace {

struct Reader {
    std::vector<u8> bytes;
};

struct Executable;
struct Symbol {
    const Kernel* kernel = nullptr;
    const Variable* variable = nullptr;
    std::string name;
};

struct Executable {
    bool frozen = false;
    std::vector<std::shared_ptr<CodeObject>> objects;
    std::map<std::string, std::unique_ptr<Symbol>> symbols;
};

std::mutex& table_mutex() {
    static auto* mutex = new std::mutex;
    return *mutex;
}

// Live handles, so that a wrong one is an error and not a crash. Used under table_mutex().
template <typename T>
std::map<u64, std::unique_ptr<T>>& table() {
    static auto* map = new std::map<u64, std::unique_ptr<T>>;
    return *map;
}
template <typename T>
T* lookup(u64 handle) {
    auto found = table<T>().find(handle);
    return found == table<T>().end() ? nullptr : found->second.get();
}
template <typename T>
u64 insert(std::unique_ptr<T> object) {
    const u64 handle = reinterpret_cast<u64>(object.get());
    table<T>()[handle] = std::move(object);
    return handle;
}
Symbol* symbol_of(u64 handle) {
    for (auto& [key, executable] : table<Executable>())
        for (auto& [name, symbol] : executable->symbols)
            if (reinterpret_cast<u64>(symbol.get()) == handle) return symbol.get();
    return nullptr;
}

// Executables that outlive the last hsa_shut_down would refer to a device that is gone.
void clear_tables() {
    std::lock_guard lock(table_mutex());
    table<Executable>().clear();
    table<Reader>().clear();
}

hsa_status_t kernel_info(const Kernel& kernel, hsa_executable_symbol_info_t attribute, void* value) {
    switch (attribute) {
        case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT:
            return put(value, kernel.object);
        case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE:
            return put(value, kernel.descriptor.kernarg_bytes);
        case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT:
            return put(value,
                       kernel.metadata == nullptr ? u32{16} : std::max(kernel.metadata->kernarg_alignment, u32{16}));
        case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE:
            return put(value, kernel.descriptor.group_bytes);
        case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE:
            return put(value, kernel.descriptor.private_bytes);
        case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK:
            return put(value, kernel.metadata != nullptr && kernel.metadata->dynamic_stack);
        default:
            return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    }
}

}  // namespace

extern "C" {

ONEBIT_HSA_EXPORT hsa_status_t hsa_code_object_reader_create_from_memory(const void* code_object, size_t size,
                                                                         hsa_code_object_reader_t* reader) {
    if (code_object == nullptr || size == 0 || reader == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device& current) {
        current.at_end(clear_tables);
        auto created = std::make_unique<Reader>();
        created->bytes.assign(static_cast<const u8*>(code_object), static_cast<const u8*>(code_object) + size);
        std::lock_guard lock(table_mutex());
        reader->handle = insert(std::move(created));
        return HSA_STATUS_SUCCESS;
    });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_code_object_reader_destroy(hsa_code_object_reader_t reader) {
    return with_device([&](Device&) {
        std::lock_guard lock(table_mutex());
        return table<Reader>().erase(reader.handle) == 1 ? HSA_STATUS_SUCCESS
                                                         : HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER;
    });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_executable_create_alt(hsa_profile_t, hsa_default_float_rounding_mode_t, const char*,
                                                         hsa_executable_t* executable) {
    if (executable == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device& current) {
        current.at_end(clear_tables);
        std::lock_guard lock(table_mutex());
        executable->handle = insert(std::make_unique<Executable>());
        return HSA_STATUS_SUCCESS;
    });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_executable_destroy(hsa_executable_t handle) {
    return with_device([&](Device& current) {
        std::unique_ptr<Executable> destroyed;
        {
            std::lock_guard lock(table_mutex());
            auto found = table<Executable>().find(handle.handle);
            if (found == table<Executable>().end()) return HSA_STATUS_ERROR_INVALID_EXECUTABLE;
            destroyed = std::move(found->second);
            table<Executable>().erase(found);
        }
        for (const auto& object : destroyed->objects) current.forget(object.get());
        return HSA_STATUS_SUCCESS;
    });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_executable_load_agent_code_object(hsa_executable_t handle, hsa_agent_t agent,
                                                                     hsa_code_object_reader_t reader_handle,
                                                                     const char*, hsa_loaded_code_object_t* loaded) {
    return with_device([&](Device& current) {
        if (agent.handle != kGpuAgent.handle) return HSA_STATUS_ERROR_INVALID_AGENT;
        std::lock_guard lock(table_mutex());
        Executable* executable = lookup<Executable>(handle.handle);
        Reader* reader = lookup<Reader>(reader_handle.handle);
        if (executable == nullptr) return HSA_STATUS_ERROR_INVALID_EXECUTABLE;
        if (reader == nullptr) return HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER;
        if (executable->frozen) return HSA_STATUS_ERROR_FROZEN_EXECUTABLE;
        auto object = CodeObject::load(reader->bytes, current.memory());
        if (!object) {
            onebit::log_error("emulator", object.error().message());
            return object.error().code == onebit::ErrorCode::unsupported ? HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS
                                                                         : HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
        }
        std::shared_ptr<CodeObject> shared = std::move(object).value();
        // as ROCr does, only code for this very processor is taken
        if (const std::string& chip = current.engine().settings().chip; shared->processor() != chip) {
            onebit::log_error("emulator", "code object: expected code for " + chip + ", found " + shared->processor());
            return HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS;
        }
        for (const Kernel& kernel : shared->kernels())
            executable->symbols[kernel.name + ".kd"] =
                std::make_unique<Symbol>(Symbol{&kernel, nullptr, kernel.name + ".kd"});
        for (const Variable& variable : shared->variables())
            executable->symbols[variable.name] = std::make_unique<Symbol>(Symbol{nullptr, &variable, variable.name});
        executable->objects.push_back(shared);
        current.remember(shared);
        if (loaded != nullptr) loaded->handle = reinterpret_cast<u64>(shared.get());
        return HSA_STATUS_SUCCESS;
    });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_executable_freeze(hsa_executable_t handle, const char*) {
    return with_device([&](Device&) {
        std::lock_guard lock(table_mutex());
        Executable* executable = lookup<Executable>(handle.handle);
        if (executable == nullptr) return HSA_STATUS_ERROR_INVALID_EXECUTABLE;
        if (executable->frozen) return HSA_STATUS_ERROR_FROZEN_EXECUTABLE;
        executable->frozen = true;
        return HSA_STATUS_SUCCESS;
    });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_executable_get_symbol_by_name(hsa_executable_t handle, const char* symbol_name,
                                                                 const hsa_agent_t* agent,
                                                                 hsa_executable_symbol_t* symbol) {
    if (symbol_name == nullptr || symbol == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device&) {
        if (agent != nullptr && agent->handle != kGpuAgent.handle) return HSA_STATUS_ERROR_INVALID_AGENT;
        std::lock_guard lock(table_mutex());
        Executable* executable = lookup<Executable>(handle.handle);
        if (executable == nullptr) return HSA_STATUS_ERROR_INVALID_EXECUTABLE;
        auto found = executable->symbols.find(symbol_name);
        if (found == executable->symbols.end()) return HSA_STATUS_ERROR_INVALID_SYMBOL_NAME;
        symbol->handle = reinterpret_cast<u64>(found->second.get());
        return HSA_STATUS_SUCCESS;
    });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_executable_symbol_get_info(hsa_executable_symbol_t handle,
                                                              hsa_executable_symbol_info_t attribute, void* value) {
    if (value == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device&) {
        std::lock_guard lock(table_mutex());
        const Symbol* symbol = symbol_of(handle.handle);
        if (symbol == nullptr) return HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL;
        switch (attribute) {
            case HSA_EXECUTABLE_SYMBOL_INFO_TYPE:
                return put(value, symbol->kernel != nullptr ? HSA_SYMBOL_KIND_KERNEL : HSA_SYMBOL_KIND_VARIABLE);
            case HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH:
                return put(value, static_cast<u32>(symbol->name.size()));
            case HSA_EXECUTABLE_SYMBOL_INFO_NAME:
                std::memcpy(value, symbol->name.data(), symbol->name.size());
                return HSA_STATUS_SUCCESS;
            case HSA_EXECUTABLE_SYMBOL_INFO_LINKAGE:
                return put(value, u32{1});
            case HSA_EXECUTABLE_SYMBOL_INFO_IS_DEFINITION:
                return put(value, true);
            case HSA_EXECUTABLE_SYMBOL_INFO_AGENT:
                return put(value, kGpuAgent);
            default:
                break;
        }
        if (symbol->kernel != nullptr) return kernel_info(*symbol->kernel, attribute, value);
        switch (attribute) {
            case HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS:
                return put(value, symbol->variable->address);
            case HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE:
                return put(value, static_cast<u32>(symbol->variable->bytes));
            default:
                return HSA_STATUS_ERROR_INVALID_ARGUMENT;
        }
    });
}
}
