/* The one type of the C library that cuBLASLt's header names. */
#pragma once
typedef struct FILE FILE;
