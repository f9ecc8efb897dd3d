/* Which sources the library was made of: the build defines SOURCES. */
#include "kernels.h"

API const char *sources(void) { return SOURCES; }
