// tests/bench/kernels.cpp: kernels of the library on one thread, for kernels.py.
#include <sinter/sinter.hpp>

#include "rows.hpp"

using namespace sinter;

int main() {
  set_num_threads(1);
  generator gen(1);
  const tensor a = randn<float>(gen, {512, 512}), x = randn<float>(gen, {256, 256});
  const tensor images = randn<float>(gen, {8, 64, 28, 28}).to_memory_format(channels_last);
  const tensor filters = randn<float>(gen, {64, 64, 3, 3});
  const auto h = eval(cast<half>(a));
  const auto b = eval(cast<bfloat16>(a));
  const tensor labels = randint(gen, 0, 256, {256});
  volatile float sink = 0;
  const auto take = [&](const auto& e) { sink = static_cast<float>(eval(e).data()[0]); };
  return serve({{"product", 9, 0, [&] { take(matmul(a, a)); }},
                {"product of bfloat16", 9, 0, [&] { take(matmul(b, b)); }},
                {"product of half", 9, 0, [&] { take(matmul(h, h)); }},
                {"convolution", 9, 0, [&] { take(conv2d(images, filters, {.padding = 1})); }},
                {"maxima of windows", 99, 0, [&] { take(max_pool2d(images, 2)); }},
                {"sum of all", 99, 0, [&] { take(sum(x)); }},
                {"sum of columns", 99, 0, [&] { take(sum(x, 0)); }},
                {"sum of rows", 99, 0, [&] { take(sum(x, 1)); }},
                {"max of columns", 99, 0, [&] { take(max(x, 0)); }},
                {"max of rows", 99, 0, [&] { take(max(x, 1)); }},
                {"argmax of rows", 99, 0, [&] { take(argmax(x, 1)); }},
                {"logsumexp of rows", 99, 0, [&] { take(logsumexp(x, 1)); }},
                {"cross-entropy", 99, 0, [&] { take(cross_entropy(x, labels)); }},
                {"var of rows", 99, 0, [&] { take(var(x, 1)); }},
                {"softmax of rows", 99, 0, [&] { take(softmax(x, 1)); }},
                {"transpose", 99, 0, [&] { take(x.transpose().contiguous()); }}});
}
