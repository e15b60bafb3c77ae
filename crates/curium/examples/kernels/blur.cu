// Blurs an image of three bytes a pixel: each pixel becomes the mean of those at most `radius` away in its row and column.
extern "C" __global__ void blur(const unsigned char* in, unsigned char* out, unsigned int width, unsigned int height, int radius)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= (int)width || row >= (int)height) {
        return;
    }
    for (int channel = 0; channel < 3; ++channel) {
        unsigned int sum = 0;
        unsigned int count = 0;
        for (int y = max(row - radius, 0); y <= min(row + radius, (int)height - 1); ++y) {
            for (int x = max(column - radius, 0); x <= min(column + radius, (int)width - 1); ++x) {
                sum += in[(y * (int)width + x) * 3 + channel];
                ++count;
            }
        }
        out[(row * (int)width + column) * 3 + channel] = sum / count;
    }
}
