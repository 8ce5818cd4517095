// tests/cuda/fold_test.cpp: reductions, row-wise ops and indexed reads on simulated GPUs, against the CPU.
#include "compare.hpp"

using namespace sinter;
using compare::distance;
using compare::numbers;
using g0 = cuda<0>;

namespace {

/// The lengths around warps, blocks and pieces.
const std::vector<index_t> awkward = {0, 1, 2, 31, 32, 33, 255, 257, 1023, 1025, 4099};

template <class F>
std::size_t launches_of(const F& f) {
  const auto before = launches<g0>();
  f();
  return launches<g0>() - before;
}

}  // namespace

TEST_CASE("sums and extremes of rows, columns and everything", "[cuda]") {
  for (const index_t n : awkward) {
    const auto x = numbers({3, n}, 1);
    CHECK(compare::values([](const auto& v) { return sum(v * 2, 1); }, x) < 1e-4);
    CHECK(compare::values([](const auto& v) { return sum(v, 0); }, x) < 1e-4);
    CHECK(compare::values([](const auto& v) { return sum(v.transpose(), 0); }, x) < 1e-4);
    CHECK(compare::values([](const auto& v) { return eval(sum(v)); }, x) < 1e-4);
    CHECK(compare::values([](const auto& v) { return any(v > 8, 1); }, x) <= compare::rounding);
    if (n == 0) continue;
    CHECK(compare::values([](const auto& v) { return max(abs(v), 1) + min(v, 1); }, x) <= compare::rounding);
    CHECK(compare::values([](const auto& v) { return argmax(v, 1); }, x) <= compare::rounding);
    CHECK(compare::values([](const auto& v) { return argmin(v, 0); }, x) <= compare::rounding);
    CHECK(compare::values([](const auto& v) { return logsumexp(v, 1); }, x) < 1e-5);
    CHECK(compare::values([](const auto& v) { return var(v, 0); }, x) < 1e-5);
  }
}

TEST_CASE("reductions cut in pieces, over middle axes and of integers", "[cuda]") {
  CHECK(compare::values([](const auto& v) { return eval(sum(v)); }, numbers({123457}, 2)) < 1e-5);
  CHECK(compare::values([](const auto& v) { return eval(argmax(v)); }, numbers({123457}, 2)) <= compare::rounding);
  CHECK(compare::values([](const auto& v) { return sum(v, 0); }, numbers({20011, 7}, 3)) < 1e-5);
  CHECK(compare::values([](const auto& v) { return argmin(v, 0); }, numbers({20011, 2}, 3)) <= compare::rounding);
  const auto x = numbers({4, 5, 6, 7}, 4);
  CHECK(compare::values([](const auto& v) { return sum(v, {1, 3}); }, x) < 1e-5);
  CHECK(compare::values([](const auto& v) { return mean(v, {0, 2}, keepdim) * 3; }, x) < 1e-5);
  CHECK(compare::values([](const auto& v) { return max(v.permute({3, 1, 0, 2}), 1); }, x) <= compare::rounding);
  CHECK(compare::values([](const auto& v) { return prod(v, 2); }, numbers<std::int32_t>({4, 5, 6, 7}, 5)) <=
        compare::rounding);
  CHECK(compare::values([](const auto& v) { return v - mean(v, 1, keepdim); }, numbers({40, 50}, 6)) < 1e-5);
}

TEST_CASE("reductions over all axes of other orders in memory", "[cuda]") {
  const tensor x = round(numbers({3, 5, 40, 41}, 4));
  for (const auto& y : {x.to_memory_format(channels_last), x.transpose(0, 3).contiguous().transpose(0, 3)}) {
    REQUIRE(!y.to<g0>().is_contiguous());
    CHECK(compare::values([](const auto& v) { return eval(sum(v) + mean(v * v)); }, y) < 1e-5);
    CHECK(compare::values([](const auto& v) { return eval(logsumexp(v)); }, y) < 1e-5);
    CHECK(eval(argmax(y.to<g0>())).to<cpu>().item() == argmax(x).result().item());
    CHECK(compare::gradients([](const auto& v) { return eval(sum(v * v) + max(v)); }, y) < 1e-5);
  }
}

TEST_CASE("elementwise work after a sum runs in its last kernel", "[cuda]") {
  const auto x = numbers({33, 70}, 1);
  const auto w = numbers({70}, 2);
  const auto through = [](const auto& f, const auto&... at) { CHECK(compare::values(f, at...) < 1e-5); };
  through([](const auto& v, const auto& u) { return eval(tanh(sum(v * 2, 0)) * u + u); }, x, w);
  through([](const auto& v, const auto& u) { return eval(where(u > 0, sum(v, 0), u) / 2); }, x, w);
  through([](const auto& v, const auto& u) { return eval(sum(v * u, 1) * 3 + v.select(1, 4)); }, x, w);
  through([](const auto& v) { return eval(let(sum(v, {0, 2}), [](auto t) { return t * t + t; })); },
          numbers({5, 70, 11}, 3));
  through([](const auto& v) { return eval(norm(v)); }, numbers({123457}, 4));
  through([](const auto& v, const auto& u) { return eval(sum(v, 0) - u); }, numbers({20011, 7}, 5), numbers({7}, 6));
  through([](const auto& v, const auto& u) { return eval(max(v, 0) * u + 1.f); }, x, w);
  through([](const auto& v) { return eval(argmax(v, 1) * 2 + 1); }, x);
  CHECK(compare::gradients([](const auto& v, const auto& u) { return eval(exp(mean(v * u, 0)) * u); }, x, w) < 1e-5);

  const auto a = x.to<g0>();
  const auto b = w.to<g0>(), flat = numbers({123457}, 4).to<g0>();
  CHECK(launches_of([&] { const tensor y = tanh(sum(a * 2, 0)) * b + b; }) == 1);
  CHECK(launches_of([&] { const tensor y = mean(a, 1); }) == 1);
  CHECK(launches_of([&] { const tensor y = max(a, 1) * 2; }) == 1);
  CHECK(launches_of([&] { const tensor y = norm(flat); }) == 2);               // in pieces
  CHECK(launches_of([&] { const tensor y = sum(mean(a, 0) * 2) / 3; }) == 2);  // of the outer one
  CHECK(compare::values([](const auto& v) { return eval(sum(mean(v, 0) * 2) / 3); }, x) < 1e-5);
  const auto classes = zeros<std::int64_t, g0>({33});
  CHECK(launches_of([&] { const tensor y = cross_entropy(a, classes); }) ==
        3);  // a look at the labels, the rows, their mean
  const variable tracked = a;
  CHECK(launches_of([&] { const variable y = mean(tracked * tracked, 1); }) == 1);
}

TEST_CASE("folds and rows of what lies askew: unaligned, broadcast, strided, cut anywhere", "[cuda]") {
  for (const index_t n : {3, 4, 5, 8, 12, 35, 64, 1024, 1027}) {
    const auto x = numbers({6, 5, n + 1}, 1);
    const auto row = numbers({n}, 2);
    const auto column = numbers({6, 1, 1}, 3);
    const auto middle = numbers({5, 1}, 4);
    const auto later = [n](const auto& v) { return v.slice(2, 1, n + 1); };  // begins between two chunks
    CHECK(compare::values([&](const auto& v) { return sum(later(v), 2); }, x) < 1e-4);
    CHECK(compare::values([&](const auto& v) { return eval(sum(later(v) * 2)); }, x) < 1e-4);
    CHECK(compare::values([&](const auto& v) { return max(later(v), {0, 1}); }, x) <= compare::rounding);
    CHECK(compare::values([&](const auto& v) { return softmax(later(v), 2); }, x) < 1e-6);
    CHECK(compare::values([&](const auto& v, const auto& r) { return layer_norm(later(v) + r, r, r) * later(v); }, x,
                          row) < 1e-3);
    CHECK(compare::values(
              [&](const auto& v, const auto& m) {
                return argmax(later(v).permute({0, 2, 1}).contiguous() * m.reshape({1, 1, 5}), 1);
              },
              x, middle) <= compare::rounding);
    const auto y = numbers({6, 5, n}, 5);
    // rows of several rows of the space, whose ends are not those of chunks
    CHECK(compare::values([](const auto& v, const auto& m) { return sum(v * m, {1, 2}); }, y, middle) < 1e-3);
    CHECK(compare::values([](const auto& v, const auto& m) { return eval(sum(v + m)); }, y, middle) < 1e-3);
    CHECK(compare::values([](const auto& v, const auto& m) { return sum(v * m, 0); }, y, middle) < 1e-3);
    CHECK(compare::values([](const auto& v, const auto& c, const auto& r) { return sum(v * c + r, {0, 2}); }, y, column,
                          row) < 1e-3);
    CHECK(compare::values([](const auto& v, const auto& c) { return sum(v * c, {0, 1}); }, y, column) < 1e-3);
    CHECK(compare::values([](const auto& v, const auto& c, const auto& m) { return softmax(v * c - m, 2) + m; }, y,
                          column, middle) < 1e-6);
  }
  for (const index_t n : {7, 8, 16, 40}) {
    const auto x = numbers({4, n}, 6);
    const auto in_half = [](const auto& v) { return cast<sinter::half>(v); };
    CHECK(compare::values([&](const auto& v) { return cast<float>(sum(in_half(v), 1)); }, x) < 0.1);
    CHECK(compare::values([&](const auto& v) { return cast<float>(max(eval(in_half(v)), 0)); }, x) <=
          compare::rounding);
    CHECK(compare::values([&](const auto& v) { return cast<float>(softmax(eval(in_half(v)), 1)); }, x) < 1e-2);
    CHECK(compare::values([&](const auto& v) { return sum(eval(v > 0), 1); }, x) <= compare::rounding);
    CHECK(compare::values([&](const auto& v) { return min(eval(cast<std::int8_t>(v)), 0); }, x) <= compare::rounding);
    CHECK(compare::values([&](const auto& v) { return sum(eval(cast<double>(v)) * cast<double>(v), 0); }, x) < 1e-5);
  }
}

TEST_CASE("folds, scans and rows of more operands than are held two at a time", "[cuda]") {
  for (const index_t n : {1, 7, 64, 1027}) {
    const auto a = numbers({6, n}, 1), b = numbers({6, n}, 2), c = numbers({6, n}, 3);
    const auto column = numbers({6, 1}, 4), row = numbers({1, n}, 5);
    const auto seven = [](const auto& x, const auto& y, const auto& z, const auto& u, const auto& v) {
      return x * y + z * u + v * x - abs(y) * z;
    };
    CHECK(compare::values([&](const auto&... t) { return sum(seven(t...), 1); }, a, b, c, column, row) < 1e-4);
    CHECK(compare::values([&](const auto&... t) { return sum(seven(t...), 0); }, a, b, c, column, row) < 1e-4);
    CHECK(compare::values([&](const auto&... t) { return sum(seven(t...), 1); }, a, b, c, a, b) < 1e-4);
    CHECK(compare::values([&](const auto&... t) { return argmax(seven(t...), 0); }, a, b, c, a, c) <=
          compare::rounding);
    CHECK(compare::values([&](const auto&... t) { return softmax(seven(t...), 1); }, a, b, c, column, row) < 1e-5);
    CHECK(compare::values([&](const auto&... t) { return cumsum(seven(t...), 1); }, a, b, c, column, row) < 1e-4);
  }
}

TEST_CASE("the first of equal extremes, and NaN, as on the CPU", "[cuda]") {
  for (const index_t n : {2, 33, 300, 20000}) {
    auto x = zeros<float>({n});
    CHECK(eval(argmax(x.to<g0>())).item() == 0);
    x(n / 2) = std::nanf("");
    x(n - 1) = std::nanf("");
    CHECK(eval(argmax(x.to<g0>())).item() == n / 2);
    CHECK(std::isnan(eval(max(x.to<g0>())).item()));
    CHECK(std::isnan(eval(sum(x.to<g0>())).item()));
  }
}

TEST_CASE("gradients through reductions", "[cuda]") {
  const auto x = numbers({9, 33}, 1);
  CHECK(compare::gradients([](const auto& v) { return eval(sum(tanh(v) * v, 1)); }, x) < 1e-5);
  CHECK(compare::gradients([](const auto& v) { return eval(max(v, 0) + mean(v, 0)); }, x) < 1e-5);
  CHECK(compare::gradients([](const auto& v) { return eval(logsumexp(v, 1) + norm(v, 1)); }, x) < 1e-5);
  CHECK(compare::gradients([](const auto& v) { return eval((v - mean(v, 1, keepdim)) * sum(v)); }, x) < 1e-4);
}

TEST_CASE("rows of any width: softmax, log_softmax, layer_norm, rms_norm", "[cuda]") {
  for (const index_t n : awkward) {
    const auto x = numbers({5, n}, 1);
    const auto gain = numbers({n}, 2), bias = numbers({n}, 3);
    CHECK(compare::values([](const auto& v) { return softmax(v * 2, 1); }, x) < 1e-6);
    CHECK(compare::values([](const auto& v) { return log_softmax(v, 1) + 1; }, x) < 1e-5);
    CHECK(compare::values([](const auto& v, const auto& g, const auto& b) { return layer_norm(v, g, b); }, x, gain,
                          bias) < 1e-4);
    CHECK(compare::values([](const auto& v, const auto& g) { return rms_norm(v, g); }, x, gain) < 1e-5);
    for (const float scale : {1e30f, 1e-30f})
      CHECK(compare::values([](const auto& v) { return rms_norm(v, 0); }, eval(x * scale)) < 1e-5);
    CHECK(compare::values([](const auto& v) { return layer_norm(v); }, full<float>({2, n}, 12345.678f)) == 0);
    if (n == 0) continue;
    CHECK(compare::gradients([](const auto& v) { return eval(softmax(exp(v * 0.1), 1)); }, x) < 1e-5);
    CHECK(compare::gradients([](const auto& v, const auto& g, const auto& b) { return eval(layer_norm(v, g, b) * v); },
                             x, gain, bias) < 1e-3);
  }
  CHECK(compare::values([](const auto& v) { return softmax(v, 0); }, numbers({33, 5}, 4)) < 1e-6);
  const auto wide = numbers({300, 40}).to<g0>();
  CHECK(launches_of([&] { const tensor y = softmax(wide * 2, 1); }) == 1);
  for (const index_t n : {5600, 5700, 11300, 20000}) {  // too long to be kept: two rows of a backward pass, then one
    const auto x = numbers({2, n}, 1);
    CHECK(compare::values([](const auto& v) { return softmax(v, 1); }, x) < 1e-6);
    CHECK(compare::gradients([](const auto& v) { return eval(softmax(v, 1)); }, x) < 1e-6);
    CHECK(compare::gradients([](const auto& v) { return eval(rms_norm(v)); }, x) < 1e-4);
  }
  CHECK(compare::values([](const auto& v) { return softmax(v, 1); }, full<float>({2, 40}, -INFINITY)) <=
        compare::rounding);
}

TEST_CASE("softmax and cross_entropy of rows too long to be kept, with infinities and NaN", "[cuda]") {
  const index_t n = 12000;
  const auto x = eval(numbers({6, n}, 1) * 30);
  auto rows = x.clone();
  for (index_t i = 0; i < n; ++i) rows(0, i) = -INFINITY;
  for (index_t i = 0; i < 9000; ++i) rows(1, i) = -INFINITY;  // the first chunks of all threads
  rows(2, 11000) = INFINITY;
  rows(3, 5) = std::nanf("");
  rows(4, 11999) = 1e4f;
  CHECK(compare::values([](const auto& v) { return softmax(v, 1); }, rows) < 1e-6);
  CHECK(compare::values([](const auto& v) { return log_softmax(v * 2, 1); }, rows) < 1e-5);
  CHECK(compare::values([](const auto& v) { return softmax(cast<double>(v), 1); }, rows) < 1e-12);
  CHECK(compare::values([](const auto& v) { return cast<float>(softmax(eval(cast<sinter::half>(v)), 1)); }, rows) <
        1e-3);
  const auto labels = tensor<std::int64_t, 1>{0, 11000, 3, 4, 11999, 7};
  const auto loss = [&](const auto& v) {
    return cross_entropy(v, labels.template to<device_of<decltype(v)>>(), reduction::none);
  };
  CHECK(compare::values(loss, rows) < 1e-5);
  CHECK(compare::gradients(
            [&](const auto& v) { return eval(cross_entropy(v, labels.template to<device_of<decltype(v)>>())); }, x) <
        1e-5);
}

TEST_CASE("rows too long to count their chunks in 32 bits are refused", "[cuda]") {
  CHECK_NOTHROW(cuda_impl::row_groups<float, 4>(1, index_t{1} << 32, 1));
  CHECK_THROWS_WITH((cuda_impl::row_groups<float, 4>(1, index_t{1} << 34, 1)),
                    Catch::Contains("17179869184") && Catch::Contains("chunks of 4"));
}

TEST_CASE("where there are many rows, a thread takes several chunks of one", "[cuda]") {
  CHECK(cuda_impl::row_groups<float, 4>(100, 20, 1).group == 8);
  CHECK(cuda_impl::row_groups<float, 4>(131072, 20, 1).group == 2);
  CHECK(cuda_impl::row_groups<float, 4>(16384, 1024, 1).group == 64);
  CHECK(cuda_impl::row_groups<double, 4>(16384, 1024, 2).rooms == 2);
  CHECK(compare::values([](const auto& v) { return softmax(v, 1); }, numbers({131072, 20}, 1)) < 1e-6);
}

TEST_CASE("elementwise work after a row-wise op runs in its kernel", "[cuda]") {
  const auto x = numbers({9, 33}, 1).to<g0>(), w = numbers({9, 33}, 2).to<g0>();
  const auto gain = numbers({33}, 3).to<g0>(), bias = numbers({33}, 4).to<g0>();
  const auto scale = numbers({9, 1}, 5).to<g0>();
  CHECK(launches_of([&] { const tensor y = layer_norm(x, gain, bias); }) == 1);
  CHECK(launches_of([&] { const tensor y = layer_norm(x * 2, gain, bias) * sigmoid(w) + x; }) == 1);
  CHECK(launches_of([&] { const tensor y = softmax(x, 1) * scale; }) == 1);
  const auto many = [](const auto& v, const auto& u, const auto& g, const auto& s) {
    return let(log_softmax(v * u, 1), [&](auto t) { return t * t * s + t * g - u; });
  };
  CHECK(compare::values(many, numbers({9, 33}, 1), numbers({9, 33}, 2), numbers({33}, 3), numbers({9, 1}, 5)) < 1e-4);
  CHECK(compare::values([](const auto& v, const auto& u) { return where(u > 0, softmax(v, 1), u.transpose()); },
                        numbers({9, 9}, 1), numbers({9, 9}, 2)) < 1e-6);
}

TEST_CASE("cross_entropy, its gradient, and labels that are no class", "[cuda]") {
  for (const index_t classes : {1, 2, 10, 33, 1000}) {
    const auto x = numbers({7, classes}, 1);
    const auto labels = eval(cast<std::int64_t>(abs(numbers({7}, 2)) * 1e-3f * static_cast<float>(classes)));
    const auto loss = [&](const auto& v) {
      return cross_entropy(v * 2, labels.template to<device_of<decltype(v)>>(), reduction::none);
    };
    CHECK(compare::values(loss, x) < 1e-5);
    CHECK(compare::gradients(
              [&](const auto& v) { return eval(cross_entropy(tanh(v), labels.template to<device_of<decltype(v)>>())); },
              x) < 1e-5);
  }
  const auto x = zeros<float, g0>({3, 4});
  CHECK_THROWS_WITH(eval(cross_entropy(x, tensor<int, 1>{0, 4, -1}.to<g0>())).item(),
                    Catch::Contains("label 4 at position 1") && Catch::Contains("[0, 4)"));
}

TEST_CASE("gather, index_select, concat and stack", "[cuda]") {
  const auto x = numbers({6, 7, 8}, 1);
  const auto index = eval(cast<std::int64_t>(abs(numbers({6, 3, 8}, 2)) * 0.5f));
  const auto at = [](const auto& t, const auto& like) { return t.template to<device_of<decltype(like)>>(); };
  CHECK(compare::values([&](const auto& v) { return gather(v, 1, at(index, v)); }, x) <= compare::rounding);
  CHECK(compare::gradients([&](const auto& v) { return gather(v * 1, 1, at(index, v)); }, x) < 1e-6);
  const tensor<std::int64_t, 1> rows{5, 5, 0};
  CHECK(compare::values([&](const auto& v) { return index_select(v, 0, at(rows, v)); }, x) <= compare::rounding);
  CHECK(compare::gradients([&](const auto& v) { return index_select(v * 2, 2, at(rows, v)); }, x) < 1e-6);
  CHECK(compare::gradients([](const auto& v) { return eval(concat(1, v, v * 2) * 3); }, x) < 1e-6);
  CHECK(compare::gradients([](const auto& v) { return eval(stack(0, v, v * v) * 3); }, x) < 1e-5);
  CHECK_THROWS_AS(gather(zeros<float, g0>({2, 2}), 1, tensor<int, 2>{{2}}.to<g0>()).template to<cpu>(), index_error);
}
