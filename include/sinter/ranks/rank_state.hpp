// sinter/ranks/rank_state.hpp: the ranks begin with the same model: its list of parameters and buffers is compared,
// and their values are those of rank 0.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sinter/nn/module.hpp"
#include "sinter/ranks/communicator.hpp"

namespace sinter::nn::detail {

/// One of several communicators, which reaches D: the first that does.
template <class D, class First, class... Rest>
auto& communicator_for(First& first, Rest&... rest) {
  if constexpr (First::template reaches<D>) return first;
  else return communicator_for<D>(rest...);
}
/// What is wrong with parameters on D for communicators C.
template <class D, class... C>
constexpr auto find_reach_mistake() {
  if constexpr ((C::template reaches<D> || ...)) return sinter::detail::fitting<D>{};
  else return sinter::detail::mistake<communicator_does_not_reach<D>, pass_a_communicator_that_reaches_it_as_well>{};
}
template <class X, class... C>
using reach_mistake = decltype(find_reach_mistake<device_of<X>, C...>());

/// Goes through the types of a model, as far as they tell, for the first device that no C reaches.
template <class Found, class... C>
struct find_unreached {
  using found = Found;
};
template <class Found, class... C, class X>
auto operator+(find_unreached<Found, C...> so_far, std::type_identity<X>) {
  if constexpr (!std::is_void_v<Found> || !(is_module<X> || is_stored<X>)) return so_far;
  else if constexpr (device<device_of<X>> && !(C::template reaches<device_of<X>> || ...))
    return find_unreached<device_of<X>, C...>{};
  else if constexpr (requires { X::template fold_types<find_unreached<void, C...>, X>(); })
    return decltype(X::template fold_types<find_unreached<void, C...>, X>()){};  // declared, never defined
  else if constexpr (requires { typename X::output_device; })
    return so_far + std::type_identity<buffer<float, 0, typename X::output_device>>{};
  else return so_far;
}
template <class M, class... C>
constexpr auto find_model_mistake() {
  using found = typename decltype(find_unreached<void, C...>{} + std::type_identity<M>{})::found;
  if constexpr (std::is_void_v<found>) return sinter::detail::fitting<M>{};
  else
    return sinter::detail::mistake<communicator_does_not_reach<found>, pass_a_communicator_that_reaches_it_as_well>{};
}
/// What is wrong with a model M for communicators C.
template <class M, class... C>
using model_mistake = decltype(find_model_mistake<bare<M>, C...>());

/// True for a module that holds tasks, of which a step uses some: `offloaded`.
template <class M>
concept holds_tasks = requires { requires M::holds_tasks; };

/// Calls f(name, member, task) for all parameters and buffers of m. `task` counts the tasks from 1; what belongs to
/// none has 0.
template <class F>
class task_walk {
 public:
  explicit task_walk(const F& f) : f_(f) {}

  template <class M>
  void run(const member_name* outer, const M& m, int task = 0) {
    if constexpr (is_erased<M>) {
      m.each_member(outer, visitor{*this, task});
    } else {
      M::visit(
          [&](sinter::detail::text_piece own, const auto& member) {
            const member_name name{outer, own};
            if constexpr (is_module<bare<decltype(member)>>) run(&name, member, holds_tasks<M> ? ++tasks_ : task);
            else visitor{*this, task}(name, member);
          },
          m);
    }
  }

 private:
  struct visitor {
    task_walk& self;
    int task;
    template <class X>
    void operator()(const member_name& name, const X& x) const {
      if constexpr (is_stored<X>) self.f_(name, x, task);
    }
    template <class M>
    void erased(const member_name* name, const M& m) const {
      self.run(name, m, task);
    }
  };

  const F& f_;
  int tasks_ = 0;
};
template <class M, class F>
void each_with_task(const M& m, const F& f) {
  task_walk<F>(f).run(nullptr, m);
}

/// A line for each parameter and buffer: its name, and what it is.
template <class M>
std::vector<std::pair<std::string, std::string>> member_table(const M& m) {
  std::vector<std::pair<std::string, std::string>> table;
  std::vector<std::pair<const void*, std::string>> seen;
  each_with_task(m, [&](const member_name& name, const auto& x, int) {
    using X = bare<decltype(x)>;
    const std::string own = name.text();
    std::string what = is_buffer<X> ? "buffer" : "parameter";
    if (!x.defined()) {
      what += " without a value";
    } else {
      const auto value = stored_value(x);
      what += sinter::detail::joined({" of shape ", value.shape(), " and type ", element_name<element_of<X>>()});
      if (!value.is_contiguous()) what += sinter::detail::joined({", with strides ", value.strides()});
      const void* const memory = sinter::detail::access::data(value);
      const auto same = std::find_if(seen.begin(), seen.end(), [&](const auto& s) { return s.first == memory; });
      if (same != seen.end() && x.numel() > 0) what += ", the same as '" + same->second + "'";
      else seen.emplace_back(memory, own);
    }
    table.emplace_back(own, what);
  });
  return table;
}

/// FNV-1a.
inline std::uint64_t text_hash(std::string_view text) {
  std::uint64_t h = 14695981039346656037u;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return h;
}

/// The texts of all ranks, in their order.
template <class C>
std::vector<std::string> gather_texts(C& ranks, const std::string& mine, std::string_view name) {
  const auto length = [&](const std::string& s) { return static_cast<std::int64_t>(s.size()); };
  const tensor<std::int64_t, 1> lengths = ranks.all_gather(tensor<std::int64_t, 1>{length(mine)}, name).get();
  constexpr index_t most = index_t{1} << 26;  // no list of parameters is longer
  for (index_t r = 0; r < ranks.size(); ++r)
    sinter::detail::require_told(
        lengths(r) >= 0 && lengths(r) <= most && (r != ranks.rank() || lengths(r) == length(mine)), ranks,
        static_cast<int>(r), "distributed", "of a list of ", lengths(r), " bytes");
  const index_t longest = *std::max_element(lengths.begin(), lengths.end());
  tensor<std::uint8_t, 1> padded = zeros<std::uint8_t>({longest});
  std::copy(mine.begin(), mine.end(), padded.begin());
  const tensor<std::uint8_t, 1> all = ranks.all_gather(padded, name).get();
  std::vector<std::string> texts;
  for (index_t r = 0; r < ranks.size(); ++r) {
    const std::uint8_t* const first = all.data() + r * longest;
    texts.emplace_back(first, first + lengths(r));
  }
  return texts;
}

/// Errors, on all ranks: value_error that names the first rank whose model differs from that of rank 0, and where.
template <class C, class M>
void require_same_model(C& ranks, const M& m) {
  std::string text;
  for (const auto& [name, what] : member_table(m)) text += name + "\n" + what + "\n";
  const auto own = static_cast<std::int64_t>(text_hash(text));
  const tensor<std::int64_t, 1> hashes = ranks.all_gather(tensor<std::int64_t, 1>{own}, "models").get();
  if (std::all_of(hashes.begin(), hashes.end(), [&](std::int64_t h) { return h == hashes(0); })) return;
  const std::vector<std::string> texts = gather_texts(ranks, text, "models");
  const auto line = [](std::string_view& rest) {
    const std::size_t end = rest.find('\n');
    const std::string_view first = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    return first;
  };
  for (std::size_t r = 1; r < texts.size(); ++r) {
    if (texts[r] == texts[0]) continue;
    std::string_view here = texts[r], there = texts[0];
    while (!here.empty() && !there.empty()) {
      const std::string_view name = line(here), what = line(here), name0 = line(there), what0 = line(there);
      if (name == name0 && what == what0) continue;
      sinter::detail::refuse<value_error>({"distributed: the models differ: rank ", static_cast<index_t>(r), " has '",
                                           name, "', a ", what, ", where rank 0 has '", name0, "', a ", what0,
                                           "; build the same model on all ranks"});
    }
    const bool more = !here.empty();
    std::string_view rest = more ? here : there;
    sinter::detail::refuse<value_error>(
        {"distributed: the models differ: ", more ? "" : "only rank 0 and not ", "rank ", static_cast<index_t>(r),
         " has '", line(rest), more ? "', which rank 0 has not" : "'", "; build the same model on all ranks"});
  }
}

/// The parameters and buffers of all ranks get the values of rank 0.
template <class M, class... C>
void spread_state(const M& m, C&... ranks) {
  sinter::detail::addresses seen;
  each_with_task(m, [&](const member_name&, const auto& x, int) {
    using X = bare<decltype(x)>;
    if constexpr (sinter::detail::is_fitting<reach_mistake<X, C...>>) {
      if (!x.defined()) return;
      const auto value = stored_value(x);
      if (value.numel() == 0 || !seen.add(sinter::detail::access::data(value))) return;
      const auto of_rank_0 = value.clone();
      const auto flat = sinter::detail::access::in_memory_order(of_rank_0);
      communicator_for<device_of<X>>(ranks...).broadcast(flat, 0, "state of rank 0").get();
      value.in_place() = of_rank_0;
    }
  });
}

}  // namespace sinter::nn::detail
