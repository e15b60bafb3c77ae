/* The header that declares the functions of cuRAND. */
#include <curand.h>
