// sinter/optim/saved.hpp: what optimizers keep for a parameter from step to step, taken out and put back.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sinter/core/create.hpp"
#include "sinter/core/host_tensor.hpp"
#include "sinter/expr/backend.hpp"

namespace sinter::optim::detail {

/// A parameter as messages and files name it: "0.weight (20, 10)", with strides where it is not row-major.
SINTER_SHARED_COLD std::string parameter_label(const std::string& name, const index_t* shape, const index_t* strides,
                                               int rank);

/// What is done with a member of the state of an update; its address is the first argument.
struct saved_actions {
  /// The value on the host; nothing before the first step.
  std::optional<host_tensor> (*read)(const void*);
  /// A new object of that value, for a parameter of n elements, or as before the first step if there is none. Errors:
  /// value_error for another shape or element type.
  std::shared_ptr<void> (*made)(const host_tensor*, index_t n);
  /// Puts it in the place of a member, in the memory that is there already if it has as much.
  void (*put)(void*, void* made);
};

/// A member of the state of the update of one parameter.
struct saved_member {
  std::string name;  ///< number of the parameter, '.', name in the rule
  void* object;
  const saved_actions* actions;
  index_t numel;
  std::size_t parameter;  ///< its number
};

/// Errors: value_error unless `from` has n elements of that kind in one axis, or is a number for n = -1.
SINTER_SHARED_COLD void check_saved(const host_tensor& from, element_kind kind, index_t n);

/// The values of `from`. Errors: value_error unless it has n elements of type T in one axis, or is a number for n = -1.
template <element T>
tensor<T, 1> saved_values(const host_tensor& from, index_t n) {
  check_saved(from, kind_of_element<T>(), n);
  auto to = tensor<T, 1>::uninitialized({{n < 0 ? 1 : n}});
  const auto count = static_cast<std::size_t>(to.numel());
  sinter::detail::convert_elements<T>(from.bytes.data(), count, to.data());
  return to;
}

/// X is a number, or has saved(), restore(host_tensor, numel) and take(X&&).
template <class X>
struct saved_type {
  static std::optional<host_tensor> read(const void* object) {
    const X& x = *static_cast<const X*>(object);
    if constexpr (element<X>) return host_tensor(full<X>(extents<0>{}, x));
    else return x.saved();
  }
  static std::shared_ptr<void> made(const host_tensor* from, index_t n) {
    auto x = std::make_shared<X>();
    if (from != nullptr) {
      if constexpr (element<X>) *x = saved_values<X>(*from, -1)(0);
      else x->restore(*from, n);
    }
    return x;
  }
  static void put(void* object, void* made) {
    X &to = *static_cast<X*>(object), &from = *static_cast<X*>(made);
    if constexpr (element<X>) to = from;
    else to.take(std::move(from));
  }
  static constexpr saved_actions actions{&read, &made, &put};
};

/// `to` gets the values of `from`: in its own memory, which a captured step may use, if it has as much.
template <class Tensor>
void take_values(Tensor& to, Tensor&& from) {
  if (to.defined() && from.defined() && to.shape() == from.shape()) copy(from, to);
  else to = std::move(from);
}

/// The state of one optimizer, staged: writing it cannot fail.
struct staged_state {
  struct part {
    saved_member to;
    std::shared_ptr<void> made;
  };
  std::vector<part> parts;
  void write() const;
};

/// For staged(); keeps(f, member) asks its last argument. A template so that only files which call it compile its
/// containers.
template <class Members>
SINTER_COLD staged_state staged_if(std::string_view op, const Members& members,
                                   const std::vector<named_tensor>& entries, const void* f,
                                   bool (*keeps)(const void* f, const saved_member&));

/// Finds an entry for every member, and stages those for which keeps(member) is true. Errors: value_error that lists
/// what does not fit, is missing or is left.
template <class F>
SINTER_COLD staged_state staged(std::string_view op, const std::vector<saved_member>& members,
                                const std::vector<named_tensor>& entries, const F& keeps) {
  return staged_if(op, members, entries, &keeps,
                   [](const void* f, const saved_member& m) { return (*static_cast<const F*>(f))(m); });
}

#if SINTER_DEFINES

SINTER_SHARED_COLD std::string parameter_label(const std::string& name, const index_t* shape, const index_t* strides,
                                               int rank) {
  using sinter::detail::shape_piece;
  index_t step = 1;
  bool row_major = true;
  for (int d = rank; d-- > 0; step *= shape[d]) row_major = row_major && (shape[d] == 1 || strides[d] == step);
  std::string text = name.empty() ? "" : name + ' ';
  text += sinter::detail::joined({shape_piece{shape, rank}});
  return row_major ? text : text + sinter::detail::joined({" with strides ", shape_piece{strides, rank}});
}

SINTER_SHARED_COLD void check_saved(const host_tensor& from, element_kind kind, index_t n) {
  using sinter::detail::shape_piece;
  const bool fits = n < 0 ? from.shape.empty() : from.shape.size() == 1 && from.shape[0] == n;
  if (from.element != kind || !fits)
    sinter::detail::refuse<value_error>(
        {"has shape ", shape_piece{from.shape.data(), static_cast<int>(from.shape.size())}, " of ",
         element_name(from.element), ", not ", shape_piece{&n, n < 0 ? 0 : 1}, " of ", element_name(kind)});
}

SINTER_SHARED void staged_state::write() const {
  for (const part& p : parts) p.to.actions->put(p.to.object, p.made.get());
}

template <class Members>
SINTER_COLD staged_state staged_if(std::string_view op, const Members& members,
                                   const std::vector<named_tensor>& entries, const void* f,
                                   bool (*keeps)(const void* f, const saved_member&)) {
  staged_state all;
  std::string problems;
  const auto report = [&](const std::string& name, std::string_view what) {
    problems += sinter::detail::joined({"\n  '", name, "' ", what});
  };
  std::unordered_map<std::string, const host_tensor*> by_name;
  for (const named_tensor& entry : entries) by_name.emplace(entry.name, &entry.value);
  for (const saved_member& m : members) {
    const auto entry = by_name.find(m.name);
    try {
      auto made = m.actions->made(entry == by_name.end() ? nullptr : entry->second, m.numel);
      if (keeps(f, m)) all.parts.push_back({m, std::move(made)});
    } catch (const value_error& e) {
      report(m.name, e.what());
    }
    if (entry != by_name.end()) by_name.erase(entry);
  }
  for (const named_tensor& entry : entries)
    if (by_name.count(entry.name) != 0) report(entry.name, "is not in the optimizer");
  if (!problems.empty())
    sinter::detail::refuse<value_error>({op, ": the state does not fit the optimizer; nothing was loaded:", problems});
  return all;
}

#endif  // SINTER_DEFINES

#if SINTER_COMPILED
SINTER_INSTANCE staged_state staged_if(std::string_view, const std::vector<saved_member>&,
                                       const std::vector<named_tensor>&, const void*,
                                       bool (*)(const void*, const saved_member&));
#endif

}  // namespace sinter::optim::detail
