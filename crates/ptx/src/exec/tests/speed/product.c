/* The product of two matrices in tiles of 16 x 16, as the kernel makes it; prints nanoseconds of processor time for a multiply-add. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TILE = 16 };

static void multiply(int n, const float *left, const float *right, float *result)
{
    for (int row = 0; row < n; row += TILE) {
        for (int column = 0; column < n; column += TILE) {
            float sums[TILE][TILE];
            memset(sums, 0, sizeof sums);
            for (int step = 0; step < n; step += TILE) {
                for (int i = 0; i < TILE; i++) {
                    for (int k = 0; k < TILE; k++) {
                        float factor = left[(row + i) * n + step + k];
                        for (int j = 0; j < TILE; j++) {
                            sums[i][j] += factor * right[(step + k) * n + column + j];
                        }
                    }
                }
            }
            for (int i = 0; i < TILE; i++) {
                memcpy(&result[(row + i) * n + column], sums[i], sizeof sums[i]);
            }
        }
    }
}

int main(int count, char **arguments)
{
    int n = count > 1 ? atoi(arguments[1]) : 256;
    size_t size = (size_t)n * n;
    float *values = malloc(3 * size * sizeof *values);
    for (size_t index = 0; index < 2 * size; index++) {
        values[index] = (float)(index % 13);
    }
    double best = 1e30;
    for (int turn = 0; turn < 5; turn++) {
        struct timespec begin, end;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
        multiply(n, values, values + size, values + 2 * size);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
        double time = (end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec);
        best = time < best ? time : best;
    }
    /* The result is used, so that it is computed. */
    printf("%.6f\n", best / ((double)size * n) + (values[2 * size] < 0));
    return 0;
}
