// tests/parallel/data_parallel_test.cpp: replicas over devices give what one device gives.
#include "../catch.hpp"
#include "devices.hpp"

#include <sinter/data.hpp>
#include <thread>

using namespace sinter;
using namespace places;

namespace {

template <class A, class B>
double distance(const A& a, const B& b) {
  REQUIRE(a.shape() == b.shape());
  return static_cast<double>(max(abs(a - b)).item());
}

auto network(std::uint64_t seed) {
  generator gen(seed);
  return nn::sequential{nn::linear<double>(6, 5, gen), nn::tanh(), nn::dropout(0.4, gen),
                        nn::linear<double>(5, 3, gen)};
}

}  // namespace

TEST_CASE("data_parallel gives the values and gradients of one device, dropout included", "[parallel]") {
  for (const index_t n : {10, 9, 2, 1, 0}) {
    INFO(n << " samples");
    const auto one = network(1);
    const auto many = nn::data_parallel<d0, cpu, d1, d2>(network(1));
    optim::sgd step_one(one, {.lr = 0.1}), step_many(many, {.lr = 0.1});
    generator gen(7);
    for (int step = 0; step < 3; ++step) {
      const tensor data = randn<double>(gen, {n, 6});
      const variable x = data.clone(), z = data.clone();
      const variable y = one(x);
      const variable w = many(z);
      CHECK((n == 0 || distance(y.value(), w.value()) < 1e-12));
      const tensor seed = randn<double>(gen, {n, 3});
      y.backward(seed);
      w.backward(seed);
      if (n == 0) continue;
      CHECK(distance(x.grad(), z.grad()) < 1e-12);
      CHECK(distance(one.get<0>().weight.grad(), many.module.get<0>().weight.grad()) < 1e-12);
      step_one.step();
      step_many.step();
      one.zero_grad();
      many.zero_grad();
    }
  }
}

TEST_CASE("data_parallel stands between other modules, and infers", "[parallel]") {
  generator gen(3);
  const nn::linear<double> first(6, 8, gen), last(5, 2, gen);
  const nn::linear<double> middle(8, 5, gen);
  const nn::sequential one{first, nn::tanh(), middle, nn::tanh(), last};
  const nn::sequential many{first, nn::tanh(), nn::data_parallel<d0, d1>(middle.to<cpu>()), nn::tanh(), last};
  const tensor x = randn<double>(gen, {7, 6});
  const variable y = one(x);
  sum(square(y)).backward();
  const tensor expected = first.weight.grad().clone(), of_middle = middle.weight.grad();
  one.zero_grad();
  const variable w = many(x);
  CHECK(distance(y.value(), w.value()) < 1e-12);
  sum(square(w)).backward();
  CHECK(distance(first.weight.grad(), expected) < 1e-12);
  CHECK(distance(many.get<2>().module.weight.grad(), of_middle) < 1e-12);
  CHECK(distance(infer(many)(x), y.value()) < 1e-12);
  {
    const no_grad guard;
    CHECK_THROWS_AS(variable(many(x)).backward(ones<double>({7, 2})), autograd_error);
  }
  CHECK(many.named_parameters()[2].name == "2.module.weight");
}

TEST_CASE("data_parallel adds gradients over calls, and to graphs that are kept", "[parallel]") {
  generator gen(4);
  const nn::linear<double> one(3, 2, gen);
  const auto many = nn::data_parallel<d0, d1>(one.to<cpu>());
  const tensor a = randn<double>(gen, {5, 3}), b = randn<double>(gen, {4, 3});
  const variable y = sum(square(one(a))) + sum(one(b));
  y.backward();
  const variable w = sum(square(many(a))) + sum(many(b));
  w.backward({.retain_graph = true});
  CHECK(distance(one.weight.grad(), many.module.weight.grad()) < 1e-12);
  w.backward();
  CHECK(distance(eval(2 * one.weight.grad()), many.module.weight.grad()) < 1e-12);
  CHECK_THROWS_AS(w.backward(), autograd_error);
}

TEST_CASE("parameters that are used twice stay one, and replaced ones are seen", "[parallel]") {
  generator gen(5);
  const auto tied = [&] {
    nn::linear<double> layer(4, 4, gen);
    return nn::sequential{layer, nn::tanh(), layer};
  };
  auto many = nn::data_parallel<cpu, d0>(tied());
  const auto one = many.module.to<cpu>();
  const tensor x = randn<double>(gen, {6, 4});
  sum(one(x)).backward();
  sum(many(x)).backward();
  CHECK(distance(one.get<0>().weight.grad(), many.module.get<2>().weight.grad()) < 1e-12);
  CHECK(many.parameter_count() == 20);
  many.module = tied();
  CHECK(distance(variable(many(x)).value(), variable(many.module(x)).value()) < 1e-12);
}

TEST_CASE("data_parallel: running moments are the mean of the replicas'", "[parallel]") {
  const auto many = nn::data_parallel<d0, d1>(nn::batch_norm1d<double>(3));
  generator gen(6);
  const tensor x = randn<double>(gen, {5, 3});
  const variable y = many(x);  // 3 samples and 2
  const nn::batch_norm1d<double> first(3), second(3);
  const variable a = first(x.slice(0, 0, 3)), b = second(x.slice(0, 3, 5));
  CHECK(distance(y.value(), eval(concat(0, a.value(), b.value()))) < 1e-12);
  const auto mean_of = [](const auto& p, const auto& q) { return eval(p.value() * 0.6 + q.value() * 0.4); };
  CHECK(distance(many.module.running_mean.value(), mean_of(first.running_mean, second.running_mean)) < 1e-12);
  CHECK(distance(many.module.running_var.value(), mean_of(first.running_var, second.running_var)) < 1e-12);
}

TEST_CASE("samples are shared out evenly", "[parallel]") {
  const auto sizes = [](index_t n) {
    const auto parts = nn::shard<d0, cpu, d1, d2>(zeros<double>({n, 3}));
    const std::vector<index_t> of_parts{parts.at<0>().extent(0), parts.at<1>().extent(0), parts.at<2>().extent(0),
                                        parts.at<3>().extent(0)};
    for (int i = 0; i < 4; ++i) CHECK(parts.range(i).size() == of_parts[static_cast<std::size_t>(i)]);
    return of_parts;
  };
  CHECK(sizes(10) == std::vector<index_t>{3, 3, 2, 2});
  CHECK(sizes(9) == std::vector<index_t>{3, 2, 2, 2});
  const std::vector<index_t> few = sizes(3);  // g++ 12 makes four ones of a list {1, 1, 1, 0} where AVX is on
  CHECK((few[0] == 1 && few[1] == 1 && few[2] == 1 && few[3] == 0));
  CHECK(sizes(0) == std::vector<index_t>{0, 0, 0, 0});
  const auto many = nn::data_parallel<d0, cpu, d1, d2>(nn::batch_norm1d<double>(3));
  generator gen(20);
  CHECK(variable(many(randn<double>(gen, {10, 3}))).extent(0) == 10);  // no replica gets a sample alone
  CHECK_THROWS_WITH(many(randn<double>(gen, {7, 3})), Catch::Contains("data_parallel on " + device_name<d2>()));
}

TEST_CASE("data_parallel::backward weighs the losses of uneven shards", "[parallel]") {
  const auto loss = [](const auto& scores, const auto& labels) { return cross_entropy(scores, labels); };
  for (const index_t n : {7, 2, 1}) {
    const auto one = network(8);
    const auto many = nn::data_parallel<d0, d1, d2>(network(8));
    const auto sharded = nn::data_parallel<d0, d1, d2>(network(8));
    generator gen(9);
    const tensor x = randn<double>(gen, {n, 6});
    const tensor y = randint(gen, 0, 3, {n});
    const variable of_one = loss(one(x), y);
    of_one.backward();
    CHECK(std::abs(many.backward(x, y, loss) - of_one.item()) < 1e-12);
    CHECK(distance(one.get<3>().weight.grad(), many.module.get<3>().weight.grad()) < 1e-12);
    data_loader loader(nn::sharded<d0, d1, d2>(tensor_dataset(x, y)), {.batch_size = n});
    for (const auto& [inputs, targets] : loader)
      CHECK(std::abs(sharded.backward(inputs, targets, loss) - of_one.item()) < 1e-12);
    CHECK(distance(one.get<0>().bias.grad(), sharded.module.get<0>().bias.grad()) < 1e-12);
    CHECK_THROWS_WITH(many.backward(x, eval(concat(0, y, y)), loss), Catch::Contains("one for each sample"));
    CHECK_THROWS_WITH(many.backward(x.slice(0, 0, 0), y.slice(0, 0, 0), loss), Catch::Contains("an empty batch"));
  }
}

namespace {

struct own_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Fails for a sample that is larger than 100, for one larger than 1e8 with an error that is not the library's; its
/// gradient fails for one that is less than -100.
struct touchy : nn::stateless<touchy> {
  template <class X>
  auto forward(const X& x) const {
    const auto forward = [](const auto& a) {
      if (max(a).item() > 1e8) throw own_error("too large by far");
      if (max(a).item() > 100) throw out_of_memory("no room for a large number");
      return with_saved(a * 2, a);
    };
    const auto backward = [](const auto& g, const auto& a) {
      if (min(a).item() < -100) throw value_error("too small a number");
      return sinter::eval(g * 2);
    };
    return with_gradient(forward, backward)(x);
  }
};

}  // namespace

TEST_CASE("an error of one replica names its device and leaves all as it was", "[parallel]") {
  generator gen(10);
  const auto many = nn::data_parallel<d0, d1>(nn::sequential{nn::linear<double>(2, 2, gen), touchy()});
  many.module.get<0>().weight.value().in_place() = eye<double>(2);
  const tensor good = ones<double>({4, 2});
  const tensor large = good.clone(), small = good.clone();
  large.slice(0, 3, 4).in_place() = 1000;
  small.slice(0, 0, 1).in_place() = -1000;
  CHECK_THROWS_WITH(many(large),
                    Catch::Contains("data_parallel on " + device_name<d1>() + ": no room for a large number"));
  CHECK_THROWS_AS(many(large), out_of_memory);
  CHECK_THROWS_AS(many(large * 1e8), own_error);
  CHECK_THROWS_WITH(many(large * 1e8), "too large by far");
  const variable y = many(small);
  CHECK_THROWS_WITH(y.backward(good),
                    Catch::Contains("backward of data_parallel on " + device_name<d0>() + ": too small a number"));
  CHECK_FALSE(many.module.get<0>().weight.has_grad());
  const variable z = many(good);
  z.backward(good);
  CHECK(distance(many.module.get<0>().weight.grad(), full<double>({2, 2}, 8)) < 1e-12);
}

TEST_CASE("what a failed call has changed of buffers in one replica is undone", "[parallel]") {
  const auto make = [] { return nn::data_parallel<d0, d1>(nn::sequential{nn::batch_norm1d<double>(2), touchy()}); };
  const auto many = make(), untouched = make();
  generator gen(16);
  const tensor good = randn<double>(gen, {20, 2});
  const tensor large = good.clone();
  large.slice(0, 19, 20).in_place() = 1e6;
  many.module.get<0>().weight.value().in_place() = 40;  // of ten samples, one that stands apart comes out as 120
  untouched.module.get<0>().weight.value().in_place() = 40;
  CHECK_THROWS_AS(many(large), out_of_memory);
  CHECK(distance(eval(many(good)), eval(untouched(good))) < 1e-12);
  CHECK(distance(many.module.get<0>().running_mean.value(), untouched.module.get<0>().running_mean.value()) < 1e-12);
}

TEST_CASE("blocks whose type is hidden are replicated, their dropout too", "[parallel]") {
  using anywhere = nn::devices<cpu, d0, d1, d2>;
  using block = nn::any_module<double, 2, cpu, nn::tracked, anywhere>;
  const auto make = [] {
    generator gen(11);
    return nn::sequential{nn::linear<double>(3, 4, gen),
                          block(nn::sequential{nn::linear<double>(4, 4, gen), nn::dropout(0.5, gen)})};
  };
  const auto one = make();
  const auto many = nn::data_parallel<d0, d1, d2>(make());
  generator gen(12);
  for (const index_t n : {6, 1, 5}) {
    const tensor x = randn<double>(gen, {n, 3});
    const variable y = one(x), w = many(x);
    CHECK(distance(y.value(), w.value()) < 1e-12);
    sum(y * y).backward();
    sum(w * w).backward();
    CHECK(distance(one.get<0>().weight.grad(), many.module.get<0>().weight.grad()) < 1e-12);
  }
}

namespace {

/// Results that are not one for each sample: a mean over them, or samples along the last axis.
template <bool Mean, device D = cpu, class Kind = nn::tracked>
struct mixes_samples : nn::module<mixes_samples<Mean, D, Kind>> {
  using device_type = D;
  using kind = Kind;
  template <class To, class K>
  using rebind = mixes_samples<Mean, To, K>;
  nn::linear<double, D, Kind> fc;

  template <class X>
  auto forward(const X& x) const {
    const auto y = sinter::eval(fc(x));
    if constexpr (Mean) return sinter::eval(mean(y, 0));
    else return sinter::eval(y.transpose());
  }
  SINTER_MEMBERS(fc);
};

template <class M>
void check_refused(const M& model) {
  generator gen(13);
  for (const index_t n : {2, 4, 5, 6, 7}) {  // of 3 features: also where a replica gets 3 samples
    INFO(n << " samples");
    const auto many = nn::data_parallel<d0, d1>(model);
    for (int call = 0; call < 2; ++call)
      CHECK_THROWS_WITH(many(randn<double>(gen, {n, 4})), Catch::Contains("data_parallel") &&
                                                              Catch::Contains("the module gave 3 results for ") &&
                                                              Catch::Contains("it must give one for each"));
  }
}

}  // namespace

TEST_CASE("data_parallel refuses a module that does not give a result for each sample", "[parallel]") {
  generator gen(14);
  check_refused(mixes_samples<true>{{}, nn::linear<double>(4, 3, gen)});
  check_refused(mixes_samples<false>{{}, nn::linear<double>(4, 3, gen)});
  const auto counted = nn::data_parallel<d0, d1>(nn::sequential{nn::batch_norm1d<double>(3), nn::dropout(0.5, gen)});
  const variable y = counted(ones<double>({4, 3}));  // what is tried changes nothing
  CHECK(counted.module.get<0>().num_batches_tracked.value().item() == 1);
}

TEST_CASE("replicas get what mark_written() tells of", "[parallel]") {
  generator gen(15);
  auto many = nn::data_parallel<cpu, d0>(nn::sequential{nn::linear<double>(2, 2, gen), nn::batch_norm1d<double>(2)});
  many.eval();
  const tensor x = randn<double>(gen, {4, 2});
  const auto& layer = many.module.get<0>();
  const auto check = [&] { CHECK(distance(variable(many(x)).value(), variable(many.module(x)).value()) < 1e-12); };
  check();
  layer.weight.value()(0, 1) = 7;
  mark_written(layer.weight);
  check();
  many.module.get<1>().running_mean.value().data()[1] = 3;
  mark_written(many.module.get<1>().running_mean);
  check();
  *layer.bias.value().begin() = 5;
  many.module.get<1>().running_var.value()(0) = 2;
  mark_written(many);
  check();
  const variable y = sum(square(many.module(x)));
  layer.weight.value()(0, 0) = 1;
  mark_written(many.module);
  CHECK_THROWS_AS(y.backward(), autograd_error);
  mark_written(tensor<double, 1>());  // nothing to tell of
}

namespace {

/// Calls f from two threads, again and again, the first time too.
template <class F>
void from_two_threads(const F& f) {
  std::exception_ptr failure;
  std::thread other([&] {
    try {
      for (int i = 0; i < 20; ++i) f();
    } catch (...) {
      failure = std::current_exception();
    }
  });
  for (int i = 0; i < 20; ++i) f();
  other.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

TEST_CASE("threads may call one data_parallel at the same time", "[parallel]") {
  generator gen(17);
  const tensor x = randn<double>(gen, {6, 6});
  std::atomic<int> wrong{0};
  const auto infers = nn::data_parallel<d0, d1>(network(18));
  const tensor expected = infer(infers.module)(x);
  const auto inference = infer(infers);
  const auto fresh = infer(nn::data_parallel<cpu, d1>(network(18)));
  from_two_threads([&] {
    if (max(abs(inference(x) - expected)).item() > 1e-12) ++wrong;
    if (max(abs(fresh(x) - expected)).item() > 1e-12) ++wrong;
  });
  CHECK(wrong == 0);
  const auto trains = nn::data_parallel<d0, d1>(
      nn::sequential{nn::batch_norm1d<double>(6), nn::dropout(0.5, gen), nn::linear<double>(6, 2, gen)});
  from_two_threads([&] { const variable y = trains(x); });
  CHECK(trains.module.get<0>().num_batches_tracked.value().item() == 40);
}

TEST_CASE("a data_parallel that its own loss calls is refused", "[parallel]") {
  const auto many = nn::data_parallel<d0, d1>(network(19));
  const tensor x = ones<double>({4, 6});
  const auto loss = [&](const auto& y, const auto&) { return mean(y) * mean(many(x)).item(); };
  CHECK_THROWS_WITH(many.backward(x, x, loss), Catch::Contains("called inside a call of its own"));
}

TEST_CASE("a summary tells that copies run what is in data_parallel", "[parallel]") {
  generator gen(21);
  const nn::sequential model{nn::data_parallel<d0, d1>(nn::sequential{nn::linear<double>(4, 3, gen), nn::tanh()}),
                             nn::split_linear<d0, d1>(nn::linear<double>(3, 2, gen)), nn::relu()};
  const nn::summary_table table = nn::summary<double>(model, {5, 4});
  const auto row = [&](const std::string& name) {
    for (const nn::summary_row& r : table.rows)
      if (r.name == name) return r;
    return nn::summary_row();
  };
  CHECK(row("0").output == std::vector<index_t>{5, 3});
  for (const char* name : {"0.module", "0.module.0", "0.module.1", "1.0"}) {
    INFO(name);
    CHECK(row(name).replicated);
    CHECK_FALSE(row(name).called);
  }
  CHECK(row("0.module.0").parameters == 15);
  CHECK(row("2").called);
  CHECK_FALSE(row("2").replicated);
  CHECK(table.text().find("by copies") != std::string::npos);
  CHECK(table.text().find("not called") == std::string::npos);
}
