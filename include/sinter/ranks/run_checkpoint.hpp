// sinter/ranks/run_checkpoint.hpp: one file with all that a training run needs to go on after it was stopped.
#pragma once

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sinter/ranks/run_part.hpp"

namespace sinter {

// Names in messages.
template <class>
struct checkpoint_cannot_hold;
struct pass_modules_optimizers_schedulers_scalers_generators_loaders_or_numbers;
template <class>
struct checkpoint_cannot_load_into;
struct pass_a_variable_that_is_not_const;
template <class>
struct optimizer_whose_rule_does_not_list_its_state;
struct give_the_state_of_the_rule_a_function_each_saved;

namespace detail {

template <class X>
inline constexpr bool hides_its_state = requires { requires !X::can_be_saved; };

/// What is wrong with the first of the arguments that a checkpoint cannot save, or (Load) not change.
template <bool Load, class X, class... Rest>
constexpr auto find_run_mistake() {
  using Object = std::remove_cvref_t<X>;
  if constexpr (!saved_object<Object>)
    return mistake<checkpoint_cannot_hold<Object>,
                   pass_modules_optimizers_schedulers_scalers_generators_loaders_or_numbers>{};
  else if constexpr (hides_its_state<Object>)
    return mistake<optimizer_whose_rule_does_not_list_its_state<Object>,
                   give_the_state_of_the_rule_a_function_each_saved>{};
  else if constexpr (Load && !(std::is_lvalue_reference_v<X> && !std::is_const_v<std::remove_reference_t<X>>))
    return mistake<checkpoint_cannot_load_into<std::remove_reference_t<X>>, pass_a_variable_that_is_not_const>{};
  else if constexpr (sizeof...(Rest) == 0) return fitting<void>{};
  else return find_run_mistake<Load, Rest...>();
}
template <bool Load, class... X>
using run_mistake = decltype(find_run_mistake<Load, X...>());

/// Errors: value_error for kinds that are not those of the file.
SINTER_COLD inline void check_kinds(const std::string& path, const std::vector<run_part>& parts,
                                    std::initializer_list<std::string_view> wanted) {
  bool same = parts.size() == wanted.size();
  std::string all;
  std::size_t i = 0;
  for (const std::string_view kind : wanted) {
    same = same && parts[i++].kind == kind;
    all += joined({all.empty() ? "" : ", ", kind});
  }
  if (!same)
    refuse<value_error>({path, ": holds (", run_file_kinds(parts, ", "), "), but load() was given (", all,
                         "); pass the objects that save() was given, in that order; nothing was loaded"});
}

}  // namespace detail

/// The state of a training run in one file: modules with their generators, optimizers with what they keep for each
/// parameter, lr_schedulers, grad_scalers, generators, positions of data_loaders and numbers, any of them in any order.
/// A run that loads it goes on as if it had never stopped: bit for bit with as many ranks.
///
///     run_checkpoint file("run.ckpt");
///     if (file.exists()) file.load(model, optimizer, scheduler, gen, loader);
///     for (index_t epoch = loader.position().epoch; epoch < epochs; ++epoch) {
///       for (auto& [x, y] : loader) {
///         step(x, y);
///         file.save(model, optimizer, scheduler, gen, loader);
///       }
///       scheduler.step();
///     }
///
/// The file is a safetensors file: its tensors can be read without Sinter, under "0.module.", "1.optimizer.", ... With
/// several ranks rank 0 saves, and all load. Settings that the program gives, such as beta1, train() or the size of a
/// batch, are not part of it; nor are the draws of a captured step's replays.
class run_checkpoint {
 public:
  /// Errors: value_error for an empty path.
  explicit run_checkpoint(std::string path) : path_(std::move(path)) {
    if (path_.empty()) detail::refuse<value_error>({"run_checkpoint: the path is empty; name a file"});
  }

  const std::string& path() const { return path_; }

  /// Whether there is a file, which a folder is not. Errors: io_error if that cannot be told.
  SINTER_COLD bool exists() const {
    detail::file_info info;
    if (detail::tell_file(path_.c_str(), info)) return detail::is_regular(info);
    if (errno != ENOENT)
      detail::refuse<io_error>({path_, ": cannot tell whether it exists: ", detail::system_text(errno)});
    return false;
  }

  /// Writes the file. When the call returns it is on the disk; until then, and after an error or a kill, the file is
  /// the one of before. In a loop over the loader it counts the current batch as done. Errors: io_error if the file
  /// cannot be written; value_error for a grad_scaler between step() and update().
  template <class... X>
    requires(detail::is_fitting<detail::run_mistake<false, const X&...>>)
  void save(const X&... objects) const {
    refuse_folder();
    std::vector<detail::run_part> parts;
    (save_one(objects, parts), ...);
    detail::write_run_file(path_, parts);
  }
  template <class... X, class Problem = typename detail::run_mistake<false, const X&...>::problem,
            class Fix = typename detail::run_mistake<false, const X&...>::fix>
  void save(const X&...) const = delete;

  /// Reads the file into objects that are built as those that were saved. They may live on other devices; a loader may
  /// have another batch size and sampler. Errors, after which all objects are as before: io_error for a file that
  /// cannot be read, is damaged, or is of another format or version; value_error, which names the object, for one that
  /// does not fit.
  template <class... X>
    requires(detail::is_fitting<detail::run_mistake<true, X && ...>>)
  void load(X&&... objects) const {
    refuse_folder();
    const std::vector<detail::run_part> parts = detail::read_run_file(path_);
    detail::check_kinds(path_, parts, {detail::run_part_of<std::remove_cvref_t<X>>::kind...});
    std::vector<detail::run_commit> commits;
    commits.reserve(sizeof...(X));
    (commits.push_back(detail::run_part_of<std::remove_cvref_t<X>>::plan(objects, parts[commits.size()])), ...);
    for (const int turn : {0, 1})
      for (const detail::run_commit& c : commits)
        if (c.turn == turn) c.write();
  }
  template <class... X, class Problem = typename detail::run_mistake<true, X&&...>::problem,
            class Fix = typename detail::run_mistake<true, X&&...>::fix>
  void load(X&&...) const = delete;

 private:
  SINTER_COLD void refuse_folder() const {
    detail::file_info info;
    if (detail::tell_file(path_.c_str(), info) && detail::is_folder(info))
      detail::refuse<io_error>({path_, ": is a directory, not a file; name a file in it"});
  }
  template <class X>
  void save_one(const X& object, std::vector<detail::run_part>& to) const {
    const char* const kind = detail::run_part_of<X>::kind;
    to.emplace_back(kind, detail::run_part_place(path_, to.size(), kind));
    detail::run_part_of<X>::save(object, to.back());
  }

  std::string path_;
};

}  // namespace sinter
