// tests/docs/guide_test.cpp: the snippets of docs/guide.md, as tests.
#include <cstdio>
#include <string>

#include <sinter/sinter.hpp>
#include "../catch.hpp"

using namespace sinter;

TEST_CASE("guide: tensors and views") {
  // [docs:tensors]
  tensor<float, 2> a = {{1, 2, 3}, {4, 5, 6}};  // float, rank 2, on the cpu
  tensor b = zeros<float>({2, 3});              // the type follows from the right side
  tensor row = a[1];                            // a view: shares a's memory
  b.slice(1, 0, 2) = a.slice(1, 1, 3);          // assignment through a view writes into it
  tensor t = a.transpose();                     // (3, 2), nothing is copied
  float corner = t(2, 0);                       // bounds-checked element access
  // [docs:end]
  CHECK(row(2) == 6);
  CHECK(b(1, 1) == 6);
  CHECK(corner == 3);
}

TEST_CASE("guide: expressions") {
  generator gen(1);
  const auto x = randn<float>(gen, {64, 32});
  const auto bias = randn<float>(gen, {32});
  // [docs:expressions]
  auto e = relu(x * 2.f + bias);  // nothing has run; e owns what it refers to
  static_assert(kernel_count<decltype(e)> == 1);
  tensor y = e;                                              // one pass: reads x and bias, writes y
  tensor z = x - mean(x, 1, keepdim);                        // a reduction, then one pass
  tensor s = let(exp(x), [](auto v) { return v * v + v; });  // exp once per element
  y += 0.5f * z;                                             // in place
  std::string plan = explain(sqrt(sum(x * x, 1)));           // what will run, and how many bytes it moves
  // [docs:end]
  CHECK(y(0, 0) == Approx(std::max(0.f, x(0, 0) * 2 + bias(0)) + 0.5f * z(0, 0)));
  CHECK(s(3, 4) == Approx(std::exp(x(3, 4)) * std::exp(x(3, 4)) + std::exp(x(3, 4))));
  CHECK(plan.find("1 kernel") != std::string::npos);
}

TEST_CASE("guide: several outputs in one pass") {
  auto m = zeros<float>({8});
  auto p = ones<float>({8});
  const auto g = full<float>({8}, 2.f);
  // [docs:fuse]
  auto next = 0.9f * m + g;
  fuse(m = next, p -= 0.1f * next);  // both right sides read the old m
  // [docs:end]
  CHECK(m(0) == Approx(2));
  CHECK(p(0) == Approx(0.8));
}

TEST_CASE("guide: scans and order") {
  const tensor<float, 2> x = {{3, 1, 2}, {0, 5, 5}};
  const tensor<int, 1> labels = {2, 0, 2};
  // [docs:order]
  tensor so_far = cumsum(relu(x - 1), 1);         // running sums along the rows, one pass
  auto [best, where_best] = topk(x, 2, 1);        // the two largest of each row, and their columns
  tensor ranked = gather(x, 1, argsort(x, 1));    // sort(x, 1).values
  auto [values, inverse, counts] = unique(x);     // values[inverse] is x
  tensor per_class = bincount(labels, 4);         // 1, 0, 2, 0
  tensor histogram = histc(x * x, 5, 0.0, 25.0);  // how many squares in each fifth of [0, 25]
  // [docs:end]
  CHECK(so_far(1, 2) == 8);
  CHECK(best(0, 1) == 2);
  CHECK(where_best(1, 0) == 1);
  CHECK(ranked(0, 0) == 1);
  CHECK(counts(4) == 2);
  CHECK(values(inverse(1, 2)) == 5);
  CHECK(per_class(2) == 2);
  CHECK(histogram(4) == 2);
}

TEST_CASE("guide: gradients") {
  // [docs:gradients]
  variable w = tensor<float, 1>{1, 2, 3};
  variable loss = sum(square(w) * 0.5f);
  loss.backward();
  w.value() -= 0.1f * w.grad();  // writing through value() is not recorded
  w.zero_grad();
  // [docs:end]
  CHECK(w(2) == Approx(2.7));
  CHECK(!w.has_grad());
}

TEST_CASE("guide: listeners") {
  generator gen(1);
  const nn::sequential model{nn::linear(4, 8, gen), nn::tanh(), nn::linear(8, 2, gen)};
  const tensor x = randn<float>(gen, {16, 4});
  const auto loss_now = [&] { return eval(mean(square(model(x)))); };
  const float before = loss_now().item();
  // [docs:listener]
  gradient_listener listener;
  model.for_each_parameter([&](const std::string&, const auto& p) {
    listener.add(p, [p] {
      p.value() -= 0.1f * p.grad();
      p.zero_grad();
    });
  });
  variable loss = mean(square(model(x)));
  loss.backward(listener);
  // [docs:end]
  CHECK(loss_now().item() < before);
  CHECK_FALSE(model.get<0>().weight.has_grad());
}

TEST_CASE("guide: second derivatives") {
  // [docs:second]
  variable<float, 1, cpu, 2> x = tensor<float, 1>{1, 2};
  variable y = sum(x * x * x);
  variable slope = grad(y, x);      // 3 x^2, itself a variable
  variable(sum(slope)).backward();  // x.grad() is 6 x
  // [docs:end]
  CHECK(slope(1) == Approx(12));
  CHECK(x.grad()(1) == Approx(12));
}

TEST_CASE("guide: a model") {
  generator data_gen(7);
  const auto inputs = randn<float>(data_gen, {256, 4});
  const tensor targets = cast<std::int64_t>(sum(inputs, 1) > 0);
  // [docs:model]
  generator gen(1);
  const nn::sequential model{nn::linear(4, 32, gen), nn::relu(), nn::linear(32, 2, gen)};
  optim::adam optimizer(model, {.lr = 0.01});
  for (int step = 0; step < 100; ++step) {
    variable loss = cross_entropy(model(inputs), targets);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
  tensor predicted = argmax(infer(model)(inputs), 1);  // infer: plain tensors, nothing is recorded
  // [docs:end]
  index_t right = 0;
  for (index_t i = 0; i < 256; ++i) right += predicted(i) == targets(i);
  CHECK(right > 240);
}

TEST_CASE("guide: half precision") {
  generator gen(7);
  const tensor inputs = randn<half>(gen, {256, 4});
  const tensor targets = cast<std::int64_t>(sum(inputs, 1) > 0);
  // [docs:half]
  variable w = zeros<half>({2, 4});
  optim::adam optimizer(w, {.lr = 0.05});
  optim::grad_scaler scaler;
  for (int step = 0; step < 100; ++step) {
    variable loss = cross_entropy(linear(inputs, w), targets);
    optimizer.zero_grad();
    variable(scaler.scale(loss)).backward();  // gradients are larger than half's least numbers
    scaler.step(optimizer);                   // left out where one is infinite
    scaler.update();                          // and then the scale is smaller
  }
  tensor scores = cast<float>(linear(inputs, w.detach()));  // half and float do not mix otherwise
  // [docs:end]
  index_t right = 0;
  for (index_t i = 0; i < 256; ++i) right += (scores(i, 1) > scores(i, 0)) == (targets(i) == 1);
  CHECK(right > 240);
}

TEST_CASE("guide: mixed precision") {
  generator gen(7);
  const tensor inputs = randn<bfloat16>(gen, {256, 4});
  const tensor targets = cast<std::int64_t>(sum(inputs, 1) > 0);
  // [docs:mixed]
  const nn::sequential model{nn::linear<bfloat16>(4, 16, gen), nn::relu(), nn::linear<bfloat16>(16, 2, gen)};
  optim::mixed_precision<optim::adam> policy(model, {.lr = 0.001});
  for (int step = 0; step < 200; ++step) {
    policy.zero_grad();
    policy.backward(cross_entropy(cast<float>(model(inputs)), targets));
    policy.clip_grad_norm(model, 1.0);  // of the gradients without the scale
    policy.step();                      // false where it was left out
  }
  // [docs:end]
  const tensor right = argmax(infer(model)(inputs), 1) == targets;
  CHECK(right.to<float>().mean().item() > 0.9f);
}

TEST_CASE("guide: errors") {
  const auto a = zeros<float>({2, 3});
  const auto b = zeros<float>({4});
  std::string text;
  // [docs:errors]
  try {
    tensor c = a + b;
  } catch (const shape_error& e) {
    text =
        e.what();  // add: shapes (2, 3) and (4,) do not broadcast; aligned at the last axis, extents must be equal or 1
  }
  // [docs:end]
  CHECK(text == "add: shapes (2, 3) and (4,) do not broadcast; aligned at the last axis, extents must be equal or 1");
}

TEST_CASE("guide: a step that fails") {
  generator gen(1);
  const nn::sequential model{nn::batch_norm1d(3), nn::linear(3, 2, gen)};
  optim::sgd optimizer(model, {.lr = 0.1});
  // [docs:undo]
  const auto train = [&](const tensor<float, 2>& inputs) {
    nn::undo_on_error step;
    variable loss = mean(square(model(inputs)));
    loss.backward();
    optimizer.step();
  };
  // [docs:end]
  train(randn<float>(gen, {4, 3}));
  CHECK(model.get<0>().num_batches_tracked.value().item() == 1);
  CHECK_THROWS_AS(train(randn<float>(gen, {1, 3})), shape_error);
  CHECK(model.get<0>().num_batches_tracked.value().item() == 1);
}
