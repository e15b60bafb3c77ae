// Managed memory and managed variables, shared by host and device.
#include "check.h"

__managed__ int counter = 41;
__managed__ float table[4] = {1, 2, 4, 8};
struct Node {
    int value;
    Node* next;
};

__global__ void walk(const Node* node, int* sum) {
    for (; node; node = node->next) *sum += node->value;
    ++counter;
    table[3] += table[2];
}

int main() {
    Node* list = nullptr;
    for (int i = 1; i <= 10; ++i) {
        Node* node = managed<Node>(1);
        node->value = i * i, node->next = list, list = node;
    }
    int* sum = managed<int>(1);
    EXPECT(counter == 41);
    walk<<<1, 1>>>(list, sum);
    finish();
    EXPECT(*sum == 385 && counter == 42 && table[3] == 12);
    counter = 7;
    walk<<<1, 1>>>(nullptr, sum);
    finish();
    EXPECT(counter == 8);
}
