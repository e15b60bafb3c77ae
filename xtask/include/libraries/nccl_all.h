/* The header that declares the functions of NCCL. Older ones declare the types of elements that the compiler has. */
#define __CUDA_BF16_TYPES_EXIST__ 1
#define NCCL_OS_LINUX
#include <nccl.h>
