// Waits until the host makes `flag` other than zero, but at most `limit` looks at it; writes how many looks it took.
//
// One thread. `flag` lies in pinned or managed memory.
extern "C" __global__ void spin(const volatile unsigned int* flag, unsigned long long limit, unsigned long long* looks)
{
    unsigned long long count = 0;
    while (count < limit && *flag == 0) {
        ++count;
    }
    *looks = count;
}
