// tests/package/main.cpp: the program of a project that uses the library.
#include <iostream>
#include <sinter/sinter.hpp>

int main() {
  using namespace sinter;
  tensor<float, 2> a = ones<float>({2, 3});
  tensor b = a + a;
  std::cout << "Sinter " << SINTER_VERSION_STRING << "\n" << b << "\n";
  tensor total = sum(b);
  return total.item() == 12.f ? 0 : 1;
}
