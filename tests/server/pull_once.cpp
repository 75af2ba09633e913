// A process that pulls one model and ends, for tests that kill it or start two: pull_once REFERENCE HUB FOLDER.
#include <cstdio>

#include "server/catalog/pull.h"

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    onebit::CatalogFolders folders;
    folders.ours = argv[3];
    onebit::PullOptions options;
    options.hub = argv[2];
    const auto entry = onebit::pull_model(argv[1], folders, options);
    if (!entry) std::fprintf(stderr, "%s\n", entry.error().message().c_str());
    return entry ? 0 : onebit::exit_code(entry.error().code);
}
