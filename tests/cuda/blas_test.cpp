// tests/cuda/blas_test.cpp: what a product hands to the BLAS: its batch, the work that follows it, its precision.
#include "compare.hpp"

using namespace sinter;
using compare::distance;
using compare::numbers;
using g0 = cuda<0>;

namespace {

/// The launches of f on cuda<0>, whose values must be those on the CPU.
template <class F, class... T>
std::size_t launches_of(const F& f, const T&... at) {
  const auto expected = f(at...);
  const auto there = std::make_tuple(at.template to<g0>()...);
  const auto before = launches<g0>();
  const auto got = std::apply(f, there);
  const auto n = launches<g0>() - before;
  CHECK(distance(got, expected) < 1e-5);
  return n;
}

/// A real BLAS may have no algorithm for so small a product with what follows it.
bool inside(std::size_t kernels) { return kernels == 1 || (SINTER_WITH_CUDA && kernels == 2); }

}  // namespace

TEST_CASE("bias and activation run inside the product", "[cuda]") {
  const auto x = numbers({7, 5}, 1), w = numbers({12, 5}, 2), full = numbers({7, 12}, 4), column = numbers({7, 1}, 5);
  const auto row = numbers({12}, 3);
  const auto plain = [](const auto& a, const auto& b, const auto&) { return eval(linear(a, b)); };
  const auto biased = [](const auto& a, const auto& b, const auto& c) { return eval(linear(a, b) + c); };
  CHECK(launches_of(plain, x, w, row) == 1);
  CHECK(inside(launches_of(biased, x, w, row)));
  CHECK(inside(launches_of(biased, x, w, row.unsqueeze(0))));
  CHECK(inside(launches_of([](const auto& a, const auto& b, const auto& c) { return eval(c + linear(a, b)); }, x, w, row)));
  CHECK(inside(launches_of([](const auto& a, const auto& b, const auto& c) { return eval(relu(linear(a, b, c))); }, x, w, row)));
  CHECK(inside(launches_of([](const auto& a, const auto& b, const auto&) { return eval(relu(linear(a, b))); }, x, w, row)));
  CHECK(inside(launches_of([](const auto& a, const auto& b, const auto& c) { return eval(gelu_tanh(linear(a, b, c))); }, x, w, row)));
  CHECK(inside(launches_of([](const auto& a, const auto& b, const auto&) { return eval(gelu_tanh(linear(a, b))); }, x, w, row)));
  // What is no tail follows in one kernel.
  CHECK(launches_of([](const auto& a, const auto& b, const auto& c) { return eval(gelu(linear(a, b, c))); }, x, w, row) == 2);
  CHECK(launches_of([](const auto& a, const auto& b, const auto& c) { return eval(tanh(linear(a, b, c))); }, x, w, row) == 2);
  CHECK(launches_of(biased, x, w, full) == 2);
  CHECK(launches_of(biased, x, w, column) == 2);
  const auto sliced = [](const auto& a, const auto& b, const auto& c) { return eval(linear(a, b) + c.slice(0, 1, 13)); };
  const auto strided = [](const auto& a, const auto& b, const auto& c) { return eval(linear(a, b) + c.slice(0, 0, 24, 2)); };
  CHECK(launches_of(sliced, x, w, numbers({13}, 3)) == 2);  // off the alignment
  CHECK(launches_of(strided, x, w, numbers({24}, 3)) == 2);
  CHECK(launches_of([](const auto& a, const auto& b, const auto&) { return eval(matmul(a, b.transpose()) + 1); }, x, w, row) == 2);
}

TEST_CASE("bias and activation inside a tracked product, and its gradients", "[cuda]") {
  const auto x = numbers({7, 5}, 1), w = numbers({12, 5}, 2);
  const auto row = numbers({12}, 3);
  CHECK(compare::gradients([](const auto& a, const auto& b, const auto& c) { return eval(relu(linear(a, b, c))); }, x, w, row) < 1e-5);
  CHECK(compare::gradients([](const auto& a, const auto& b, const auto& c) { return eval(gelu_tanh(linear(a, b, c))); }, x, w, row) < 1e-5);
  const variable v = w.to<g0>();
  const auto on_gpu = x.to<g0>();
  const auto bias = row.to<g0>();
  const auto before = launches<g0>();
  const variable y = relu(linear(on_gpu, v, bias));
  CHECK(inside(launches<g0>() - before));
}

TEST_CASE("NaN goes through a product that ends in relu", "[cuda]") {
  auto x = zeros<float>({4, 4});
  x(1, 2) = std::nanf("");
  const auto bias = zeros<float>({4});
  CHECK(compare::values([](const auto& a, const auto& b) { return eval(relu(linear(a, a + 1, b))); }, x, bias) < 1e-5);
}

TEST_CASE("batches of products are one call", "[cuda]") {
  const auto a = numbers({3, 7, 5}, 1), b = numbers({3, 5, 8}, 2), c = numbers({3, 8, 5}, 3);
  CHECK(launches_of([](const auto& x, const auto& y) { return eval(matmul(x, y)); }, a, b) == 1);
  CHECK(launches_of([](const auto& x, const auto& y) { return eval(matmul(x, y.transpose())); }, a, c) == 1);
  CHECK(launches_of([](const auto& x, const auto& y) { return eval(matmul(x.slice(0, 0, 3, 2), y.slice(0, 1, 3))); }, a, b) == 1);
  CHECK(launches_of([](const auto& x, const auto& y) { return eval(matmul(x, y.flip(2))); }, a, b) == 1);
  CHECK(launches_of([](const auto& x, const auto& y) { return eval(matmul(x, y)); }, numbers<int>({3, 2, 5}, 1), numbers<int>({3, 5, 2}, 2)) == 1);
  CHECK(compare::gradients([](const auto& x, const auto& y) { return eval(tanh(matmul(x, y))); }, a, b) < 1e-5);
}

TEST_CASE("TF32 is used where it is asked for, and nowhere else", "[cuda]") {
  const auto a = numbers({64, 64}, 1), b = numbers({64, 64}, 2);
  const auto product = [](const auto& x, const auto& y) { return eval(matmul(x, y)); };
  const double exact = compare::values(product, a, b);
  CHECK(exact < 1e-4);
  {
    const use_matmul_precision fast(matmul_precision::tf32);
    const double rounded = compare::values(product, a, b);  // the CPU takes no notice
    CHECK(rounded > 1e-3);
    CHECK(rounded < 0.5);
    {
      const use_matmul_precision slow(matmul_precision::float32);
      CHECK(compare::values(product, a, b) == exact);
    }
    CHECK(compare::values(product, numbers<double>({8, 8}, 1), numbers<double>({8, 8}, 2)) < 1e-12);
  }
  CHECK(compare::values(product, a, b) == exact);
}

#if !SINTER_WITH_CUDA
TEST_CASE("where the BLAS refuses what follows a product, that is a kernel of its own", "[cuda]") {
  cuda_impl::gpu<g0>::has_tails() = false;
  const auto x = numbers({7, 5}, 1), w = numbers({12, 5}, 2);
  const auto row = numbers({12}, 3);
  CHECK(launches_of([](const auto& a, const auto& b, const auto& c) { return eval(relu(linear(a, b, c))); }, x, w, row) == 2);
  cuda_impl::gpu<g0>::has_tails() = true;
}
#endif
