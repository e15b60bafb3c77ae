// A kernel that is safe with any arguments, and one that is not.

template <class T> __global__ void nothing(T) {}

extern "C" __global__ void store(unsigned* x, unsigned at) { x[at] = 1; }
