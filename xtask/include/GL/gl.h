/* The types that cudaGL.h needs, so that generation does not depend on an installed OpenGL. */
#pragma once
typedef unsigned int GLenum;
typedef unsigned int GLuint;
