// sinter/optim/clip.hpp: bounds on gradients before a step.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sinter/ops/cast.hpp"
#include "sinter/ops/clamp.hpp"
#include "sinter/ops/in_place.hpp"
#include "sinter/ops/norm.hpp"
#include "sinter/ops/sqrt.hpp"
#include "sinter/ops/square.hpp"
#include "sinter/ops/sum.hpp"
#include "sinter/ops/where.hpp"
#include "sinter/optim/optimizer.hpp"

namespace sinter::optim {

/// The norm of gradients before they were clipped, a number. Where it is made on a GPU it is waited for when it is
/// read, and only then; after replay() of a captured step it is that of the last one.
///
///     const auto norm = optim::clip_grad_norm(model, 1.0);  // does not wait
///     if (i % 100 == 0) std::cout << norm.item() << '\n';   // waits
///
/// One without a value reads as 0, to be assigned in a step that is captured.
class gradient_norm {
 public:
  gradient_norm() = default;
  explicit gradient_norm(std::function<double()> read);
  double item() const;
  operator double() const { return item(); }

 private:
  std::function<double()> read_;
};

namespace detail {

/// The elements of the gradient of a variable that are held: of one by rows, those of its rows.
template <class T, auto S, device D>
auto held_gradient(const variable<T, S, D>& v) {
  if constexpr (variable<T, S, D>::rank == 2) {
    const auto* const rows = sinter::detail::rows_in<T, D>(access::state_of(v));
    if (rows != nullptr && rows->kept_rows.defined()) return rows->kept_rows.values;
  }
  return v.grad();
}

/// g = g * *factor.
template <class T>
struct clip_kernel {
  static constexpr int leaves = 1, outputs = 1;
  using leaf_types = sinter::detail::kernel::type_list<T>;
  using output_types = leaf_types;
  const double* factor;
  template <int, int, class M>
  SINTER_WORD void run(const M& m) const {
    m.template put<0, T>(m.template load<0, T>() * static_cast<compute_type<T>>(*factor));
  }
};

/// Clips gradients that all lie on D without waiting for it.
template <device D>
class clip_there {
 public:
  /// Of so many gradients.
  explicit clip_there(index_t n) : norms_(tensor<double, 1, D>::uninitialized({{n}})) {}
  template <class T, int R>
  void add(const tensor<T, R, D>& g) {
    const auto all = access::in_memory_order(g);
    const auto place = norms_.slice(0, used_, used_ + 1);
    if constexpr (std::is_same_v<T, double>) place.in_place() = sinter::norm(all, 0, keepdim);
    else place.in_place() = sqrt(sum(square(cast<double>(all)), 0, keepdim));
    ++used_;
  }
  /// After all gradients were added.
  gradient_norm norm(double max_norm) {
    norm_ = sinter::norm(norms_);
    const auto factor = max_norm / (norm_ + 1e-6);
    factor_ = where(factor >= 1, 1, factor);
    return gradient_norm([norm = norm_] { return norm.item(); });
  }
  template <class T, int R>
  void scale(const tensor<T, R, D>& g) const {
    run_update<D>(clip_kernel<T>{access::data(factor_)}, g.numel(), {access::data(g)}, {access::data(g)});
    sinter::detail::note_write(*access::storage_of(g).get());
  }

 private:
  index_t used_ = 0;
  tensor<double, 1, D> norms_;  ///< of each gradient
  tensor<double, 0, D> norm_, factor_;
};

/// clip_grad_norm for n gradients, all on the GPU D.
template <device D, class Source>
gradient_norm clip_on_gpu(const Source& source, double max_norm, index_t n) {
  clip_there<D> there(n);
  const auto for_each_gradient = [&source](const auto& f) {
    for_each_variable(source, [&f](const std::string&, const auto& v) {
      if constexpr (std::is_same_v<device_of<decltype(v)>, D>) {
        if (v.has_grad()) f(held_gradient(v));
      }
    });
  };
  for_each_gradient([&there](const auto& g) { there.add(g); });
  gradient_norm norm = there.norm(max_norm);
  sinter::detail::independent_passes gathered;
  for_each_gradient([&there](const auto& g) { there.scale(g); });
  gathered.run();
  return norm;
}

/// The norm of all gradients, of those of each. A template so that only files which clip compile it.
template <class Norms>
double norm_of_all(const Norms& norms);

/// clip_grad_norm for gradients on any devices. `Norms` is a parameter for the same reason.
template <class Source, class Norms = std::vector<std::function<double()>>>
gradient_norm clip_on_host(const Source& source, double max_norm) {
  Norms norms;  // all are started before the first one is waited for
  for_each_variable(source, [&norms](const std::string&, const auto& v) {
    using T = compute_type<element_of<decltype(v)>>;
    if (!v.has_grad()) return;
    const auto g = access::in_memory_order(held_gradient(v));
    norms.push_back([g, of_one = eval(sinter::norm(cast<T>(g)))] {
      const auto found = static_cast<double>(of_one.item());
      if constexpr (!std::is_same_v<T, double>)  // that of floats may be beyond their range
        if (std::isinf(found)) return eval(sinter::norm(cast<double>(g))).item();
      return found;
    });
  });
  const double norm = norm_of_all(norms);
  const double factor = max_norm / (norm + 1e-6);
  if (!(factor >= 1))
    for_each_variable(source, [factor](const std::string&, const auto& v) {
      if (!v.has_grad()) return;
      auto g = access::in_memory_order(held_gradient(v));
      g *= factor;
    });
  return gradient_norm([norm] { return norm; });
}

}  // namespace detail

/// Scales all gradients of a module, variable or range so that their norm over all elements is at most max_norm, and
/// returns the norm before. As torch.nn.utils.clip_grad_norm_, the factor is max_norm / (norm + 1e-6). Gradients that
/// all lie on one GPU are clipped there, without waiting, also in a step that is captured; those on several devices are
/// waited for. Errors: value_error for a max_norm that is negative or NaN.
template <class Source>
  requires(detail::is_fitting<detail::source_mistake<Source>>)
gradient_norm clip_grad_norm(const Source& source, double max_norm) {
  if (!(max_norm >= 0))
    sinter::detail::refuse<value_error>({"clip_grad_norm: max_norm must not be negative, but is ", max_norm});
  index_t n = 0;
  std::string place;
  bool one_gpu = true;
  gradient_norm (*clip)(const Source&, double, index_t) = nullptr;
  detail::for_each_variable(source, [&](const std::string&, const auto& v) {
    using D = device_of<decltype(v)>;
    if (!v.has_grad()) return;
    if (n++ == 0) place = device_name<D>();
    one_gpu = one_gpu && is_cuda_v<D> && place == device_name<D>();
    if constexpr (is_cuda_v<D>) clip = &detail::clip_on_gpu<D, Source>;
  });
  return one_gpu && n > 0 ? clip(source, max_norm, n) : detail::clip_on_host(source, max_norm);
}

template <class Source, class Problem = typename detail::source_mistake<Source>::problem,
          class Fix = typename detail::source_mistake<Source>::fix>
gradient_norm clip_grad_norm(const Source&, double) = delete;

/// Clamps every element of the gradients to [-limit, limit].
template <class Source>
  requires(detail::is_fitting<detail::source_mistake<Source>>)
void clip_grad_value(const Source& source, double limit) {
  if (!(limit >= 0))
    sinter::detail::refuse<value_error>({"clip_grad_value: the limit must not be negative, but is ", limit});
  detail::for_each_variable(source, [limit](const std::string&, const auto& v) {
    if (!v.has_grad()) return;
    auto g = detail::access::in_memory_order(detail::held_gradient(v));
    std::move(g) = clamp(g, -limit, limit);  // through the handle, into the gradient
  });
}
template <class Source, class Problem = typename detail::source_mistake<Source>::problem,
          class Fix = typename detail::source_mistake<Source>::fix>
void clip_grad_value(const Source&, double) = delete;

#if SINTER_DEFINES

SINTER_SHARED gradient_norm::gradient_norm(std::function<double()> read) : read_(std::move(read)) {}
SINTER_SHARED double gradient_norm::item() const { return read_ ? read_() : 0; }

namespace detail {

template <class Norms>
double norm_of_all(const Norms& norms) {
  tensor<double, 1> each = zeros<double>({static_cast<index_t>(norms.size())});
  for (std::size_t i = 0; i < norms.size(); ++i) each.data()[i] = norms[i]();
  return eval(sinter::norm(each)).item();
}

}  // namespace detail

#endif  // SINTER_DEFINES

#if SINTER_COMPILED
namespace detail {
SINTER_INSTANCE double norm_of_all(const std::vector<std::function<double()>>&);
}
#endif

}  // namespace sinter::optim
