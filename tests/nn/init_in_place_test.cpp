// tests/nn/init_in_place_test.cpp: initial values are those of PyTorch's distributions.
#include "../catch.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <sinter/sequences.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;
using namespace sinter::nn::init;
using Catch::Contains;

namespace {

std::vector<double> reference(const std::string& wanted) {
  std::ifstream in(SINTER_REPOSITORY "/tests/nn/reference/init.csv");
  std::vector<double> values;
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string name, field;
    std::getline(fields, name, ',');
    while (name == wanted && std::getline(fields, field, ',')) values.push_back(std::stod(field));
  }
  REQUIRE_FALSE(values.empty());
  return values;
}

template <class X>
std::vector<double> elements(const X& x) {
  const auto value = x.value().template to<cpu>();
  return {value.begin(), value.end()};
}

/// f(parameter, gen) draws what uniform_ or normal_ of the reference's two numbers draws.
template <int R, class F>
void check_drawn(const std::string& name, const extents<R>& shape, const F& f) {
  INFO(name);
  const std::vector<double> expected = reference(name);
  const variable<double, R> w = zeros<double>(shape), same = zeros<double>(shape);
  generator gen(3), again(3);
  f(w, gen);
  if (expected[0] < 0) uniform_(same, again, expected[0], expected[1]);
  else normal_(same, again, expected[0], expected[1]);
  const std::vector<double> drawn = elements(w), other = elements(same);
  for (std::size_t i = 0; i < drawn.size(); ++i) CHECK(drawn[i] == Approx(other[i]).epsilon(1e-12));
  CHECK(drawn[0] != drawn[1]);
}

template <int R, class F>
void check_values(const std::string& name, const extents<R>& shape, const F& f) {
  INFO(name);
  const variable<float, R, numa<1>> w = full<float, numa<1>>(shape, 7);
  f(w);
  CHECK(elements(w) == reference(name));
}

}  // namespace

TEST_CASE("xavier and kaiming draw from PyTorch's distributions") {
  const extents<4> conv{{8, 6, 3, 2}};
  const extents<2> matrix{{5, 7}};
  check_drawn("xavier_uniform", conv, [](auto& w, auto& gen) { xavier_uniform_(w, gen, 1.5); });
  check_drawn("xavier_normal", conv, [](auto& w, auto& gen) { xavier_normal_(w, gen); });
  check_drawn("kaiming_uniform", conv, [](auto& w, auto& gen) { kaiming_uniform_(w, gen); });
  check_drawn("kaiming_uniform_out", conv,
              [](auto& w, auto& gen) { kaiming_uniform_(w, gen, {.a = 0.2, .mode = fan::out}); });
  check_drawn("kaiming_normal", matrix,
              [](auto& w, auto& gen) { kaiming_normal_(w, gen, {.nonlinearity = activation::tanh}); });
  check_drawn("kaiming_normal_out", matrix, [](auto& w, auto& gen) {
    kaiming_normal_(w, gen, {.mode = fan::out, .nonlinearity = activation::relu});
  });
  static_assert(sinter::nonlinearity::relu == nonlinearity::relu);  // of recurrent layers: not ambiguous
  const activation all[] = {activation::linear, activation::sigmoid,    activation::tanh,
                            activation::relu,   activation::leaky_relu, activation::selu};
  const std::vector<double> gains = reference("gains");
  for (std::size_t i = 0; i < 6; ++i) CHECK(calculate_gain(all[i]) == Approx(gains[i]).epsilon(1e-12));
  CHECK(calculate_gain(activation::leaky_relu, 0.3) == Approx(gains[6]).epsilon(1e-12));
}

TEST_CASE("eye and dirac are PyTorch's, on any device") {
  check_values("eye", extents<2>{{2, 3}}, [](auto& w) { eye_(w); });
  check_values("dirac_4x3x3", extents<3>{{4, 3, 3}}, [](auto& w) { dirac_(w); });
  check_values("dirac_4x1x2x3", extents<4>{{4, 1, 2, 3}}, [](auto& w) { dirac_(w, 2); });
  check_values("dirac_2x3x1x2x2", extents<5>{{2, 3, 1, 2, 2}}, [](auto& w) { dirac_(w); });
  const variable<float, 3> w = zeros<float>({4, 1, 3});
  CHECK_THROWS_WITH(dirac_(w, 3), Contains("3 groups do not divide 4 outputs"));
  CHECK_THROWS_AS(dirac_(w, 0), value_error);
}

TEST_CASE("orthogonal weights have orthonormal rows or columns, and are uniform among these") {
  generator gen(1);
  const auto check = [](const tensor<double, 2>& w, double gain, double tolerance = 1e-13) {
    const bool wide = w.extent(0) < w.extent(1);
    const tensor<double, 2> gram = matmul(wide ? w : w.transpose(), wide ? w.transpose() : w);
    CHECK(allclose(gram, gain * gain * eye<double>(gram.extent(0)), {.rtol = 0, .atol = tolerance}));
  };
  for (const extents<2>& shape :
       {extents<2>{{20, 50}}, extents<2>{{50, 20}}, extents<2>{{30, 30}}, extents<2>{{1, 4}}}) {
    const variable<double, 2> w = zeros<double>(shape);
    orthogonal_(w, gen, 1.5);
    check(w.value(), 1.5);
  }
  const variable<float, 4> conv = zeros<float>({6, 4, 3, 3});
  orthogonal_(conv, gen);
  check(conv.value().reshape({6, 36}).cast<double>(), 1, 1e-6);
  const variable<float, 2> empty = zeros<float>({0, 3});
  orthogonal_(empty, gen);
  double mean = 0, determinants = 0;
  for (int i = 0; i < 400; ++i) {
    const variable<double, 2> w = zeros<double>({2, 2});
    orthogonal_(w, gen);
    mean += w(0, 0) / 400;
    determinants += (w(0, 0) * w(1, 1) - w(0, 1) * w(1, 0)) / 400;
  }
  CHECK(std::fabs(mean) < 0.15);  // 4 deviations; all reflections or all rotations would give a mean of 1 below
  CHECK(std::fabs(determinants) < 0.2);
}

TEST_CASE("trunc_normal_ keeps the shape of the distribution between its bounds") {
  generator gen(1);
  // Mean and variance of N(mean, std^2) within [a, b], integrated by numpy in 2 million steps, or, with one bound, by
  // the hazard.
  struct wanted {
    double mean, std, a, b, of_mean, of_variance;
  };
  const double inf = std::numeric_limits<double>::infinity();
  for (const wanted& t : {wanted{0, 1, -2, 2, 0, 0.7737413}, wanted{0, 1, 2, 5, 2.3731801, 0.1141804},
                          wanted{0, 1, 3, 1e9, 3.2830987, 0.0705592}, wanted{1, 2, -inf, -7, -7.4512143, 0.1866914},
                          wanted{0, 1, -inf, 1, -0.2876000, 0.6296863}, wanted{1, 0.5, -3, 1, 0.6010577, 0.0908451}}) {
    const variable<float, 1> w = zeros<float>({40000});
    trunc_normal_(w, gen, t.mean, t.std, t.a, t.b);
    CHECK(min(w.value()).item() >= static_cast<float>(t.a));
    CHECK(max(w.value()).item() <= static_cast<float>(t.b));
    const tensor<double, 1> x = w.value().cast<double>();
    CHECK(mean(x).item() == Approx(t.of_mean).margin(0.02));
    CHECK(mean(square(x - t.of_mean)).item() == Approx(t.of_variance).epsilon(0.05));
  }
  const variable<float, 1> w = zeros<float>({4});
  CHECK_THROWS_WITH(trunc_normal_(w, gen, 0, 1, 2, 2), Contains("trunc_normal_: a must be below b"));
  CHECK_THROWS_AS(trunc_normal_(w, gen, NAN, 1), value_error);
  CHECK_THROWS_AS(trunc_normal_(w, gen, 0, INFINITY), value_error);
  CHECK_THROWS_AS(trunc_normal_(w, gen, 0, 0), value_error);
}

TEST_CASE("sparse_ leaves zeros at random rows of each column") {
  generator gen(1);
  const variable<float, 2> w = zeros<float>({10, 6});
  sparse_(w, gen, 0.25, 2);
  std::vector<int> zeros_of_row(10);
  for (index_t j = 0; j < 6; ++j) {
    int found = 0;
    for (index_t i = 0; i < 10; ++i)
      if (w(i, j) == 0) {
        ++found;
        ++zeros_of_row[static_cast<std::size_t>(i)];
      }
    CHECK(found == 3);
  }
  CHECK(*std::max_element(zeros_of_row.begin(), zeros_of_row.end()) < 6);
  CHECK(max(abs(w.value())).item() > 1);
  CHECK_THROWS_AS(sparse_(w, gen, 1.5), value_error);
}

TEST_CASE("parameters of a built module get new values, and graphs of before are stale") {
  generator gen(1);
  nn::sequential model{nn::conv2d<half>(3, 4, 3, gen), nn::flatten(), nn::linear<half, cpu>(4, 2, gen)};
  constant_(model.get<2>().bias, 0.5);
  CHECK(model.get<2>().bias(1) == half(0.5f));
  ones_(model.get<0>().bias);
  CHECK(model.get<0>().bias(3) == half(1.f));
  zeros_(model.get<0>().bias);
  CHECK(model.get<0>().bias(3) == half(0.f));
  model.for_each_parameter([&](const std::string&, const auto& p) {
    if constexpr (rank_of<decltype(p)> >= 2) kaiming_normal_(p, gen);
  });
  const tensor<half, 2> plain_weight = infer(model).get<2>().weight;
  normal_(plain_weight, gen, 100, 1);
  CHECK(static_cast<float>(model.get<2>().weight(0, 0)) == Approx(100).margin(6));
  const variable<float, 1> w = ones<float>({3});
  const variable<float, 0> loss = sum(w * w);
  uniform_(w, gen, 2, 3);
  CHECK(w(0) >= 2);
  CHECK(w.is_leaf());
  CHECK_THROWS_AS(loss.backward(), autograd_error);
  CHECK_THROWS_WITH(zeros_(nn::linear<>().weight), Contains("zeros_: the parameter is empty"));
}
