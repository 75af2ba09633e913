#include "server/supervisor/request_scope.h"

#include "base/log.h"

namespace onebit {

RequestScope::~RequestScope() {
    record.seconds = seconds();
    metrics_.done(record);
    if (log_level() < LogLevel::verbose) return;
    char numbers[96];
    std::snprintf(numbers, sizeof(numbers), " %d %.1f ms %llu bytes", record.status, record.seconds * 1000,
                  static_cast<unsigned long long>(record.bytes_out));
    log_verbose("access", client_ + " " + method_ + " " + path_.substr(0, 200) +
                              " model=" + (record.model.empty() ? "-" : record.model) + numbers);
}

}  // namespace onebit
