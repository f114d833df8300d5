// The architecture of a device's code; see architecture.cuh.
#include "runtime/architecture.cuh"
#include "runtime/device.cuh"
#include <stdlib.h>
#include <string.h>

#ifndef PVG_BUILD_ARCHITECTURES
#define PVG_BUILD_ARCHITECTURES "" // the Makefile says which; a compiler run by hand need not
#endif

namespace pvg {

namespace {

// Of the architectures that the library was built for ("80 90a ptx75") the one whose code such a
// device runs. Machine code runs on devices of its own generation; 90a is 90 with wgmma, and what
// was built for 90 without it counts as a little less. PTX runs on every later device.
int best_architecture(const char *built, int capability) {
    int best = 0;
    for (const char *at = built; *at;) {
        const bool is_ptx = strncmp(at, "ptx", 3) == 0;
        char *end = nullptr;
        const int number = static_cast<int>(strtol(at + (is_ptx ? 3 : 0), &end, 10));
        const bool runs = number <= capability && (is_ptx || number / 10 == capability / 10);
        const int level = number == 90 && *end != 'a' ? 89 : number;
        if (runs && level > best) best = level;
        at = end + strcspn(end, " ");
        at += strspn(at, " ");
    }
    return best;
}

} // namespace

int architecture_of(int device, int *architecture) {
    int64_t major, minor;
    PVG_PASS(device_attribute(device, PVG_COMPUTE_CAPABILITY_MAJOR, &major));
    PVG_PASS(device_attribute(device, PVG_COMPUTE_CAPABILITY_MINOR, &minor));
    *architecture =
        best_architecture(PVG_BUILD_ARCHITECTURES, static_cast<int>(major * 10 + minor));
    return PVG_OK;
}

} // namespace pvg
