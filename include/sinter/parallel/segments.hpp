// sinter/parallel/segments.hpp: pieces of a chain on every device, their types hidden, so that any placement of them
// runs without being compiled: each piece is compiled once for each device.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sinter/core/create.hpp"
#include "sinter/parallel/placed.hpp"

namespace sinter::nn::detail {

/// A plain tensor of a type that those who pass it on need not know.
using erased_value = std::shared_ptr<const void>;

/// Samples of the batch, and the number under which their graph is kept from forward to backward.
struct microbatch {
  index_t begin = 0, end = 0;
  int slot = 0;
};

/// Layers that run one after the other on a device, with copies of their parameters.
class erased_segment {
 public:
  erased_segment() = default;
  erased_segment(const erased_segment&) = delete;
  erased_segment& operator=(const erased_segment&) = delete;
  virtual ~erased_segment() = default;
  /// What the layers give for x, on the device. The first segment takes the samples instead of x; the last one gives
  /// nothing, but keeps the loss.
  virtual erased_value forward(const erased_value& x, const microbatch& samples) = 0;
  /// The gradient of x from that of the result; of the loss in the last segment. The first one gives nothing.
  virtual erased_value backward(const erased_value& g, const microbatch& samples) = 0;
  /// Updates the parameters and drops their gradients.
  virtual void update() = 0;
  virtual index_t parameter_bytes() const = 0;
};

/// What is to be known of a device without its type.
struct erased_device {
  std::string name, in_code;  ///< "numa:0", "numa<0>"
  void (*wait)();
  std::size_t (*bytes_in_use)();
  double (*multiply_adds_per_second)();
  double (*bytes_per_second)();
};

/// A chain in pieces on each of some devices.
struct segment_set {
  using mover = erased_value (*)(const erased_value&);

  std::vector<std::size_t> first_layers;  ///< of the pieces
  std::size_t layers = 0;
  index_t samples = 0;
  std::vector<erased_device> devices;
  std::vector<std::vector<std::unique_ptr<erased_segment>>> pieces;  ///< of device d
  std::vector<std::unique_ptr<erased_segment>> whole;                ///< the chain in one piece on device d
  std::vector<std::vector<std::vector<mover>>> move;                 ///< before piece s, from e to d
  std::vector<index_t (*)(const erased_value&)> value_bytes;         ///< of the value before piece s

  std::size_t count() const { return first_layers.size(); }
};

template <class D>
std::string device_in_code() {
  if constexpr (std::is_same_v<D, cpu>) return "cpu";
  else return (is_cuda_v<D> ? "cuda<" : "numa<") + std::to_string(device_ordinal_v<D>) + ">";
}

/// Median of the seconds of f() in three runs, after one more.
template <class F>
double seconds_of(const F& f) {
  double t[4];
  for (double& one : t) {
    const double begin = seconds_now();
    f();
    one = seconds_now() - begin;
  }
  std::sort(t + 1, t + 4);
  return t[2];
}

/// Of a matrix product that fits into caches.
template <class T, class D>
double multiply_adds_per_second() {
  constexpr index_t n = 512;
  const tensor<T, 2, D> a = zeros<T, D>({n, n}) + T(1);
  return static_cast<double>(n * n * n) / seconds_of([&a] {
           const tensor<T, 2, D> c = matmul(a, a);
           wait_for_work<D>();
         });
}
/// Read and written by a pass over memory that does not fit into caches.
template <class T, class D>
double bytes_per_second() {
  constexpr index_t n = (index_t{64} << 20) / static_cast<index_t>(sizeof(T));
  tensor<T, 1, D> a = zeros<T, D>({n});
  return static_cast<double>(2 * n) * sizeof(T) / seconds_of([&a] {
           a += T(1);
           wait_for_work<D>();
         });
}

/// Layers [First, First + number of Index) of a chain of M on D.
template <class D, std::size_t First, class Index, class... M>
struct piece_of;
template <class D, std::size_t First, std::size_t... I, class... M>
struct piece_of<D, First, std::index_sequence<I...>, M...> {
  template <class L>
  using moved = typename L::template rebind<D, typename L::kind>;
  using type = sequential<moved<sinter::detail::type_of_part<First + I, M...>>...>;

  template <class Chain>
  static void copy(type& to, const Chain& from, member_copies& copies) {
    const copy_members put{copies};
    (walk(nullptr, put, to.template get<I>(), from.template get<First + I>()), ...);
  }
};

/// What M gives for an X, evaluated.
template <class M, class X>
using result_of = sinter::detail::evaluated<decltype(std::declval<const M&>()(std::declval<const X&>()))>;

template <class X>
using plain_type = bare<decltype(stored_value(std::declval<const X&>()))>;

/// Inputs and targets, on the device from which the program takes them.
template <class X, class L, class Loss>
struct segment_batch {
  X inputs;
  L targets;
  Loss loss;
};

/// M fed with an X: a variable where what lies before has a gradient.
template <class M, class X, class Batch, class Make, bool First, bool Last>
class typed_segment final : public erased_segment {
  using D = device_of<X>;
  using Y = result_of<M, X>;
  using optimizer = bare<decltype(std::declval<const Make&>()(std::declval<const M&>()))>;
  static constexpr bool has_input_gradient = is_variable<X>;

 public:
  M module;

  typed_segment(std::shared_ptr<const Batch> batch, const Make& make) : batch_(std::move(batch)), make_(make) {}

  /// After the parameters are copied.
  void make_optimizer() {
    if (module.parameter_count() > 0) optimizer_.emplace(make_(module));
  }

  erased_value forward(const erased_value& x, const microbatch& m) override {
    run& r = at(m.slot);
    if constexpr (First) r.x.emplace(batch_->inputs.slice(0, m.begin, m.end).template to<D>());
    else r.x.emplace(*static_cast<const plain_type<X>*>(x.get()));
    r.y.emplace(sinter::eval(module(*r.x)));
    if constexpr (Last) {
      const auto targets = batch_->targets.slice(0, m.begin, m.end).template to<D>();
      r.backward = [loss = sinter::eval(batch_->loss(*r.y, targets))] {
        if constexpr (is_tracked_v<decltype(loss)>) loss.backward();
      };
      return nullptr;
    } else {
      return std::make_shared<const plain_type<Y>>(stored_value(*r.y));
    }
  }
  erased_value backward(const erased_value& g, const microbatch& m) override {
    run& r = at(m.slot);
    if constexpr (Last) {
      r.backward();
      r.backward = nullptr;
    } else if constexpr (is_variable<Y>) {
      if (g) r.y->backward(*static_cast<const plain_type<Y>*>(g.get()));
    }
    erased_value result;
    if constexpr (has_input_gradient)
      if (r.x->has_grad()) result = std::make_shared<const plain_type<X>>(r.x->grad());
    r = {};
    return result;
  }
  void update() override {
    if (!optimizer_) return;
    optimizer_->step();
    optimizer_->zero_grad();
  }
  index_t parameter_bytes() const override {
    index_t bytes = 0;
    const auto count = [&bytes](const std::string&, const auto& p) {
      bytes += p.numel() * static_cast<index_t>(sizeof(element_of<decltype(p)>));
    };
    this->module.for_each_parameter(count);
    return bytes;
  }

 private:
  struct run {
    std::optional<X> x;
    std::optional<Y> y;
    std::function<void()> backward;  ///< of the loss
  };
  run& at(int slot) {
    const auto i = static_cast<std::size_t>(slot);
    if (runs_.size() <= i) runs_.resize(i + 1);
    return runs_[i];
  }

  std::shared_ptr<const Batch> batch_;
  Make make_;
  std::optional<optimizer> optimizer_;
  std::vector<run> runs_;
};

/// A plain tensor on E, copied to D.
template <class X, device E, device D>
erased_value moved_value(const erased_value& x) {
  using To = sinter::detail::moved_type<X, D>;
  return std::make_shared<const To>(static_cast<const sinter::detail::moved_type<X, E>*>(x.get())->template to<D>());
}
template <class X>
index_t bytes_of_value(const erased_value& x) {
  return static_cast<const X*>(x.get())->numel() * static_cast<index_t>(sizeof(element_of<X>));
}

/// Puts the pieces of a chain on devices D.
template <class Chain, class Cuts, class Batch, class Make, device... D>
struct segment_builder;
template <class... M, std::size_t... C, class Batch, class Make, device... D>
struct segment_builder<sequential<M...>, std::index_sequence<C...>, Batch, Make, D...> {
  static constexpr std::size_t count = sizeof...(C) + 1;
  static constexpr std::size_t first[count + 1] = {0, C..., sizeof...(M)};
  using base = sinter::detail::type_of_part<0, D...>;
  template <class D0, std::size_t S>
  using piece = piece_of<D0, first[S], std::make_index_sequence<first[S + 1] - first[S]>, M...>;
  template <class D0>
  using whole = piece_of<D0, 0, std::index_sequence_for<M...>, M...>;

  /// The type that piece S is fed with, on the first device.
  template <std::size_t S>
  static auto input() {
    if constexpr (S == 0)
      return std::type_identity<sinter::detail::moved_type<bare<decltype(std::declval<Batch>().inputs)>, base>>();
    else
      return std::type_identity<
          result_of<typename piece<base, S - 1>::type, typename decltype(input<S - 1>())::type>>();
  }
  template <std::size_t S>
  using input_type = typename decltype(input<S>())::type;

  template <class Piece, class X, bool First, bool Last, class Chain>
  static std::unique_ptr<erased_segment> make_segment(const Chain& chain, const std::shared_ptr<const Batch>& batch,
                                                      const Make& make, member_copies& copies) {
    auto one = std::make_unique<typed_segment<typename Piece::type, X, Batch, Make, First, Last>>(batch, make);
    Piece::copy(one->module, chain, copies);
    one->make_optimizer();
    return one;
  }

  template <class D0, class Chain>
  static void put_on(segment_set& set, const Chain& chain, const std::shared_ptr<const Batch>& batch,
                     const Make& make) {
    member_copies copies;  // the chain in one piece shares the parameters of the pieces
    auto& pieces = set.pieces.emplace_back();
    sinter::detail::each_part<int{count}>([&](auto s) {
      using X = sinter::detail::moved_type<input_type<s()>, D0>;
      pieces.push_back(make_segment < piece<D0, s()>, X, s() == 0, s() + 1 == count > (chain, batch, make, copies));
    });
    using X = sinter::detail::moved_type<input_type<0>, D0>;
    set.whole.push_back(make_segment<whole<D0>, X, true, true>(chain, batch, make, copies));
  }

  template <class Chain>
  static segment_set build(const Chain& chain, const std::shared_ptr<const Batch>& batch, const Make& make) {
    using T = element_of<input_type<0>>;
    segment_set set;
    set.first_layers.assign(first, first + count);
    set.layers = sizeof...(M);
    set.samples = batch->inputs.extent(0);
    set.devices = {{device_name<D>(), device_in_code<D>(), &wait_for_work<D>, [] { return memory<D>().bytes_in_use; },
                    &multiply_adds_per_second<T, D>, &bytes_per_second<T, D>}...};
    (put_on<D>(set, chain, batch, make), ...);
    set.move.resize(count);
    set.value_bytes.resize(count);
    sinter::detail::each_part<int{count}>([&](auto s) {
      if constexpr (s() > 0) {
        using X = plain_type<input_type<s()>>;
        set.value_bytes[s()] = &bytes_of_value<X>;
        set.move[s()] = {movers_from<X, D>()...};
      }
    });
    return set;
  }

 private:
  template <class X, class E>
  static std::vector<segment_set::mover> movers_from() {
    return {&moved_value<X, E, D>...};
  }
};

}  // namespace sinter::nn::detail
