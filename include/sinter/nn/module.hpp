// sinter/nn/module.hpp: what every module inherits: calling, parameters, training mode, and copies on other devices.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "sinter/grad/variable.hpp"

namespace sinter {

// Names in messages.
template <class...>
struct module_fed_from_another_device;
template <class...>
struct parameter_on_another_device_than_its_module;
struct copy_the_input_with_dot_to;
struct declare_the_parameter_on_the_device_of_the_module;

namespace nn {

/// The kind of a module whose parameters are variables, and of one that shows them as plain tensors (see infer).
struct tracked {};
struct plain {};

/// A parameter of a module of this kind.
template <element T, int R, device D, class Kind = tracked>
using parameter = std::conditional_t<std::is_same_v<Kind, plain>, tensor<T, R, D>, variable<T, R, D>>;

/// Whether modules behave as in training (dropout drops) or not. As a member listed in visit(), train() and eval() set
/// it.
struct mode {
  bool training = true;
};

template <class Self>
class module;

/// A type derived from module<itself>.
template <class M>
concept is_module = std::derived_from<detail::bare<M>, module<detail::bare<M>>>;

namespace detail {

using sinter::detail::bare;
using sinter::detail::is_tensor;
using sinter::detail::is_variable;

template <class M>
struct output_device {
  using type = device_of<M>;
};
template <class M>
  requires requires { typename M::output_device; }
struct output_device<M> {
  using type = typename M::output_device;
};

/// M with parameters of another kind, each on the device where it is.
template <class M, class Kind>
struct kind_changed {
  using type = typename M::template rebind<device_of<M>, Kind>;
};
template <class M, class Kind>
  requires requires { typename M::template as<Kind>; }
struct kind_changed<M, Kind> {
  using type = typename M::template as<Kind>;
};

template <class First, class... Rest>
struct first_of {
  using type = First;
};

/// The name of a member, "fc1.weight", put together only where somebody reads it.
struct member_name {
  const member_name* outer;  ///< the module's in what holds it; null for the outermost
  sinter::detail::text_piece own;

  SINTER_COLD std::string text() const {
    return outer == nullptr ? sinter::detail::joined({own}) : sinter::detail::joined({outer->text(), ".", own});
  }
};

/// Calls f(name, member of m...) for everything in the lists of equally built modules that is not a module itself.
template <class F, class... M>
void walk(const member_name* outer, F& f, M&... m) {
  first_of<bare<M>...>::type::visit(
      [&](sinter::detail::text_piece own, auto&... member) {
        const member_name name{outer, own};
        using X = typename first_of<bare<decltype(member)>...>::type;
        if constexpr (is_module<X>) walk(&name, f, member...);
        else f(name, member...);
      },
      m...);
}

template <class X, class M>
constexpr auto find_input_mistake() {
  if constexpr (same_device<X, M>) return sinter::detail::fitting<device_of<X>>{};
  else
    return sinter::detail::mistake<module_fed_from_another_device<device_of<X>, device_of<M>>,
                                   copy_the_input_with_dot_to>{};
}
template <class X, class M>
using input_check = decltype(find_input_mistake<bare<X>, M>());

template <class X, class D>
concept lives_elsewhere = !std::is_same_v<device_of<X>, any_device> && !on_device<X, D>;

/// The visitor that only looks at types: members live on D.
template <device D>
struct members_on {
  template <class X>
    requires(!lives_elsewhere<X, D>)
  void operator()(sinter::detail::text_piece, const X&) const {}
  template <class X, class Problem = parameter_on_another_device_than_its_module<device_of<X>, D>,
            class Fix = declare_the_parameter_on_the_device_of_the_module>
    requires lives_elsewhere<X, D>
  void operator()(sinter::detail::text_piece, const X&) const = delete;
};

template <class M>
concept on_one_device = device<device_of<M>> && !requires { typename M::output_device; };

/// Copies of members, in which a parameter that stands in several places stays one.
class member_copies {
 public:
  template <class To, class From>
  void copy(To& to, const From& from) {
    if constexpr (is_tensor<From> || is_variable<From>) {
      using D = device_of<To>;
      if (!from.defined()) return;
      const auto& value = sinter::detail::plain(from);
      static constexpr char type = 0;
      for (const entry& e : done_) {
        if (e.type != &type) continue;
        const auto& before = sinter::detail::plain(*static_cast<const From*>(e.from));
        if (sinter::detail::access::data(before) != sinter::detail::access::data(value) ||
            before.shape() != value.shape() || before.strides() != value.strides())
          continue;
        to = *static_cast<const To*>(e.to);
        return;
      }
      if constexpr (std::is_same_v<device_of<From>, D>) to = To(value.clone());
      else to = To(value.template to<D>());
      done_.push_back({&type, &from, &to});
    } else {
      to = from;
    }
  }

 private:
  struct entry {
    const void *type, *from, *to;
  };
  std::vector<entry> done_;
};

template <class To, class From>
void share_member(To& to, const From& from) {
  if constexpr (is_variable<From> && is_tensor<To>) to = from.value();
  else to = from;
}

}  // namespace detail

/// A row of named_parameters().
struct parameter_info {
  std::string name;  ///< as in PyTorch: "0.weight", "fc1.bias"
  std::vector<index_t> shape;
  const char* element;
  std::string device;
  index_t numel = 1;
};

/// Base of every module. Self has
///   using device_type                        where its parameters and inputs live (any_device: it has none)
///   auto forward(x) const                    the value, usually an expression
///   template <class F, class... M> static void visit(F&& f, M&... m)   its one list: f("weight", m.weight...) for
///   every
///                                            parameter, submodule, mode and setting
///   template <class D, class Kind> using rebind   the same module on D; needed by to() and infer()
/// and is default constructible for to() and infer(). docs/library.md shows a module written by a user.
template <class Self>
class module {
 public:
  /// forward(x) for an x on the module's device.
  template <expression X, class S = Self>
    requires(sinter::detail::is_fitting<detail::input_check<X, S>>)
  auto operator()(X&& x) const {
    return self().forward(std::forward<X>(x));
  }
  template <expression X, class S = Self, class Problem = typename detail::input_check<X, S>::problem,
            class Fix = typename detail::input_check<X, S>::fix>
  void operator()(X&&) const = delete;

  /// A module of its own on device D, with copies of all values; tied parameters stay tied. Gradients are not copied.
  template <device D, class S = Self>
    requires requires { typename S::template rebind<D, typename S::kind>; }
  [[nodiscard]] auto to() const {
    typename S::template rebind<D, typename S::kind> copy;
    detail::member_copies members;
    auto put = [&members](const detail::member_name&, auto& a, const auto& b) { members.copy(a, b); };
    detail::walk(nullptr, put, copy, self());
    return copy;
  }

  /// Calls f(name, parameter) for every parameter, in the order of the lists. Names are PyTorch's: "fc1.weight".
  template <class F>
  void for_each_parameter(F&& f) const {
    each_parameter([&f](const detail::member_name& name, const auto& p) {
      const std::string text = name.text();
      f(text, p);
    });
  }

  std::vector<parameter_info> named_parameters() const {
    std::vector<parameter_info> list;
    for_each_parameter([&list](const std::string& name, const auto& p) {
      using P = detail::bare<decltype(p)>;
      parameter_info info{
          name, {p.shape().begin(), p.shape().end()}, element_name<element_of<P>>(), device_name<device_of<P>>()};
      info.numel = p.numel();
      list.push_back(std::move(info));
    });
    return list;
  }

  /// Number of elements of all parameters; one that is used in several places counts once.
  index_t parameter_count() const {
    index_t n = 0;
    sinter::detail::addresses seen;
    each_parameter([&](const detail::member_name&, const auto& p) {
      if (seen.add(sinter::detail::access::data(sinter::detail::plain(p)))) n += p.numel();
    });
    return n;
  }

  void zero_grad() const {
    each_parameter([](const detail::member_name&, const auto& p) {
      if constexpr (detail::is_variable<detail::bare<decltype(p)>>) p.zero_grad();
    });
  }

  /// Training mode on or off, in all submodules too.
  void train(bool on = true) {
    auto set = [on](const detail::member_name&, auto& x) {
      if constexpr (std::is_same_v<detail::bare<decltype(x)>, mode>) x.training = on;
    };
    detail::walk(nullptr, set, self());
  }
  void eval() { train(false); }

 protected:
  constexpr module() {  // not `module()` alone: nvcc reads that as the keyword
    if constexpr (detail::on_one_device<Self>)
      static_cast<void>([](Self& m) { Self::visit(detail::members_on<device_of<Self>>{}, m); });
  }

 private:
  template <class F>
  void each_parameter(const F& f) const {
    auto pick = [&f](const detail::member_name& name, const auto& x) {
      using X = detail::bare<decltype(x)>;
      if constexpr (detail::is_tensor<X> || detail::is_variable<X>) f(name, x);
    };
    detail::walk(nullptr, pick, self());
  }
  const Self& self() const { return static_cast<const Self&>(*this); }
  Self& self() { return static_cast<Self&>(*this); }
};

/// The module with its parameters shown as plain tensors on the same memory: what it computes is not recorded, and no
/// backward is compiled. It is in inference mode.
///
///     tensor scores = infer(model)(images);
template <is_module M>
[[nodiscard]] auto infer(const M& model) {
  typename detail::kind_changed<M, plain>::type view;
  auto put = [](const detail::member_name&, auto& a, const auto& b) { detail::share_member(a, b); };
  detail::walk(nullptr, put, view, model);
  view.eval();
  return view;
}

/// Copies the values of all parameters into those of an equally built module, on any devices. Errors: shape_error
/// naming the parameter.
template <is_module From, is_module To>
void copy_state(const From& from, const To& to) {
  auto put = [](const detail::member_name& name, const auto& a, const auto& b) {
    using A = detail::bare<decltype(a)>;
    if constexpr (detail::is_tensor<A> || detail::is_variable<A>) {
      if (!(a.shape() == b.shape()))
        sinter::detail::refuse<shape_error>({"copy_state: parameter '", name.text(), "' has shape ", b.shape(),
                                             " in the source and ", a.shape(), " in the destination"});
      if constexpr (detail::is_variable<A>) copy(b.value(), a.value());
      else copy(b, a);
    }
  };
  detail::walk(nullptr, put, to, from);
}

}  // namespace nn
}  // namespace sinter
