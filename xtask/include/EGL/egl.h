/* The types that cudaEGL.h needs, so that generation does not depend on an installed EGL. */
#pragma once
#include <stdint.h>
typedef int32_t EGLint;
