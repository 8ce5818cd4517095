// tests/ops/unfold_test.cpp: unfold, fold and the pixel shuffles: shapes, how they undo each other, and errors.
#include <string>

#include "../catch.hpp"
#include "sinter/sinter.hpp"

using namespace sinter;

namespace {

template <class E>
std::vector<element_of<E>> list(const E& e) {
  const tensor dense = eval(e).contiguous();
  return std::vector<element_of<E>>(dense.begin(), dense.end());
}
template <class F>
std::string text_of(const F& f) {
  try {
    f();
  } catch (const error& e) {
    return e.what();
  }
  return "nothing thrown";
}
bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("unfold and fold take pictures with and without the axis of the batch, in any layout") {
  const tensor x = arange<float>(2 * 3 * 5 * 4).reshape({2, 3, 5, 4});
  const unfold_options o{.padding = {1, 0}, .stride = {2, 1}};
  const tensor columns = unfold(x, {3, 2}, o);
  CHECK(columns.shape() == extents<3>{{2, 18, 9}});
  CHECK(list(unfold(x[1], {3, 2}, o)) == list(columns[1]));
  CHECK(list(unfold(x.to_memory_format(channels_last), {3, 2}, o)) == list(columns));
  CHECK(list(fold(columns[1], {5, 4}, {3, 2}, o)) == list(eval(fold(columns, {5, 4}, {3, 2}, o))[1]));
  CHECK(list(fold(columns.transpose(1, 2).contiguous().transpose(1, 2), {5, 4}, {3, 2}, o)) ==
        list(fold(columns, {5, 4}, {3, 2}, o)));
}

TEST_CASE("fold of unfold counts each element as often as windows have it") {
  const tensor x = arange<float>(16).reshape({1, 1, 4, 4}) + 1.f;
  CHECK(list(fold(unfold(x, {2, 2}, {.stride = 2}), {4, 4}, {2, 2}, {.stride = 2})) == list(x));
  const tensor twice = fold(unfold(x, {1, 2}), {4, 4}, {1, 2});
  for (index_t i = 0; i < 4; ++i)
    for (index_t j = 0; j < 4; ++j) CHECK(twice(0, 0, i, j) == x(0, 0, i, j) * (j == 0 || j == 3 ? 1.f : 2.f));
}

TEST_CASE("unfold and fold say what does not fit") {
  const tensor x = zeros<float>({2, 3, 5, 4});
  CHECK(contains(text_of([&] { eval(unfold(x, {6, 1})); }), "a window of 6 elements is larger than the 5 elements"));
  CHECK(contains(text_of([&] { eval(unfold(x, {3, 3}, {.dilation = 2})); }), "a window of 5 elements"));
  CHECK(contains(text_of([&] { eval(unfold(x, 0)); }), "kernel_size is 0; it must be 1 or more"));
  CHECK(contains(text_of([&] { eval(unfold(x, 1, {.stride = 0})); }), "unfold: stride is 0"));
  CHECK(contains(text_of([&] { eval(unfold(x, 1, {.padding = -1})); }), "padding is -1; it must not be negative"));
  const tensor columns = zeros<float>({2, 12, 12});
  CHECK(eval(fold(columns, {5, 4}, {2, 2})).shape() == extents<4>{{2, 3, 5, 4}});
  CHECK(contains(text_of([&] { eval(fold(columns, {5, 5}, {2, 2})); }), "an image of 5 x 5 has 16 windows"));
  CHECK(contains(text_of([&] { eval(fold(zeros<float>({10, 12}), {5, 4}, {2, 2})); }), "2 x 2 do not divide"));
  CHECK_THROWS_AS(fold(columns, {1, 4}, {2, 2}), shape_error);
}

TEST_CASE("pixel_shuffle moves channels into blocks, and pixel_unshuffle back") {
  const tensor x = arange<int>(2 * 8 * 2 * 3).reshape({2, 8, 2, 3});
  const tensor y = pixel_shuffle(x, 2);
  CHECK(y.shape() == extents<4>{{2, 2, 4, 6}});
  for (index_t c = 0; c < 2; ++c)
    for (index_t h = 0; h < 4; ++h)
      for (index_t w = 0; w < 6; ++w) REQUIRE(y(1, c, h, w) == x(1, c * 4 + h % 2 * 2 + w % 2, h / 2, w / 2));
  CHECK(list(pixel_unshuffle(y, 2)) == list(x));
  CHECK(list(pixel_shuffle(x[0], 2)) == list(y[0]));
  CHECK(list(pixel_shuffle(x.reshape({1, 1, 1, 16, 2, 3}), 2)) == list(pixel_shuffle(x.reshape({16, 2, 3}), 2)));
  CHECK(pixel_shuffle(zeros<float>({0, 4, 2, 2}), 2).shape() == extents<4>{{0, 1, 4, 4}});

  const variable v = arange<float>(48).reshape({1, 4, 3, 4});
  const variable z = pixel_shuffle(v * 2.f, 2);
  const tensor seed = arange<float>(48).reshape({1, 1, 6, 8});
  z.backward(seed);
  CHECK(list(v.grad()) == list(pixel_unshuffle(seed, 2) * 2.f));
}

TEST_CASE("the pixel shuffles say what does not fit") {
  const tensor x = zeros<float>({6, 3, 4});
  CHECK(contains(text_of([&] { pixel_shuffle(x, 2); }), "2 x 2 do not divide the 6 channels of shape (6, 3, 4)"));
  CHECK(contains(text_of([&] { pixel_unshuffle(x, 2); }), "do not divide the last two axes of shape (6, 3, 4)"));
  CHECK(contains(text_of([&] { pixel_shuffle(x, 0); }), "the factor is 0; it must be 1 or more"));
  CHECK_THROWS_AS(pixel_unshuffle(x, -1), value_error);
  CHECK_THROWS_AS(pixel_shuffle(tensor<float, 3>(), 1), shape_error);
}
