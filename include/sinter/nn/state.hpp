// sinter/nn/state.hpp: the parameters and buffers of a model by name, taken out and put back.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sinter/core/host_tensor.hpp"
#include "sinter/nn/module.hpp"

namespace sinter::nn {

using sinter::named_tensor;
/// All parameters and buffers of a model, in the order of its lists, on the host.
using state_dict = std::vector<named_tensor>;

struct load_options {
  bool strict = true;    ///< false: entries that are missing or unexpected are passed over
  bool convert = false;  ///< true: float, double, half and bfloat16 are converted into each other
};

namespace detail {

/// What state() and load_state() do with a parameter or buffer of a type; its address is the first argument.
struct stored_actions {
  element_kind element;
  bool is_buffer;
  std::vector<index_t> (*shape)(const void*);
  host_tensor (*read)(const void*);
  /// The values as a tensor beside the member, if writing them could fail otherwise; null if it cannot. Errors:
  /// value_error for a number that the element type of the member cannot hold.
  std::shared_ptr<const void> (*stage)(const void*, const host_tensor&);
  void (*write)(const void*, const host_tensor&, const void* staged);
};

struct stored_member {
  std::string name;
  const void* object;
  const stored_actions* actions;
};

inline bool is_floating(element_kind kind) {
  return kind == element_kind::float32 || kind == element_kind::float64 || kind == element_kind::float16 ||
         kind == element_kind::bfloat16;
}

/// The elements of `from`, which are of type T or, for floating-point T, of any floating-point type. Errors:
/// value_error for a number that T cannot hold.
template <class T>
void read_elements(const host_tensor& from, T* to) {
  if (from.element == kind_of_element<T>() && !std::is_same_v<T, bool>) {
    if (!from.bytes.empty()) std::memcpy(to, from.bytes.data(), from.bytes.size());
    return;
  }
  with_element(from.element, [&](auto x) {
    using From = decltype(x);
    if constexpr (std::is_same_v<From, T> || (element<From> && floating_element<From> && floating_element<T>)) {
      const std::size_t n = from.bytes.size() / sizeof(From);
      const std::size_t done = sinter::detail::convert_elements<From>(from.bytes.data(), n, to);
      if (done < n)
        sinter::detail::refuse<value_error>({sinter::detail::unfit_text<From, T>(from.bytes.data(), done, done)});
    }
  });
}

template <class X>
struct stored_type {
  using T = element_of<X>;
  using D = device_of<X>;
  static const X& at(const void* object) { return *static_cast<const X*>(object); }

  static std::vector<index_t> shape(const void* object) {
    return {at(object).shape().begin(), at(object).shape().end()};
  }
  static host_tensor read(const void* object) {
    const auto value = stored_value(at(object)).template to<cpu>();
    const auto dense = value.is_contiguous() ? value.clone() : value.contiguous();
    const auto keep = std::make_shared<const bare<decltype(dense)>>(dense);
    const auto* data = reinterpret_cast<const std::byte*>(sinter::detail::access::data(*keep));
    return {kind_of_element<T>(), shape(object), {data, static_cast<std::size_t>(keep->numel()) * sizeof(T)}, keep};
  }
  static bool writes_in_place(const X& x, const host_tensor& from) {
    return is_cpu_v<D> && from.element == kind_of_element<T>() && stored_value(x).is_contiguous();
  }
  static std::shared_ptr<const void> stage(const void* object, const host_tensor& from) {
    const X& x = at(object);
    if (writes_in_place(x, from)) return nullptr;
    auto values = tensor<T, X::rank, cpu>::uninitialized(x.shape());
    read_elements(from, sinter::detail::access::data(values));
    return std::make_shared<const tensor<T, X::rank, D>>(values.template to<D>());
  }
  static void write(const void* object, const host_tensor& from, const void* staged) {
    const auto to = stored_value(at(object));
    if (staged != nullptr) return copy(*static_cast<const tensor<T, X::rank, D>*>(staged), to);
    read_elements(from, sinter::detail::access::data(to));
    sinter::detail::note_write(*sinter::detail::access::storage_of(to).get());
  }
  static constexpr stored_actions actions{kind_of_element<T>(), is_buffer<X>, &shape, &read, &stage, &write};
};

/// Gathers the parameters and buffers that have a value.
struct collect_stored {
  std::vector<stored_member>& members;
  template <class X>
  void operator()(const member_name& name, const X& x) const {
    if constexpr (is_stored<X>) {
      if (x.defined()) members.push_back({name.text(), &x, &stored_type<X>::actions});
    }
  }
  template <class M>
  void erased(const member_name* name, const M& m) const {
    m.each_member(name, *this);
  }
};

/// `Members` is a parameter so that only files which call it compile its functions.
template <class M, class Members = std::vector<stored_member>>
Members stored_members(const M& model, const member_name* outer = nullptr) {
  Members members;
  const collect_stored collect{members};
  walk(outer, collect, model);
  return members;
}

/// What keeps an entry from being written to a member; nothing if it fits.
SINTER_SHARED_COLD std::string misfit_of(const stored_member& member, const host_tensor& entry, bool convert);

/// True for the counter of a batch norm, which files from before PyTorch 0.4.1 lack. As in PyTorch it stays as it is.
SINTER_SHARED_COLD bool may_be_missing(const stored_member& member);

/// The values of the members on the host.
SINTER_SHARED state_dict read_members(const std::vector<stored_member>& members);

/// An entry that fits a member; what may fail of writing it is done.
struct assignment {
  const stored_member* to;
  const host_tensor* from;
  std::shared_ptr<const void> staged;
};

/// What write() needs to write the entries to the members; both must live on until then. Errors: as load_state, with
/// `op` before the text. A template, as are those below, so that only files which call it compile its containers.
template <class Members>
std::vector<assignment> plan_assignments(std::string_view op, const Members& members, const state_dict& state,
                                         const load_options& options);
template <class Plan>
void write(const Plan& plan);

/// Writes the entries to the members, or throws and writes none.
template <class Members>
void load(const char* op, const Members& members, const state_dict& state, const load_options& options);

/// Calls f(name, generator) for the generators among the settings of a model.
template <class F>
struct pick_generators {
  const F& f;
  template <class X>
  void operator()(const member_name& name, X& x) const {
    if constexpr (std::is_same_v<std::remove_const_t<X>, generator>) f(name, x);
    else if constexpr (requires { requires std::is_same_v<bare<decltype(*x.begin())>, generator>; })
      for (auto& one : x) f(name, one);
    else if constexpr (std::is_same_v<std::remove_const_t<X>, std::optional<generator>>)
      if (x) f(name, *x);
  }
  template <class M>
  void erased(const member_name* name, M& m) const {
    m.each_generator(name, *this);
  }
};
template <class M, class F>
void for_each_generator(M& model, const F& f) {
  const pick_generators<F> pick{f};
  walk(nullptr, pick, model);
}

#if SINTER_DEFINES

SINTER_SHARED_COLD std::string misfit_of(const stored_member& member, const host_tensor& entry, bool convert) {
  using sinter::detail::joined;
  using sinter::detail::shape_piece;
  const std::vector<index_t> shape = member.actions->shape(member.object);
  if (shape != entry.shape)
    return joined({"has shape ", shape_piece{entry.shape.data(), static_cast<int>(entry.shape.size())},
                   " in the state and ", shape_piece{shape.data(), static_cast<int>(shape.size())}, " in the model"});
  const element_kind want = member.actions->element;
  if (entry.element != want) {
    const bool floats = is_floating(entry.element) && is_floating(want);
    if (!floats || !convert)
      return joined({"has elements of type ", element_name(entry.element), " in the state and ", element_name(want),
                     " in the model", floats ? "; pass {.convert = true} to convert them" : ""});
  }
  std::size_t bytes = element_size(entry.element);
  for (const index_t n : shape) bytes *= static_cast<std::size_t>(n);
  if (entry.bytes.size() != bytes) return joined({"has ", entry.bytes.size(), " bytes in the state, not ", bytes});
  return {};
}

SINTER_SHARED_COLD bool may_be_missing(const stored_member& member) {
  const std::string_view name = member.name, counter = "num_batches_tracked";
  return member.actions->is_buffer && name.ends_with(counter) &&
         (name.size() == counter.size() || name[name.size() - counter.size() - 1] == '.');
}

SINTER_SHARED state_dict read_members(const std::vector<stored_member>& members) {
  state_dict all;
  for (const stored_member& m : members) all.push_back({m.name, m.actions->read(m.object)});
  return all;
}

template <class Members>
std::vector<assignment> plan_assignments(std::string_view op, const Members& members, const state_dict& state,
                                         const load_options& options) {
  std::vector<assignment> plan;
  std::string problems;
  const auto report = [&](const std::string& name, const std::string& what) {
    problems += sinter::detail::joined({"\n  '", name, "' ", what});
  };
  std::unordered_map<std::string, const host_tensor*> entries;
  for (const named_tensor& entry : state)
    if (!entries.emplace(entry.name, &entry.value).second) report(entry.name, "is in the state twice");
  for (const stored_member& member : members) {
    const auto entry = entries.find(member.name);
    if (entry == entries.end()) {
      if (options.strict && !may_be_missing(member)) report(member.name, "is missing in the state");
      continue;
    }
    const std::string misfit = misfit_of(member, *entry->second, options.convert);
    if (!misfit.empty()) report(member.name, misfit);
    plan.push_back({&member, entry->second, nullptr});
    entry->second = nullptr;
  }
  if (options.strict) {
    for (const named_tensor& entry : state)
      if (entries.at(entry.name) != nullptr) report(entry.name, "is not in the model");
  }
  const auto refuse_problems = [&] {
    if (!problems.empty())
      sinter::detail::refuse<value_error>({op, ": the state does not fit the model; nothing was loaded:", problems});
  };
  refuse_problems();
  for (assignment& a : plan) {
    try {
      a.staged = a.to->actions->stage(a.to->object, *a.from);
    } catch (const value_error& e) {
      report(a.to->name, e.what());
    }
  }
  refuse_problems();
  return plan;
}
template <class Plan>
void write(const Plan& plan) {
  for (const assignment& a : plan) a.to->actions->write(a.to->object, *a.from, a.staged.get());
}

template <class Members>
void load(const char* op, const Members& members, const state_dict& state, const load_options& options) {
  write(plan_assignments(op, members, state, options));
}

#endif  // SINTER_DEFINES

#if SINTER_COMPILED
SINTER_INSTANCE std::vector<assignment> plan_assignments(std::string_view, const std::vector<stored_member>&,
                                                         const state_dict&, const load_options&);
SINTER_INSTANCE void write(const std::vector<assignment>&);
SINTER_INSTANCE void load(const char*, const std::vector<stored_member>&, const state_dict&, const load_options&);
#endif

}  // namespace detail

/// A copy of all parameters and buffers of a model on the host, by PyTorch's names, from any devices. Those without a
/// value are left out. Mode, settings and generators are not part of it.
///
///     nn::state_dict saved = nn::state(model);
///     write_safetensors("model.safetensors", saved);  // of sinter/io.hpp
template <is_module M>
[[nodiscard]] state_dict state(const M& model) {
  return detail::read_members(detail::stored_members(model));
}

/// Writes a state, such as an open safetensors file, into the parameters and buffers of a model, on any devices.
/// Errors: value_error that lists every entry that is missing, unexpected, of another shape or of another element type,
/// or that holds a number that the element type of the model cannot hold; the model is then as it was. The counters of
/// batch norms, num_batches_tracked, may be missing, as in files from before PyTorch 0.4.1; they stay as they are.
///
///     nn::load_state(model, read_safetensors("model.safetensors"));  // of sinter/io.hpp
template <is_module M>
void load_state(const M& model, const state_dict& state, const load_options& options = {}) {
  detail::load("load_state", detail::stored_members(model), state, options);
}

namespace detail {

struct copy_values {
  template <class To, class From>
  void operator()(const member_name& name, const To& to, const From& from) const {
    if constexpr (is_stored<To>) {
      if (!(to.shape() == from.shape()))
        sinter::detail::refuse<shape_error>({"copy_state: ", is_buffer<To> ? "buffer" : "parameter", " '", name.text(),
                                             "' has shape ", from.shape(), " in the source and ", to.shape(),
                                             " in the destination"});
      copy(stored_value(from), stored_value(to));
    }
  }
  /// By way of the host, as neither side shows its types.
  template <class To, class From>
  void erased(const member_name* name, const To& to, const From& from) const {
    load("copy_state", stored_members(to, name), read_members(stored_members(from, name)), {});
  }
};

}  // namespace detail

/// Copies the values of all parameters and buffers into those of an equally built module, on any devices. Errors:
/// shape_error naming the parameter or buffer; value_error of load_state where modules are held by any_module.
template <is_module From, is_module To>
void copy_state(const From& from, const To& to) {
  const detail::copy_values put;
  detail::walk(nullptr, put, to, from);
}

}  // namespace sinter::nn
