// tests/package/shipping/main.cpp: a program for any x86-64 processor, which runs what this one has.
#include <algorithm>
#include <cmath>
#include <iostream>

#include "steps.hpp"

using namespace sinter;

int twice(int);
int thrice(int);

int main() {
  set_num_threads(3);
  generator gen(1);
  const nn::linear model(20, 4, gen);
  const tensor x = randn<float>(gen, {60, 20});
  const tensor labels = randint(gen, 0, 4, {60});
  const step_result r = train(model, x, labels);
  bool well = r.loss > 0.2f && r.loss < 0.9f && is_tracked_here();
  {
    const no_grad untracked;
    well = well && !is_tracked_here();
  }
  try {
    train(model, x, labels.slice(0, 0, 5));
    well = false;
  } catch (const shape_error& e) {
    well = well && e.what() == std::string("train: rows and labels");
  }
  const tensor a = randn<float>(gen, {70, 90}), b = randn<float>(gen, {90, 50});
  const tensor product = matmul(a, b);
  const tensor image = conv2d(a.reshape({1, 2, 35, 90}), b.reshape({25, 2, 9, 10}));
  double sum = 0;
  for (index_t k = 0; k < 90; ++k) sum += double(a(3, k)) * double(b(k, 4));
  well = well && std::abs(double(product(3, 4)) - sum) < 1e-4;
  sum = 0;
  for (index_t c = 0; c < 2; ++c)
    for (index_t i = 0; i < 9; ++i)
      for (index_t j = 0; j < 10; ++j)
        sum += double(a.reshape({2, 35, 90})(c, 5 + i, 7 + j)) * double(b.reshape({25, 2, 9, 10})(6, c, i, j));
  well = well && std::abs(double(image(0, 6, 5, 7)) - sum) < 1e-4;
  const tensor column_sums = eval(sinter::sum(a, 0)), row_maxima = eval(max(a * 2, 1));
  sum = 0;
  float most = -100;
  for (index_t i = 0; i < 70; ++i) sum += double(a(i, 8));
  for (index_t k = 0; k < 90; ++k) most = std::max(most, 2 * a(5, k));
  well = well && std::abs(double(column_sums(8)) - sum) < 1e-4 && row_maxima(5) == most;
  const tensor of_ones = eval(matmul(full<half>({3, 40}, half(1)), full<half>({40, 50}, half(2))));
  well = well && float(of_ones(2, 49)) == 80;
  well = well && twice(2) == 4 && thrice(2) == 6;
  const std::string name = build_info().substr(build_info().rfind(' ') + 1);
  well = well && explain(matmul(a, b)).find(" on cpu (kernels for " + name + ")") != std::string::npos;
  well = well && explain(sinter::sum(a, 0)).find(" on cpu (kernels for " + name + ")") != std::string::npos;
  well = well && explain(sinter::sum(a * 2, 0)).find(" on cpu, ") != std::string::npos;
  well = well && explain(a + 1).find(" on cpu, ") != std::string::npos;
  std::cout << build_info() << "\n" << (well ? "well" : "not well") << " " << r.loss << "\n";
  return well ? 0 : 1;
}
