// nvrtc: --fmad=false
//
// Without contraction every multiplication and addition is rounded by itself, so that a CPU gets the same counts bit for bit.

// The number of steps of z = z * z + c, from z = 0, before |z| > 2: at most `max_iterations`, one count per pixel.
//
// `scale` is the width of a pixel in the complex plane; rows go down.
extern "C" __global__ void mandelbrot(unsigned int* iterations, unsigned int width, unsigned int height, double center_x,
                                      double center_y, double scale, unsigned int max_iterations)
{
    unsigned int column = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= width || row >= height) {
        return;
    }
    double c_x = center_x + ((double)column - 0.5 * (double)width) * scale;
    double c_y = center_y - ((double)row - 0.5 * (double)height) * scale;
    double x = 0.0;
    double y = 0.0;
    unsigned int count = 0;
    while (count < max_iterations) {
        double xx = x * x;
        double yy = y * y;
        if (xx + yy > 4.0) {
            break;
        }
        y = 2.0 * (x * y) + c_y;
        x = xx - yy + c_x;
        ++count;
    }
    iterations[(unsigned long long)row * width + column] = count;
}
