#include "server/supervisor/web_page.h"

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

}  // namespace

bool is_web_page_file(std::string_view path) { return llama_ui_find_asset(file_of(path)) != nullptr; }

bool serve_web_page(std::string_view path, const httplib::Request& request, httplib::Response& response) {
    std::string name = file_of(path);
    const llama_ui_asset* asset = llama_ui_find_asset(name);
    if (!asset) return false;
    if (llama_ui_use_gzip()) {
        response.set_header("Vary", "Accept-Encoding");
        if (request.get_header_value("Accept-Encoding").find("gzip") == std::string::npos) {
            answer_error(response, 406, "not_acceptable",
                         "Accept-Encoding header: expected one that allows gzip, which this file is stored in; with "
                         "curl use --compressed");
            return true;
        }
    }
    response.set_header("ETag", asset->etag);
    response.set_header("Cache-Control", revalidated(name) ? "no-cache" : "public, max-age=31536000, immutable");
    if (name == "index.html") {
        // the page runs code in workers that share memory
        response.set_header("Cross-Origin-Embedder-Policy", "require-corp");
        response.set_header("Cross-Origin-Opener-Policy", "same-origin");
    }
    if (same_etag(request.get_header_value("If-None-Match"), asset->etag)) {
        response.status = 304;
        return true;
    }
    if (llama_ui_use_gzip()) response.set_header("Content-Encoding", "gzip");
    response.status = 200;
    response.set_content(reinterpret_cast<const char*>(asset->data), asset->size, asset->type);
    return true;
}

}  // namespace onebit
