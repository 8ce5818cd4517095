// sinter/nn/module.hpp: what every module inherits: calling, parameters, training mode, and copies on other devices.
#pragma once

#include <string>
#include <vector>

#include "sinter/nn/member.hpp"
#include "sinter/nn/members.hpp"
#include "sinter/nn/observe.hpp"
#include "sinter/nn/place.hpp"

namespace sinter {

// Names in messages.
template <class...>
struct module_fed_from_another_device;
struct copy_the_input_with_dot_to;
template <class>
struct module_called_with_what_is_no_tensor;
struct pass_a_tensor_or_a_variable;
template <class>
struct input_that_the_module_does_not_take;
template <class...>
struct inputs_that_the_module_does_not_take;
struct use_what_its_forward_takes;
struct use_the_element_type_and_rank_that_its_forward_takes;
template <class>
struct module_that_is_no_template_of_device_and_kind;
struct declare_it_template_device_D_class_Kind_or_give_it_a_rebind;
template <class>
struct module_that_stays_on_its_devices;
struct move_the_modules_that_it_was_made_of;

namespace nn {

namespace detail {

/// What a module need not say: template <device, class Kind> has its device, kind and rebind in its type; others live
/// on the cpu and are tracked unless they say otherwise.
template <class Self>
struct module_types {
  using device_type = cpu;
  using kind = tracked;
};
template <template <class, class> class Template, device D, class Kind>
  requires(std::is_same_v<Kind, tracked> || std::is_same_v<Kind, plain>)
struct module_types<Template<D, Kind>> {
  using device_type = D;
  using kind = Kind;
  template <device To, class K>
  using rebind = Template<To, K>;
};

template <class M>
struct output_device {
  using type = device_of<M>;
};
template <class M>
  requires requires { typename M::output_device; }
struct output_device<M> {
  using type = typename M::output_device;
};

/// M with parameters of another kind, each on the device where it is; nothing where M does not say how.
template <class M, class Kind>
struct kind_changed {};
template <class M, class Kind>
  requires requires { typename M::template rebind<device_of<M>, Kind>; } &&
           (!requires { typename M::template as<Kind>; })
struct kind_changed<M, Kind> {
  using type = typename M::template rebind<device_of<M>, Kind>;
};
template <class M, class Kind>
  requires requires { typename M::template as<Kind>; }
struct kind_changed<M, Kind> {
  using type = typename M::template as<Kind>;
};

template <class M>
concept has_plain_twin = requires { typename kind_changed<M, plain>::type; };
template <class M, class D>
concept has_twin_on = requires { typename M::template rebind<D, typename M::kind>; };

/// Why M has no twin on a device. What has a plain twin does say its types, but is tied to its devices.
template <class M>
using no_twin = std::conditional_t<
    has_plain_twin<M>,
    sinter::detail::mistake<module_that_stays_on_its_devices<M>, move_the_modules_that_it_was_made_of>,
    sinter::detail::mistake<module_that_is_no_template_of_device_and_kind<M>,
                            declare_it_template_device_D_class_Kind_or_give_it_a_rebind>>;

/// M on device D; nothing for a transfer, which is tied to its devices.
template <class M, class D, class K>
struct rebound {};
template <class M, class D, class K>
  requires requires { typename M::template rebind<D, K>; }
struct rebound<M, D, K> {
  using type = typename M::template rebind<D, K>;
};

/// What is wrong with an E that is no tensor: a pending says it itself.
template <class E>
using no_tensor =
    std::conditional_t<sinter::detail::is_pending<E>, sinter::detail::no_operands<E>,
                       sinter::detail::mistake<module_called_with_what_is_no_tensor<E>, pass_a_tensor_or_a_variable>>;

/// The device of the first of these that is an expression elsewhere than M.
template <class M, class X, class... More>
struct first_elsewhere : first_elsewhere<M, More...> {};
template <class M, class X, class... More>
  requires(expression<X> && !same_device<X, M>)
struct first_elsewhere<M, X, More...> {
  using type = device_of<X>;
};

/// What is wrong with a call of M with X and, of a module with several inputs, more. A module may say it, as kernel ops
/// do: mistake<X, ...>() is fitting<T>, or a mistake. Else it takes what its forward does.
template <class M, class X, class... More>
constexpr auto find_input_mistake() {
  using sinter::detail::mistake;
  using E = bare<X>;
  if constexpr (!expression<E> && requires { requires M::template is_own_input<E>; })
    return sinter::detail::not_operands{};
  else if constexpr (!expression<E>) return no_tensor<E>{};
  else if constexpr (requires { typename M::no_forward; }) return typename M::no_forward{};
  else if constexpr (!same_device<E, M> || ((expression<More> && !same_device<bare<More>, M>) || ...))
    return mistake<module_fed_from_another_device<typename first_elsewhere<M, E, bare<More>...>::type, device_of<M>>,
                   copy_the_input_with_dot_to>{};
  else if constexpr (requires { M::template mistake<E, bare<More>...>(); })
    return M::template mistake<E, bare<More>...>();
  else if constexpr (requires(const M& m, X&& x, More&&... more) {
                       m.forward(std::forward<X>(x), std::forward<More>(more)...);
                     })
    return sinter::detail::fitting<element_of<E>>{};
  else if constexpr (sizeof...(More) == 0)
    return mistake<input_that_the_module_does_not_take<tensor<element_of<E>, rank_of<E>, device_of<E>>>,
                   use_the_element_type_and_rank_that_its_forward_takes>{};
  else return mistake<inputs_that_the_module_does_not_take<E, bare<More>...>, use_what_its_forward_takes>{};
}
template <class X, class M>
using input_check = decltype(find_input_mistake<M, X>());
template <class M, class... X>
using inputs_check = decltype(find_input_mistake<M, X...>());

}  // namespace detail

// Names in messages.
struct parameters_which_have_several_types;
struct write_for_each_parameter_with_a_function_of_name_and_parameter;

/// A row of named_parameters() or named_buffers().
struct parameter_info {
  std::string name;  ///< as in PyTorch: "0.weight", "fc1.bias"
  std::vector<index_t> shape;
  const char* element;
  std::string device;
  index_t numel = 1;

  // Of `auto& [name, w] : model.named_parameters()`: the rows hold no parameters, whose types differ.
  template <std::size_t I>
    requires(I == 0)
  const std::string& get() const {
    return name;
  }
  template <std::size_t I, class Problem = parameters_which_have_several_types,
            class Fix = write_for_each_parameter_with_a_function_of_name_and_parameter>
    requires(I == 1)
  int get() const = delete;
};

// Names in messages.
struct write_for_each_parameter_or_named_parameters;
struct write_size_of_named_parameters_or_parameter_count;
struct leave_those_parameters_out_of_the_optimizer_or_use_infer_of_that_part;
struct write_to_cpu_or_to_cuda_0_in_angle_brackets;
struct write_named_parameters_or_the_members;
struct element_type_which_is_part_of_the_type;
struct write_it_in_the_type_of_the_layer_as_in_nn_linear_of_double;

/// The parameters of a module, as optimizers, their groups and clipping take them. It refers to the module.
///
///     optim::adam optimizer(model.parameters(), {.lr = 1e-3});  // the same as of model
template <class M>
struct parameter_list {
  const M& of;
  template <class Problem = parameters_which_have_several_types,
            class Fix = write_for_each_parameter_or_named_parameters>
  void begin() const = delete;
  void* end() const;  // so that a loop has one error
  SINTER_MEMBER_NAMED_OTHERWISE(size, write_size_of_named_parameters_or_parameter_count)
};
struct write_nn_save_and_nn_load_of_the_model;

/// Base of every module. A module is its members, a forward, and the line that lists them:
///
///     template <device D = cpu, class Kind = nn::tracked>
///     struct residual : nn::module<residual<D, Kind>> {
///       nn::linear<float, D, Kind> fc;
///       nn::parameter<float, 1, D, Kind> scale;
///
///       template <class X>
///       auto forward(const X& x) const {  // the value, usually an expression
///         return x + scale * tanh(fc(x));
///       }
///       SINTER_MEMBERS(fc, scale);
///     };
///     residual<> block{{}, nn::linear(8, 8, gen), ones<float>({8})};  // {} for the base
///
/// Device, kind and rebind come from the two template parameters. A module without them lives on the cpu, is tracked,
/// and has no to() and infer(). A module may say all of it itself:
///   using device_type
///     where its parameters and inputs live (any_device: it has none)
///   using kind
///     tracked or plain
///   template <class D, class Kind> using rebind
///     the same module on D; to() and infer() need it
///   template <class F, class... M> static void visit(F&& f, M&... m)
///     its one list: f("weight", m.weight...) for every parameter, buffer, submodule, mode and setting (see is_setting)
///   using no_forward = detail::mistake<problem, fix>
///     instead of forward: what the message says where it is called
/// and is default constructible for to() and infer(). docs/modules.md tells more.
template <class Self>
class module : public detail::module_types<Self> {
 public:
  // Public, so that modules can be aggregates; not `module()` alone: nvcc reads that as the keyword.
  constexpr module() {
    detail::check_list<Self>();
    if constexpr (detail::has_list<Self>)
      static_cast<void>([](Self& m) { Self::visit(detail::members_of<Self>{}, m); });
  }

  // PyTorch's names of what goes by another one.
  parameter_list<Self> parameters() const { return {self()}; }
  SINTER_MEMBER_NAMED_OTHERWISE(apply, write_for_each_parameter_with_a_function_of_name_and_parameter)
  SINTER_MEMBER_NAMED_OTHERWISE(requires_grad_, leave_those_parameters_out_of_the_optimizer_or_use_infer_of_that_part)
  SINTER_MEMBER_NAMED_OTHERWISE(freeze, leave_those_parameters_out_of_the_optimizer_or_use_infer_of_that_part)
  SINTER_MEMBER_NAMED_OTHERWISE(save, write_nn_save_and_nn_load_of_the_model)
  SINTER_MEMBER_NAMED_OTHERWISE(load, write_nn_save_and_nn_load_of_the_model)
  SINTER_MEMBER_NAMED_OTHERWISE(cuda, write_to_cpu_or_to_cuda_0_in_angle_brackets)
  SINTER_MEMBER_NAMED_OTHERWISE(children, write_named_parameters_or_the_members)
  SINTER_MEMBER_NAMED_OTHERWISE(modules, write_named_parameters_or_the_members)
  SINTER_MEMBER_NAMED_OTHERWISE(named_modules, write_named_parameters_or_the_members)
  SINTER_MEMBER_NAMED_OTHERWISE(state_dict, write_nn_save_and_nn_load_of_the_model)
  SINTER_MEMBER_NAMED_OTHERWISE(load_state_dict, write_nn_save_and_nn_load_of_the_model)

  /// forward(x, more...) for an x on the module's device; most modules take one input. A shape_error names the path to
  /// the module that failed. A call that throws leaves buffers and generators as they were; see undo_on_error.
  template <expression X, class... More, class S = Self>
    requires(sinter::detail::is_fitting<detail::inputs_check<S, X, More...>>)
  auto operator()(X&& x, More&&... more) const {
    try {
      sinter::detail::undo_scope changes;
      auto y = self().forward(std::forward<X>(x), std::forward<More>(more)...);
      if constexpr (expression<decltype(y)>) {
        if (detail::call_observer_now() != nullptr) detail::tell_observer(self(), y);
      }
      changes.keep();
      return y;
    } catch (const detail::placed_error& e) {
      detail::rethrow_from(&self(), detail::code_of<Self>, e);
    } catch (const shape_error& e) {
      detail::rethrow_from(&self(), detail::code_of<Self>, e);
    }
  }
  template <class X, class... More, class S = Self,
            class Problem = typename detail::inputs_check<S, X, More...>::problem,
            class Fix = typename detail::inputs_check<S, X, More...>::fix>
  void operator()(X&&, More&&...) const = delete;

  /// A module of its own on device D, with copies of all values; tied parameters stay tied. Gradients are not copied.
  template <device D, class S = Self>
    requires detail::has_twin_on<S, D>
  [[nodiscard]] auto to() const {
    typename S::template rebind<D, typename S::kind> copy;
    detail::member_copies copies;
    const detail::copy_members put{copies};
    detail::walk(nullptr, put, copy, self());
    return copy;
  }
  template <device D, class S = Self, class Problem = typename detail::no_twin<S>::problem,
            class Fix = typename detail::no_twin<S>::fix>
    requires(!detail::has_twin_on<S, D>)
  void to() const = delete;
  template <element T, class Problem = element_type_which_is_part_of_the_type,
            class Fix = write_it_in_the_type_of_the_layer_as_in_nn_linear_of_double>
  void to() const = delete;
  /// A copy of its own on the same device, as `to` makes it.
  template <class S = Self>
  [[nodiscard]] auto clone() const {
    if constexpr (device<typename S::device_type>) return this->template to<typename S::device_type>();
    else return self();  // it holds no parameters
  }

  /// Calls f(name, parameter) for every parameter, in the order of the lists. Names are PyTorch's: "fc1.weight".
  template <class F>
  void for_each_parameter(F&& f) const {
    each_parameter([&f](const detail::member_name& name, const auto& p) {
      const std::string text = name.text();
      f(text, p);
    });
  }

  /// Calls f(name, buffer) for every nn::buffer, likewise.
  template <class F>
  void for_each_buffer(F&& f) const {
    each_buffer([&f](const detail::member_name& name, const auto& b) {
      const std::string text = name.text();
      f(text, b);
    });
  }

  std::vector<parameter_info> named_parameters() const {
    std::vector<parameter_info> list;
    each_parameter([&list](const detail::member_name& name, const auto& p) { list.push_back(info_of(name, p)); });
    return list;
  }
  /// The same of the buffers.
  std::vector<parameter_info> named_buffers() const {
    std::vector<parameter_info> list;
    each_buffer([&list](const detail::member_name& name, const auto& b) { list.push_back(info_of(name, b)); });
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
    const detail::set_mode set{on};
    detail::walk(nullptr, set, self());
  }
  void eval() { train(false); }

 private:
  template <class F>
  void each_parameter(const F& f) const {
    const detail::pick_members<false, F> pick{f};
    detail::walk(nullptr, pick, self());
  }
  template <class F>
  void each_buffer(const F& f) const {
    const detail::pick_members<true, F> pick{f};
    detail::walk(nullptr, pick, self());
  }
  template <class X>
  static parameter_info info_of(const detail::member_name& name, const X& x) {
    parameter_info info{
        name.text(), {x.shape().begin(), x.shape().end()}, element_name<element_of<X>>(), device_name<device_of<X>>()};
    info.numel = x.numel();
    return info;
  }
  const Self& self() const { return static_cast<const Self&>(*this); }
  Self& self() { return static_cast<Self&>(*this); }
};

/// The module with its parameters shown as plain tensors on the same memory: what it computes is not recorded, and no
/// backward is compiled. It is in inference mode.
///
///     tensor scores = infer(model)(images);
template <is_module M>
  requires detail::has_plain_twin<M>
[[nodiscard]] auto infer(const M& model) {
  typename detail::kind_changed<M, plain>::type view;
  const detail::share_members put;
  detail::walk(nullptr, put, view, model);
  view.eval();
  return view;
}
template <is_module M, class Problem = module_that_is_no_template_of_device_and_kind<M>,
          class Fix = declare_it_template_device_D_class_Kind_or_give_it_a_rebind>
  requires(!detail::has_plain_twin<M>)
void infer(const M&) = delete;

}  // namespace nn
}  // namespace sinter

template <>
struct std::tuple_size<sinter::nn::parameter_info> : std::integral_constant<std::size_t, 2> {};
template <std::size_t I>
struct std::tuple_element<I, sinter::nn::parameter_info> {
  using type = std::conditional_t<I == 0, const std::string, int>;
};
