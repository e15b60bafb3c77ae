// printf of many kinds of arguments, read back from the program's own output.
#include "check.h"
#include <string>
#include <unistd.h>

__global__ void say(double x) {
    printf("%d %5u|%-6d|%06.2f %e %g %c %s %%\n", -5, 7u, 42, x, x, x, 'z', "word");
    printf("%llx %lld %#x %+d %.3s %p\n", 0x123456789abcdefull, -9000000000ll, 255, 8, "abcdef", (void*)0x1234);
}
__global__ void count() {
    if (threadIdx.x % 16 == 3) printf("%d.%d\n", blockIdx.x, threadIdx.x);
}

int main() {
    FILE* file = std::tmpfile();
    int before = dup(1);
    std::fflush(stdout);
    dup2(fileno(file), 1);
    say<<<1, 1>>>(3.14159);
    finish();
    count<<<2, 32>>>();
    finish();
    std::fflush(stdout);
    dup2(before, 1);
    std::rewind(file);
    std::string found;
    for (int c; (c = std::fgetc(file)) != EOF;) found += (char)c;
    char wanted[256];
    std::snprintf(wanted, sizeof wanted, "%d %5u|%-6d|%06.2f %e %g %c %s %%\n%llx %lld %#x %+d %.3s %p\n", -5, 7u, 42, 3.14159, 3.14159,
                  3.14159, 'z', "word", 0x123456789abcdefull, -9000000000ll, 255, 8, "abcdef", (void*)0x1234);
    EXPECT(found.compare(0, std::string(wanted).size(), wanted) == 0);
    for (const char* line : {"0.3\n", "0.19\n", "1.3\n", "1.19\n"}) EXPECT(found.find(line) != std::string::npos);
}
