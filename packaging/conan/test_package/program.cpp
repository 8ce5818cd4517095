// packaging/conan/test_package/program.cpp: a program with the package: a step of training.
#include <sinter/sinter.hpp>

#include <iostream>

int main() {
  using namespace sinter;
  const variable w = ones({2, 3});
  optim::sgd optimizer(w, {.lr = 0.5});
  variable(sum(w)).backward();
  optimizer.step();
  std::cout << "Sinter " << SINTER_VERSION_STRING << "\n" << w.value() << "\n";
  return w(1, 2) == 0.5f ? 0 : 1;
}
