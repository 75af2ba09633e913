#include "server/supervisor/shared_text.h"

#include <algorithm>
#include <cstring>

namespace onebit {

void write_shared_text(std::span<std::atomic<uint64_t>> words, std::string_view text) {
    const size_t room = words.size_bytes() - 1;
    for (size_t i = 0; i < words.size(); ++i) {
        uint64_t word = 0;
        const size_t begin = i * sizeof word;
        if (begin < std::min(room, text.size()))
            std::memcpy(&word, text.data() + begin, std::min({sizeof word, room - begin, text.size() - begin}));
        words[i].store(word, std::memory_order_release);
    }
}

std::string read_shared_text(std::span<const std::atomic<uint64_t>> words) {
    std::string text(words.size_bytes(), '\0');
    for (size_t i = 0; i < words.size(); ++i) {
        const uint64_t word = words[i].load(std::memory_order_acquire);
        std::memcpy(text.data() + i * sizeof word, &word, sizeof word);
    }
    text.resize(std::min(text.find('\0'), text.size()));
    return text;
}

}  // namespace onebit
