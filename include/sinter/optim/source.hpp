// sinter/optim/source.hpp: where optimizers and clipping find parameters, and a choice among them.
#pragma once

#include <concepts>
#include <string>
#include <utility>

#include "sinter/nn/module.hpp"

namespace sinter {

// Names in messages.
struct tensor_without_gradient_given_to_an_optimizer;
struct make_it_a_variable;
struct variable_of_order_2_given_to_an_optimizer;
struct declare_it_with_order_1;

}  // namespace sinter

namespace sinter::optim {

namespace detail {

using sinter::detail::bare;
using sinter::detail::fitting;
using sinter::detail::is_fitting;
using sinter::detail::is_variable;
using sinter::detail::mistake;

/// See only().
template <class Source, class F>
struct selection {
  using source_type = Source;
  const Source& source;
  F wanted;
};
template <class X>
inline constexpr bool is_selection = false;
template <class Source, class F>
inline constexpr bool is_selection<selection<Source, F>> = true;

template <class X>
inline constexpr bool is_parameter_list = false;
template <class M>
inline constexpr bool is_parameter_list<nn::parameter_list<M>> = true;

template <class V>
nn::parameter_info info_of(const std::string& name, const V& v) {
  return {name,
          {v.shape().begin(), v.shape().end()},
          element_name<element_of<V>>(),
          device_name<device_of<V>>(),
          v.numel()};
}

/// Whether an optimizer steps what Source holds: a module, a variable, or a range of either.
template <class Source>
constexpr auto find_source_mistake() {
  if constexpr (sinter::detail::is_tensor<Source>)
    return mistake<tensor_without_gradient_given_to_an_optimizer, make_it_a_variable>{};
  else if constexpr (is_variable<Source>) {
    if constexpr (Source::order == 1) return fitting<void>{};
    else return mistake<variable_of_order_2_given_to_an_optimizer, declare_it_with_order_1>{};
  } else if constexpr (nn::is_module<Source>) return fitting<void>{};
  else if constexpr (is_selection<Source>) return find_source_mistake<typename Source::source_type>();
  else if constexpr (is_parameter_list<Source>) return find_source_mistake<bare<decltype(std::declval<Source>().of)>>();
  else if constexpr (requires(const Source& s) {
                       s.begin() != s.end();
                       requires !std::is_same_v<bare<decltype(*s.begin())>, Source>;  // a path is a range of paths
                     })
    return find_source_mistake<bare<decltype(*std::declval<const Source&>().begin())>>();
  else return sinter::detail::not_operands{};
}
template <class Source>
using source_mistake = decltype(find_source_mistake<bare<Source>>());

template <class Source, class F>
void visit_variables(const Source& source, const F& f) {
  if constexpr (is_variable<Source>) {
    f(std::string(), source);
  } else if constexpr (nn::is_module<Source>) {
    source.for_each_parameter([&f](const std::string& name, const auto& p) {
      if constexpr (is_variable<bare<decltype(p)>>) f(name, p);
    });
  } else if constexpr (is_parameter_list<Source>) {
    visit_variables(source.of, f);
  } else if constexpr (is_selection<Source>) {
    visit_variables(source.source, [&source, &f](const std::string& name, const auto& v) {
      if (source.wanted(info_of(name, v))) f(name, v);
    });
  } else {
    for (const auto& one : source) visit_variables(one, f);
  }
}

/// What tells one parameter from another: two handles to a tied weight are the same.
template <class V>
const void* identity(const V& v) {
  return sinter::detail::access::state_of(v).get();
}

/// Calls f(name, variable) once for every tracked parameter of a module, a variable, or a range of either.
template <class Source, class F>
void for_each_variable(const Source& source, const F& f) {
  sinter::detail::addresses seen;
  visit_variables(source, [&](const std::string& name, const auto& v) {
    if (seen.add(identity(v))) f(name, v);
  });
}

}  // namespace detail

/// The parameters of a module, a variable or a range of either for which wanted(nn::parameter_info) is true: a source
/// for optimizers, their groups and clipping. It refers to `source`.
///
///     const auto is_matrix = [](const nn::parameter_info& p) { return p.shape.size() == 2; };
///     optim::sgd optimizer(optim::only(model, is_matrix), {.lr = 0.1});
template <class Source, std::predicate<const nn::parameter_info&> F>
  requires(detail::is_fitting<detail::source_mistake<Source>>)
detail::selection<Source, F> only(const Source& source, F wanted) {
  return {source, std::move(wanted)};
}
template <class Source, class F, class Problem = typename detail::source_mistake<Source>::problem,
          class Fix = typename detail::source_mistake<Source>::fix>
void only(const Source&, F) = delete;

}  // namespace sinter::optim
