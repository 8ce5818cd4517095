// tests/cuda/simulator.hpp: cuda<I> on a machine without a GPU: the bodies of all kernels run on the host, thread by
// thread.
//
// The backend asks everything of gpu<D>; here it is a host that lays out blocks and threads, counts launches, keeps the
// memory of each device apart, and refuses what a GPU would not forgive: threads of a block that do not meet at sync().
#pragma once

#include <sinter/sinter.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "sinter/cuda/capture.hpp"
#include "sinter/cuda/conv_library.hpp"
#include "sinter/cuda/pairs.hpp"
#include "sinter/cuda/product.hpp"
#include "sinter/cuda/runtime.hpp"

#include "simulated_block.hpp"
#include "simulated_convolutions.hpp"

namespace sinter::cuda_impl {

template <class Pass, int Axes>
struct map_sums_body;
template <class Pass>
struct group_body;
template <class Body>
struct spilled_body;

/// Whether a body counts on all the blocks it asks for; the others go on to further work where there are fewer.
template <class Body>
inline constexpr bool exact_grid = false;
template <class Pass, int Axes>
inline constexpr bool exact_grid<map_sums_body<Pass, Axes>> = true;  // the last of so many adds up
template <class Pass>
inline constexpr bool exact_grid<group_body<Pass>> = true;  // whose items have blocks of their own
template <class Body>
inline constexpr bool exact_grid<spilled_body<Body>> = exact_grid<Body>;

/// How many blocks a grid has at most where it is not exact; what they go on to is seldom there otherwise.
inline index_t& simulated_grid_limit() {
  static index_t most = most_blocks;
  return most;
}

/// Memory that counts as a GPU's, or as managed: known by address.
class simulated_memory {
 public:
  static constexpr int managed = -1;
  static constexpr std::size_t header = 0;
  static constexpr std::size_t allowance = sinter::detail::host_memory::allowance;

  explicit simulated_memory(int gpu) : gpu_(gpu) {}
  void* take(std::size_t bytes) {
    void* const p = host_.take(bytes);
    const std::lock_guard lock(busy());
    if (p != nullptr) known()[static_cast<char*>(p)] = {bytes, gpu_};
    return p;
  }
  void give(void* p) noexcept {
    const std::lock_guard lock(busy());
    known().erase(static_cast<char*>(p));
    host_.give(p);
  }

  static memory_place place_of(int gpu, const void* p) {
    const std::lock_guard lock(busy());
    auto at = known().upper_bound(static_cast<const char*>(p));
    if (at == known().begin() || static_cast<const char*>(p) >= (--at)->first + at->second.bytes)
      return {"host memory", "cpu"};
    if (at->second.gpu == gpu) return {};
    if (at->second.gpu == managed) return {"managed memory, which moves between the host and GPUs", "cpu"};
    const std::string other = std::to_string(at->second.gpu);
    return {"that of GPU " + other, "cuda<" + other + ">"};
  }

 private:
  struct entry {
    std::size_t bytes;
    int gpu;
  };
  static std::mutex& busy() {
    static auto& one = *new std::mutex;
    return one;
  }
  static std::map<const char*, entry>& known() {
    static auto& all = *new std::map<const char*, entry>;
    return all;
  }

  sinter::detail::host_memory host_;
  int gpu_;
};

template <device D>
struct gpu {
  static auto& memory() {
    static auto& arena =
        *new sinter::detail::caching_arena<simulated_memory>(device_name<D>(), simulated_memory(device_ordinal_v<D>));
    return arena;
  }
  static memory_place place_of(const void* p) { return simulated_memory::place_of(device_ordinal_v<D>, p); }
  static std::size_t launches() { return counted(); }
  static index_fault* fault() {
    static index_fault one;
    return &one;
  }
  static index_fault* fault_address() { return fault(); }
  static unsigned* arrivals() {
    static unsigned counters[max_arrivals] = {};
    return counters;
  }
  static void synchronize() { const auto held = capture().wait("synchronize"); }
  static no_folds folds() { return {}; }

  /// Work that was put on the device while a step was captured.
  class recording {
   public:
    std::size_t kernels() const { return work_.size(); }
    void run() const {
      sinter::detail::refuse_capture("replay", "a captured step cannot hold another");
      for (const auto& one : work_) one();
    }

   private:
    friend struct gpu;
    std::vector<std::function<void()>> work_;
  };
  template <class F>
  static recording record(const F& f) {
    capture().begin();
    struct guard {
      ~guard() { capture().end(); }
    } ends;
    captured().work_.clear();
    f();
    return std::exchange(captured(), recording());
  }

  /// cuda<3> takes so few that most bodies have to go another way.
  static constexpr std::size_t most_parameters = device_ordinal_v<D> == 3 ? 192 : 32764;

  template <class Body>
  static void launch(const work& w, const Body& body, const launch_shape& shape) {
    static_assert(std::is_trivially_copyable_v<Body>, "what a kernel takes is copied as bytes");
    static_assert(sizeof(Body) <= most_parameters);
    if (shape.blocks == 0) return;
    if (shape.blocks < 0 || shape.blocks > most_blocks || shape.shared_bytes > most_shared_bytes)
      throw std::logic_error("simulator: no such grid for " + w.text());
    struct bytes_of_body {
      alignas(Body) char bytes[sizeof(Body)];
    } copy;
    std::memcpy(copy.bytes, &body, sizeof(Body));
    const index_t blocks = exact_grid<Body> ? shape.blocks : std::min(shape.blocks, simulated_grid_limit());
    start(w.what, [copy, blocks, shared_bytes = shape.shared_bytes] {
      simulated_block& block = simulated_block::of_this_thread();
      const bool backward = counted() % 2 == 0;
      for (index_t b = 0; b < blocks; ++b)
        block.run(*reinterpret_cast<const Body*>(copy.bytes), backward ? blocks - 1 - b : b, blocks, shared_bytes);
      block.end_launch();
    });
  }

  static void copy_to_host(void* to, const void* from, std::size_t bytes) {
    const auto held = capture().wait("a copy to the host");
    std::memcpy(to, from, bytes);
  }
  static void copy_from_host(void* to, const void* from, std::size_t bytes) {
    const auto held = capture().wait("a copy from the host");
    std::memcpy(to, from, bytes);
  }
  template <device From>
  static void copy_from_device(void* to, const void* from, std::size_t bytes) {
    const bool before = device_ordinal_v<D> < device_ordinal_v<From>;  // both ways in one order
    const auto held = (before ? capture() : gpu<From>::capture()).wait("a copy between devices");
    const auto also_held = (before ? gpu<From>::capture() : capture()).wait("a copy between devices");
    std::memcpy(to, from, bytes);
  }

  static void copy_within(void* to, const void* from, std::size_t bytes) {
    start("a copy", [to, from, bytes] { std::memcpy(to, from, bytes); });
  }

  /// Whether the BLAS of this GPU does what may follow a product.
  static bool& has_tails() {
    static bool yes = true;
    return yes;
  }

  template <class T, class To = T>
  static bool gemm(const blas_product& p) {
    if (!p.tail.empty() && !has_tails()) return false;
    if (p.a.leading < (p.a.turned ? p.k : p.m) || p.b.leading < (p.b.turned ? p.n : p.k) || p.d.turned ||
        p.d.leading < p.m)
      throw std::logic_error("simulator: a leading dimension is too small");
    start("matmul",
          [p, rounded = use_matmul_precision::now() == matmul_precision::tf32] { multiply_now<T, To>(p, rounded); });
    return true;
  }

  struct library {
    template <class T>
    bool takes(const library_convolution&) const {
      return simulated_library::is_there;
    }
    template <class T>
    bool run(const library_convolution& c) const {
      if (!simulated_library::is_there || c.image == nullptr || c.weights == nullptr || c.result == nullptr ||
          !c.is_aligned() || c.has_bias != (c.bias != nullptr))
        throw std::logic_error("simulator: a convolution that nobody has asked about, or without its memory");
      if (simulated_library::refuses_to_run) return false;
      start("a convolution", [c] { convolve_now<T>(c); });
      return true;
    }
  };
  static library convolutions() { return {}; }

  /// Whether pairs are sorted by the host, in place of Sinter's kernels.
  static bool& sorts_on_host() {
    static bool yes = false;
    return yes;
  }
  /// They end in either buffer, in turn; the other one holds garbage.
  static bool sort(pair_buffers& pairs, index_t n, int bits) {
    if (!sorts_on_host()) return false;
    static bool turns = false;
    turns = !turns;
    start("a sort", [pairs, n, bits, turns = turns] { sort_now(pairs, n, bits, turns); });
    if (turns) pairs.turn();
    return true;
  }

  static capture_state& capture() {
    static auto& state = *new capture_state(device_name<D>());
    return state;
  }

 private:
  static std::size_t& counted() {
    static std::size_t n = 0;
    return n;
  }
  static recording& captured() {
    static recording one;
    return one;
  }
  /// Runs one kernel, or records it.
  template <class F>
  static void start(const char* what, const F& f) {
    const auto held = capture().enter(what);
    const auto counting = [f] {
      ++counted();
      f();
    };
    if (sinter::detail::capturing() != nullptr) captured().work_.push_back(counting);
    else counting();
  }

  static void sort_now(const pair_buffers& p, index_t n, int bits, bool turns) {
    struct pair {
      std::uint64_t key;
      std::uint32_t value;
    };
    std::vector<pair> pairs;
    const std::uint64_t asked = bits < 64 ? (std::uint64_t{1} << bits) - 1 : ~std::uint64_t{0};
    std::vector<std::pair<std::uint64_t, index_t>> order;  // the place makes the order stable
    for (index_t i = 0; i < n; ++i) order.emplace_back(p.keys[i] & asked, i);
    std::sort(order.begin(), order.end());
    for (const auto& [key, i] : order) pairs.push_back({p.keys[i], p.values[i]});
    for (const bool spare : {false, true})
      for (index_t i = 0; i < n; ++i) {
        const auto& [key, value] = pairs[static_cast<std::size_t>(i)];
        (spare ? p.spare_keys : p.keys)[i] = spare == turns ? key : ~key;
        (spare ? p.spare_values : p.values)[i] = spare == turns ? value : ~value;
      }
  }

  template <class T, class To>
  static void multiply_now(const blas_product& p, bool rounded) {
    const auto element = [&](const blas_product::operand& x, index_t batch, index_t i, index_t j) {
      const T value =
          static_cast<const T*>(x.data)[batch * x.batch_stride + (x.turned ? j + i * x.leading : i + j * x.leading)];
      return rounded && std::is_same_v<T, float> ? static_cast<double>(to_tf32(static_cast<float>(value)))
                                                 : static_cast<double>(value);
    };
    for (index_t batch = 0; batch < p.batches; ++batch)
      for (index_t j = 0; j < p.n; ++j)
        for (index_t i = 0; i < p.m; ++i) {
          To& to = static_cast<To*>(p.d.data)[batch * p.d.batch_stride + i + j * p.d.leading];
          double sum = p.accumulate ? static_cast<double>(to) : 0;
          for (index_t l = 0; l < p.k; ++l) sum += element(p.a, batch, i, l) * element(p.b, batch, l, j);
          if (p.tail.bias != nullptr) sum += static_cast<double>(static_cast<const T*>(p.tail.bias)[i]);
          to = static_cast<To>(activate<T>(p, i, j, sum));
        }
    using summed = product_tail::summed;
    if (p.tail.of == summed::none) return;
    const index_t of_n = p.tail.of == summed::left ? p.n : p.m, over_n = p.tail.of == summed::product ? p.n : p.k;
    for (index_t to = 0; to < of_n; ++to) {
      double sum = 0;
      for (index_t l = 0; l < over_n; ++l)
        sum += p.tail.of == summed::left    ? element(p.b, 0, l, to)
               : p.tail.of == summed::right ? element(p.a, 0, to, l)
                                            : element(p.d, 0, to, l);
      static_cast<T*>(p.tail.sums)[to] = static_cast<T>(sum);
    }
  }
  /// What the tail makes of x, element (i,j) of a column-major product.
  template <class T>
  static double activate(const blas_product& p, index_t i, index_t j, double x) {
    const product_tail& tail = p.tail;
    const index_t at = i + j * tail.kept_leading(p.m);
    if (tail.act == product_tail::activation::relu) {
      auto* const byte = static_cast<unsigned char*>(tail.kept) + at / 8;
      if (tail.slope) return *byte >> at % 8 & 1 ? x : 0;
      const double y = ops::relu_op::apply(x);
      if (tail.kept != nullptr) *byte = static_cast<unsigned char>((*byte & ~(1 << at % 8)) | (y > 0) << at % 8);
      return y;
    }
    if (tail.act == product_tail::activation::gelu_tanh) {
      T* const argument = static_cast<T*>(tail.kept) + at;
      if (tail.slope) return x * slope_of_gelu(static_cast<double>(*argument));
      if (tail.kept != nullptr) *argument = static_cast<T>(x);
      return ops::gelu_tanh_op::apply(x);
    }
    return x;
  }
  static double slope_of_gelu(double x) {
    const double c = std::sqrt(2 / std::acos(-1.0)), t = std::tanh(c * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
  }

  /// To the 10 bits after the point that TF32 keeps, ties away from zero.
  static float to_tf32(float x) {
    return std::isfinite(x) ? std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) + 0x1000u) & ~0x1fffu) : x;
  }
};

}  // namespace sinter::cuda_impl

#include "sinter/cuda/graph.hpp"
#include "sinter/cuda/kernels.hpp"
#include "sinter/cuda/product_rules.hpp"
