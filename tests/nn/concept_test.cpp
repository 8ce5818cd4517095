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
