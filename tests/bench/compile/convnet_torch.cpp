// tests/bench/compile/convnet_torch.cpp: the program of convnet.cpp in libtorch, for compile_time.py --rival.
#include <torch/torch.h>

#include <cstdio>

int main() {
  torch::nn::Sequential model(
      torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 16, 3).padding(1)), torch::nn::BatchNorm2d(16), torch::nn::ReLU(),
      torch::nn::MaxPool2d(2), torch::nn::Conv2d(torch::nn::Conv2dOptions(16, 32, 3).padding(1)),
      torch::nn::BatchNorm2d(32), torch::nn::ReLU(), torch::nn::MaxPool2d(2), torch::nn::Flatten(),
      torch::nn::Linear(32 * 8 * 8, 64), torch::nn::ReLU(), torch::nn::Linear(64, 10));
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(1e-3));
  const auto x = torch::randn({64, 3, 32, 32});
  const auto labels = torch::randint(0, 10, {64});
  for (int step = 0; step < 20; ++step) {
    const auto loss = torch::nn::functional::cross_entropy(model->forward(x), labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    std::printf("step %d: loss %.4f\n", step, loss.item<float>());
  }
}
