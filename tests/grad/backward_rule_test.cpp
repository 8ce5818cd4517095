// tests/grad/backward_rule_test.cpp: one kernel for backward of two entries, by a rule that only this file knows.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <initializer_list>
#include <stdexcept>
#include <vector>

using namespace sinter;

namespace {

int steps = 0;       // runs of the op's own backward
int joint_runs = 0;  // runs of the rule that did the work
bool rule_applies = true, rule_fails = false;
void count_joint_run() {
  if (rule_fails) throw std::runtime_error("half-way");
  ++joint_runs;
}

/// by x
struct scaled_op : ops::kernel_op {
  static constexpr const char* name = "scaled";
  static constexpr unsigned grad_uses[1] = {uses::nothing};
  int by;
  explicit scaled_op(int factor) : by(factor) {}
  template <int R>
  const extents<R>& shape(const extents<R>& x) const {
    return x;
  }
  template <class X>
  static constexpr auto mistake() {
    return floating_of_rank<1, max_rank, X>();
  }
};
template <class X>
auto scaled(const X& x, int by) {
  return detail::make_kernel(scaled_op(by), x);
}

// [docs:rule]
// Backward of (x * a) * b, two entries of one type, in one kernel: the gradient of x is that of the result, times a b.
template <class Entry>
bool scale_twice(const detail::entry_pair<Entry, Entry>& p) {
  if (!rule_applies) return false;
  int count = 0;
  const detail::state_ptr& x = p.producer.inputs(count)[0];
  const auto& g = Entry::gradient_in(p.result);
  using T = element_of<decltype(g)>;
  p.value.producer_done = true;
  detail::add_gradient(x, eval(g * static_cast<T>(p.producer.op.by * p.consumer.op.by)));
  count_joint_run();
  return true;
}
template <class Entry>
inline const detail::backward_rule<Entry, Entry> two_scales{&scale_twice<Entry>};
// [docs:end]

/// x times the factors, an entry each. Nobody holds the values in between.
template <class X>
X chain(X x, std::initializer_list<int> factors) {
  for (const int by : factors) x = eval(scaled(x, by));
  return x;
}

/// Runs of the rule, runs of the op's own backward, and the gradient of x.
using counts = std::vector<float>;
template <class Y>
counts backward_of(const variable<float, 1>& x, const Y& y, backward_options options = {}) {
  steps = joint_runs = 0;
  y.backward(ones<float>({3}), options);
  const counts all{static_cast<float>(joint_runs), static_cast<float>(steps), x.grad()(1)};
  x.zero_grad();
  return all;
}

}  // namespace

namespace sinter::detail {

template <>
struct kernels<scaled_op, cpu> {
  template <class T, int R, class Epilogue>
  static void forward(const scaled_op& op, const tensor<T, R>& y, const Epilogue*, const tensor<T, R>& x) {
    write(x * static_cast<T>(op.by), y);
  }
  template <class Backward>
  static void reverse(const scaled_op& op, const Backward& b) {
    two_scales<Backward>.require();
    const auto place = b.template place_of<0>();
    write_or_add(b.gradient() * static_cast<element_of<decltype(place.to)>>(op.by), place.to, place.add);
    ++steps;
  }
};

}  // namespace sinter::detail

TEST_CASE("a rule runs in place of the backward of a consumer and of its producer", "[rule]") {
  const variable x = ones<float>({3});
  CHECK(backward_of(x, chain(x, {2})) == counts{0, 1, 2});
  CHECK(backward_of(x, chain(x, {2, 3})) == counts{1, 0, 6});
  CHECK(backward_of(x, chain(x, {2, 3, 5})) == counts{1, 1, 30});
  CHECK(backward_of(x, chain(x, {2, 3, 5, 7})) == counts{2, 0, 210});
  const variable again = chain(x, {2, 3});
  CHECK(backward_of(x, again, {.retain_graph = true}) == counts{1, 0, 6});
  CHECK(backward_of(x, again) == counts{1, 0, 6});
  CHECK_THROWS_AS(backward_of(x, again), autograd_error);
}

TEST_CASE("a rule that is a template exists for each type of entry", "[rule]") {
  const variable<double, 2> x = ones<double>({3, 1});
  steps = joint_runs = 0;
  chain(x, {2, 3}).backward(ones<double>({3, 1}));
  CHECK((x.grad()(1, 0) == 6 && joint_runs == 1 && steps == 0));
}

TEST_CASE("without the pair of the rule each entry runs its own backward", "[rule]") {
  const variable x = ones<float>({3});
  const auto between = [&] {
    const variable first = chain(x, {2});
    return eval(first + 1);
  };
  CHECK(backward_of(x, chain(between(), {3})) == counts{0, 2, 6});
  const variable<float, 2> matrix = ones<float>({3, 1});
  const auto rows = [&] {
    const variable first = chain(matrix, {2});
    return first.reshape({3});
  };
  steps = joint_runs = 0;
  chain(rows(), {3}).backward(ones<float>({3}));
  CHECK((matrix.grad()(1, 0) == 6 && joint_runs == 0 && steps == 2));
}

TEST_CASE("no rule runs where something else reads the value between two entries", "[rule]") {
  const variable x = ones<float>({3});
  {
    const variable held = scaled(x, 2);
    CHECK(backward_of(x, eval(scaled(held, 3))) == counts{0, 2, 6});
  }
  const auto of_wanted = [&] {
    const variable wanted = scaled(x, 2);
    wanted.retain_grad();
    return eval(scaled(wanted, 3));
  };
  CHECK(backward_of(x, of_wanted()) == counts{0, 2, 6});
  const auto twice = [&] {
    const variable shared = scaled(x, 2);
    return eval(eval(scaled(shared, 3)) + eval(scaled(shared, 5)));
  };
  CHECK(backward_of(x, twice()) == counts{0, 3, 16});
}

TEST_CASE("a rule may decline, and one that fails leaves no gradient", "[rule]") {
  const variable x = ones<float>({3});
  const variable y = chain(x, {2, 3});
  CHECK(backward_of(x, y, {.retain_graph = true}) == counts{1, 0, 6});
  rule_applies = false;
  CHECK(backward_of(x, y, {.retain_graph = true}) == counts{0, 2, 6});
  rule_applies = rule_fails = true;
  CHECK_THROWS_AS(y.backward(ones<float>({3}), {.retain_graph = true}), std::runtime_error);
  CHECK_FALSE(x.has_grad());
  rule_fails = false;
  CHECK(backward_of(x, y) == counts{1, 0, 6});
}
