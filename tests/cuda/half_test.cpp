// half and bfloat16 on a GPU: statements, gradients, reductions, rows, products and optimizers against the CPU. Both
// compute in float and round where a statement ends; sums of another order may round to the neighbour.
#include "compare.hpp"

using namespace sinter;

namespace {

using compare::distance;
using compare::numbers;
using g0 = cuda<0>;

/// A unit in the last place of 1.
template <class T>
constexpr double place = static_cast<double>(static_cast<float>(std::numeric_limits<T>::epsilon()));

}  // namespace

TEST_CASE("statements over half and bfloat16 give the CPU's numbers in every layout", "[cuda][half]") {
  const auto a = numbers<sinter::half>({9, 40}, 1), b = numbers<sinter::half>({9, 40}, 2);
  const auto odd = numbers<bfloat16>({5, 37}, 3);
  const auto row = numbers<sinter::half>({40}, 4);
  CHECK(compare::values([](const auto& x, const auto& y) { return eval(x * y + 0.1f); }, a, b) <= compare::rounding);
  CHECK(compare::values([](const auto& x, const auto& r) { return eval(x.slice(1, 3, 36, 2) + r.slice(0, 1, 18)); }, a,
                        row) <= compare::rounding);
  CHECK(compare::values([](const auto& x) { return eval(x.transpose() * 3); }, odd) <= compare::rounding);
  CHECK(compare::values([](const auto& x) { return eval(cast<sinter::half>(x) * 0.3f); }, odd) <= compare::rounding);
  CHECK(compare::values([](const auto& x) { return eval(cast<std::int32_t>(x)); }, odd) == 0);
}

TEST_CASE("gradients of half leaves, broadcast or not, gather in float", "[cuda][half]") {
  const auto a = numbers<sinter::half>({6, 21}, 1), b = numbers<sinter::half>({6, 21}, 2);
  const auto row = numbers<sinter::half>({21}, 3);
  const auto f = [](const auto& x, const auto& y) { return eval(sigmoid(x * y + x) * y); };
  CHECK(compare::gradients(f, a, b) <= 4 * place<sinter::half>);
  CHECK(compare::gradients([](const auto& x, const auto& r) { return eval(cast<float>(x * r)); }, a, row) <=
        4 * place<sinter::half>);
  // in one kernel
  for (const extents<2>& shape : {extents<2>{1, 21}, extents<2>{6, 1}, extents<2>{1, 1}}) {
    const variable x = a.to<g0>(), part = numbers<sinter::half>(shape, 4).to<g0>();
    const auto once = [&] {
      const variable y = x * part;
      const auto before = launches<g0>();
      y.backward(b.to<g0>());
      return launches<g0>() - before;
    };
    CHECK(once() == 1);
    const auto first = part.grad().to<cpu>().clone();
    CHECK(once() == 2);  // and one that adds to the gradients of the pass before
    CHECK(distance(part.grad(), eval(first * 2)) <= place<sinter::half>);
  }
  // rows too long to add them up beside columns
  const auto product = [](const auto& x, const auto& r, const auto& c) { return eval(x * r * c); };
  CHECK(compare::gradients(product, numbers<bfloat16>({3, 9000}, 5), numbers<bfloat16>({3, 1}, 6),
                           numbers<bfloat16>({9000}, 7)) <= 4 * place<bfloat16>);
  const auto in_float = [&](const auto& x, const auto& r, const auto& c) { return eval(cast<float>(x * r * c)); };
  CHECK(compare::gradients(in_float, numbers<bfloat16>({3, 9000}, 5), numbers<bfloat16>({3, 1}, 6),
                           numbers<bfloat16>({9000}, 7)) <= 4 * place<bfloat16>);
  // several sums of each kind, which a thread gathers in parts
  const auto normalised = [](const auto& x, const auto& m, const auto& s, const auto& gain, const auto& bias) {
    return eval((x - m) * s * gain + bias);
  };
  CHECK(compare::gradients(normalised, numbers<bfloat16>({40, 21}, 8), numbers<bfloat16>({40, 1}, 9),
                           numbers<bfloat16>({40, 1}, 10), numbers<bfloat16>({21}, 11),
                           numbers<bfloat16>({21}, 12)) <= 8 * place<bfloat16>);
  const variable scale = zeros<bfloat16, g0>();
  variable(sum(ones<bfloat16, g0>({3000}) * scale)).backward();
  CHECK(scale.grad().item() == bfloat16(3000));
}

TEST_CASE("reductions and rows of half and bfloat16", "[cuda][half]") {
  const auto x = numbers<bfloat16>({70, 33}, 1);
  CHECK(compare::values([](const auto& v) { return eval(sum(v, 0)); }, x) <= place<bfloat16>);
  CHECK(compare::values([](const auto& v) { return eval(mean(v * v, 1)); }, x) <= place<bfloat16>);
  CHECK(compare::values([](const auto& v) { return eval(argmax(v, 1)); }, x) == 0);
  CHECK(eval(sum(ones<sinter::half, g0>({60000}))).item() == sinter::half(60000));
  const auto h = numbers<sinter::half>({9, 45}, 2);
  const auto softmaxes = [](const auto& v) { return eval(softmax(v * 2, 1)); };
  CHECK(compare::values(softmaxes, h) <= place<sinter::half>);
  CHECK(compare::gradients(softmaxes, h) <= place<sinter::half>);
  const tensor<std::int64_t, 1> labels = arange<std::int64_t>(9);
  const auto losses = [&](const auto& v) {
    return eval(cross_entropy(v, labels.to<device_of<decltype(v)>>(), reduction::none));
  };
  CHECK(compare::values(losses, h) <= place<sinter::half>);
  CHECK(compare::gradients(losses, h) <= place<sinter::half>);
}

TEST_CASE("products of half and bfloat16", "[cuda][half]") {
  const auto f = [](const auto& a, const auto& b) { return eval(matmul(a, b)); };
  CHECK(compare::values(f, numbers<sinter::half>({17, 40}, 1), numbers<sinter::half>({40, 9}, 2)) <=
        2 * place<sinter::half>);
  const auto a = numbers<bfloat16>({12, 20}, 1), b = numbers<bfloat16>({20, 6}, 2);
  CHECK(compare::gradients([](const auto& x, const auto& y) { return eval(matmul(x, y)); }, a, b) <=
        2 * place<bfloat16>);
  const auto every_other = [](const auto& x, const auto& y) {
    return eval(matmul(x.slice(1, 0, 20, 2), y.slice(0, 0, 20, 2)));
  };
  CHECK(compare::values(every_other, a, b) <= 2 * place<bfloat16>);
}

TEST_CASE("a scaled step over half on a GPU", "[cuda][half]") {
  const variable w = full<sinter::half, g0>({300}, 3);
  optim::adam optimizer(w, {.lr = 0.25});
  optim::grad_scaler scaler({.init_scale = 0x1p18});
  int skipped = 0;
  for (int i = 0; i < 4; ++i) {
    optimizer.zero_grad();
    variable(scaler.scale(variable(w * 1))).backward(ones<float, g0>({300}));
    skipped += !scaler.step(optimizer);
    scaler.update();
  }
  CHECK(skipped == 3);
  CHECK(w.value().to<cpu>()(299) == 2.75f);
}
