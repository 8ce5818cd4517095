// sinter/core/weight_forms.hpp: what kernels make of weights, kept from one call of a prepared model to the next.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sinter/core/storage.hpp"

namespace sinter::detail {

/// In which numbers a prepared model computes its products with weights.
enum class weight_precision { full, int8_weights, int8 };

/// Which form of which weights: what is made of them, where they begin, and the extents, strides and choices on which
/// the form depends.
struct form_key {
  const void* data = nullptr;
  index_t numbers[12] = {};

  bool operator==(const form_key&) const = default;
};

/// The forms of some weights, such as strips of columns that a kernel reads one after the other. A kernel asks for a
/// form by `form_of`. Where the weights have been written since it was made, it is made anew. Any number of threads may
/// ask at a time.
class weight_forms {
 public:
  explicit weight_forms(weight_precision precision) : precision_(precision) {}
  weight_forms(const weight_forms&) = delete;
  weight_forms& operator=(const weight_forms&) = delete;

  /// Keeps forms of these weights from now on, which live as long as this. The caller has no other thread ask
  /// meanwhile.
  void add(std::string name, const storage_ptr& weights);

  weight_precision precision() const noexcept { return precision_; }

  /// Those that kernels called by this thread use; null for none.
  static weight_forms*& now() noexcept {
    static constinit thread_local weight_forms* forms = nullptr;
    return forms;
  }
  /// Makes this thread's kernels use these forms while it lives.
  class scope {
   public:
    explicit scope(weight_forms& forms) noexcept : before_(std::exchange(now(), &forms)) {}
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;
    ~scope() { now() = before_; }

   private:
    weight_forms* before_;
  };

  /// Are there weights that this memory is part of?
  bool holds(const void* data) const noexcept { return find(data) != nullptr; }

  /// The form of this key and type, which Form(args...) makes where it is not there; null where the memory belongs to
  /// no weights that are held here. Form::bytes() says how much memory it takes, Form::error(), if there is one, how
  /// far it is from the weights.
  template <class Form, class... Args>
  std::shared_ptr<const Form> get(const form_key& key, Args&&... args) {
    owner* const of = find(key.data);
    if (of == nullptr) return nullptr;
    const std::uint64_t version = of->weights->version.load(std::memory_order_acquire);
    if (auto kept = look_up(*of, type_of<Form>(), key, version)) return std::static_pointer_cast<const Form>(kept);
    auto made = std::make_shared<const Form>(std::forward<Args>(args)...);
    double error = 0;
    if constexpr (requires { made->error(); }) error = made->error();
    put(*of, {type_of<Form>(), key, version, static_cast<std::size_t>(made->bytes()), error, made});
    return made;
  }

  /// Memory that all forms take.
  std::size_t bytes() const;
  /// Calls f(name, bytes, error) for each form, in the order in which weights were added; the error is that of
  /// rounding, 0 where nothing is rounded.
  template <class F>
  void each(const F& f) const {
    const std::lock_guard<std::mutex> lock(forms_);
    for (std::size_t number = 0; number < owners_.size(); ++number)
      for (const owner& o : owners_)
        if (o.number == number)
          for (const form& one : o.forms) f(o.name, one.bytes, one.error);
  }

 private:
  struct form {
    const void* type;
    form_key key;
    std::uint64_t version;
    std::size_t bytes;
    double error;
    std::shared_ptr<const void> made;
  };
  struct owner {
    std::size_t number;  ///< how many were added before
    std::string name;
    storage_ptr weights;
    std::vector<form> forms;
  };

  template <class Form>
  static const void* type_of() noexcept {
    static constexpr char place = 0;
    return &place;
  }

  const owner* find(const void* data) const noexcept;
  owner* find(const void* data) noexcept { return const_cast<owner*>(std::as_const(*this).find(data)); }
  std::shared_ptr<const void> look_up(const owner& of, const void* type, const form_key& key, std::uint64_t version);
  void put(owner& of, form made);

  weight_precision precision_;
  std::vector<owner> owners_;  ///< by their addresses
  mutable std::mutex forms_;   ///< held while the forms of an owner are read or changed
};

/// A form of weights for a kernel: the one that is kept, or one for this call alone.
template <class Form>
class form_of {
 public:
  template <class... Args>
  explicit form_of(const form_key& key, Args&&... args) {
    if (weight_forms* const forms = weight_forms::now(); forms != nullptr) kept_ = forms->get<Form>(key, args...);
    if (kept_ == nullptr) here_.emplace(std::forward<Args>(args)...);
  }
  const Form& operator*() const noexcept { return kept_ != nullptr ? *kept_ : *here_; }

 private:
  std::shared_ptr<const Form> kept_;
  std::optional<Form> here_;
};

/// Those in use, where they hold these weights; else null.
inline const weight_forms* forms_of(const void* data) noexcept {
  const weight_forms* const forms = weight_forms::now();
  return forms != nullptr && forms->holds(data) ? forms : nullptr;
}
inline bool are_rounded(const weight_forms* forms) noexcept {
  return forms != nullptr && forms->precision() != weight_precision::full;
}

#if SINTER_DEFINES

SINTER_SHARED_COLD void weight_forms::add(std::string name, const storage_ptr& weights) {
  if (!weights || weights->bytes == 0) return;
  const auto at = std::lower_bound(owners_.begin(), owners_.end(), weights->data, [](const owner& o, const void* p) {
    return std::less<const void*>()(o.weights->data, p);
  });
  if (at != owners_.end() && at->weights->data == weights->data) return;
  owners_.insert(at, owner{owners_.size(), std::move(name), weights, {}});
}
SINTER_SHARED const weight_forms::owner* weight_forms::find(const void* data) const noexcept {
  const auto behind = std::upper_bound(owners_.begin(), owners_.end(), data, [](const void* p, const owner& o) {
    return std::less<const void*>()(p, o.weights->data);
  });
  if (behind == owners_.begin()) return nullptr;
  const owner& last = *(behind - 1);
  const auto begin = reinterpret_cast<std::uintptr_t>(last.weights->data);
  return reinterpret_cast<std::uintptr_t>(data) - begin < last.weights->bytes ? &last : nullptr;
}
SINTER_SHARED std::shared_ptr<const void> weight_forms::look_up(const owner& of, const void* type, const form_key& key,
                                                                std::uint64_t version) {
  const std::lock_guard<std::mutex> lock(forms_);
  for (const form& f : of.forms)
    if (f.type == type && f.key == key && f.version == version) return f.made;
  return nullptr;
}
SINTER_SHARED_COLD void weight_forms::put(owner& of, form made) {
  std::shared_ptr<const void> old;  // ends behind the lock
  const std::lock_guard<std::mutex> lock(forms_);
  for (form& f : of.forms)
    if (f.type == made.type && f.key == made.key) {
      old = std::move(f.made);
      f = std::move(made);
      return;
    }
  of.forms.push_back(std::move(made));
}
SINTER_SHARED_COLD std::size_t weight_forms::bytes() const {
  const std::lock_guard<std::mutex> lock(forms_);
  std::size_t sum = 0;
  for (const owner& o : owners_)
    for (const form& f : o.forms) sum += f.bytes;
  return sum;
}

#endif  // SINTER_DEFINES

}  // namespace sinter::detail
