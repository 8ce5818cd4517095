// tests/parallel/home_test.cpp: gradients that others hand to a module's parameters lie in the homes of these.
#include "../same_bits.hpp"
#include "devices.hpp"

#include "../catch.hpp"

#include <stdexcept>

using namespace sinter;
using namespace places;

namespace {

/// Gives homes in one tensor to all parameters. True as long as the gradients that there are lie there.
template <class M>
class bucket {
 public:
  explicit bucket(const M& m) : module_(m) {
    each([this](const auto& p, index_t) { size_ += p.numel(); });
    all_ = zeros<double, d0>({size_});
    each([this](const auto& p, index_t at) { sinter::detail::give_home(p, all_.slice(0, at, at + p.numel())); });
  }
  bool holds_all() const {
    bool all = true;
    each([&](const auto& p, index_t at) {
      if (p.has_grad()) all = all && same_bits(all_.slice(0, at, at + p.numel()), p.grad().flatten());
      if (p.has_grad()) all = all && same_memory(all_.slice(0, at, at + p.numel()), p.grad());
    });
    return all;
  }

 private:
  template <class A, class B>
  static bool same_memory(const A& a, const B& b) {
    return sinter::detail::access::data(a) == sinter::detail::access::data(b);
  }
  template <class F>
  void each(const F& f) const {
    index_t at = 0;
    module_.for_each_parameter([&](const auto&, const auto& p) {
      f(p, at);
      at += p.numel();
    });
  }
  const M& module_;
  tensor<double, 1, d0> all_;
  index_t size_ = 0;
};

/// To rounding: a GPU may take another kernel where memory is aligned otherwise.
template <class A, class B>
bool same_gradients(const A& a, const B& b) {
  std::vector<tensor<double, 1>> left, right;
  const auto take = [](auto& to) {
    return [&to](const auto&, const auto& p) {
      to.push_back(p.has_grad() ? p.grad().template to<cpu>().flatten().clone() : tensor<double, 1>());
    };
  };
  a.for_each_parameter(take(left));
  b.for_each_parameter(take(right));
  bool same = left.size() == right.size();
  for (std::size_t i = 0; same && i < left.size(); ++i) {
    same = left[i].defined() == right[i].defined();
    if (same && left[i].defined()) same = max(abs(left[i] - right[i])).item() < 1e-12;
  }
  return same;
}

auto layer(index_t in, index_t out, generator& gen) { return nn::linear<double, d0>(in, out, gen); }

/// Runs step(model) on two equal models, one with homes, three times with a zero_grad() in between.
template <class Make, class Step>
void check_homes(const Make& make, const Step& step) {
  const auto at_home = make(), elsewhere = make();
  const bucket slices(at_home);
  for (int i = 0; i < 4; ++i) {
    step(at_home), step(elsewhere);
    CHECK(same_gradients(at_home, elsewhere));
    CHECK(slices.holds_all());
    if (i == 1) at_home.zero_grad(), elsewhere.zero_grad();
  }
}

}  // namespace

TEST_CASE("homes: gradients of replicas and of modules that run again", "[parallel]") {
  generator of_x(1);
  const tensor<double, 2, d0> x = randn<double, d0>(of_x, {6, 4});
  const auto make = [] {
    generator gen(2);
    return nn::sequential{layer(4, 4, gen), nn::data_parallel<d0, d1>(nn::sequential{nn::tanh(), layer(4, 4, gen)}),
                          nn::checkpointed(layer(4, 3, gen))};
  };
  check_homes(make, [&](const auto& model) { sum(square(model(x))).backward(); });
  check_homes(
      [] {
        generator gen(3);
        return nn::data_parallel<d0, d1>(layer(4, 3, gen));
      },
      [&](const auto& model) { model.backward(x, x, [](const auto& y, const auto&) { return mean(square(y)); }); });
}

TEST_CASE("homes: gradients of a task come home", "[parallel]") {
  generator of_x(1);
  const tensor<double, 2, d1> x = randn<double, d1>(of_x, {6, 4});
  int task = 0;
  check_homes(
      [] {
        generator gen(2);
        return nn::offloaded<d1, nn::linear<double, d0>>(3, [&] { return layer(4, 2, gen); }, {.copies = 1});
      },
      [&](const auto& heads) { sum(square(heads.fetch(task++ / 2 % 2)(x))).backward(); });
}

TEST_CASE("homes: gradients of a pipeline's steps, and of one that fails", "[parallel]") {
  generator of_x(1);
  const tensor<double, 2, d0> x = randn<double, d0>(of_x, {6, 4});
  generator gen(2), gen_again(2);
  const nn::pipeline at_home{layer(4, 4, gen), layer(4, 3, gen).to<d1>()};
  const nn::pipeline elsewhere{layer(4, 4, gen_again), layer(4, 3, gen_again).to<d1>()};
  const bucket slices(at_home.get<0>());
  bool fails = false;
  const auto loss = [&fails](const auto& y, const auto&) {
    const auto f = with_gradient([](const auto& a) { return eval(a * 1); },
                                 [&fails](const auto& g) {
                                   if (fails) throw std::runtime_error("half-way");
                                   return g;
                                 });
    return mean(square(f(y)));
  };
  for (int i = 0; i < 6; ++i) {
    fails = i % 3 == 1;
    for (const auto* pipe : {&at_home, &elsewhere}) {
      if (fails) CHECK_THROWS(pipe->step(x, x, loss, {.microbatches = 2}));
      else pipe->step(x, x, loss, {.microbatches = 2});
    }
    CHECK(same_gradients(at_home, elsewhere));
    CHECK(slices.holds_all());
    if (i == 2) at_home.zero_grad(), elsewhere.zero_grad();
    if (i == 2) CHECK_THROWS((fails = true, at_home.step(x, x, loss)));
    if (i == 2) CHECK_FALSE(at_home.get<0>().weight.has_grad());
  }
}
