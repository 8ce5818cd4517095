// tests/devices/host_only_test.cpp: what a file for the host compiler does with GPU tensors: name, store, pass, return,
// compare and type-check them, and build expressions over them. Only evaluating needs nvcc.
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <sinter/sinter.hpp>
#include "../catch.hpp"

using namespace sinter;

// [docs:host_only]
struct scene {
  tensor<float, 3, cuda<0>> image;      // a member on a GPU
  variable<float, 2, cuda<1>> weights;  // a parameter on another
  std::vector<tensor<std::int64_t, 1, cuda<0>>> labels;
};

tensor<float, 3, cuda<0>> brighter(const scene& s);  // defined in a .cu file

// Expressions over GPU tensors are types like any other: they can be built, stored and returned here.
inline auto contrast(const tensor<float, 3, cuda<0>>& x) { return sigmoid((x - 0.5f) * 4) * 0.9f; }
// [docs:end]

namespace {

template <device D>
class layer {
 public:
  explicit layer(variable<float, 2, D> w) : w_(std::move(w)) {}
  template <expression X>
    requires on_device<X, D>
  auto operator()(const X& x) const {
    return relu(x * w_) + 1;
  }

 private:
  variable<float, 2, D> w_;
};

template <class F>
void visit_all(F&& f, const scene& s) {
  f(s.image);
  f(s.weights);
  for (const auto& l : s.labels) f(l);
}

}  // namespace

TEST_CASE("GPU tensors are stored, copied and moved as handles in a host-only file", "[devices]") {
  scene s;
  s.labels.resize(3);
  scene t = s;
  s = std::move(t);
  CHECK_FALSE(s.image.defined());
  CHECK(s.labels[1].numel() == 0);
  std::optional<tensor<float, 1, cuda<0>>> maybe;
  maybe.emplace();
  const auto shared = std::make_shared<variable<float, 2, cuda<0>>>();
  CHECK_FALSE(shared->defined());
  int visited = 0;
  visit_all([&visited](const auto& x) { visited += is_cuda_v<device_of<decltype(x)>>; }, s);
  CHECK(visited == 5);
}

TEST_CASE("GPU expressions type-check in a host-only file", "[devices]") {
  using x = tensor<float, 2, cuda<0>>;
  using w = variable<float, 2, cuda<0>>;
  static_assert(std::is_same_v<element_of<decltype(contrast(std::declval<tensor<float, 3, cuda<0>>>()))>, float>);
  static_assert(on_device<decltype(std::declval<layer<cuda<0>>>()(std::declval<x>())), cuda<0>>);
  static_assert(!std::is_invocable_v<layer<cuda<0>>, tensor<float, 2>>);
  static_assert(!std::is_invocable_v<layer<cuda<0>>, tensor<float, 2, cuda<1>>>);
  static_assert(rank_of<decltype(sum(std::declval<x>(), 0))> == 1);
  static_assert(on_device<decltype(mean(std::declval<w>() * std::declval<x>())), cuda<0>>);
  static_assert(on_device<decltype(softmax(std::declval<x>(), 1)), cuda<0>>);
  static_assert(on_device<decltype(relu(linear(std::declval<x>(), std::declval<w>()))), cuda<0>>);
  static_assert(on_device<decltype(where(std::declval<x>() > 0, std::declval<w>(), 0)), cuda<0>>);
  static_assert(is_tracked_v<decltype(matmul(std::declval<x>(), std::declval<w>()))>);
  using labels = tensor<std::int64_t, 1, cuda<0>>;
  using hidden = decltype(relu(matmul(std::declval<x>(), std::declval<w>())) + 1);
  static_assert(on_device<decltype(matmul(std::declval<hidden>(), std::declval<x>())), cuda<0>>);
  static_assert(on_device<decltype(softmax(std::declval<hidden>(), 1)), cuda<0>>);
  static_assert(on_device<decltype(eval(rms_norm(std::declval<hidden>()) * 2)), cuda<0>>);
  static_assert(is_tracked_v<decltype(cross_entropy(std::declval<hidden>(), std::declval<labels>()))>);
  static_assert(std::is_same_v<decltype(index_select(std::declval<hidden>(), 0, std::declval<labels>())), w>);
  static_assert(std::is_same_v<decltype(gather(std::declval<x>(), 1, std::declval<tensor<int, 2, cuda<0>>>())), x>);
  static_assert(on_device<decltype(cumsum(std::declval<x>() > 0, 1)), cuda<0>> &&
                is_tracked_v<decltype(cumprod(std::declval<hidden>(), 0))>);
  static_assert(std::is_same_v<decltype(sort(std::declval<hidden>(), 1).values), w>);
  static_assert(std::is_same_v<decltype(topk(std::declval<x>(), 2).indices), tensor<std::int64_t, 2, cuda<0>>>);
  static_assert(std::is_same_v<decltype(bincount(std::declval<labels>())), labels>);
  static_assert(std::is_same_v<decltype(unique(std::declval<x>()).values), tensor<float, 1, cuda<0>>>);
  static_assert(std::is_same_v<decltype(eval(std::declval<hidden>())), w>);
  static_assert(std::is_constructible_v<x, decltype(std::declval<x>() * 2)>);
  static_assert(std::is_constructible_v<w, decltype(std::declval<w>() * std::declval<x>())>);
  static_assert(!std::is_constructible_v<x, decltype(std::declval<w>() * 2)>);
  static_assert(std::is_same_v<decltype(std::declval<x>().to<cpu>()), tensor<float, 2>>);
  static_assert(std::is_same_v<decltype(std::declval<w>().to<cuda<1>>()), variable<float, 2, cuda<1>>>);
  static_assert(std::is_same_v<decltype(std::declval<x>().item()), float>);
  static_assert(kernel_count<decltype(relu(std::declval<x>()) * 2)> == 1);
}

TEST_CASE("an undefined GPU operand is an error when the expression is built, not a crash", "[devices]") {
  const tensor<float, 3, cuda<0>> nothing;
  CHECK_THROWS_AS(contrast(nothing), shape_error);
}

TEST_CASE("tensors have one layout whatever their device", "[devices]") {
  static_assert(sizeof(tensor<float, 2, cuda<0>>) == sizeof(tensor<float, 2>));
  static_assert(sizeof(variable<float, 2, cuda<0>>) == sizeof(variable<float, 2>));
  static_assert(std::is_nothrow_move_constructible_v<tensor<float, 2, cuda<0>>>);
}
