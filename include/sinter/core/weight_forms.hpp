// sinter/core/weight_forms.hpp: what kernels make of weights, kept from one call of a prepared model to the next.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
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

/// Kernels that only prepared models need; programs without one do not compile them. Their arguments are those of the
/// backend, see cpu/kept_kernels.hpp.
struct kept_kernels {
  /// Computes a product of floats or doubles, or returns false.
  bool (*product)(const void* args, void* pool, bool of_doubles);
  /// Computes a convolution of floats with weights after rounding.
  void (*rounded_convolution)(const void* args, void* pool);
};
/// Those of D; no_kernels where it has none. Not a pointer: its comparison with null is no constant where g++ looks for
/// undefined behaviour.
struct no_kernels {};
template <device D>
inline constexpr no_kernels kept_kernels_on{};

/// Which form of which weights: what is made of them, where they begin, and the extents, strides and choices on which
/// the form depends.
struct form_key {
  const void* data = nullptr;
  index_t numbers[12] = {};

  bool operator==(const form_key&) const = default;
};

/// A type of forms. There is one object for each.
struct form_kind {
  std::size_t size;
  void (*end)(void* form) noexcept;
  std::size_t (*bytes)(const void* form);
  double (*error)(const void* form);
};

/// The forms of one weight take so many times its own bytes at most; where a model cuts a weight in ever other ways,
/// the oldest go.
inline constexpr std::size_t most_forms = 8;

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
  void add(std::string name, const storage_ptr& weights, const kept_kernels& kernels);

  weight_precision precision() const noexcept { return precision_; }
  /// There are some where this holds weights.
  const kept_kernels& kernels() const noexcept { return *kernels_; }

  /// Those that kernels called by this thread use; null for none.
  static weight_forms*& now() noexcept {
    static constinit thread_local weight_forms* forms = nullptr;
    return forms;
  }
  /// Makes this thread's kernels use these forms while it lives.
  class scope {
   public:
    explicit scope(weight_forms* forms) noexcept : before_(std::exchange(now(), forms)) {}
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;
    ~scope() { now() = before_; }

   private:
    weight_forms* before_;
  };

  /// Are there weights that this memory is part of?
  bool holds(const void* data) const noexcept { return find(data) != nullptr; }

  /// The form of this kind and key, which make(memory, context) makes where it is not there; null where the memory
  /// belongs to no weights that are held here.
  std::shared_ptr<const void> get(const form_kind& kind, const form_key& key, void (*make)(void* memory, void* context),
                                  void* context);

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
          for (const form& one : o.forms) f(o.name, one.kind->bytes(one.made.get()), one.kind->error(one.made.get()));
  }

 private:
  struct form {
    const form_kind* kind;
    form_key key;
    std::uint64_t version;
    std::shared_ptr<const void> made;
  };
  struct owner {
    std::size_t number;  ///< how many were added before
    std::string name;
    storage_ptr weights;
    std::vector<form> forms;
  };

  const owner* find(const void* data) const noexcept;
  owner* find(const void* data) noexcept { return const_cast<owner*>(std::as_const(*this).find(data)); }
  std::shared_ptr<const void> look_up(const owner& of, const form_kind& kind, const form_key& key,
                                      std::uint64_t version);
  void put(owner& of, form made);

  weight_precision precision_;
  const kept_kernels* kernels_ = nullptr;
  std::vector<owner> owners_;  ///< by their addresses
  mutable std::mutex forms_;   ///< held while the forms of an owner are read or changed
};

/// A form of weights for a kernel: the one that is kept, or one for this call alone. Form::bytes() says how much memory
/// it takes, Form::error(), if there is one, how far it is from the weights.
template <class Form>
class form_of {
 public:
  template <class... Args>
  explicit form_of(const form_key& key, const Args&... args) {
    if (weight_forms* const forms = weight_forms::now(); forms != nullptr) {
      auto make = [&](void* memory) { ::new (memory) Form(unwrapped(args)...); };
      kept_ = forms->get(
          kind, key, [](void* memory, void* context) { (*static_cast<decltype(make)*>(context))(memory); }, &make);
    }
    if (kept_ == nullptr) here_.emplace(unwrapped(args)...);
  }
  const Form& operator*() const noexcept { return kept_ != nullptr ? *static_cast<const Form*>(kept_.get()) : *here_; }

 private:
  template <class X>
  static const X& unwrapped(const X& x) {
    return x;
  }
  template <class X>
  static X& unwrapped(const std::reference_wrapper<X>& x) {
    return x;
  }
  static double error_of(const void* form) {
    if constexpr (requires(const Form& f) { f.error(); }) return static_cast<const Form*>(form)->error();
    else return 0;
  }
  static constexpr form_kind kind{
      sizeof(Form), [](void* form) noexcept { static_cast<Form*>(form)->~Form(); },
      [](const void* form) { return static_cast<std::size_t>(static_cast<const Form*>(form)->bytes()); }, &error_of};

  std::shared_ptr<const void> kept_;
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

SINTER_SHARED_COLD void weight_forms::add(std::string name, const storage_ptr& weights, const kept_kernels& kernels) {
  kernels_ = &kernels;
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
SINTER_SHARED std::shared_ptr<const void> weight_forms::look_up(const owner& of, const form_kind& kind,
                                                                const form_key& key, std::uint64_t version) {
  const std::lock_guard<std::mutex> lock(forms_);
  for (const form& f : of.forms)
    if (f.kind == &kind && f.key == key && f.version == version) return f.made;
  return nullptr;
}
SINTER_SHARED std::shared_ptr<const void> weight_forms::get(const form_kind& kind, const form_key& key,
                                                            void (*make)(void* memory, void* context), void* context) {
  owner* const of = find(key.data);
  if (of == nullptr) return nullptr;
  const std::uint64_t version = of->weights->version.load(std::memory_order_acquire);
  if (auto kept = look_up(*of, kind, key, version)) return kept;
  std::unique_ptr<char[]> memory(new char[kind.size]);
  make(memory.get(), context);
  const std::shared_ptr<const void> made(memory.release(), [&kind](char* one) noexcept {
    kind.end(one);
    delete[] one;
  });
  put(*of, {&kind, key, version, made});
  return made;
}
SINTER_SHARED_COLD void weight_forms::put(owner& of, form made) {
  std::vector<form> old;  // ends behind the lock
  const std::lock_guard<std::mutex> lock(forms_);
  const auto same = std::find_if(of.forms.begin(), of.forms.end(),
                                 [&made](const form& f) { return f.kind == made.kind && f.key == made.key; });
  if (same != of.forms.end()) return std::swap(*same, old.emplace_back(std::move(made)));
  of.forms.push_back(std::move(made));
  std::size_t bytes = 0;
  auto first = of.forms.end();
  while (first != of.forms.begin()) {
    bytes += (first - 1)->kind->bytes((first - 1)->made.get());
    if (bytes > most_forms * of.weights->bytes && first != of.forms.end()) break;
    --first;
  }
  old.assign(std::make_move_iterator(of.forms.begin()), std::make_move_iterator(first));
  of.forms.erase(of.forms.begin(), first);
}
SINTER_SHARED_COLD std::size_t weight_forms::bytes() const {
  std::size_t sum = 0;
  each([&sum](const std::string&, std::size_t bytes, double) { sum += bytes; });
  return sum;
}

#endif  // SINTER_DEFINES

}  // namespace sinter::detail
