// tests/one_liners/prelude.hpp: the operands of lines.txt, and what prints the value of a line.
#pragma once

#include <sinter/sinter.hpp>

#include <cstdio>
#include <sstream>

using namespace sinter;

struct operands {
  generator gen{1};
  const tensor<float, 2> x{{-1.5f, 0.5f, 2}, {3, -0.25f, 1}}, y{{2, 1, 0.5f}, {-1, 4, 0.25f}};
  const tensor<float, 1> v{1, 2, 3}, u{0.5f, -1, 4};
  const tensor<float, 3> c = arange<float>(24).reshape({2, 3, 4}) / 8;
  const tensor<float, 4> im = arange<float>(32).reshape({1, 2, 4, 4}) / 16;
  const variable<float, 2> p{x.clone()}, q{y.clone()};
  const tensor<bool, 2> m = x > 0;
  const tensor<std::int64_t, 1> i{2, 0, 1};
  const tensor<std::int32_t, 1> n{3, 1, 3};
};

template <class T>
void give(const T& value) {
  if constexpr (expression<T>) {
    const auto flat = detail::eval_to_read(value).reshape({-1});
    tensor<double, 1> dense;
    if constexpr (is_tracked_v<T>) dense = cast<double>(flat.detach());
    else dense = cast<double>(flat);
    for (index_t k = 0; k < dense.numel(); ++k) std::printf("\t%.9g", dense(k));
  } else {
    std::printf("\t%.9g", static_cast<double>(value));
  }
}
