// sinter/nn/member.hpp: what the list of a module may hold, and the walk over the lists of a model.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sinter/grad/row_gradient.hpp"
#include "sinter/nn/buffer.hpp"
#include "sinter/ops/window.hpp"
#include "sinter/random/generator.hpp"

namespace sinter {

// Names in messages.
template <class...>
struct parameter_on_another_device_than_its_module;
struct declare_the_parameter_on_the_device_of_the_module;
template <class>
struct plain_tensor_listed_by_a_tracked_module;
struct declare_it_as_nn_parameter_or_nn_buffer;
template <class>
struct member_that_modules_do_not_understand;
struct make_it_an_nn_module_list;
struct make_it_a_parameter_buffer_or_module_or_say_nn_is_setting;

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

/// True for what a module may list beside parameters, buffers and modules: values that to() and infer() copy as they
/// are. Numbers, enumerations, strings, extents, generators, modes, and arrays, vectors and optionals of these; other
/// types by
///
///     template <>
///     inline constexpr bool sinter::nn::is_setting<my_options> = true;
template <class X>
inline constexpr bool is_setting = literal<X> || std::is_enum_v<X>;
template <>
inline constexpr bool is_setting<std::string> = true;
template <>
inline constexpr bool is_setting<generator> = true;
template <>
inline constexpr bool is_setting<mode> = true;
template <int R>
inline constexpr bool is_setting<extents<R>> = true;
template <int N>
inline constexpr bool is_setting<per_axis<N>> = true;
template <class X, std::size_t N>
inline constexpr bool is_setting<std::array<X, N>> = is_setting<X>;
template <class X>
inline constexpr bool is_setting<std::vector<X>> = is_setting<X>;
template <class X>
inline constexpr bool is_setting<std::optional<X>> = is_setting<X>;

template <class Self>
class module;

namespace detail {

struct any_visitor {
  template <class X>
  void operator()(sinter::detail::text_piece, X&) const {}
};

/// M has a visit() that lists its members.
template <class M>
concept has_list = requires(M& m) { M::visit(any_visitor{}, m); };

/// A class that is complete and derives from its own module, without asking more of it.
template <class M>
concept derives_from_its_module = std::is_class_v<M> && requires { sizeof(M); } && std::derived_from<M, module<M>>;

}  // namespace detail

/// A type derived from module<itself>, with a device, a kind, and a list of its members. False, never an error, for
/// any other type, an incomplete one too; ask only once a type is complete, as the answer stays.
template <class M>
concept is_module = detail::derives_from_its_module<sinter::detail::bare<M>> && requires {
  typename sinter::detail::bare<M>::device_type;
  typename sinter::detail::bare<M>::kind;
} && detail::has_list<sinter::detail::bare<M>>;

namespace detail {

using sinter::detail::bare;
using sinter::detail::is_tensor;
using sinter::detail::is_variable;

template <class X>
inline constexpr bool is_buffer = false;
template <class T, int R, class D>
inline constexpr bool is_buffer<buffer<T, R, D>> = true;

template <class X>
inline constexpr bool is_parameter = is_tensor<X> || is_variable<X>;
/// Parameters and buffers: what has a value that moves and is saved.
template <class X>
inline constexpr bool is_stored = is_parameter<X> || is_buffer<X>;

/// The tensor that a parameter or buffer holds.
template <class X>
auto stored_value(const X& x) {
  if constexpr (is_tensor<X>) return x;
  else return x.value();
}

template <class First, class... Rest>
struct first_of {
  using type = First;
};

/// The last of the modules that visit() is given: where one is copied, the one that is copied from.
template <class M>
const M& last_of(const M& m) {
  return m;
}
template <class M, class Next, class... Rest>
const auto& last_of(const M&, const Next& next, const Rest&... rest) {
  return last_of(next, rest...);
}

/// The name of a member, "fc1.weight", put together only where somebody reads it.
struct member_name {
  const member_name* outer;  ///< the module's in what holds it; null for the outermost
  sinter::detail::text_piece own;

  SINTER_COLD std::string text() const {
    return outer == nullptr ? sinter::detail::joined({own}) : sinter::detail::joined({outer->text(), ".", own});
  }
};

/// True for any_module, whose members have no types that a list could show.
template <class M>
concept is_erased = requires { typename M::erased_module; };

/// Calls f(name, member of m...) for everything in the lists of equally built modules that is not a module itself, and
/// f.erased(name, m...) for modules whose type is hidden; their name is null for the outermost.
template <class F, class... M>
void walk(const member_name* outer, F& f, M&... m) {
  using Module = typename first_of<bare<M>...>::type;
  if constexpr (is_erased<Module>) {
    f.erased(outer, m...);
  } else {
    Module::visit(
        [&](sinter::detail::text_piece own, auto&... member) {
          const member_name name{outer, own};
          using X = typename first_of<bare<decltype(member)>...>::type;
          if constexpr (is_module<X>) walk(&name, f, member...);
          else f(name, member...);
        },
        m...);
  }
}

template <class X, class D>
concept lives_elsewhere = !std::is_same_v<device_of<X>, any_device> && !on_device<X, D>;

template <class M>
concept on_one_device = device<device_of<M>> && !requires { typename M::output_device; };

template <class X>
concept holds_modules = !is_module<X> && requires(const X& x) {
  *x.begin();
  requires is_module<decltype(*x.begin())>;
};

template <class X, class M>
concept on_other_device_than = on_one_device<M> && lives_elsewhere<X, device_of<M>>;

/// What is wrong with a member of type X in the list of M.
template <class X, class M>
constexpr auto find_member_mistake() {
  using sinter::detail::mistake;
  if constexpr (is_setting<X>) return sinter::detail::fitting<void>{};
  else if constexpr (holds_modules<X>)
    return mistake<member_that_modules_do_not_understand<X>, make_it_an_nn_module_list>{};
  else if constexpr (!is_module<X> && !is_stored<X>)
    return mistake<member_that_modules_do_not_understand<X>,
                   make_it_a_parameter_buffer_or_module_or_say_nn_is_setting>{};
  else if constexpr (on_other_device_than<X, M>)
    return mistake<parameter_on_another_device_than_its_module<device_of<X>, device_of<M>>,
                   declare_the_parameter_on_the_device_of_the_module>{};
  else if constexpr (is_tensor<X> && std::is_same_v<typename M::kind, tracked>)
    return mistake<plain_tensor_listed_by_a_tracked_module<X>, declare_it_as_nn_parameter_or_nn_buffer>{};
  else return sinter::detail::fitting<void>{};
}
template <class X, class M>
using member_mistake = decltype(find_member_mistake<X, M>());

/// The visitor that only looks at types: members that M may list.
template <class M>
struct members_of {
  template <class X>
    requires(sinter::detail::is_fitting<member_mistake<X, M>>)
  void operator()(sinter::detail::text_piece, const X&) const {}
  template <class X, class Problem = typename member_mistake<X, M>::problem,
            class Fix = typename member_mistake<X, M>::fix>
  void operator()(sinter::detail::text_piece, const X&) const = delete;
};

/// Copies of members, in which a parameter that stands in several places stays one.
class member_copies {
 public:
  template <class To, class From>
  void copy(To& to, const From& from) {
    if constexpr (is_stored<From>) {
      using D = device_of<To>;
      if (!from.defined()) return;
      const auto value = stored_value(from);
      static constexpr char type = 0;
      for (const entry& e : done_) {
        if (e.type != &type) continue;
        const auto before = stored_value(*static_cast<const From*>(e.from));
        if (sinter::detail::access::data(before) != sinter::detail::access::data(value) ||
            before.shape() != value.shape() || before.strides() != value.strides())
          continue;
        to = *static_cast<const To*>(e.to);
        return;
      }
      const auto copied = [&] {
        if constexpr (std::is_same_v<device_of<From>, D>) return value.clone();
        else return value.template to<D>();
      };
      if constexpr (is_variable<From> && is_variable<To>) to = sinter::detail::leaf_like<To>(from, copied());
      else to = To(copied());
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

// What modules do with their members, for walk().

struct copy_members {
  member_copies& copies;
  template <class To, class From>
  void operator()(const member_name&, To& to, const From& from) const {
    copies.copy(to, from);
  }
  template <class To, class From>
  void erased(const member_name*, To& to, const From& from) const {
    to = from.template moved<device_of<To>>(copies);
  }
};

struct share_members {
  template <class To, class From>
  void operator()(const member_name&, To& to, const From& from) const {
    if constexpr (is_variable<From> && is_tensor<To>) to = from.value();
    else to = from;
  }
  template <class To, class From>
  void erased(const member_name*, To& to, const From& from) const {
    to = from.plain_view();
  }
};

struct set_mode {
  bool training;
  template <class X>
  void operator()(const member_name&, X& x) const {
    if constexpr (std::is_same_v<X, mode>) x.training = training;
  }
  template <class M>
  void erased(const member_name*, M& m) const {
    m.set_training(training);
  }
};

/// Calls f(name, parameter) for parameters, or f(name, buffer) for buffers.
template <bool Buffers, class F>
struct pick_members {
  const F& f;
  template <class X>
  void operator()(const member_name& name, const X& x) const {
    if constexpr (Buffers ? is_buffer<X> : is_parameter<X>) f(name, x);
  }
  template <class M>
  void erased(const member_name* name, const M& m) const {
    m.each_member(name, *this);
  }
};

}  // namespace detail
}  // namespace nn
}  // namespace sinter
