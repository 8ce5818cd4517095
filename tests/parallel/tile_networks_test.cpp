// tests/parallel/tile_networks_test.cpp: networks over two tiles: AlexNet's first layers, residual blocks, a chain with
// layers behind the tiles.
#include "../catch.hpp"
#include "devices.hpp"

using namespace sinter;
using namespace places;

namespace {

using upper_and_lower = nn::tiles<2, 1, d0, d1>;

/// Two convolutions, and a third one around them.
template <device D = cpu, class Kind = nn::tracked>
struct strided_block : nn::module<strided_block<D, Kind>> {
  nn::conv2d<float, D, Kind, false> conv1, conv2, around;
  nn::batch_norm2d<float, D, Kind> bn1, bn2, bn3;

  template <class X>
  auto forward(const X& input) const {
    const auto x = eval(input);
    return relu(bn2(conv2(relu(bn1(conv1(x))))) + bn3(around(x)));
  }
  SINTER_MEMBERS(conv1, bn1, conv2, bn2, around, bn3);
};
/// The same without change of shape.
template <device D = cpu, class Kind = nn::tracked>
struct even_block : nn::module<even_block<D, Kind>> {
  nn::conv2d<float, D, Kind, false> conv1;
  nn::batch_norm2d<float, D, Kind> bn1;

  template <class X>
  auto forward(const X& input) const {
    const auto x = eval(input);
    return relu(bn1(conv1(x)) + x);
  }
  SINTER_MEMBERS(conv1, bn1);
};

}  // namespace

template <device D, class Kind>
struct sinter::nn::tile_rule<strided_block<D, Kind>> {
  static auto steps(const strided_block<D, Kind>& b) {
    return tile_steps(tile_sum(tile_steps(b.conv1, b.bn1, relu(), b.conv2, b.bn2), tile_steps(b.around, b.bn3)),
                      relu());
  }
};
template <device D, class Kind>
struct sinter::nn::tile_rule<even_block<D, Kind>> {
  static auto steps(const even_block<D, Kind>& b) {
    return tile_steps(tile_sum(tile_steps(b.conv1, b.bn1), tile_steps()), relu());
  }
};

namespace {

/// |a - b| / |a|, by the square root of the sum of squares.
template <class A, class B>
double distance(const A& a, const B& b) {
  REQUIRE(a.shape() == b.shape());
  const double whole = static_cast<double>(sum(square(a)).item());
  return std::sqrt(static_cast<double>(sum(square(a - b)).item()) / whole);
}

/// The largest distance of gradients of parameters, of equally built modules.
template <class One, class Many>
double gradient_distance(const One& one, const Many& many) {
  std::vector<tensor<float, 1>> gradients;
  one.for_each_parameter([&](const auto&, const auto& p) { gradients.push_back(p.grad().contiguous().flatten()); });
  double largest = 0;
  std::size_t i = 0;
  many.for_each_parameter([&](const auto& name, const auto& p) {
    INFO(name);
    largest = std::max(largest, distance(gradients.at(i++), p.grad().contiguous().flatten()));
  });
  return largest;
}

auto residual_network(std::uint64_t seed) {
  generator gen(seed);
  const auto conv = [&](index_t inputs, index_t outputs, index_t kernel, index_t stride) {
    return nn::conv2d(inputs, outputs, kernel, gen, {.stride = stride, .padding = kernel / 2}, nn::no_bias);
  };
  const auto norm = [](index_t channels) { return nn::batch_norm2d(channels); };
  const auto strided = [&](index_t channels) {
    return strided_block<>{{},
                           conv(channels, 2 * channels, 3, 2),
                           conv(2 * channels, 2 * channels, 3, 1),
                           conv(channels, 2 * channels, 1, 2),
                           norm(2 * channels),
                           norm(2 * channels),
                           norm(2 * channels)};
  };
  return nn::sequential{conv(3, 8, 7, 2),
                        norm(8),
                        nn::relu(),
                        nn::max_pool2d(3, {.stride = 2, .padding = 1}),
                        even_block<>{{}, conv(8, 8, 3, 1), norm(8)},
                        strided(8),
                        strided(16)};
}

}  // namespace

TEST_CASE("the first layers of AlexNet over tiles", "[parallel]") {
  const auto make = [] {
    generator gen(1);
    return nn::sequential{nn::conv2d(3, 8, 11, gen, {.stride = 4, .padding = 2}),
                          nn::relu(),
                          nn::max_pool2d(3, {.stride = 2}),
                          nn::conv2d(8, 16, 5, gen, {.padding = 2}),
                          nn::relu(),
                          nn::max_pool2d(3, {.stride = 2}),
                          nn::conv2d(16, 12, 3, gen, {.padding = 1}),
                          nn::relu()};
  };
  const auto one = make();
  const auto many = nn::tile_parallel<upper_and_lower>(make());
  generator gen(2);
  for (const index_t extent : {224, 99}) {
    const tensor data = randn<float>(gen, {2, 3, extent, extent});
    const variable x = data.clone(), z = data.clone();
    const variable y = one(x);
    const variable w = many(z);
    CHECK(distance(y.value(), w.value()) < 1e-5);
    const tensor seed = randn<float>(gen, y.shape());
    one.zero_grad();
    many.zero_grad();
    y.backward(seed);
    w.backward(seed);
    CHECK(distance(x.grad(), z.grad()) < 1e-5);
    CHECK(gradient_distance(one, many) < 1e-5);
  }
}

TEST_CASE("a strided residual network over tiles trains as on one device", "[parallel]") {
  const auto one = residual_network(3);
  const auto many = nn::tile_parallel<upper_and_lower>(residual_network(3));
  optim::sgd step_one(one, {.lr = 0.02}), step_many(many, {.lr = 0.02});
  generator gen(4);
  for (int step = 0; step < 3; ++step) {
    const tensor data = randn<float>(gen, {4, 3, 67, 64});
    const variable x = data.clone(), z = data.clone();
    const variable y = one(x);
    const variable w = many(z);
    CHECK(distance(y.value(), w.value()) < 1e-5);
    const tensor seed = randn<float>(gen, y.shape());
    step_one.zero_grad();
    step_many.zero_grad();
    y.backward(seed);
    w.backward(seed);
    CHECK(distance(x.grad(), z.grad()) < 1e-5);
    CHECK(gradient_distance(one, many) < 1e-5);
    step_one.step();
    step_many.step();
  }
  const auto& norm = one.get<5>().bn3;
  const auto& tiled = many.module.get<5>().bn3;
  CHECK(distance(norm.running_var.value(), tiled.running_var.value()) < 1e-5);
}

TEST_CASE("tiles stand between other modules", "[parallel]") {
  generator gen(5);
  const nn::conv2d first(3, 8, 3, gen, {.padding = 1});
  const nn::linear last(8 * 5 * 6, 4, gen);
  const auto middle = [&] {
    generator of(6);
    return nn::sequential{nn::conv2d(8, 8, 3, of, {.stride = 2, .padding = 1}), nn::batch_norm2d(8), nn::relu()};
  };
  const nn::sequential one{first, nn::tanh(), middle(), nn::flatten(), last};
  const nn::sequential many{first, nn::tanh(), nn::tile_parallel<upper_and_lower>(middle()), nn::flatten(), last};
  const tensor x = randn<float>(gen, {2, 3, 10, 12});
  const variable y = one(x);
  sum(square(y)).backward();
  const tensor expected = first.weight.grad().clone();
  one.zero_grad();
  const variable w = many(x);
  CHECK(distance(y.value(), w.value()) < 1e-5);
  const variable loss = sum(square(w));
  loss.backward({.retain_graph = true});
  CHECK(distance(expected, first.weight.grad()) < 1e-5);
  loss.backward();
  CHECK(distance(eval(expected * 2), first.weight.grad()) < 1e-5);
  CHECK_THROWS_AS(loss.backward(), autograd_error);
  {
    const no_grad guard;
    CHECK_THROWS_AS(variable(many(x)).backward(ones<float>({2, 4})), autograd_error);
  }
  CHECK(many.named_parameters()[2].name == "2.module.0.weight");
}
