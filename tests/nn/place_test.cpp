// tests/nn/place_test.cpp: an error of forward names the module it came from.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

using namespace sinter;

namespace {

template <device D = cpu, class Kind = nn::tracked>
struct block : nn::module<block<D, Kind>> {
  nn::linear<float, D, Kind> fc1, fc2;

  template <class X>
  auto forward(const X& x) const {
    return fc2(relu(fc1(x)));
  }
  SINTER_MEMBERS(fc1, fc2);
};

template <device D = cpu, class Kind = nn::tracked>
struct tower : nn::module<tower<D, Kind>> {
  nn::module_list<block<D, Kind>> blocks;

  template <class X>
  auto forward(const X& x) const {
    auto h = eval(blocks[0](x));
    for (index_t i = 1; i < blocks.size(); ++i) h = blocks[i](h);
    return h;
  }
  SINTER_MEMBERS(blocks);
};

struct thrower : nn::module<thrower> {
  auto forward(const tensor<float, 1>& x) const {
    if (x.numel() > 0) throw index_error("none");
    return x;
  }
  SINTER_MEMBERS();
};

block<> make(index_t in, index_t inner, index_t expects, index_t out, generator& gen) {
  return {{}, nn::linear(in, inner, gen), nn::linear(expects, out, gen)};
}

template <class F>
std::string text_of(const F& f) {
  try {
    f();
  } catch (const shape_error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("the path leads through chains, lists and modules of one's own") {
  generator gen(1);
  const tensor x = zeros<float>({2, 3});
  const nn::linear alone(4, 3, gen);
  const std::string reason = text_of([&] { eval(alone(x)); });
  CHECK(reason.find("(2, 3)") != std::string::npos);
  CHECK(reason.find("(3, 4)") != std::string::npos);
  CHECK(reason.find("in module") == std::string::npos);

  const tower<> good{{}, nn::module_list(2, [&] { return make(3, 5, 5, 3, gen); })};
  const tower<> bad{{}, nn::module_list(std::vector{make(3, 5, 5, 3, gen), make(3, 3, 4, 3, gen)})};
  const nn::sequential model{good, nn::sequential{nn::relu(), bad}};
  CHECK(text_of([&] { eval(model(x)); }) == "in module 1.1.blocks.1.fc2: " + reason);
  CHECK(text_of([&] { eval(infer(model)(x)); }) == "in module 1.1.blocks.1.fc2: " + reason);
  CHECK(text_of([&] { eval(bad(x)); }) == "in module blocks.1.fc2: " + reason);
  CHECK(text_of([&] { eval(nn::sequential{nn::relu(), alone}(x)); }) == "in module 1: " + reason);
}

TEST_CASE("other errors pass as they are") {
  const nn::sequential model{thrower()};
  CHECK_THROWS_AS(model(ones<float>({1})), index_error);
}
