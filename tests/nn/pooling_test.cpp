// tests/nn/pooling_test.cpp: the pooling modules are the functions with their settings.
#include "../catch.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <sinter/sinter.hpp>

using namespace sinter;

namespace {

template <class A, class B>
bool same(const A& a, const B& b) {
  const tensor x = a, y = b;
  if (x.shape() != y.shape()) return false;
  return eval(max(abs(x - y))).item() == 0;
}
template <int R>
tensor<float, R> numbers(const extents<R>& shape) {
  generator gen(3);
  return randn<float>(gen, shape);
}

}  // namespace

TEST_CASE("pooling modules are the functions") {
  const auto line = numbers<3>({{2, 3, 9}});
  const auto plane = numbers<4>({{2, 3, 7, 6}});
  const auto block = numbers<5>({{1, 2, 4, 5, 4}});
  CHECK(same(nn::max_pool1d(2)(line), max_pool1d(line, 2)));
  CHECK(same(nn::max_pool2d(3, {.stride = 2, .padding = 1})(plane), max_pool2d(plane, 3, {.stride = 2, .padding = 1})));
  CHECK(same(nn::max_pool2d({3, 2}, {.ceil_mode = true})(plane), max_pool2d(plane, {3, 2}, {.ceil_mode = true})));
  CHECK(same(nn::max_pool3d(2, {.stride = 1})(block), max_pool3d(block, 2, {.stride = 1})));
  CHECK(same(nn::avg_pool1d(3, {.padding = 1})(line), avg_pool1d(line, 3, {.padding = 1})));
  CHECK(same(nn::avg_pool2d({3, 2}, {.padding = 1, .count_include_pad = false})(plane),
             avg_pool2d(plane, {3, 2}, {.padding = 1, .count_include_pad = false})));
  CHECK(same(nn::avg_pool3d(2, {.divisor_override = 3})(block), avg_pool3d(block, 2, {.divisor_override = 3})));
  CHECK(same(nn::adaptive_avg_pool1d(4)(line), adaptive_avg_pool1d(line, 4)));
  CHECK(same(nn::adaptive_avg_pool2d({2, keep_extent})(plane), adaptive_avg_pool2d(plane, {2, keep_extent})));
  CHECK(same(nn::adaptive_avg_pool3d(2)(block), adaptive_avg_pool3d(block, 2)));
  CHECK(same(nn::adaptive_max_pool1d(4)(line), adaptive_max_pool1d(line, 4)));
  CHECK(same(nn::adaptive_max_pool2d({2, 3})(plane), adaptive_max_pool2d(plane, {2, 3})));
  CHECK(same(nn::adaptive_max_pool3d(1)(block), adaptive_max_pool3d(block, 1)));
}

TEST_CASE("pooling modules keep their settings in copies, in infer() and on other devices") {
  const auto x = numbers<4>({{2, 3, 8, 8}});
  const nn::sequential model{nn::max_pool2d(3, {.stride = 2, .padding = 1}), nn::avg_pool2d(2, {.stride = 1}),
                             nn::adaptive_max_pool2d({2, 1}), nn::flatten()};
  const tensor expected = model(x);
  CHECK(expected.shape() == extents<2>{{2, 6}});
  CHECK(same(infer(model)(x), expected));
  const tensor there = model.to<numa<0>>()(x.to<numa<0>>());
  CHECK(same(there.to<cpu>(), expected));
}

TEST_CASE("a model that pools trains, and its summary has the shapes") {
  generator gen(1);
  const nn::sequential model{nn::max_pool2d(2), nn::relu(), nn::adaptive_avg_pool2d(1), nn::flatten(),
                             nn::linear(3, 2, gen)};
  const nn::summary_table table = nn::summary(model, {5, 3, 6, 4});
  CHECK(table.rows[1].type == "max_pool2d");
  CHECK(table.rows[1].output == std::vector<index_t>{5, 3, 3, 2});
  CHECK(table.rows[3].type == "adaptive_avg_pool2d");
  CHECK(table.rows[3].output == std::vector<index_t>{5, 3, 1, 1});
  CHECK(table.parameters == 8);
  const variable x = numbers<4>({{5, 3, 6, 4}});
  variable loss = sum(model(x));
  loss.backward();
  CHECK(x.grad().shape() == x.shape());
  CHECK(eval(max(abs(x.grad()))).item() > 0);
  CHECK_THROWS_WITH(model(numbers<4>({{5, 3, 1, 4}})), Catch::Contains("in module 0: "));
}
