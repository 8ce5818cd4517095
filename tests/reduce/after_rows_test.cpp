// tests/reduce/after_rows_test.cpp: elementwise work after a row-wise op, which takes the op's last step with it,
// against the same work on the op's stored result.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <utility>

#include "../same_bits.hpp"

using namespace sinter;

namespace {

/// after(op(x)) in one statement and in two.
template <class Op, class After, class X>
void check(const Op& op, const After& after, const X& x) {
  CHECK(kernel_count<decltype(after(op(x)))> == 1);
  const tensor whole = after(op(x));
  const tensor made = op(x);
  const tensor expected = after(made);
  INFO(x.shape());
  CHECK(same_bits(whole, expected));
}

template <class T>
void check_all(index_t rows, index_t n) {
  generator gen(static_cast<std::uint64_t>(rows * 1000 + n));
  const tensor x = cast<T>(randn<float>(gen, {rows, n}));
  const tensor scale = cast<T>(randn<float>(gen, {n}));
  const tensor shift = cast<T>(randn<float>(gen, {rows, 1}));
  const auto affine = [&](auto&& y) { return std::forward<decltype(y)>(y) * scale + shift; };
  const auto nonlinear = [&](auto&& y) { return where(x > T(0.1), tanh(std::forward<decltype(y)>(y)), scale) - x; };
  const auto with_let = [&](auto&& y) {
    return let(std::forward<decltype(y)>(y), [&](auto t) { return t * t + t * scale; });
  };
  const auto negative = [](auto&& y) { return -std::forward<decltype(y)>(y); };  // of zeros, which have signs
  const tensor zero = zeros_like(x);
  check([](const auto& v) { return log_softmax(v, 1); }, negative, zeros<T>({rows, 1}));
  check([](const auto& v) { return layer_norm(v); }, negative, zero);
  check([](const auto& v) { return rms_norm(v); }, negative, zero);
  for (const int threads : {1, 2}) {
    set_num_threads(threads);
    check([](const auto& v) { return softmax(v, 1); }, affine, x);
    check([](const auto& v) { return log_softmax(v, 1); }, nonlinear, x);
    check([](const auto& v) { return layer_norm(v); }, affine, x);
    check([](const auto& v) { return rms_norm(v * T(2)); }, with_let, x);
    check([](const auto& v) { return log_softmax(v + v, 1); }, with_let, x);
  }
}

}  // namespace

TEST_CASE("work after rows gives the bits of work on stored rows", "[reduce]") {
  for (const index_t n : {1, 2, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 200, 1024, 1025}) check_all<float>(5, n);
  check_all<float>(1, 70000);    // no buffer holds it
  check_all<float>(2100, 1024);  // past the caches
  check_all<float>(300000, 8);
  for (const index_t n : {3, 16, 40, 70000}) check_all<double>(3, n);
  for (const index_t n : {5, 16, 33, 1024}) check_all<half>(3, n);
}
