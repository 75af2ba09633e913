#include "hrx/emulator/wave.h"

namespace onebit::emulator {

u32 Wave::special(u16 encoding, int word) const {
    // apertures are 4 GiB each and start at multiples of it, so that only high halves say anything
    switch (encoding) {
        case kSharedBase:
            return word == 0 ? 0 : kSharedApertureHigh;
        case kSharedLimit:
            return word == 0 ? 0xffffffffu : kSharedApertureHigh;
        case kPrivateBase:
            return word == 0 ? 0 : kPrivateApertureHigh;
        case kPrivateLimit:
            return word == 0 ? 0xffffffffu : kPrivateApertureHigh;
        case kVccZero:
            return word == 0 && s[kVcc] == 0 ? 1 : 0;
        case kExecZero:
            return word == 0 && s[kExec] == 0 ? 1 : 0;
        case kScc:
            return word == 0 && scc ? 1 : 0;
        default:
            return 0;
    }
}

}  // namespace onebit::emulator
