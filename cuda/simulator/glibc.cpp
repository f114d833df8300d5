/* Older versions of two functions of glibc, so that the library loads on systems before 2.35.
 *
 * hypot was renewed there only in how it reports errors; linked as it stands, the library would ask
 * for the newer one. The linker's --wrap leads the kernels' calls here (Makefile).
 */
#include <math.h>

#if defined(__x86_64__) && defined(__GLIBC__)

extern "C" {

double pvg_older_hypot(double x, double y);
float pvg_older_hypotf(float x, float y);
__asm__(".symver pvg_older_hypot, hypot@GLIBC_2.2.5");
__asm__(".symver pvg_older_hypotf, hypotf@GLIBC_2.2.5");

double __wrap_hypot(double x, double y) { return pvg_older_hypot(x, y); }

float __wrap_hypotf(float x, float y) { return pvg_older_hypotf(x, y); }

} // extern "C"

#endif
