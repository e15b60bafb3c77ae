/* The few declarations of CUDA's runtime that the libraries' headers need. */
#pragma once
#include <driver_types.h>
