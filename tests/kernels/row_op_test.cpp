// tests/kernels/row_op_test.cpp: an op of rows that is not in the library, in the words of ops/row_op.hpp, on the CPU
// and on a simulated GPU.
#include "../cuda/compare.hpp"

using namespace sinter;

namespace {

/// Group norm (N,C,...), written anew: rows are the neighbouring channels of a group.
struct groups_op : ops::row_op {
  static constexpr const char* name = "groups";
  static constexpr bool saves_row_factor = true;
  index_t groups;
  double eps;
  groups_op(index_t how_many, double e) : row_op(1), groups(how_many), eps(e) {}
  index_t row_length(const auto& shape) const { return shape.numel() / (shape[0] * groups); }
  bool has_rows_side_by_side(const auto&) const { return true; }

  SINTER_WORD auto forward(const auto& r) const {
    const auto x = r.keep(r.x());
    const auto mean = r.sum(x) / r.count();
    const auto squares = ops::over(x, [mean](auto a) SINTER_INLINE_LAMBDA { return (a - mean) * (a - mean); });
    const auto factor = 1 / math::sqrt(r.sum(squares) / r.count() + math::constant<decltype(r.count())>(eps));
    r.save(factor);
    return r.finish(x, {.shift = mean, .scale = factor});
  }
  SINTER_WORD void reverse(const auto& r) const {
    const auto y = r.result(), g = r.gradient();
    const auto products = ops::over(y, g, [](auto a, auto b) SINTER_INLINE_LAMBDA { return a * b; });
    const auto mean = r.sum(g) / r.count(), slope = r.sum(products) / r.count(), factor = r.saved();
    r.put(ops::over(y, g, [=](auto a, auto b) SINTER_INLINE_LAMBDA { return factor * (b - mean - a * slope); }));
  }
};
auto normalise_groups(const auto& x, index_t groups, const auto& weight, const auto& bias, double eps = 1e-5) {
  const index_t channels[3] = {x.shape()[1], 1, 1};
  return detail::make_kernel(groups_op(groups, eps), x) * weight.reshape(channels) + bias.reshape(channels);
}

/// Lines along an axis, scaled to the length 1.
struct lengths_op : ops::row_op {
  static constexpr const char* name = "lengths";
  static constexpr bool saves_row_factor = true;
  using row_op::row_op;

  SINTER_WORD auto forward(const auto& r) const {
    const auto x = r.keep(r.x());
    const auto factor = 1 / math::sqrt(r.sum(ops::over(x, [](auto a) SINTER_INLINE_LAMBDA { return a * a; })));
    r.save(factor);
    return r.finish(x, {.scale = factor});
  }
  SINTER_WORD void reverse(const auto& r) const {
    const auto y = r.result(), g = r.gradient();
    const auto slope = r.sum(ops::over(y, g, [](auto a, auto b) SINTER_INLINE_LAMBDA { return a * b; }));
    const auto factor = r.saved();
    r.put(ops::over(y, g, [=](auto a, auto b) SINTER_INLINE_LAMBDA { return factor * (b - a * slope); }));
  }
};

const auto by_hand = [](const auto& x, const auto& w, const auto& b) { return eval(normalise_groups(x, 3, w, b)); };
const auto of_library = [](const auto& x, const auto& w, const auto& b) { return eval(group_norm(x, 3, w, b)); };

/// The results of f and the gradients of its operands, of elements T on D, under a seed that is not constant.
template <class T, device D, class F>
auto results_of(const F& f) {
  const auto on_device = [](const auto& t) { return variable(eval(cast<T>(t)).template to<D>()); };
  const auto x = on_device(compare::numbers<double>({4, 6, 5, 7}));
  const auto w = on_device(compare::numbers<double>({6}, 2)), b = on_device(compare::numbers<double>({6}, 3));
  const variable y = f(x, w, b);
  y.backward(eval(cast<T>(compare::numbers<double>({4, 6, 5, 7}, 4))).template to<D>());
  const auto here = [](const auto& t) { return eval(cast<double>(t.template to<cpu>())); };
  return std::tuple(here(y.value()), here(x.grad()), here(w.grad()), here(b.grad()));
}
template <class A, class B>
double distance(const A& got, const B& expected) {
  return std::apply(
      [&](const auto&... a) {
        return std::apply([&](const auto&... e) { return std::max({compare::distance(a, e)...}); }, expected);
      },
      got);
}

}  // namespace

TEST_CASE("group norm in the words of a row op is group_norm, forward and backward, on the CPU and on a GPU",
          "[rows]") {
  const auto expected = results_of<double, cpu>(of_library);
  CHECK(distance(results_of<double, cpu>(by_hand), expected) < 1e-12);
  CHECK(distance(results_of<double, cuda<0>>(by_hand), expected) < 1e-12);
  CHECK(distance(results_of<float, cpu>(by_hand), expected) < 1e-5);
  CHECK(distance(results_of<float, cuda<0>>(by_hand), expected) < 1e-5);
  CHECK(distance(results_of<half, cpu>(by_hand), results_of<half, cpu>(of_library)) < 1e-2);
  CHECK(distance(results_of<half, cuda<0>>(by_hand), results_of<half, cpu>(of_library)) < 1e-2);
}

TEST_CASE("a row op along any axis is the same as elementwise work and a sum", "[rows]") {
  for (const auto& shape : {extents<3>{{3, 5, 4}}, {{2, 7, 45}}, {{20, 3, 16}}, {{3, 50, 70}}})
    for (const int axis : {0, 1, 2}) {
      INFO(detail::shape_text(shape) << " along " << axis);
      const auto op = [axis](const auto& x) { return eval(detail::make_kernel(lengths_op(axis), x)); };
      const auto composed = [axis](const auto& x) { return eval(x * rsqrt(sum(x * x, axis, keepdim))); };
      const auto x = compare::numbers<double>(shape);
      const auto gradient = [&](const auto& f, const auto& at) {
        const variable v = at.clone();
        const variable y = f(v);
        y.backward(eval(cos(y.value() * 3)));
        return v.grad();
      };
      CHECK(compare::distance(op(x), composed(x)) < 1e-13);
      CHECK(compare::distance(gradient(op, x), gradient(composed, x)) < 1e-12);
      CHECK(compare::values(op, x) < 1e-13);
      CHECK(compare::gradients(op, eval(cast<float>(x))) < 1e-5);
      CHECK(compare::values(op, eval(cast<half>(x))) < 2e-3);
    }
}
