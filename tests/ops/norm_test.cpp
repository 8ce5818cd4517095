// tests/ops/norm_test.cpp: batch_norm, group_norm and instance_norm against plain loops and differences.
#include "../grad/differences.hpp"

#include <sinter/sinter.hpp>

#include <string>

using namespace sinter;

namespace {

template <int R>
using numbers = tensor<double, R>;

/// The norm of x over the elements that `of` gives the same number, with gains and shifts of channels.
template <class F>
numbers<4> normalise(const numbers<4>& x, const numbers<1>& gain, const numbers<1>& shift, double eps, const F& of) {
  const auto each = [&](const auto& f) {
    for (index_t n = 0; n < x.shape()[0]; ++n)
      for (index_t c = 0; c < x.shape()[1]; ++c)
        for (index_t i = 0; i < x.shape()[2]; ++i)
          for (index_t j = 0; j < x.shape()[3]; ++j) f(static_cast<std::size_t>(of(n, c)), n, c, i, j);
  };
  std::vector<double> count(1000), mean(1000), variance(1000);
  each([&](std::size_t g, index_t n, index_t c, index_t i, index_t j) { ++count[g], mean[g] += x(n, c, i, j); });
  for (std::size_t g = 0; g < 1000; ++g) mean[g] /= count[g];
  each([&](std::size_t g, index_t n, index_t c, index_t i, index_t j) {
    variance[g] += (x(n, c, i, j) - mean[g]) * (x(n, c, i, j) - mean[g]) / count[g];
  });
  numbers<4> y = zeros<double>(x.shape());
  each([&](std::size_t g, index_t n, index_t c, index_t i, index_t j) {
    y(n, c, i, j) = (x(n, c, i, j) - mean[g]) / std::sqrt(variance[g] + eps) * gain(c) + shift(c);
  });
  return y;
}

template <class A, class B>
double distance(const A& a, const B& b) {
  return eval(max(abs(cast<double>(a) - cast<double>(b)))).item();
}

struct operands {
  numbers<4> x;
  numbers<1> gain, shift;
};
operands some_operands() {
  std::mt19937 gen(3);
  return {differences::random(gen, extents<4>{{3, 6, 5, 4}}, -1, 3), differences::random(gen, extents<1>{{6}}, 0.5, 2),
          differences::random(gen, extents<1>{{6}}, -1, 1)};
}
constexpr batch_norm_options training{.training = true, .eps = 1e-3};

template <class Error, class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  FAIL("no error");
  return {};
}

}  // namespace

TEST_CASE("batch_norm normalises channels over the batch", "[norm]") {
  const operands all = some_operands();
  const numbers<4>& x = all.x;
  const numbers<1>&gain = all.gain, &shift = all.shift;
  const numbers<1> none;
  const auto expected = normalise(x, gain, shift, 1e-3, [](index_t, index_t c) { return c; });
  CHECK(distance(batch_norm(x, none, none, gain, shift, training), expected) < 1e-13);
  CHECK(distance(batch_norm(x.to_memory_format(channels_last), none, none, gain, shift, training), expected) < 1e-13);
  const numbers<1> one = ones<double>({6}), zero = zeros<double>({6});
  const auto bare = normalise(x, one, zero, 1e-3, [](index_t, index_t c) { return c; });
  CHECK(distance(batch_norm(x, none, none, training), bare) < 1e-13);
  CHECK(distance(batch_norm(x, none, none, gain, training), bare * gain.reshape({6, 1, 1})) < 1e-13);
  const tensor<float, 1> f32;
  const auto narrow = cast<half>(x);
  CHECK(distance(batch_norm(eval(narrow), f32, f32, eval(cast<float>(gain)), eval(cast<float>(shift)), training),
                 expected) < 1e-2);
  CHECK(distance(batch_norm(eval(narrow), f32, f32, eval(cast<half>(gain)), eval(cast<half>(shift)), training),
                 expected) < 1e-2);
  // Means that are large beside the deviations keep their digits.
  const auto far = eval(cast<float>(x + 1000));
  CHECK(distance(batch_norm(far, f32, f32, training), bare) < 1e-3);
  const auto there = batch_norm(x.to<numa<0>>(), tensor<double, 1, numa<0>>(), tensor<double, 1, numa<0>>(),
                                gain.to<numa<0>>(), shift.to<numa<0>>(), training);
  CHECK(distance(eval(there).to<cpu>(), expected) < 1e-13);
}

TEST_CASE("batch_norm has the gradients of differences", "[norm]") {
  const operands all = some_operands();
  const numbers<4>& x = all.x;
  const numbers<1>&gain = all.gain, &shift = all.shift;
  const numbers<1> none;
  for (const memory_format f : {memory_format::contiguous, channels_last}) {
    differences::check([&](const auto& a, const auto& w,
                           const auto& b) { return relu(batch_norm(a, none, none, w, b, training) + a * 0.1); },
                       20, x.to_memory_format(f), gain, shift);
    const numbers<1> mean = ones<double>({6}), variance = ones<double>({6}) * 2;
    differences::check([&](const auto& a, const auto& w, const auto& b) { return batch_norm(a, mean, variance, w, b); },
                       12, x.to_memory_format(f), gain, shift);
  }
}

TEST_CASE("batch_norm moves its running moments in training only", "[norm]") {
  const operands all = some_operands();
  const numbers<4>& x = all.x;
  const numbers<1>&gain = all.gain, &shift = all.shift;
  numbers<1> mean = zeros<double>({6}), variance = ones<double>({6});
  const numbers<2> now = batch_moments(x);
  eval(batch_norm(x, mean, variance, gain, shift, {.training = true, .momentum = 0.25}));
  CHECK(distance(mean, now[0] * 0.25) < 1e-14);
  CHECK(distance(variance, 0.75 + now[1] * (0.25 * 60 / 59)) < 1e-14);
  const numbers<1> m = mean.clone(), v = variance.clone();
  const auto y = eval(batch_norm(x, mean, variance, gain, shift));
  CHECK(distance(m, mean) == 0);
  const auto c = [](const auto& t) { return t.reshape({6, 1, 1}); };
  CHECK(distance(y, (x - c(m)) / sqrt(c(v) + 1e-5) * c(gain) + c(shift)) < 1e-13);
}

TEST_CASE("group_norm and instance_norm normalise within samples", "[norm]") {
  const operands all = some_operands();
  const numbers<4>& x = all.x;
  const numbers<1>&gain = all.gain, &shift = all.shift;
  const numbers<1> one = ones<double>({6}), zero = zeros<double>({6});
  const auto groups = [](index_t n, index_t c) { return n * 3 + c / 2; };
  const auto each = [](index_t n, index_t c) { return n * 6 + c; };
  for (const memory_format f : {memory_format::contiguous, channels_last}) {
    const auto a = x.to_memory_format(f);
    CHECK(distance(group_norm(a, 3, gain, shift, 1e-3), normalise(x, gain, shift, 1e-3, groups)) < 1e-13);
    CHECK(distance(group_norm(a, 3, 1e-3), normalise(x, one, zero, 1e-3, groups)) < 1e-13);
    CHECK(distance(instance_norm(a, gain, shift), normalise(x, gain, shift, 1e-5, each)) < 1e-13);
    CHECK(distance(instance_norm(a, gain), normalise(x, gain, zero, 1e-5, each)) < 1e-13);
  }
  differences::check([](const auto& a, const auto& w, const auto& b) { return group_norm(a, 2, w, b, 1e-3); }, 20, x,
                     gain, shift);
}

TEST_CASE("layer_norm and rms_norm take as many axes as a shape or a weight says", "[norm]") {
  const auto x = some_operands().x;
  const numbers<1> one = ones<double>({6}), zero = zeros<double>({6});
  const auto sample = [](index_t n, index_t) { return n; };
  const auto channel = [](index_t n, index_t c) { return n * 6 + c; };
  const auto pictures = normalise(x, one, zero, 1e-5, sample), planes = normalise(x, one, zero, 1e-5, channel);
  std::mt19937 gen(8);
  const auto gain = differences::random(gen, extents<3>{{6, 5, 4}}, 0.5, 2);
  const auto shift = differences::random(gen, extents<3>{{6, 5, 4}}, -1, 1);
  CHECK(distance(layer_norm(x, {6, 5, 4}), pictures) < 1e-13);
  CHECK(distance(layer_norm(x, {5, 4}), planes) < 1e-13);
  CHECK(distance(layer_norm(x, {4}), layer_norm(x)) == 0);
  CHECK(distance(layer_norm(x, gain.shape(), 1e-5), pictures) < 1e-13);
  CHECK(distance(layer_norm(x, gain, shift), pictures * gain + shift) < 1e-13);
  CHECK(distance(layer_norm(x, gain), pictures * gain) < 1e-13);
  CHECK(distance(layer_norm(x, eval(gain[0])), planes * gain[0]) < 1e-13);
  CHECK(distance(layer_norm(x * 2 + 1, gain, shift, 4e-5), pictures * gain + shift) < 1e-13);
  CHECK(distance(rms_norm(x, gain, 1e-5), rms_norm(x, {6, 5, 4}, 1e-5) * gain) < 1e-13);
  CHECK(distance(mean(square(rms_norm(x, {5, 4}, 0.0)), {2, 3}), ones<double>({3, 6})) < 1e-13);
  const auto none = zeros<double>({0, 6, 5, 4});
  CHECK(eval(layer_norm(none, gain, shift)).shape() == none.shape());
  CHECK(eval(layer_norm(zeros<double>({3, 0, 2}), {0, 2})).numel() == 0);
  differences::check([](const auto& a, const auto& w) { return relu(layer_norm(a * 2, w)); }, 20, x, gain);
}

TEST_CASE("norms of rows name the shape that does not fit", "[norm]") {
  const auto x = some_operands().x;
  CHECK(
      message_of<shape_error>([&] { eval(layer_norm(x, ones<double>({4, 4}))); }) ==
      "layer_norm: a weight of shape (4, 4) for x of shape (3, 6, 5, 4); it must have the shape of the last axes of x");
  CHECK(message_of<shape_error>([&] { eval(layer_norm(x, ones<double>({4}), ones<double>({5}))); }) ==
        "layer_norm: a bias of shape (5,) for x of shape (3, 6, 5, 4); it must have the shape of the last axes of x");
  CHECK(message_of<shape_error>([&] { eval(rms_norm(x, {6, 4})); }) ==
        "rms_norm: rows of shape (6, 4) are not the last axes of x of shape (3, 6, 5, 4); pass the extents of one or "
        "more of these");
}

TEST_CASE("norms of channels name what does not fit", "[norm]") {
  const operands all = some_operands();
  const numbers<4>& x = all.x;
  const numbers<1>&gain = all.gain, &shift = all.shift;
  const numbers<1> none, three = ones<double>({3});
  CHECK(
      message_of<shape_error>([&] { eval(batch_norm(x, none, none, three, shift)); }) ==
      "batch_norm: a weight of shape (3,) for the 6 channels of x of shape (3, 6, 5, 4); it needs one value for each");
  CHECK(message_of<shape_error>([&] { eval(batch_norm(x, three, three, gain, shift)); }).find("running mean") !=
        std::string::npos);
  CHECK(message_of<shape_error>([&] { eval(batch_norm(zeros<double>({1, 6}), none, none, training)); }) ==
        "batch_norm: x of shape (1, 6) has one value for each channel, which has no variance to train with; use larger "
        "batches, or eval()");
  CHECK(message_of<shape_error>([&] { eval(group_norm(x, 4)); }) ==
        "group_norm: 4 groups do not divide the 6 channels of x of shape (3, 6, 5, 4)");
  CHECK(message_of<value_error>([&] { eval(batch_norm(x, none, none, {.eps = -1})); }).find("eps is -1") !=
        std::string::npos);
}

TEST_CASE("instance_norm moves running moments towards the means of those of all samples", "[norm]") {
  const auto [x, gain, shift] = some_operands();
  const numbers<1> mean = arange<double>(6), variance = full<double>({6}, 2);
  const numbers<4> plain = instance_norm(x, gain, shift);
  const instance_norm_options o{.momentum = 0.25};
  CHECK(distance(instance_norm(x, mean, variance, gain, shift, o), plain) == 0);
  for (index_t c = 0; c < 6; ++c) {
    double means = 0, variances = 0;
    for (index_t n = 0; n < 3; ++n) {
      double m = 0, v = 0;
      for (index_t i = 0; i < 20; ++i) m += x(n, c, i / 4, i % 4) / 20;
      for (index_t i = 0; i < 20; ++i) v += (x(n, c, i / 4, i % 4) - m) * (x(n, c, i / 4, i % 4) - m) / 19;
      means += m / 3;
      variances += v / 3;
    }
    CHECK(mean(c) == Approx(0.75 * static_cast<double>(c) + 0.25 * means));
    CHECK(variance(c) == Approx(0.75 * 2 + 0.25 * variances));
  }
  // A variable, without a bias, without both.
  const variable<double, 4> v(x);
  variable y = instance_norm(v, mean.clone(), variance.clone(), gain);
  CHECK(distance(y.value() + shift.reshape({6, 1, 1}), plain) < 1e-13);
  y.backward(x);
  const variable<double, 4> w(x);
  variable z = instance_norm(w, gain);
  z.backward(x);
  CHECK(distance(v.grad(), w.grad()) < 1e-13);
  CHECK(distance(instance_norm(x, mean.clone(), variance.clone(), o), instance_norm(x)) == 0);
  // The running moments in place of those of the samples.
  const numbers<1> kept = mean.clone();
  const instance_norm_options stored{.use_input_stats = false, .eps = 0.5};
  CHECK(distance(instance_norm(x, mean, variance, gain, shift, stored),
                 batch_norm(x, mean, variance, gain, shift, {.eps = 0.5})) == 0);
  CHECK(distance(mean, kept) == 0);

  CHECK(message_of<shape_error>([&] { instance_norm(zeros<double>({3, 6, 1}), mean, variance, o); }) ==
        "instance_norm: x of shape (3, 6, 1) has one value for each channel of a sample, which has no variance");
  CHECK(message_of<shape_error>([&, &x = x] { instance_norm(x, zeros<double>({5}), variance, o); }) ==
        "instance_norm: a running mean of shape (5,) for the 6 channels of x of shape (3, 6, 5, 4); it needs one value "
        "for each");
  CHECK(distance(mean, kept) == 0);
  CHECK(instance_norm(zeros<double>({0, 6, 2}), mean, variance, o).numel() == 0);
  CHECK(distance(mean, kept) == 0);
}
