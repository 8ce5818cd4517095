// tests/core/memory_format_test.cpp: the order of axes in memory, and what keeps it.
#include <algorithm>
#include <cmath>
#include <random>

#include <sinter/sinter.hpp>
#include "../catch.hpp"

using namespace sinter;

namespace {

tensor<float, 4> images() {
  generator gen(3);
  return randn<float>(gen, {2, 5, 3, 4});
}
/// The elements of a dense tensor in the order of memory.
tensor<float, 1> as_it_lies(const tensor<float, 4>& x) {
  const tensor lies = empty<float>({x.numel()});
  std::copy_n(x.data(), x.numel(), lies.data());
  return lies;
}
template <class A, class B>
bool equal_values(const A& a, const B& b) {
  return all(a == b).item();
}

}  // namespace

TEST_CASE("to_memory_format changes strides alone, and copies only where it must", "[memory_format]") {
  const auto x = images();
  const auto y = x.to_memory_format(channels_last);
  CHECK(y.shape() == x.shape());
  CHECK(y.strides() == extents<4>{{60, 1, 20, 5}});
  CHECK(equal_values(x, y));
  CHECK((y.is_contiguous(channels_last) && y.is_dense() && !y.is_contiguous()));
  CHECK(y.to_memory_format(channels_last).data() == y.data());
  CHECK(x.to_memory_format(memory_format::contiguous).data() == x.data());
  CHECK(y.contiguous().strides() == x.strides());
  CHECK(equal_values(y.contiguous(), x));

  const tensor lines = ones<float>({2, 3, 4}).to_memory_format(channels_last);
  CHECK(lines.strides() == extents<3>{{12, 1, 3}});
  const tensor volumes = ones<float>({2, 3, 4, 5, 6}).to_memory_format(channels_last);
  CHECK(volumes.strides() == extents<5>{{360, 1, 90, 18, 3}});
  const tensor one_channel = ones<float>({2, 1, 3, 4});
  CHECK(one_channel.is_contiguous(channels_last));
  CHECK(zeros<float>({0, 3, 4, 5}).to_memory_format(channels_last).numel() == 0);

  CHECK_THROWS_AS(zeros<float>({2, 3}).to_memory_format(channels_last), shape_error);
  CHECK_THROWS_AS((tensor<float, 4>().to_memory_format(channels_last)), shape_error);
}

TEST_CASE("is_dense tells gaps and repetitions from other orders", "[memory_format]") {
  const auto x = images();
  CHECK(x.permute({3, 1, 0, 2}).is_dense());
  CHECK(!x.slice(3, 0, 4, 2).is_dense());
  CHECK(!x.slice(1, 0, 4).is_dense());
  CHECK(x.slice(0, 0, 1).is_dense());
  CHECK(!ones<float>({1, 4}).broadcast_to({3, 4}).is_dense());
  CHECK(!x.flip(3).is_dense());
}

TEST_CASE("results lie in memory as their operands do", "[memory_format]") {
  const auto x = images();
  const auto y = x.to_memory_format(channels_last);
  generator gen(4);
  const auto scale = randn<float>(gen, {5, 1, 1});
  const tensor direct = relu(y) * scale + y, scalar_first = 1 - y, scaled_first = scale * y;
  CHECK(direct.is_contiguous(channels_last));
  CHECK(scalar_first.is_contiguous(channels_last));
  CHECK(scaled_first.is_contiguous(channels_last));
  CHECK(equal_values(direct, relu(x) * scale + x));
  const tensor first_decides = x + y, other_order = y + x;
  CHECK(first_decides.is_contiguous());
  CHECK(other_order.is_contiguous(channels_last));
  CHECK(equal_values(first_decides, other_order));

  const auto p = x.permute({2, 0, 3, 1});
  const tensor q = exp(p);
  CHECK(q.strides() == p.strides());
}

TEST_CASE("copies keep the order of axes", "[memory_format]") {
  const auto y = images().to_memory_format(channels_last);
  CHECK(y.clone().strides() == y.strides());
  CHECK(y.slice(2, 0, 3, 2).clone().is_contiguous(channels_last));
  const auto there = y.to<numa<0>>();
  CHECK(there.strides() == y.strides());
  CHECK(equal_values(there.to<cpu>(), y));
  tensor z = y;
  z = z * 2;
  const void* const place = z.data();
  z = y * 3;
  CHECK(z.data() == place);
  CHECK(z.is_contiguous(channels_last));
  z = images() * 2;
  CHECK(z.is_contiguous());
}

TEST_CASE("gradients lie in memory as their values do", "[memory_format]") {
  const auto x = images();
  generator gen(5);
  const auto bias = randn<float>(gen, {1, 5, 1, 1});
  const auto of = [&](const tensor<float, 4>& in) {
    const variable v = in.clone(), b = bias.clone();
    const variable h = tanh(v) * b;
    const variable loss = sum(square(h + v * h));
    loss.backward();
    CHECK(v.grad().strides() == in.strides());
    return std::pair(v.grad(), b.grad());
  };
  const auto rows = of(x), last = of(x.to_memory_format(channels_last));
  CHECK(max(abs(rows.first - last.first)).result().item() < 1e-5f);
  CHECK(max(abs(rows.second - last.second)).result().item() < 1e-4f);
}

TEST_CASE("gradients of views, kernels and products reach values in any order", "[memory_format]") {
  const auto x = images();
  const auto of = [](const tensor<float, 4>& in) {
    const variable v = in.clone();
    const variable rows = v.reshape({10, 12});
    const variable product = matmul(rows, rows.transpose());
    const variable loss = sum(square(softmax(v, 1))) + sum(product) + mean(log_softmax(rows, 1));
    loss.backward();
    CHECK(v.grad().strides() == in.strides());
    return v.grad();
  };
  CHECK(max(abs(of(x) - of(x.to_memory_format(channels_last)))).result().item() < 1e-4f);
  CHECK(max(abs(of(x) - of(x.transpose(0, 3).contiguous().transpose(0, 3)))).result().item() < 1e-4f);

  generator gen(6);
  const auto m = randn<float>(gen, {7, 4}), n = randn<float>(gen, {7, 3});
  const variable a = eval(m.transpose() * 1), b = m.transpose().contiguous();
  CHECK((!a.value().is_contiguous() && b.value().is_contiguous()));
  for (const variable<float, 2>& factor : {a, b}) {
    const variable loss = sum(square(matmul(factor, n))) + sum(square(matmul(factor.transpose(), factor)));
    loss.backward();
  }
  CHECK(max(abs(a.grad() - b.grad())).result().item() < 1e-3f);
}

TEST_CASE("contiguous and to_memory_format of variables hand the gradient back", "[memory_format]") {
  const variable v = images();
  const variable last = v.to_memory_format(channels_last);
  CHECK(last.value().is_contiguous(channels_last));
  const variable back = last.contiguous();
  CHECK(back.value().is_contiguous());
  const variable loss = sum(square(back) + last);
  loss.backward();
  CHECK(equal_values(v.grad(), v.value() * 2 + 1));
  CHECK(v.contiguous().value().data() == v.value().data());  // row-major already
}

TEST_CASE("reductions over all axes read in the order of memory", "[memory_format]") {
  generator gen(8);
  const auto x = randn<float>(gen, {3, 40, 31, 29});
  const int before = num_threads();
  for (const auto& y :
       {x.to_memory_format(channels_last), x.permute({3, 0, 2, 1}).contiguous().permute({1, 3, 2, 0})}) {
    REQUIRE((y.is_dense() && !y.is_contiguous()));
    const auto flat = as_it_lies(y);
    for (int threads = 1; threads <= 3; ++threads) {  // the same order: the same bits
      set_num_threads(threads);
      CHECK(sum(y).result().item() == sum(flat).result().item());
      CHECK(sum(y * y).result().item() == sum(flat * flat).result().item());
      CHECK(eval(mean(y)).item() == eval(mean(flat)).item());
      CHECK(logsumexp(y).result().item() == logsumexp(flat).result().item());
    }
    set_num_threads(before);
    CHECK(std::abs(sum(y).result().item() - sum(x).result().item()) < 1e-2f);
    CHECK(max(y).result().item() == max(x).result().item());
    CHECK(max(abs(sum(y, {0, 3}) - sum(x, {0, 3}))).result().item() < 1e-3f);
  }
}

TEST_CASE("indices go by the shape where a reduction covers all axes", "[memory_format]") {
  generator gen(8);
  const tensor x = round(randn<float>(gen, {3, 40, 31, 29}));  // with ties
  for (const auto& y :
       {x.to_memory_format(channels_last), x.permute({3, 0, 2, 1}).contiguous().permute({1, 3, 2, 0})}) {
    CHECK(argmax(y).result().item() == argmax(x).result().item());
    CHECK(argmin(y * 2).result().item() == argmin(x * 2).result().item());
    CHECK(equal_values(argmax(y, {1, 3}), argmax(x, {1, 3})));
  }
}

TEST_CASE("gradients of reductions over all axes lie as their inputs do", "[memory_format]") {
  const auto x = images();
  const auto gradient = [](const tensor<float, 4>& at) {
    const variable v = at;
    const variable loss = sum(v * v) + mean(v) * 3 + logsumexp(v) + max(v) + norm(v);
    loss.backward();
    return v.grad();
  };
  const auto expected = gradient(x);
  for (const auto& y : {x.to_memory_format(channels_last), x.transpose(1, 3).contiguous().transpose(1, 3)}) {
    const auto g = gradient(y);
    CHECK(g.strides() == y.strides());
    CHECK(max(abs(g - expected)).result().item() < 1e-5f);
  }
}

TEST_CASE("optimizers and clipping go by the order of memory", "[memory_format]") {
  const auto x = images();
  const auto step = [](const tensor<float, 4>& in) {
    std::vector<variable<float, 4>> parameters{in.clone()};
    optim::adam optimizer(parameters, {.lr = 0.1});
    for (int i = 0; i < 3; ++i) {
      const variable loss = sum(square(parameters[0] - 1));
      optimizer.zero_grad();
      loss.backward();
      optim::clip_grad_norm(parameters, 1);
      optim::clip_grad_value(parameters, 0.05);
      optimizer.step();
    }
    CHECK(parameters[0].value().strides() == in.strides());
    return parameters[0].value();
  };
  CHECK(max(abs(step(x) - step(x.to_memory_format(channels_last)))).result().item() < 1e-6f);
}

TEST_CASE("random masks go by the shape, not by the order of memory", "[memory_format]") {
  const auto x = images();
  generator a(7), b(7);
  const tensor rows = dropout(x, 0.5, a), last = dropout(x.to_memory_format(channels_last), 0.5, b);
  CHECK(last.is_contiguous(channels_last));
  CHECK(equal_values(rows, last));
}
