/* The few declarations that cuda.h needs, so that generation does not depend on the system's C library. */
#pragma once
typedef __SIZE_TYPE__ size_t;
#define NULL ((void *)0)
