// tests/parallel/offloaded_test.cpp: tasks whose parameters live on the cpu train as they do on one device.
#include <thread>

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

/// Of numbers of d0 and the host. The gradient of a bias before a batch norm is 0 but for rounding, and adam divides by
/// its size, so where d0 rounds otherwise than the host, such a bias is another one.
constexpr double tolerance = SINTER_WITH_CUDA ? 1e-8 : 1e-12;

auto head(generator& gen) {
  return nn::sequential{nn::linear<double>(6, 5, gen), nn::batch_norm1d<double>(5), nn::tanh(), nn::dropout(0.3, gen),
                        nn::linear<double>(5, 2, gen)};
}
using head_type = decltype(head(std::declval<generator&>()));
using tasks_on_d0 = nn::offloaded<d0, head_type>;
using matrices = nn::offloaded<d0, nn::linear<double>>;

tasks_on_d0 heads(index_t tasks, index_t copies = 2) {
  generator gen(3);
  return tasks_on_d0(tasks, [&] { return head(gen); }, {.copies = copies});
}
matrices layers(index_t tasks, index_t copies = 2) {
  generator gen(5);
  return matrices(tasks, [&] { return nn::linear<double>(40, 50, gen); }, {.copies = copies});
}

template <class M>
std::vector<double> numbers_of(const M& m) {
  std::vector<double> all;
  m.for_each_parameter([&](const auto&, const auto& p) { all.push_back(sum(p.value()).item()); });
  m.for_each_buffer([&](const auto&, const auto& b) { all.push_back(eval(sum(cast<double>(b.value()))).item()); });
  return all;
}

}  // namespace

TEST_CASE("offloaded tasks train as on one device, and those that are not used are left alone", "[parallel]") {
  for (const bool ahead : {false, true}) {
    generator gen(3);
    const nn::module_list<head_type> one(4, [&] { return head(gen); });
    const auto many = heads(4);
    const nn::linear<double, cpu> body(7, 6, gen);
    const auto body_there = body.to<d0>();
    optim::adam step_one(one), step_many(many);
    step_one.add(body);
    step_many.add(body_there);
    const index_t order[] = {0, 2, 2, 0, 1, 0, 2, 1};
    for (std::size_t i = 0; i < 8; ++i) {
      const index_t task = order[i];
      const tensor x = randn<double>(gen, {4, 7});
      const auto fetched = many.fetch(task);
      if (ahead && i + 1 < 8) many.prefetch(order[i + 1]);
      const variable a = sum(square(one[task](body(x))));
      const variable b = sum(square(fetched(body_there(x.to<d0>()))));
      CHECK(std::abs(a.item() - b.item()) < tolerance);
      step_one.zero_grad();
      step_many.zero_grad();
      a.backward();
      b.backward();
      for (index_t t = 0; t < 4; ++t) CHECK(many[t].get<0>().weight.has_grad() == (t == task));
      step_one.step();
      step_many.step();
    }
    const auto expected = numbers_of(one), given = numbers_of(many);
    REQUIRE(expected.size() == given.size());
    for (std::size_t i = 0; i < given.size(); ++i) CHECK(std::abs(expected[i] - given[i]) < 10 * tolerance);
    CHECK(many.named_parameters()[0].name == "0.0.weight");
    const tensor of_many = infer(many).fetch(1)(ones<double, d0>({3, 6}));
    CHECK(distance(of_many.to<cpu>(), infer(one[1])(ones<double>({3, 6}))) < tolerance);
  }
}

TEST_CASE("the device holds at most as many copies as it is told", "[parallel]") {
  const auto peak = [](index_t tasks) {
    const auto many = layers(tasks);
    optim::sgd optimizer(many, {.lr = 0.1});
    const tensor<double, 2, d0> x = ones<double, d0>({3, 40});
    reset_peak_memory<d0>();
    const auto before = memory<d0>().bytes_in_use;
    for (index_t i = 0; i < 2 * tasks; ++i) {
      const auto layer = many.fetch(i % tasks);
      if (tasks > 2) many.prefetch((i + 1) % tasks);
      CHECK(many.copies() <= 2);
      optimizer.zero_grad();
      variable(sum(square(layer(x)))).backward();
      optimizer.step();
    }
    return static_cast<double>(memory<d0>().peak_bytes - before);
  };
  const double of_two = peak(2), of_many = peak(32);
  INFO(of_two << " and " << of_many);
  CHECK(of_many <= 1.1 * of_two);
}

TEST_CASE("a task fetched twice has one copy, and both gradients count", "[parallel]") {
  const auto many = layers(3, 1);
  const variable<double, 2, d0> x = ones<double, d0>({3, 40});
  const auto a = many.fetch(1), b = many.fetch(-2);
  CHECK(many.copies() == 1);
  CHECK(sinter::detail::access::data(a->weight.value()) == sinter::detail::access::data(b->weight.value()));
  variable(sum(a(x)) + sum(b(x)) * 2).backward();
  const tensor three = many[1].bias.grad().clone();
  CHECK(distance(three, full<double>({50}, 9.)) < 1e-12);
  variable(sum(many.fetch(1)(x))).backward();
  CHECK(distance(many[1].bias.grad(), full<double>({50}, 12.)) < 1e-12);
  const variable pending = sum(square(b(x)));
  many[1].weight.value() += 1;
  const auto c = many.fetch(1);  // up to date, in place
  CHECK(distance(c->weight.value().to<cpu>(), many[1].weight.value()) == 0);
  CHECK_THROWS_AS(pending.backward(), autograd_error);
}

TEST_CASE("copies in use are not given up", "[parallel]") {
  const auto many = layers(4, 2);
  const tensor<double, 2, d0> x = ones<double, d0>({3, 40});
  std::optional first(many.fetch(0));
  const variable graph = sum(square(many.fetch(1)(x)));  // holds task 1
  CHECK_THROWS_WITH(many.fetch(2),
                    Catch::Contains("all 2 copies on " + device_name<d0>() + " are in use, by tasks 0, 1"));
  CHECK_THROWS_AS(many.prefetch(2), value_error);
  many.prefetch(1);  // is there
  first.reset();
  many.prefetch(2);
  many.prefetch(3);  // 2 was on its way, and makes room
  CHECK(many.copies() == 2);
  const auto third = many.fetch(3);
  CHECK_THROWS_AS(many.prefetch(2), value_error);
  CHECK(distance(third->weight.value().to<cpu>(), many[3].weight.value()) == 0);
  graph.backward();
  const auto second = many.fetch(2);  // in place of 1
  CHECK(many.copies() == 2);
  CHECK(many[1].weight.has_grad());
  CHECK_THROWS_AS(many.fetch(4), index_error);
  CHECK_THROWS_AS(many.prefetch(-5), index_error);
  CHECK_THROWS_WITH(layers(2, 0),
                    "offloaded: .copies is 0, so " + device_name<d0>() + " could hold no task; set it to 1 or more");
  CHECK_THROWS_WITH(layers(-1), "offloaded: the number of tasks is -1, which is negative; pass 0 or more");
}

TEST_CASE("a task that was prefetched and is never fetched makes room", "[parallel]") {
  const tensor<double, 2, d0> x = ones<double, d0>({3, 40});
  for (const index_t copies : {1, 2, 3}) {
    const auto many = layers(6, copies);
    for (index_t i = 0; i < 18; ++i) {
      if (i % 3 != 0) many.prefetch((i + 1) % 6);  // two of three are not used
      if (i % 3 == 0) {
        const auto layer = many.fetch(i % 6);
        CHECK(distance(layer->weight.value().to<cpu>(), many[i % 6].weight.value()) == 0);
        if (copies > 1) many.prefetch((i + 3) % 6);
      }
      CHECK(many.copies() <= copies);
    }
    for (index_t t = 0; t < 6; ++t) many.prefetch(t);  // each in place of the one before, where there is one copy
    CHECK(many.copies() == copies);
  }
  // What was fetched and is free goes before what is on its way.
  const auto many = layers(4, 2);
  const void* const of_one = [&] {
    many.prefetch(1);
    many.fetch(0);
    many.fetch(2);  // in place of 0
    return sinter::detail::access::data(many.fetch(1)->weight.value());
  }();
  many.fetch(3);  // in place of 2
  CHECK(sinter::detail::access::data(many.fetch(1)->weight.value()) == of_one);
}

TEST_CASE("the plain view of a fetched task", "[parallel]") {
  auto many = heads(3, 1);
  const tensor<double, 2, d0> x = ones<double, d0>({4, 6});
  variable(sum(square(many.fetch(1)(x)))).backward();  // its running moments are not those of task 0
  {
    const auto view = infer(many.fetch(1));
    static_assert(std::is_same_v<decltype(eval(view(x))), tensor<double, 2, d0>>);
    CHECK(distance(eval(view(x)).to<cpu>(), infer(many[1])(ones<double>({4, 6}))) < tolerance);
    CHECK(distance(eval(view(x)), eval(view(x))) == 0);  // no dropout
    CHECK(view.named_parameters()[0].name == "0.weight");
    CHECK_THROWS_AS(many.fetch(0), value_error);  // the view uses the only copy
    CHECK(many[1].get<3>().state.training);       // and leaves the mode of the task alone
  }
  many.eval();
  CHECK(distance(eval(many.fetch(1)(x)).value().to<cpu>(), infer(many[1])(ones<double>({4, 6}))) < tolerance);
  CHECK(distance(infer(infer(many).fetch(0))(x), infer(many.fetch(0))(x)) == 0);
}

TEST_CASE("train() and eval() of a fetched task are for it alone", "[parallel]") {
  const auto many = heads(2, 1);
  const tensor<double, 2, d0> x = ones<double, d0>({4, 6});
  const auto plain = eval(infer(many[1])(ones<double>({4, 6})));
  {
    auto head = many.fetch(1);
    head.eval();
    CHECK(distance(eval(head(x)).value().to<cpu>(), plain) < tolerance);  // no dropout, running moments
    CHECK(distance(eval(head(x)).value().to<cpu>(), plain) < tolerance);
    CHECK(many[1].get<3>().state.training);
    head.train();
    CHECK(distance(eval(head(x)).value().to<cpu>(), plain) > 1e-3);
  }
  auto again = many.fetch(1);  // has the mode of the task
  again.eval();
  nn::sequential chain{again, nn::relu()};
  CHECK(distance(eval(chain(x)).value(), eval(relu(again(x))).value()) == 0);
  chain.train();
  chain.eval();
  CHECK(distance(eval(chain(x)).value(), eval(relu(again(x))).value()) == 0);
}

TEST_CASE("a fetch in backward, and from several threads", "[parallel]") {
  const auto many = layers(3, 1);
  const variable<double, 2, d0> x = ones<double, d0>({3, 40});
  const auto run = [&](index_t t, const auto& input) {
    return checkpoint([&many, t](const auto& a) { return many.fetch(t)(a); }, input);
  };
  const variable loss = sum(square(run(0, x))) + sum(square(run(1, x)));  // each with the only slot, twice
  loss.backward();
  const tensor given = many[1].weight.grad().clone();
  many.zero_grad();
  variable(sum(square(many.fetch(1)(x)))).backward();
  CHECK(distance(given, many[1].weight.grad()) < 1e-12);

  const auto shared = layers(8, 4);
  const auto work = [&](index_t own) {
    for (int i = 0; i < 20; ++i) {
      const variable y = sum(square(shared.fetch(own)(x.value())));
      y.backward();
    }
  };
  std::thread other([&] { work(1); });
  work(2);
  other.join();
  CHECK(shared[1].weight.has_grad());
  CHECK(shared[2].weight.has_grad());
}

TEST_CASE("what goes wrong on the way is told by fetch, and the next one works", "[parallel]") {
  const auto many = layers(4, 2);
  empty_cache<d0>();
  set_memory_limit<d0>(memory<d0>().bytes_in_use + 1000);
  many.prefetch(1);
  CHECK_THROWS_WITH(many.fetch(1), Catch::Contains("offloaded: task 1 to " + device_name<d0>()));
  CHECK_THROWS_AS(many.fetch(1), out_of_memory);
  CHECK(many.copies() == 0);
  many.prefetch(2);
  set_memory_limit<d0>(0);
  const auto layer = many.fetch(1);
  CHECK(distance(layer->weight.value().to<cpu>(), many[1].weight.value()) == 0);
  {
    const auto gone = layers(2);
    gone.prefetch(0);
  }  // while it is on its way
}
