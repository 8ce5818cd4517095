// sinter/parallel/offloaded.hpp: modules of many tasks on the host, of which a device holds those in use.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "sinter/core/number.hpp"
#include "sinter/core/owned_ptr.hpp"
#include "sinter/parallel/copy_worker.hpp"
#include "sinter/parallel/replicas.hpp"
#include "sinter/parallel/team.hpp"

namespace sinter {

// Names in messages.
template <class>
struct modules_offloaded_to_their_own_device;
struct name_another_device_than_theirs;
template <class>
struct offloaded_module_whose_members_are_hidden;
struct offload_the_modules_that_any_module_holds;
struct offloaded_has_no_forward;
struct call_what_fetch_returns;

namespace nn {

struct offload_options {
  index_t copies = 2;  ///< most copies that the device holds
};

template <device D, is_module M>
class offloaded;

namespace detail {

template <class M, class D>
constexpr auto find_offload_mistake() {
  using sinter::detail::mistake;
  if constexpr (std::is_same_v<device_of<M>, D>)
    return mistake<modules_offloaded_to_their_own_device<D>, name_another_device_than_theirs>{};
  else if constexpr (is_erased<M>)
    return mistake<offloaded_module_whose_members_are_hidden<M>, offload_the_modules_that_any_module_holds>{};
  else if constexpr (!has_twin_on<M, D> || !on_one_device<M>)
    return mistake<module_that_is_no_template_of_device_and_kind<M>,
                   declare_it_template_device_D_class_Kind_or_give_it_a_rebind>{};
  else return sinter::detail::fitting<void>{};
}
template <class M, class D>
using offload_mistake = decltype(find_offload_mistake<M, D>());

/// The copy on D of one task's M. Parameters are leaves that nobody trains: what is fetched shows their values.
template <class M, class D>
class task_copy {
  using H = device_of<M>;

 public:
  using there = typename M::template rebind<D, typename M::kind>;

  explicit task_copy(const M& master)
      : module(master.template to<D>()), pairs_(pairs_of<D>(member_handles<H>(master), module)) {
    const list_memory list{memory_};
    walk(nullptr, list, module);
    for (const auto& s : memory_) own_uses_.push_back(s.use_count());
  }

  /// Does nobody use it: no fetched module, no graph?
  bool idle() const {
    for (std::size_t i = 0; i < memory_.size(); ++i)
      if (memory_[i].use_count() != own_uses_[i]) return false;
    return true;
  }
  /// Copies home what forward has changed, as batch norms do.
  void write_home() {
    for (const auto& pair : pairs_) {
      if (!pair->changed()) continue;
      pair->merge({pair.get()}, {1.});
      pair->refresh();
    }
  }
  /// And here what has changed at home.
  void bring_up_to_date() {
    write_home();
    for (const auto& pair : pairs_) pair->refresh();
  }

  there module;

 private:
  struct list_memory {
    std::vector<sinter::detail::storage_ptr>& to;
    template <class X>
    void operator()(const member_name&, const X& x) const {
      if constexpr (is_stored<X>) {
        if (!x.defined()) return;
        const sinter::detail::storage_ptr s = access::storage_of(stored_value(x));
        for (const auto& known : to)
          if (known.get() == s.get()) return;
        to.push_back(s);
      }
    }
    template <class X, class Problem = offloaded_module_whose_members_are_hidden<X>,
              class Fix = offload_the_modules_that_any_module_holds>
    void erased(const member_name*, const X&) const = delete;
  };

  member_pairs pairs_;
  std::vector<sinter::detail::storage_ptr> memory_;
  std::vector<std::int64_t> own_uses_;
};

/// Makes the members of a fetched module: the values of a copy, their gradients on the way to the master.
struct lend_members {
  template <class To, class Copy, class Master>
  void operator()(const member_name&, To& to, const Copy& copy, const Master& master) const {
    if constexpr (is_variable<To>) {
      if (!copy.defined()) return;
      using H = device_of<Master>;
      using D = device_of<To>;
      const state_ptr& home = access::state_of(master);
      if (!home || !sinter::detail::recording()) to = sinter::detail::unrecorded<1>(copy.value());
      else
        to = sinter::detail::produced<1>(
            copy.value(),
            sinter::detail::make_owned<sinter::detail::transfer_backward<element_of<To>, rank_of<To>, H, D>>(home));
    } else {
      to = copy;
    }
  }
  template <class To, class Copy, class Master>
  void erased(const member_name*, To&, const Copy&, const Master&) const {}
};

/// The masters of an offloaded, and its copies on D.
template <device D, class M>
class task_store {
  using copy = task_copy<M, D>;
  using worker = sinter::detail::copy_worker;

 public:
  std::vector<M> masters;
  index_t limit = 2;

  /// Calls f(copy, master) of a task, whose copy is on D and up to date.
  template <class F>
  auto with_copy(index_t task, const F& f) {
    const std::lock_guard lock(mutex_);
    slot* s = slot_of(task);
    if (s != nullptr && s->coming) arrive(*s);
    if (s != nullptr) {
      s->here->bring_up_to_date();
    } else {
      s = &free_slot("fetch");
      s->here = in_words(task, [&] { return std::make_unique<copy>(master(task)); });
      s->task = task;
    }
    s->used = ++uses_;
    return f(*s->here, master(task));
  }

  void prefetch(index_t task) {
    const std::lock_guard lock(mutex_);
    if (slot_of(task) != nullptr || has_gradient(task)) return;
    slot& s = free_slot("prefetch");
    s.arriving = std::make_shared<std::unique_ptr<copy>>();
    s.coming = sinter::detail::copy_worker_of<D>().post(
        [to = s.arriving, from = master(task)] { *to = std::make_unique<copy>(from); });
    s.task = task;
    s.used = ++uses_;
  }

  /// Waits for copies on their way, so that masters may be written to, and writes home what forwards have changed.
  void settle() {
    const std::lock_guard lock(mutex_);
    for (slot& s : all_) {
      if (s.coming) {
        try {
          sinter::detail::copy_worker_of<D>().wait(s.coming);
        } catch (...) {  // fetch() will tell
        }
      } else if (s.here) {
        s.here->write_home();
      }
    }
  }

  index_t copies() const {
    const std::lock_guard lock(mutex_);
    index_t n = 0;
    for (const slot& s : all_) n += s.task >= 0 ? 1 : 0;
    return n;
  }

 private:
  struct slot {
    index_t task = -1;
    std::unique_ptr<copy> here;
    worker::job coming;  ///< null unless it is on its way
    std::shared_ptr<std::unique_ptr<copy>> arriving;
    std::uint64_t used = 0;
  };

  const M& master(index_t task) const { return masters[static_cast<std::size_t>(task)]; }
  slot* slot_of(index_t task) {
    for (slot& s : all_)
      if (s.task == task) return &s;
    return nullptr;
  }
  bool has_gradient(index_t task) const {
    bool any = false;
    const auto look = [&any](const member_name&, const auto& p) {
      if constexpr (is_variable<bare<decltype(p)>>) any = any || p.has_grad();
    };
    const pick_members<false, decltype(look)> pick{look};
    walk(nullptr, pick, master(task));
    return any;
  }

  template <class F>
  static auto in_words(index_t task, const F& f) {
    try {
      return f();
    } catch (...) {
      sinter::detail::rethrow_with(std::current_exception(),
                                   "offloaded: task " + std::to_string(task) + " to " + device_name<D>());
    }
  }
  /// Waits for what is on its way. After an error the slot is empty.
  void arrive(slot& s) {
    const worker::job coming = std::move(s.coming);
    const auto arriving = std::move(s.arriving);
    const index_t task = std::exchange(s.task, -1);
    in_words(task, [&] { sinter::detail::copy_worker_of<D>().wait(coming); });
    s.here = std::move(*arriving);
    s.task = task;
  }
  /// An empty slot, made so where need be: of the copies that nobody uses the one that was fetched longest ago goes, or
  /// where all of them were prefetched and not fetched yet, the one that was prefetched longest ago.
  slot& free_slot(const char* who) {
    if (all_.empty()) all_.resize(static_cast<std::size_t>(limit));
    slot* found = nullptr;
    const auto older = [&found](const slot& s) { return found == nullptr || s.used < found->used; };
    for (slot& s : all_) {
      if (s.task < 0) return s;
      if (!s.coming && s.here->idle() && older(s)) found = &s;
    }
    if (found == nullptr)
      for (slot& s : all_)
        if (s.coming && older(s)) found = &s;
    if (found == nullptr) refuse_full(who);
    if (found->coming) {
      try {
        arrive(*found);
      } catch (...) {  // not of the task that is asked for
      }
    }
    if (found->here) found->here->write_home();
    found->here.reset();
    found->task = -1;
    return *found;
  }
  [[noreturn]] SINTER_COLD void refuse_full(const char* who) const {
    std::string tasks;
    for (const slot& s : all_) tasks += (tasks.empty() ? "" : ", ") + std::to_string(s.task);
    sinter::detail::refuse<value_error>(
        {"offloaded: ", who, ": all ", limit, " copies on ", device_name<D>(), " are in use, by tasks ", tasks,
         "; end what uses one, which is a fetched module or a graph through it, or raise .copies"});
  }

  mutable std::mutex mutex_;
  std::vector<slot> all_;
  std::uint64_t uses_ = 0;
};

}  // namespace detail

/// What offloaded::fetch() returns: the module of one task on D. Parameters and buffers have M's names; -> reaches
/// them. Its mode is the task's at fetch(); train() and eval() change it here, and not that of the task. infer() of it
/// is a view of the same copy on D, which is in use as long as the view is alive.
template <device D, is_module M>
class fetched : public module<fetched<D, M>> {
  using store = detail::task_store<D, M>;

 public:
  using device_type = D;
  using kind = typename M::kind;
  using module_type = typename M::template rebind<D, kind>;
  template <class K>
  using as = fetched<D, typename detail::kind_changed<M, K>::type>;

  fetched() = default;

  const module_type* operator->() const { return &module_; }
  const module_type& operator*() const { return module_; }

  /// What the module gives, with the settings and draws of the master; those at fetch() in a view by infer().
  template <class X>
  auto forward(X&& x) const {
    if constexpr (std::is_same_v<kind, plain>) {
      if (store_ == nullptr) return module_(std::forward<X>(x));
    }
    const M& master = store_->masters[static_cast<std::size_t>(task_)];
    const detail::copy_settings_of<detail::settings::all_but_mode> in;
    detail::walk(nullptr, in, module_, master);
    auto y = module_(std::forward<X>(x));
    const detail::copy_settings_of<detail::settings::generators> back;
    detail::walk(nullptr, back, master, module_);
    return y;
  }
  template <class F, class... S>
  static void visit(F&& f, S&... s) {
    M::visit(f, s.module_...);
  }

 private:
  friend class offloaded<D, M>;
  template <device, is_module>
  friend class fetched;

  std::shared_ptr<store> store_;
  index_t task_ = 0;
  mutable module_type module_;
};

/// Modules of T tasks whose parameters live on their own device, usually the cpu, with gradients and optimizer, while
/// at most `copies` of them have a copy on D. fetch(t) copies what is not there yet or was written to since, and
/// returns a module on D; backward through it adds to the gradients of t's parameters where they live. Tasks that no
/// loss has used have no gradient, so that optimizers pass them over. What all tasks share is a module on D beside it,
/// or an offloaded of one task.
///
/// A copy is in use while a fetched module or a graph through one is alive. Where all are in use, fetch() and
/// prefetch() throw: nobody else would free one. Otherwise the one that was fetched longest ago makes room; where there
/// is none, the one that was prefetched longest ago and never fetched, after its copy has ended. A task fetched twice
/// has one copy, and both gradients count. Where a parameter was written to since, as by an optimizer, fetch() brings
/// the copy up to date in place, and a graph that is still to be walked fails as for any parameter that was modified.
/// Dropout draws as the module of the task would; running moments go home when the members are walked (state(), to
/// save) or the task is fetched again or makes room.
///
/// Names are those of a module_list: "3.weight". Copies of an offloaded share tasks and copies. Several threads may
/// fetch; a walk over the members waits for what is on its way.
///
///     nn::offloaded<cuda<0>, nn::linear<>> heads(100, [&] { return nn::linear(512, 10, gen); }, {.copies = 2});
///     optim::adam optimizer(heads);
///     const auto head = heads.fetch(task);
///     heads.prefetch(next_task);
///     variable(cross_entropy(head(features), labels)).backward();
template <device D, is_module M>
class offloaded : public module<offloaded<D, M>> {
  using store = detail::task_store<D, M>;

 public:
  using device_type = device_of<M>;
  using kind = typename M::kind;
  template <class K>
  using as = offloaded<D, typename detail::kind_changed<M, K>::type>;
  using no_forward = sinter::detail::mistake<offloaded_has_no_forward, call_what_fetch_returns>;
  /// Its modules are tasks, of which a step uses some; see distributed.
  static constexpr bool holds_tasks = true;

  offloaded() : store_(std::make_shared<store>()) {}
  /// T modules, each what make() or make(its number) gives. Errors: value_error for a negative T and less than 1 slot.
  template <class Make>
    requires((std::invocable<Make&, index_t> || std::invocable<Make&>) &&
             sinter::detail::is_fitting<detail::offload_mistake<M, D>>)
  offloaded(sinter::detail::whole tasks, Make make, offload_options options = {}) : offloaded() {
    if (tasks < 0 || options.copies < 1) refuse_numbers(tasks, options.copies);
    store_->limit = options.copies;
    for (index_t t = 0; t < tasks; ++t) {
      if constexpr (std::invocable<Make&, index_t>) store_->masters.push_back(make(t));
      else store_->masters.push_back(make());
    }
  }
  template <class Make, class M0 = M, class Problem = typename detail::offload_mistake<M0, D>::problem,
            class Fix = typename detail::offload_mistake<M0, D>::fix>
  offloaded(sinter::detail::whole, Make, offload_options = {}) = delete;

  index_t size() const noexcept { return static_cast<index_t>(store_->masters.size()); }
  /// How many tasks have a copy on D, or one on its way.
  index_t copies() const { return store_->copies(); }
  /// The module of a task, where its parameters live. Errors: index_error.
  const M& operator[](sinter::detail::whole task) const { return store_->masters[place(task)]; }

  /// The module of a task on D; see above. Waits for a copy that is on its way. Errors: index_error; value_error where
  /// all copies are in use; what went wrong on the way, and then the next call tries again.
  fetched<D, M> fetch(sinter::detail::whole task) const {
    const auto t = static_cast<index_t>(place(task));
    return store_->with_copy(t, [&](const auto& copy, const M& master) {
      fetched<D, M> f;
      const detail::lend_members lend;
      detail::walk(nullptr, lend, f.module_, copy.module, master);
      const detail::copy_settings_of<detail::settings::all> in;
      detail::walk(nullptr, in, f.module_, master);
      f.store_ = store_;
      f.task_ = t;
      return f;
    });
  }

  /// Starts to copy the module of a task to D beside the program, on the device's one worker for that. Does nothing for
  /// a task that has a copy, nor for one with a gradient, whose parameters are about to be updated: fetch() copies them
  /// then. Until it is fetched the task's parameters must not be written to. It need not be fetched: its copy then
  /// makes room where no other can. Errors: index_error; value_error where all copies are in use.
  void prefetch(sinter::detail::whole task) const { store_->prefetch(static_cast<index_t>(place(task))); }

  template <class X, class Problem = no_forward::problem, class Fix = no_forward::fix>
  void operator()(X&&) const = delete;

  /// As module_list::visit.
  template <class F, class First, class... Rest>
  static void visit(F&& f, First& first, Rest&... rest) {
    first.store_->settle();
    (rest.store_->settle(), ...);
    auto& own = first.store_->masters;
    if constexpr (!std::is_const_v<First>) {
      (own.resize(rest.store_->masters.size()), ...);
      ((first.store_->limit = rest.store_->limit), ...);
    }
    for (std::size_t i = 0; i < own.size(); ++i) f(std::to_string(i), own[i], rest.store_->masters.at(i)...);
  }

 private:
  template <device, is_module>
  friend class offloaded;

  [[noreturn]] SINTER_COLD static void refuse_numbers(index_t tasks, index_t copies) {
    if (tasks < 0)
      sinter::detail::refuse<value_error>(
          {"offloaded: the number of tasks is ", tasks, ", which is negative; pass 0 or more"});
    sinter::detail::refuse<value_error>(
        {"offloaded: .copies is ", copies, ", so ", device_name<D>(), " could hold no task; set it to 1 or more"});
  }
  std::size_t place(index_t t) const {
    const index_t from_start = t < 0 ? t + size() : t;
    if (from_start < 0 || from_start >= size())
      sinter::detail::refuse<index_error>({"offloaded: there is no task ", t, " among ", size()});
    return static_cast<std::size_t>(from_start);
  }

  std::shared_ptr<store> store_;
};

}  // namespace nn
}  // namespace sinter
