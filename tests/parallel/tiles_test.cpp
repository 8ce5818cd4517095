// tests/parallel/tiles_test.cpp: layers over tiles of an image give what they give on one device.
#include <random>
#include <thread>

#include "../catch.hpp"
#include "devices.hpp"

using namespace sinter;
using namespace places;

namespace {

using rows = nn::tiles<4, 1, d0, d1, d2, cpu>;
using square_grid = nn::tiles<2, 2, d0, d1, d2, cpu>;

/// The largest difference over the largest number.
template <class A, class B>
double distance(const A& a, const B& b) {
  REQUIRE(a.shape() == b.shape());
  if (a.numel() == 0) return 0;
  const double size = static_cast<double>(max(abs(a)).item());
  return static_cast<double>(max(abs(a - b)).item()) / std::max(size, 1.0);
}

/// Runs both forward and backward; the largest of the distances between values, gradients of the input, and of the
/// parameters.
struct differences {
  double value, input, parameters;
  bool below(double bound) const { return value <= bound && input <= bound && parameters <= bound; }
};
template <class One, class Many>
differences compare(const One& one, const Many& many, const tensor<double, 4>& data, generator& gen) {
  const variable x = data.clone(), z = data.clone();
  const variable y = one(x);
  const variable w = many(z);
  differences d{distance(y.value(), w.value()), 0, 0};
  const tensor<double, 4> seed = floor(rand<double>(gen, y.shape()) * 9) - 4;
  one.zero_grad();
  many.zero_grad();
  y.backward(seed);
  w.backward(seed);
  d.input = distance(x.grad(), z.grad());
  std::vector<tensor<double, 4>> weights;
  std::vector<tensor<double, 1>> others;
  one.for_each_parameter([&](const auto&, const auto& p) {
    if constexpr (std::remove_cvref_t<decltype(p)>::rank == 4) weights.push_back(p.grad());
    else others.push_back(p.grad());
  });
  std::size_t i = 0, j = 0;
  many.for_each_parameter([&](const auto&, const auto& p) {
    if constexpr (std::remove_cvref_t<decltype(p)>::rank == 4)
      d.parameters = std::max(d.parameters, distance(weights[i++], p.grad()));
    else d.parameters = std::max(d.parameters, distance(others[j++], p.grad()));
  });
  return d;
}

tensor<double, 4> whole_numbers(generator& gen, const extents<4>& shape) {
  return floor(rand<double>(gen, shape) * 9) - 4;
}

struct no_halo : nn::detail::exchange_halos {
  static constexpr bool fetches = false;
};
struct halo_kept : nn::detail::exchange_halos {
  static constexpr bool returns = false;
};

template <class Grid, class Exchange, class M>
auto with_exchange(const M& m) {
  return nn::tile_parallel_over<M, Grid, Exchange>(m);
}

}  // namespace

TEST_CASE("convolutions of whole numbers over tiles are exact", "[parallel]") {
  generator gen(1);
  int seen_without_halo = 0, seen_without_return = 0, checked = 0;
  for (const index_t taps : {1, 2, 3, 5})
    for (const index_t stride : {1, 2, 3})
      for (const index_t dilation : {1, 2})
        for (const index_t before : {index_t{0}, taps / 2})
          for (const index_t n : {3, 9, 14}) {
            const index_t after = before + (taps % 2 == 0 ? 1 : 0);
            if (n + before + after < dilation * (taps - 1) + 1) continue;
            INFO(taps << " taps, stride " << stride << ", dilation " << dilation << ", padding " << before << ", "
                      << after << ", " << n << " rows");
            const nn::sequential one{
                nn::zero_pad2d({0, 0, before, after}),
                nn::conv2d<double>(2, 3, {taps, 1}, gen, {.stride = {stride, 1}, .dilation = {dilation, 1}})};
            one.get<1>().weight.value() = whole_numbers(gen, one.get<1>().weight.shape());
            one.get<1>().bias.value() = floor(one.get<1>().bias.value() * 5);
            const tensor data = whole_numbers(gen, {2, 2, n, 1});
            const auto many = nn::tile_parallel<rows>(one.to<cpu>());
            CHECK(compare(one, many, data, gen).below(0));
            ++checked;
            const auto d = compare(one, with_exchange<rows, no_halo>(one.to<cpu>()), data, gen);
            seen_without_halo += int{d.value > 0};
            const auto e = compare(one, with_exchange<rows, halo_kept>(one.to<cpu>()), data, gen);
            seen_without_return += int{e.value == 0 && e.input > 0 && e.parameters == 0};
          }
  CHECK(seen_without_halo > checked / 2);
  CHECK(seen_without_return > checked / 2);
}

TEST_CASE("random networks over a grid of tiles", "[parallel]") {
  generator gen(2);
  std::mt19937 random(3);
  const auto pick = [&](index_t low, index_t high) {
    return low + static_cast<index_t>(random() % static_cast<unsigned>(high - low + 1));
  };
  for (int turn = 0; turn < 40; ++turn) {
    const index_t k1 = pick(1, 5), k2 = pick(1, 4), pool = pick(1, 3), mean_of = pick(1, 3), groups = pick(1, 2);
    const index_t h = pick(17, 26), w = pick(17, 26), seed = pick(0, 1000);
    const conv_options<2> first{
        .stride = {pick(1, 2), pick(1, 2)}, .padding = {k1 / 2, pick(0, 2)}, .dilation = {1, 2}};
    conv_options<2> second{.groups = groups};
    if (pick(0, 1) == 1) second.padding = padding::same;
    const max_pool_options<2> largest{
        .stride = pick(1, 2), .padding = pool / 2, .dilation = pick(1, 2), .ceil_mode = pick(0, 1) == 1};
    const avg_pool_options<2> mean{
        .padding = {mean_of / 2, 0}, .ceil_mode = pick(0, 1) == 1, .count_include_pad = pick(0, 1) == 1};
    INFO("turn " << turn << ": images of " << h << " x " << w << ", kernels " << k1 << " and " << k2 << ", pools "
                 << pool << " and " << mean_of);
    const auto make = [&] {
      generator of(static_cast<std::uint64_t>(seed));
      return nn::sequential{
          nn::conv2d<double>(2, 4, {k1, 2}, of, first),
          nn::batch_norm2d<double>(4, {}),
          nn::relu(),
          nn::dropout(0.3, of),
          nn::max_pool2d({pool, 2}, largest),
          nn::sequential{nn::conv2d<double>(4, 2, k2, of, second), nn::tanh(), nn::dropout2d(0.2, of)},
          nn::avg_pool2d({mean_of, 1}, mean)};
    };
    auto one = make();
    auto many = nn::tile_parallel<square_grid>(make());
    for (int step = 0; step < 2; ++step) {
      const auto d = compare(one, many, randn<double>(gen, {3, 2, h, w}), gen);
      CHECK(d.value < 1e-12);
      CHECK(d.input < 1e-12);
      CHECK(d.parameters < 1e-12);
    }
    const auto &norm = one.get<1>(), &tiled = many.module.get<1>();
    CHECK(distance(norm.running_mean.value(), tiled.running_mean.value()) < 1e-12);
    CHECK(distance(norm.running_var.value(), tiled.running_var.value()) < 1e-12);
    CHECK(tiled.num_batches_tracked.value().item() == 2);
    one.eval();
    many.eval();
    CHECK(compare(one, many, randn<double>(gen, {1, 2, h, w}), gen).below(1e-12));
    if (turn > 0) continue;
    const tensor x = randn<double>(gen, {2, 2, h, w});
    CHECK(distance(eval(infer(one)(x)), eval(infer(many)(x))) < 1e-12);
  }
}

namespace {

/// Fails where an image has a number larger than 100; its gradient fails where one is less than -100.
struct touchy : nn::stateless<touchy> {
  template <class X>
  auto forward(const X& x) const {
    const auto forward = [](const auto& a) {
      if (max(a).item() > 100) throw out_of_memory("no room for a large number");
      return with_saved(a * 2, a);
    };
    const auto backward = [](const auto& g, const auto& a) {
      if (min(a).item() < -100) throw value_error("too small a number");
      return sinter::eval(g * 2);
    };
    return with_gradient(forward, backward)(sinter::eval(x));
  }
};

}  // namespace

template <>
struct sinter::nn::tile_rule<touchy> : sinter::nn::tile_pointwise {};

TEST_CASE("an error of one tile names its device and leaves all as it was", "[parallel]") {
  generator gen(4);
  const nn::sequential one{nn::conv2d<double>(1, 1, 1, gen), touchy(), nn::max_pool2d(3, {.stride = 1, .padding = 1})};
  one.get<0>().weight.value() = 1;
  const auto many = nn::tile_parallel<square_grid>(one.to<cpu>());
  const tensor good = ones<double>({1, 1, 6, 6});
  const tensor large = good.clone(), small = good.clone();
  large.slice(2, 1, 2).slice(3, 5, 6).in_place() = 1000;
  small.slice(2, 5, 6).slice(3, 0, 1).in_place() = -1000;
  CHECK_THROWS_AS(many(large), out_of_memory);
  CHECK_THROWS_WITH(many(large), Catch::Contains("tile_parallel on " + device_name<d1>() + ": no room"));
  const variable x = small;
  const variable y = many(x);
  CHECK_THROWS_WITH(y.backward(good),
                    Catch::Contains("backward of tile_parallel on " + device_name<d2>() + ": too small a number"));
  CHECK_FALSE(many.module.get<0>().weight.has_grad());
  CHECK_FALSE(x.has_grad());
  CHECK(compare(one, many, randn<double>(gen, {2, 1, 7, 5}), gen).below(1e-12));
  CHECK_THROWS_AS(many(ones<double>({1, 2, 6, 6})), shape_error);
}

TEST_CASE("images without pictures, and smaller than the grid", "[parallel]") {
  generator gen(5);
  const nn::sequential one{nn::conv2d<double>(1, 2, 3, gen, {.padding = 1}), nn::relu(),
                           nn::avg_pool2d(2, {.stride = 1, .padding = 1})};
  const auto many = nn::tile_parallel<square_grid>(one.to<cpu>());
  CHECK(compare(one, many, randn<double>(gen, {2, 1, 1, 1}), gen).below(1e-12));
  CHECK(compare(one, many, randn<double>(gen, {2, 1, 1, 5}), gen).below(1e-12));
  CHECK(variable(many(ones<double>({0, 1, 4, 4}))).shape() == extents<4>{{0, 2, 5, 5}});
}

TEST_CASE("a layer that stands twice among tiles gets both gradients", "[parallel]") {
  generator gen(6);
  const auto tied = [&] {
    nn::conv2d<double> layer(2, 2, 3, gen, {.padding = 1});
    return nn::sequential{layer, nn::tanh(), layer};
  };
  auto many = nn::tile_parallel<square_grid>(tied());
  CHECK(compare(many.module.to<cpu>(), many, randn<double>(gen, {1, 2, 5, 6}), gen).below(1e-12));
  many.module = tied();
  CHECK(compare(many.module.to<cpu>(), many, randn<double>(gen, {1, 2, 5, 6}), gen).below(1e-12));
}

TEST_CASE("no images at all leave gradients of zero, as on one device", "[parallel]") {
  generator gen(20);
  const auto make = [&gen] {
    return nn::sequential{nn::conv2d<double>(1, 2, 3, gen, {.padding = 1}), nn::batch_norm2d<double>(2), nn::relu(),
                          nn::max_pool2d(2)};
  };
  for (const bool training : {true, false}) {
    auto many = nn::tile_parallel<nn::tiles<1, 2, d0, d1>>(make());
    many.train(training);
    const variable x = zeros<double>({0, 1, 8, 8});
    sum(many(x)).backward();
    CHECK(x.has_grad());
    CHECK(max(abs(many.module.get<0>().weight.grad())).item() == 0);
    CHECK(max(abs(many.module.get<1>().bias.grad())).item() == 0);
    CHECK(min(many.module.get<1>().running_var.value()).item() == 1);
  }
}

TEST_CASE("tiles get what mark_written() tells of", "[parallel]") {
  generator gen(21);
  const auto many = nn::tile_parallel<nn::tiles<2, 1, cpu, d0>>(nn::conv2d<double>(1, 2, 3, gen, {.padding = 1}));
  const tensor x = randn<double>(gen, {2, 1, 6, 5});
  const variable before = many(x);
  many.module.weight.value()(1, 0, 2, 2) = 9;
  mark_written(many.module.weight);
  CHECK(distance(variable(many(x)).value(), variable(many.module(x)).value()) < 1e-12);
}

TEST_CASE("threads may call one tile_parallel at the same time", "[parallel]") {
  generator gen(22);
  const auto many = nn::tile_parallel<nn::tiles<1, 2, d0, d1>>(
      nn::sequential{nn::conv2d<double>(1, 2, 3, gen, {.padding = 1}), nn::batch_norm2d<double>(2)});
  const tensor x = randn<double>(gen, {2, 1, 6, 6});
  const tensor expected = infer(many.module)(x);
  const auto inference = infer(many);
  std::atomic<int> wrong{0};
  const auto from_two_threads = [](const auto& f) {
    const auto often = [&f] {
      for (int i = 0; i < 20; ++i) f();
    };
    std::thread other(often);
    often();
    other.join();
  };
  from_two_threads([&] {
    if (max(abs(inference(x) - expected)).item() > 1e-12) ++wrong;
  });
  CHECK(wrong == 0);
  from_two_threads([&] { const variable y = many(x); });
  CHECK(many.module.get<1>().num_batches_tracked.value().item() == 40);
}
