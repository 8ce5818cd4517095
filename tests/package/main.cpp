// tests/package/main.cpp: the program of a project that uses the library. It adds up the table or the picture that it
// is given, if any.
#include <iostream>
#include <string_view>

#define SINTER_WITH_DATA 1  // read_csv, read_image
#include <sinter/sinter.hpp>

int main(int count, char** words) {
  using namespace sinter;
  if (count > 1 && !std::string_view(words[1]).ends_with(".gz")) {
    std::cout << eval(sum(cast<float>(read_image(words[1])))).item() << "\n";
    return 0;
  }
  if (count > 1) {
    std::cout << eval(sum(read_csv<float>(words[1]))).item() << "\n";
    return 0;
  }
  tensor<float, 2> a = ones<float>({2, 3});
  tensor b = a + a;
  std::cout << "Sinter " << SINTER_VERSION_STRING << "\n" << b << "\n";
  tensor total = sum(b);
  return total.item() == 12.f ? 0 : 1;
}
