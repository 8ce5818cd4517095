// tests/nn/rearrange_test.cpp: modules that rearrange images are the functions of the same names; channel dropout.
#include <sinter/sinter.hpp>

#include "../catch.hpp"

using namespace sinter;

namespace {

template <class A, class B>
bool same(const A& a, const B& b) {
  const tensor x = eval(a), y = eval(b);
  return x.shape() == y.shape() && max(abs(x - y)).result().item() == 0;
}

const tensor<float, 4> pictures = arange<float>(2 * 4 * 6 * 5).reshape({2, 4, 6, 5});

}  // namespace

TEST_CASE("padding modules take one number for all sides or two for each axis") {
  const auto& x = pictures;
  CHECK(same(nn::zero_pad2d(2)(x), pad(x, {2, 2, 2, 2})));
  CHECK(same(nn::zero_pad2d({1, -1, 0, 2})(x), pad(x, {1, -1, 0, 2})));
  CHECK(same(nn::constant_pad2d({1, 2, 3, 0}, 0.5)(x), pad(x, {1, 2, 3, 0}, pad_mode::constant, 0.5)));
  CHECK(same(nn::constant_pad1d(1, -1)(x), pad(x, {1, 1}, pad_mode::constant, -1)));
  CHECK(same(nn::reflection_pad2d({1, 2, 3, 0})(x), pad(x, {1, 2, 3, 0}, pad_mode::reflect)));
  CHECK(same(nn::replication_pad3d(1)(x), pad(x, {1, 1, 1, 1, 1, 1}, pad_mode::replicate)));
  CHECK(same(nn::circular_pad1d({1, 2})(x[0]), pad(x[0], {1, 2}, pad_mode::circular)));
  CHECK_THROWS_AS(nn::zero_pad2d({1, 2}), value_error);
  CHECK_THROWS_AS(nn::reflection_pad2d(5)(x), shape_error);
}

TEST_CASE("upsample, the pixel shuffles, unfold and fold are the functions") {
  const auto& x = pictures;
  CHECK(same(nn::upsample({.scale_factor = 2})(x), interpolate(x, {.scale_factor = 2})));
  CHECK(same(nn::upsample({.size = {3, 9}, .mode = interpolation::bilinear, .align_corners = true})(x),
             interpolate(x, {.size = {3, 9}, .mode = interpolation::bilinear, .align_corners = true})));
  CHECK(same(nn::pixel_shuffle(2)(x), pixel_shuffle(x, 2)));
  CHECK(same(nn::pixel_unshuffle(5)(x.slice(2, 0, 5)), pixel_unshuffle(x.slice(2, 0, 5), 5)));
  const tensor columns = unfold(x, {3, 2}, {.padding = 1, .stride = 2});
  CHECK(same(nn::unfold({3, 2}, {.padding = 1, .stride = 2})(x), columns));
  CHECK(same(nn::fold({6, 5}, {3, 2}, {.padding = 1, .stride = 2})(columns),
             fold(columns, {6, 5}, {3, 2}, {.padding = 1, .stride = 2})));
}

TEST_CASE("settings of rearranging modules go along into copies, and a summary names them") {
  const nn::sequential model{
      nn::constant_pad2d({1, 0, 0, 0}, 2), nn::upsample({.size = 8}),      nn::pixel_shuffle(2),
      nn::unfold({4, 4}, {.stride = 4}),   nn::fold(16, 4, {.stride = 4}), nn::pixel_unshuffle(4)};
  const tensor y = model(pictures);
  CHECK(y.shape() == extents<4>{{2, 16, 4, 4}});
  CHECK(same(infer(model)(pictures), y));
  CHECK(same(model.to<numa<0>>()(pictures.to<numa<0>>()).template to<cpu>(), y));
  const nn::summary_table table = nn::summary(model, {2, 4, 6, 5});
  REQUIRE(table.rows.size() == 7);
  CHECK(table.rows[1].type == "constant_pad2d");
  CHECK(table.rows[3].type == "pixel_shuffle");
  CHECK(table.rows[5].output == std::vector<index_t>{2, 1, 16, 16});
}

TEST_CASE("modules of channel dropout drop in training mode only") {
  generator gen(2);
  nn::sequential model{nn::dropout2d(0.5, gen), nn::zero_pad2d(0)};
  const tensor x = ones<float>({8, 8, 2, 2});
  const tensor y = model(x);
  int zero = 0;
  for (index_t n = 0; n < 8; ++n)
    for (index_t c = 0; c < 8; ++c) {
      zero += y(n, c, 0, 0) == 0.f;
      for (index_t i = 0; i < 4; ++i) REQUIRE(y(n, c, i / 2, i % 2) == y(n, c, 0, 0));
    }
  CHECK(zero == Approx(32).margin(16));
  CHECK(!same(model(x), y));
  CHECK(same(infer(model)(x), x));
  model.eval();
  CHECK(same(model(x), x));
  CHECK(eval(nn::dropout1d(0, gen)(x[0])).numel() == 32);
  CHECK(eval(nn::dropout3d(0, gen)(x.unsqueeze(0))).numel() == 256);
  CHECK_THROWS_AS(nn::dropout2d(-0.5, gen), value_error);
}
