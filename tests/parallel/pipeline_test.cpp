// tests/parallel/pipeline_test.cpp: stages on several devices train as the chain of them on one.
#include "../catch.hpp"
#include "devices.hpp"

using namespace sinter;
using namespace places;

namespace {

template <class A, class B>
double distance(const A& a, const B& b) {
  REQUIRE(a.shape() == b.shape());
  return static_cast<double>(max(abs(a - b)).item());
}

const auto loss = [](const auto& scores, const auto& labels) { return cross_entropy(scores, labels); };

/// Three parts of a network, with dropout in two of them.
struct parts_on_cpu {
  explicit parts_on_cpu(std::uint64_t seed) : gen(seed) {}
  generator gen;
  nn::sequential<nn::linear<double>, nn::tanh, nn::dropout<>> a{nn::linear<double>(6, 5, gen), nn::tanh(),
                                                                nn::dropout(0.4, gen)};
  nn::sequential<nn::linear<double>, nn::dropout<>> b{nn::linear<double>(5, 7, gen), nn::dropout(0.2, gen)};
  nn::linear<double> c{7, 3, gen};

  auto chain() const { return nn::sequential{a, b, c}; }
  auto pipeline() const { return nn::pipeline{a.to<d0>(), b.to<d1>(), c.to<d2>()}; }
};

template <class M>
std::vector<tensor<double, 1>> gradients_of(const M& m) {
  std::vector<tensor<double, 1>> all;
  m.for_each_parameter([&](const auto&, const auto& p) { all.push_back(p.grad().template to<cpu>().flatten()); });
  return all;
}
template <class A, class B>
double difference(const A& a, const B& b) {
  const auto left = gradients_of(a), right = gradients_of(b);
  REQUIRE(left.size() == right.size());
  double most = 0;
  for (std::size_t i = 0; i < left.size(); ++i) most = std::max(most, distance(left[i], right[i]));
  return most;
}

struct one_thread_each {
  one_thread_each() {
#if !SINTER_WITH_CUDA
    set_num_threads<d0>(1), set_num_threads<d1>(1), set_num_threads<d2>(1);
#endif
  }
} const threads;

}  // namespace

TEST_CASE("a pipeline trains as one device does, dropout included, whatever the cut", "[parallel]") {
  for (const auto& make : {nn::schedule::one_f_one_b, nn::schedule::gpipe}) {
    const auto one = parts_on_cpu(1).chain();
    const auto many = parts_on_cpu(1).pipeline();
    optim::sgd step_one(one, {.lr = 0.1}), step_many(many, {.lr = 0.1});
    generator gen(7);
    for (const auto& [n, m] : {std::pair<index_t, index_t>{10, 4}, {7, 3}, {9, 2}, {3, 8}, {1, 8}, {5, 1}, {12, 12}}) {
      INFO(n << " samples in " << m);
      const tensor x = randn<double>(gen, {n, 6});
      const tensor y = randint(gen, 0, 3, {n});
      step_one.zero_grad();
      step_many.zero_grad();
      const variable expected = loss(one(x), y);
      expected.backward();
      const auto r = many.step(x.to<d0>(), y, loss, {.microbatches = m, .schedule = make});
      CHECK(std::abs(r.loss - expected.item()) < 1e-12);
      CHECK(difference(one, many) < 1e-12);
      step_one.step();
      step_many.step();

      const index_t cut = std::min(n, m);
      CHECK(r.microbatches == cut);
      CHECK(r.samples == n);
      for (index_t i = 0; i < 3; ++i) {
        const nn::stage_report& s = r.stages[static_cast<std::size_t>(i)];
        CHECK(s.in_flight == (make == nn::schedule::gpipe ? cut : std::min(cut, 3 - i)));
        CHECK(std::abs(s.busy + s.idle - r.seconds) < 1e-9);
      }
      CHECK(r.stages[1].device == device_name<d1>());
      CHECK(r.bubble >= r.bubble_simulated - 1e-9);
      CHECK(std::abs(r.bubble_formula - 2 / static_cast<double>(cut + 2)) < 1e-12);
    }
  }
}

TEST_CASE("gradients add up over steps, in the tensors that are there", "[parallel]") {
  const auto one = parts_on_cpu(2).chain();
  const auto many = parts_on_cpu(2).pipeline();
  generator gen(3);
  const tensor x = randn<double>(gen, {6, 6});
  const tensor y = randint(gen, 0, 3, {6});
  many.step(x.to<d0>(), y, loss);
  const tensor seen = many.get<1>().get<0>().weight.grad();
  many.step(x.to<d0>(), y.to<d2>(), loss, {.microbatches = 2});
  many.step(x.to<d0>(), y.to<d0>(), loss, {.microbatches = 3});
  for (int i = 0; i < 3; ++i) loss(one(x), y).backward();
  CHECK(difference(one, many) < 1e-12);
  CHECK(distance(seen, many.get<1>().get<0>().weight.grad()) == 0);
}

TEST_CASE("a called pipeline is the chain of its stages, and infers", "[parallel]") {
  const auto one = parts_on_cpu(4).chain();
  const auto many = parts_on_cpu(4).pipeline();
  static_assert(on_device<decltype(many), d0> && std::same_as<decltype(many)::output_device, d2>);
  generator gen(5);
  const tensor x = randn<double>(gen, {4, 6});
  const variable y = one(x);
  const variable<double, 2, d2> w = many(x.to<d0>());
  CHECK(distance(y.value(), w.value().to<cpu>()) < 1e-12);
  sum(square(y)).backward();
  sum(square(w)).backward();
  CHECK(difference(one, many) < 1e-12);
  const tensor<double, 2, d2> scores = infer(many)(x.to<d0>());
  CHECK(distance(scores.to<cpu>(), infer(one)(x)) < 1e-12);
  CHECK(many.named_parameters()[2].name == "1.0.weight");
  CHECK(many.named_parameters()[2].device == device_name<d1>());
  CHECK(many.parameter_count() == one.parameter_count());
}

TEST_CASE("draws of a step are those of the samples and draws around it", "[parallel]") {
  const auto one = parts_on_cpu(6).chain();
  const auto many = parts_on_cpu(6).pipeline();
  generator gen(7);
  const tensor x = randn<double>(gen, {5, 6});
  const tensor y = randint(gen, 0, 3, {5});
  const samples_from guard(11, 3);
  for (int repeat = 0; repeat < 2; ++repeat) {
    sinter::detail::draw_log log;
    const auto both = [&](auto role) {
      const sinter::detail::draw_source draws(log, role);
      if (role == sinter::detail::draw_source::role::writes) loss(one(x), y).backward();
      else many.step(x.to<d0>(), y, loss, {.microbatches = 2});
    };
    both(sinter::detail::draw_source::role::writes);
    both(sinter::detail::draw_source::role::repeats);
    CHECK(difference(one, many) < 1e-12);
  }
}

TEST_CASE("the activations that a stage holds are those of its microbatches in flight", "[parallel]") {
  generator gen(8);
  const nn::pipeline pipe{
      nn::sequential{nn::linear<double>(8, 400, gen), nn::tanh(), nn::linear<double>(400, 4, gen)}.to<d0>(),
      nn::linear<double>(4, 3, gen).to<d1>()};
  const tensor<double, 2, d0> x = ones<double, d0>({512, 8});
  const tensor y = zeros<std::int64_t>({512});
  const double of_one = 64 * 400 * sizeof(double);  // tanh keeps its result
  const auto peak = [&](auto make) {
    pipe.zero_grad();
    pipe.step(x, y, loss, {.microbatches = 8, .schedule = make});
    pipe.zero_grad();
    reset_peak_memory<d0>();
    const auto before = memory<d0>().bytes_in_use;
    pipe.step(x, y, loss, {.microbatches = 8, .schedule = make});
    return static_cast<double>(memory<d0>().peak_bytes - before) / of_one;
  };
  const double all_first = peak(nn::schedule::gpipe), alternating = peak(nn::schedule::one_f_one_b);
  INFO(all_first << " and " << alternating << " times one microbatch");
  CHECK(all_first >= 8);
  CHECK(alternating >= 2);
  CHECK(alternating < 5);  // backward works on a gradient and a copy of it
}

TEST_CASE("batch norm sees one microbatch after the other", "[parallel]") {
  generator gen(9);
  const nn::batch_norm1d<double> one(3);
  const nn::linear<double> last(3, 2, gen);
  const nn::pipeline pipe{one.to<d0>(), last.to<d1>()};
  const tensor x = randn<double>(gen, {7, 3});
  const tensor y = randint(gen, 0, 2, {7});
  pipe.step(x.to<d0>(), y, loss, {.microbatches = 2});  // 4 samples and 3
  for (const auto& [begin, end] : {std::pair<index_t, index_t>{0, 4}, {4, 7}}) {
    const variable part = loss(last(one(x.slice(0, begin, end))), y.slice(0, begin, end));
    part.backward(full<double>(part.shape(), static_cast<double>(end - begin) / 7));
  }
  CHECK(distance(one.weight.grad(), pipe.get<0>().weight.grad().to<cpu>()) < 1e-12);
  CHECK(distance(one.running_var.value(), pipe.get<0>().running_var.value().to<cpu>()) < 1e-12);
  CHECK(pipe.get<0>().num_batches_tracked.value().item() == 2);
}

namespace {

/// Twice its input. Fails for a number above 100; its gradient fails for one below -100. Without parameters, so where
/// its input is not tracked nor is its result.
template <device D, class Kind = nn::tracked>
struct touchy : nn::module<touchy<D, Kind>> {
  template <class X>
  auto forward(const X& x) const {
    const auto forward = [](const auto& a) {
      if (max(a).item() > 100) throw std::runtime_error("too large a number");
      return with_saved(a * 2, a);
    };
    const auto backward = [](const auto& g, const auto& a) {
      if (min(a).item() < -100) throw value_error("too small a number");
      return sinter::eval(g * 2);
    };
    return with_gradient(forward, backward)(x);
  }
  template <class F, class... M>
  static void visit(F&&, M&...) {}
};

}  // namespace

TEST_CASE("a stage that fails ends the step; all is as before, and the next step works", "[parallel]") {
  const auto make = [] {
    generator gen(10);
    nn::sequential first{nn::batch_norm1d<double>(2), nn::dropout(0.5, gen), nn::linear<double>(2, 2, gen)};
    return nn::pipeline{first.to<d0>(), touchy<d1>(), nn::linear<double>(2, 2, gen).to<d2>()};
  };
  const auto squares = [](const auto& a, const auto& b) { return mse_loss(a, b); };
  const auto pipe = make(), untouched = make();
  generator gen(14);
  const tensor<double, 2, d0> x = randn<double>(gen, {8, 2}).to<d0>();
  const tensor<double, 2> y = zeros<double>({8, 2});
  const auto step = [&](const auto& p) { return p.step(x, y, squares, {.microbatches = 4}); };
  const auto set_bias = [&](const auto& p, double value) {
    p.template get<0>().template get<2>().bias.value().in_place() = full<double, d0>({2}, value);
  };
  for (const auto* p : {&pipe, &untouched}) {
    set_bias(*p, 0);
    step(*p);
  }
  const auto fails = [&](double bias, const std::string& text) {
    set_bias(pipe, bias);
    for (const auto& order : {nn::schedule::one_f_one_b, nn::schedule::gpipe})
      CHECK_THROWS_WITH(pipe.step(x, y, squares, {.microbatches = 4, .schedule = order}), Catch::Contains(text));
    set_bias(pipe, 0);
    CHECK(difference(pipe, untouched) == 0);
    const auto moments = [](const auto& p) { return p.template get<0>().template get<0>().running_var.value(); };
    CHECK(distance(moments(pipe), moments(untouched)) == 0);
  };
  fails(1000, "too large a number");  // of no type of the library: as it is
  fails(-1000, "pipeline: stage 1 on " + device_name<d1>() + ", microbatch 0 backward: too small a number");
  const tensor<double, 2> three_columns = zeros<double>({8, 3});
  CHECK_THROWS_AS(pipe.step(x, three_columns, squares, {.microbatches = 2}), shape_error);
  CHECK_THROWS_WITH(pipe.step(x, three_columns, squares, {.microbatches = 2}),
                    Catch::Contains("pipeline: stage 2 on " + device_name<d2>() + ", microbatch 0 forward"));
  CHECK(step(pipe).loss == step(untouched).loss);  // with the same dropout
  CHECK(difference(pipe, untouched) == 0);
}

TEST_CASE("a device that runs out of memory ends the step and is named", "[parallel]") {
  generator gen(11);
  const nn::pipeline pipe{nn::linear<double>(4, 300, gen).to<d0>(), nn::linear<double>(300, 2, gen).to<d1>()};
  const tensor<double, 2, d0> x = ones<double, d0>({64, 4});
  const tensor y = zeros<std::int64_t>({64});
  empty_cache<d1>();
  set_memory_limit<d1>(memory<d1>().bytes_in_use + 1000);
  for (int i = 0; i < 2; ++i) {
    CHECK_THROWS_WITH(pipe.step(x, y, loss), Catch::Contains("pipeline: stage 1 on " + device_name<d1>()));
    CHECK_THROWS_AS(pipe.step(x, y, loss), out_of_memory);
    CHECK_FALSE(pipe.get<0>().weight.has_grad());
    CHECK_FALSE(pipe.get<1>().weight.has_grad());
  }
  set_memory_limit<d1>(0);
  CHECK(pipe.step(x, y, loss).loss > 0);
  CHECK(pipe.get<0>().weight.has_grad());
}

TEST_CASE("stages before the first parameter send no gradient back", "[parallel]") {
  generator gen(12);
  const nn::linear<double> layer(2, 2, gen);
  const nn::pipeline pipe{touchy<d0>(), layer.to<d1>()};
  const tensor x = randn<double>(gen, {5, 2});
  const tensor y = randint(gen, 0, 2, {5});
  const auto r = pipe.step(x.to<d0>(), y, loss, {.microbatches = 2});
  const variable expected = loss(layer(x * 2), y);
  expected.backward();
  CHECK(std::abs(r.loss - expected.item()) < 1e-12);
  CHECK(distance(layer.weight.grad(), pipe.get<1>().weight.grad().to<cpu>()) < 1e-12);
}

TEST_CASE("steps that cannot work are refused", "[parallel]") {
  generator gen(13);
  const nn::pipeline pipe{nn::linear<double>(2, 2, gen).to<d0>()};
  const tensor<double, 2, d0> x = ones<double, d0>({4, 2});
  const tensor y = zeros<std::int64_t>({4});
  CHECK_THROWS_WITH(pipe.step(x, eval(concat(0, y, y)), loss),
                    "pipeline: x has 4 samples along axis 0, and y has 8; pass one row of y for each sample");
  CHECK_THROWS_WITH(pipe.step(x.slice(0, 0, 0), y.slice(0, 0, 0), loss),
                    "pipeline: x has no samples; step() takes 1 or more");
  CHECK_THROWS_WITH(pipe.step(x, y, loss, {.microbatches = 0}), "pipeline: .microbatches is 0; set it to 1 or more");
  CHECK_THROWS_WITH(
      pipe.step(x, y, loss, {.microbatches = 2, .schedule = [](int, index_t m) { return nn::schedule::gpipe(2, m); }}),
      "pipeline: the schedule is for 2 stages, but the pipeline has 1; make it for the number that .schedule gets as "
      "its first argument");
  CHECK_THROWS_WITH(
      pipe.step(x, y, loss, {.microbatches = 8, .schedule = [](int p, index_t) { return nn::schedule::gpipe(p, 8); }}),
      "pipeline: the schedule is for 8 microbatches, but this step cuts its batch into 4; make it for the number that "
      ".schedule gets as its second argument");
  CHECK_THROWS_WITH(pipe.step(x, y, [](const auto& s, const auto&) { return square(s); }),
                    Catch::Contains("pipeline: stage 0 on " + device_name<d0>() +
                                    ", microbatch 0 forward: the loss has "
                                    "shape (1, 2)"));
  {
    const no_grad guard;
    CHECK_THROWS_AS(pipe.step(x, y, loss), autograd_error);
  }
  const auto r = pipe.step(x, y, loss, {.microbatches = 4});
  CHECK(r.bubble_formula == 0);
  std::ostringstream text;
  text << r;
  CHECK_THAT(text.str(), Catch::Contains("4 samples in 4 microbatches") && Catch::Contains(device_name<d0>()));
}
