/* The types that cudaEGL.h needs, so that generation does not depend on an installed EGL. */
#pragma once
#include <EGL/egl.h>
typedef void *EGLImageKHR;
typedef void *EGLStreamKHR;
typedef void *EGLSyncKHR;
