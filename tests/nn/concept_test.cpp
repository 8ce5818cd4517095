// tests/nn/concept_test.cpp: asking whether a type is a module, a setting or a source of parameters is never an error;
// checked while it compiles.
#include "../catch.hpp"

#include <filesystem>
#include <functional>
#include <memory>

#include <sinter/sinter.hpp>

using namespace sinter;

namespace {

class incomplete;
union either {
  int i;
  float f;
};
enum class colour { red };
struct abstract {
  virtual ~abstract() = default;
  virtual int f() const = 0;
};
struct closed final {};
class hidden : nn::module<hidden> {};
struct of_another : nn::module<closed> {};
struct without_list : nn::module<without_list> {};
struct without_kind : nn::module<without_kind> {
  SINTER_MEMBERS();

 private:
  using kind = nn::tracked;
};
struct complete : nn::module<complete> {
  SINTER_MEMBERS();
};

template <class... X>
constexpr int modules_among() {
  return (0 + ... + int{nn::is_module<X>});
}
template <class... X>
constexpr int settings_among() {
  return (0 + ... + int{nn::is_setting<X>});
}
template <class X>
concept has_optimizer = requires(const X& x) { optim::sgd(x); };
template <class... X>
constexpr int optimizable_among() {
  return (0 + ... + int{has_optimizer<X>});
}

// Whether a module takes an input.
template <class M, class X>
concept takes = requires(const M& m, const X& x) { m(x); };
template <class X, class... M>
constexpr int takers_among() {
  return (0 + ... + int{takes<M, X>});
}
struct pictures_only : nn::module<pictures_only> {
  tensor<float, 4> forward(const tensor<float, 4>& x) const { return x; }
  SINTER_MEMBERS();
};
struct constrained : nn::module<constrained> {
  template <class X>
    requires(rank_of<X> == 2)
  auto forward(const X& x) const {
    return x * 2;
  }
  SINTER_MEMBERS();
};
using chain = nn::sequential<nn::flatten, nn::linear<>, nn::relu>;
using bad_chain = nn::sequential<nn::relu, nn::linear<>, nn::conv2d<>>;
using two_devices = nn::sequential<nn::linear<>, nn::transfer<cpu, numa<0>>, nn::linear<float, numa<0>>>;

}  // namespace

static_assert(modules_among<int, void, const int&, int[3], int(int), int*, decltype(nullptr), incomplete, either,
                            colour, abstract, closed, hidden, of_another, without_list, without_kind,
                            std::vector<incomplete*>, std::vector<nn::linear<>>, std::function<void()>,
                            std::unique_ptr<incomplete>, nn::module<nn::linear<>>, tensor<float, 2>, variable<float, 1>,
                            nn::buffer<float, 1>, std::filesystem::path>() == 0);
static_assert(
    modules_among<complete, const complete&, complete&&, nn::linear<>, nn::relu, nn::module_list<nn::relu>,
                  nn::any_module<float, 4, numa<0>>, nn::sequential<nn::relu>, nn::transfer<cpu, numa<0>>>() == 9);
static_assert(settings_among<void, int*, int[3], incomplete, either, abstract, complete, std::vector<complete>,
                             tensor<float, 1>, std::function<void()>, std::filesystem::path>() == 0);
static_assert(settings_among<int, bool, double, half, colour, std::string, generator, nn::mode, extents<2>,
                             std::vector<double>, std::array<std::string, 2>, std::optional<colour>>() == 12);
static_assert(optimizable_among<int, either, colour, abstract, closed, std::vector<int>, std::filesystem::path,
                                tensor<float, 2>, std::function<void()>>() == 0);
static_assert(optimizable_among<variable<float, 1>, nn::linear<>, std::vector<nn::linear<>>,
                                nn::module_list<nn::linear<>>, nn::any_module<float, 2>>() == 5);

static_assert(takers_among<tensor<float, 2>, nn::linear<>, nn::relu, nn::softmax, nn::layer_norm<>, nn::batch_norm1d<>,
                           nn::dropout<>, nn::flatten, nn::any_module<float, 2>, constrained, chain, two_devices,
                           nn::transfer<cpu, numa<0>>>() == 12);
static_assert(takers_among<tensor<float, 2>, nn::conv2d<>, nn::conv_transpose2d<>, nn::batch_norm2d<>, nn::max_pool2d,
                           nn::adaptive_avg_pool2d, nn::upsample, nn::pixel_shuffle, nn::dropout2d<>, nn::unfold,
                           nn::any_module<float, 3>, nn::linear<float, numa<0>>, nn::linear<double>, pictures_only,
                           bad_chain, nn::module_list<nn::relu>>() == 0);
static_assert(takers_among<tensor<float, 4>, nn::conv2d<>, nn::conv_transpose2d<>, nn::batch_norm2d<>, nn::max_pool2d,
                           nn::adaptive_avg_pool2d, nn::zero_pad2d, nn::upsample, nn::pixel_shuffle, nn::dropout2d<>,
                           nn::unfold, nn::group_norm<>, nn::instance_norm<>, pictures_only>() == 13);
static_assert(takers_among<tensor<int, 4>, nn::conv2d<>, nn::batch_norm2d<>, nn::max_pool2d, nn::group_norm<>,
                           nn::instance_norm<>, nn::layer_norm<>, nn::sigmoid, nn::softmax, nn::dropout<>, nn::linear<>,
                           pictures_only, constrained, bad_chain>() == 0);
static_assert(takers_among<int, nn::linear<>, nn::relu, chain, nn::any_module<float, 2>, pictures_only>() == 0);
