/* Where in the sources an instruction comes from. */
#pragma once
#include <cstddef>

namespace pvg_sim {

/* Writes " at FILE:LINE", or nothing where the build has no line numbers (-g) or no addr2line.
 * `after` is a return address: the instruction is the one before it. */
void describe_code(const void *after, char *text, size_t bytes);

} /* namespace pvg_sim */
