/* CUPTI's headers include it, and declare nothing with it. */
#pragma once
#include <stddef.h>
