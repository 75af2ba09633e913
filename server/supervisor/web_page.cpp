#include "server/supervisor/web_page.h"

#include <zlib.h>

#include <cstdlib>
#include <optional>
#include <set>
#include <string>

#include "server/supervisor/responses.h"
#include "ui.h"

namespace onebit {
namespace {

std::string file_of(std::string_view path) {
    if (path == "/") return "index.html";
    return path.starts_with("/") ? std::string(path.substr(1)) : std::string();
}

// Their names stay while their contents change with each build; all others carry a hash in the name.
bool revalidated(const std::string& name) {
    static const std::set<std::string> kNames = {"index.html", "sw.js", "manifest.webmanifest", "_app/version.json",
                                                 "build.json"};
    return kNames.count(name) > 0;
}

bool same_etag(const std::string& asked, const std::string& etag) {
    size_t begin = 0;
    while (begin < asked.size()) {
        size_t end = std::min(asked.find(',', begin), asked.size());
        std::string_view one = std::string_view(asked).substr(begin, end - begin);
        while (!one.empty() && one.front() == ' ') one.remove_prefix(1);
        while (!one.empty() && one.back() == ' ') one.remove_suffix(1);
        if (one.starts_with("W/")) one.remove_prefix(2);
        if (one == etag || one == "*") return true;
        begin = end + 1;
    }
    return false;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

// "gzip;q=0" is a no, and "*" stands for what is not named.
bool takes_gzip(const std::string& accepted) {
    std::optional<bool> gzip, any;
    for (size_t begin = 0; begin < accepted.size();) {
        const size_t end = std::min(accepted.find(',', begin), accepted.size());
        const std::string one = accepted.substr(begin, end - begin);
        begin = end + 1;
        const size_t semicolon = std::min(one.find(';'), one.size());
        const size_t quality = one.find("q=", semicolon);
        const bool yes = quality == std::string::npos || std::strtod(one.c_str() + quality + 2, nullptr) > 0;
        const std::string_view name = trimmed(std::string_view(one).substr(0, semicolon));
        if (name == "gzip" || name == "x-gzip") gzip = yes;
        if (name == "*") any = yes;
    }
    return gzip.value_or(any.value_or(false));
}

// Empty when the data is not gzip's; they are part of the program, so that is a fault of the build.
std::optional<std::string> unpacked(const unsigned char* data, size_t size) {
    z_stream stream{};
    constexpr int kGzipWindow = 16 + MAX_WBITS;
    if (inflateInit2(&stream, kGzipWindow) != Z_OK) return {};
    std::string text;
    unsigned char piece[65536];
    stream.next_in = const_cast<Bytef*>(data);
    stream.avail_in = static_cast<uInt>(size);
    int result = Z_OK;
    while (result == Z_OK) {
        stream.next_out = piece;
        stream.avail_out = sizeof(piece);
        result = inflate(&stream, Z_NO_FLUSH);
        text.append(reinterpret_cast<const char*>(piece), sizeof(piece) - stream.avail_out);
    }
    inflateEnd(&stream);
    return result == Z_STREAM_END ? std::optional(std::move(text)) : std::nullopt;
}

// Two forms of one file are two entities.
std::string identity_etag(std::string etag) {
    if (etag.ends_with('"')) etag.insert(etag.size() - 1, "-identity");
    return etag;
}

}  // namespace

bool is_web_page_file(std::string_view path) { return llama_ui_find_asset(file_of(path)) != nullptr; }

bool serve_web_page(std::string_view path, const httplib::Request& request, httplib::Response& response) {
    std::string name = file_of(path);
    const llama_ui_asset* asset = llama_ui_find_asset(name);
    if (!asset) return false;
    const bool packed = llama_ui_use_gzip();
    const bool unpack = packed && !takes_gzip(request.get_header_value("Accept-Encoding"));
    if (packed) response.set_header("Vary", "Accept-Encoding");
    const std::string etag = unpack ? identity_etag(asset->etag) : asset->etag;
    response.set_header("ETag", etag);
    response.set_header("Cache-Control", revalidated(name) ? "no-cache" : "public, max-age=31536000, immutable");
    if (name == "index.html") {
        // the page runs code in workers that share memory
        response.set_header("Cross-Origin-Embedder-Policy", "require-corp");
        response.set_header("Cross-Origin-Opener-Policy", "same-origin");
    }
    if (same_etag(request.get_header_value("If-None-Match"), etag)) {
        response.status = 304;
        return true;
    }
    response.status = 200;
    if (unpack) {
        std::optional<std::string> text = unpacked(asset->data, asset->size);
        if (text)
            response.set_content(std::move(*text), asset->type);
        else
            answer_error(response, 500, error_type(500), "web page: its file " + name + " is damaged in this build");
        return true;
    }
    if (packed) response.set_header("Content-Encoding", "gzip");
    response.set_content(reinterpret_cast<const char*>(asset->data), asset->size, asset->type);
    return true;
}

}  // namespace onebit
