/* Every header that declares functions of cuFFT. */
#include <cufft.h>
#include <cufftXt.h>
