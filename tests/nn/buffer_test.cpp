// tests/nn/buffer_test.cpp: buffers: moved, copied and named with their module, and not trained.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

using namespace sinter;
using Catch::Contains;

namespace {

// x minus the running mean of what it has seen, times a factor that is trained.
template <device D = cpu, class Kind = nn::tracked>
struct centre : nn::module<centre<D, Kind>> {
  using device_type = D;
  using kind = Kind;
  template <device To, class K>
  using rebind = centre<To, K>;

  centre() = default;
  explicit centre(index_t width) : factor(ones<float, D>({width})), running(zeros<float, D>({width})) {}

  template <class X>
  auto forward(const X& x) const {
    if (state.training) {
      running.value() += 0.5f * (mean(nn::detail::stored_value(eval(x)), 0) - running.value());
      count.value() += std::int64_t{1};
    }
    return (x - running.value()) * factor;
  }
  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("factor", m.factor...), f("running", m.running...), f("count", m.count...), f("mode", m.state...);
  }

  nn::parameter<float, 1, D, Kind> factor;
  nn::buffer<float, 1, D> running;
  nn::buffer<std::int64_t, 0, D> count = zeros<std::int64_t, D>();
  nn::mode state;
};

template <class B, class E>
concept buffer_from = std::constructible_from<B, E>;

}  // namespace

static_assert(buffer_from<nn::buffer<float, 1>, tensor<float, 1>>);
static_assert(!buffer_from<nn::buffer<float, 1>, tensor<double, 1>>);
static_assert(!buffer_from<nn::buffer<float, 1>, tensor<float, 1, numa<0>>>);
static_assert(!buffer_from<nn::buffer<float, 1>, variable<float, 1>>);

TEST_CASE("buffers are not parameters, and have names of their own") {
  const nn::sequential model{nn::relu(), centre(3)};
  REQUIRE(model.named_parameters().size() == 1);
  CHECK(model.named_parameters()[0].name == "1.factor");
  CHECK(model.parameter_count() == 3);
  CHECK(optim::sgd(model).size() == 1);
  const auto buffers = model.named_buffers();
  REQUIRE(buffers.size() == 2);
  CHECK(buffers[0].name == "1.running");
  CHECK(buffers[0].shape == std::vector<index_t>{3});
  CHECK(buffers[1].name == "1.count");
  CHECK(buffers[1].element == std::string("int64"));
  CHECK(buffers[1].numel == 1);
  index_t n = 0;
  model.for_each_buffer([&](const std::string&, const auto& b) { n += b.value().numel(); });
  CHECK(n == 4);
}

TEST_CASE("forward writes a buffer, which the view of infer shows and eval leaves alone") {
  const nn::sequential model{centre(2)};
  const tensor<float, 2> x = {{2, 4}, {4, 8}};
  eval(model(x));
  CHECK(model.get<0>().running.value()(1) == 3);
  CHECK(model.get<0>().count.value().item() == 1);
  const auto view = infer(model);
  CHECK(view.get<0>().running.value().data() == model.get<0>().running.value().data());
  const tensor<float, 2> y = view(x);
  CHECK(y(0, 0) == 0.5f);
  CHECK(model.get<0>().count.value().item() == 1);
}

TEST_CASE("to and copy_state take buffers along; a tied buffer stays tied") {
  const centre one(2);
  const nn::sequential model{one, nn::relu(), one};
  eval(one(tensor<float, 2>{{2, 4}}));
  const auto there = model.to<numa<0>>();
  CHECK(there.get<0>().running.value()(1) == 2);
  there.get<0>().running.value() += 1.f;
  CHECK(there.get<2>().running.value()(1) == 3);
  CHECK(one.running.value()(1) == 2);
  nn::copy_state(there, model);
  CHECK(one.running.value()(1) == 3);
  CHECK_THROWS_WITH(nn::copy_state(centre(5), centre(4)), Contains("parameter 'factor'"));
}
