/* addr2line, of the binutils that every compiler needs, turns an address into a line. */
#include "code_place.h"

#include <cstdio>
#include <cstring>
#include <dlfcn.h>

namespace pvg_sim {

/* Of inlined calls the innermost comes first: one in the simulator's headers says too little. */
static bool says_something(const char *place) {
    return !strchr(place, '?') && !strstr(place, "/simulator/cuda_builtins.h") &&
           !strstr(place, "/simulator/device_");
}

void describe_code(const void *after, char *text, size_t bytes) {
    text[0] = 0;
    Dl_info module;
    if (!dladdr(after, &module) || !module.dli_fname) return;
    char command[1024], line[512];
    size_t offset = (size_t)(static_cast<const char *>(after) - 1 -
                             static_cast<const char *>(module.dli_fbase));
    snprintf(command, sizeof command, "addr2line -i -e '%s' 0x%zx 2>/dev/null", module.dli_fname,
             offset);
    FILE *answer = popen(command, "r");
    if (!answer) return;
    while (!text[0] && fgets(line, sizeof line, answer)) {
        line[strcspn(line, " \n")] = 0; /* "(discriminator 2)" may follow */
        if (says_something(line)) snprintf(text, bytes, " at %s", line);
    }
    pclose(answer);
}

} /* namespace pvg_sim */
