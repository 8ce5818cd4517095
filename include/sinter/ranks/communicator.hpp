// sinter/ranks/communicator.hpp: what a communicator is, its errors, and the results that are still on their way.
#pragma once

#include <chrono>
#include <concepts>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sinter/core/create.hpp"
#include "sinter/core/reduction.hpp"
#include "sinter/core/tensor.hpp"

namespace sinter {

/// How all_reduce joins the elements of the ranks: `reduction::sum`, or `reduction::max`, which gives NaN where an
/// element is NaN.
class rank_reduction {
 public:
  constexpr rank_reduction(reduction::sum_t) : is_max_(false) {}  // NOLINT: implicit on purpose
  constexpr rank_reduction(reduction::max_t) : is_max_(true) {}   // NOLINT
  constexpr bool is_max() const { return is_max_; }

 private:
  bool is_max_;
};

/// What went wrong between ranks.
enum class communication_failure {
  timeout,    ///< a rank did not take part in time
  peer_lost,  ///< a rank has ended
  mismatch,   ///< two ranks made different calls
  aborted,    ///< a rank has given up, and said why
  backend     ///< the library below reports an error, or what came from a rank cannot be what it sent
};

/// An error between ranks. The text names this rank, the call with its number, the cause and the rank to blame. The
/// first failure of a communicator is final: all its later calls throw the same error at once.
class communication_error : public error {
 public:
  communication_error(const char* text, communication_failure kind, int rank, int peer, index_t number,
                      std::string name)
      : error(text), kind_(kind), rank_(rank), peer_(peer), number_(number), name_(std::move(name)) {}

  communication_failure kind() const { return kind_; }
  int rank() const { return rank_; }                 ///< the rank that throws
  int peer() const { return peer_; }                 ///< the rank to blame; -1 where it is not known
  index_t number() const { return number_; }         ///< of the collective, from 1; 0 for send, receive and abort
  const std::string& name() const { return name_; }  ///< as given to the call

 private:
  communication_failure kind_;
  int rank_, peer_;
  index_t number_;
  std::string name_;
};

/// Seconds that communication has taken so far.
struct communication_time {
  double under_way = 0;  ///< calls were, the time in which they waited for other ranks included
  double waited = 0;     ///< the program did nothing but wait for a call

  communication_time& operator+=(const communication_time& other) {
    under_way += other.under_way;
    waited += other.waited;
    return *this;
  }
};

namespace detail {

using communication_clock = std::chrono::steady_clock;
inline double seconds_since(communication_clock::time_point start) {
  return std::chrono::duration<double>(communication_clock::now() - start).count();
}

/// The state of an asynchronous call, as a backend keeps it.
class work_state {
 public:
  virtual ~work_state() = default;
  virtual bool done() const = 0;
  /// Returns when the call is over, and throws its error. With a limit the communicator fails after so many seconds.
  virtual void wait(std::optional<double> limit) = 0;
};

}  // namespace detail

/// The result of a call that runs beside the program: a tensor, or nothing for send and barrier. It owns the memory
/// that the call reads and writes. The destructor waits for the call; after a failure of a backend that may still write
/// to the memory, that memory is never freed.
///
///     auto sum = ranks.all_reduce(gradients);
///     prepare_the_next_batch();
///     tensor total = sum.get();
template <class Value>
class [[nodiscard]] work {
 public:
  work() = default;
  work(std::shared_ptr<detail::work_state> state, Value value) : state_(std::move(state)), value_(std::move(value)) {}
  work(work&&) noexcept = default;
  void operator=(work&& other) noexcept {  // no result: nvcc would warn of one that nobody uses
    finish();
    state_ = std::move(other.state_);
    value_ = std::move(other.value_);
  }
  ~work() { finish(); }

  /// True once get() would not wait, or nothing is left to get.
  bool done() const { return state_ == nullptr || state_->done(); }
  /// Waits, and hands the result over, once. Errors: communication_error, each time; value_error where it was taken
  /// already.
  Value get() { return take(std::nullopt); }
  /// The same, but the communicator fails with a timeout after `seconds`, those of earlier calls included. That ends
  /// the communicator on all ranks for good: it is for giving up, and not for looking again later, which done() is for.
  /// Errors: value_error for seconds below 0.
  Value get(double seconds) { return take(seconds); }

 private:
  Value take(std::optional<double> limit) {
    if (state_ == nullptr) throw value_error("work: the result was taken already");
    if (limit.has_value() && !(*limit >= 0))
      detail::refuse<value_error>(
          {"work: get(", *limit, "): give a number of seconds from 0 on, or get() without one"});
    state_->wait(limit);
    state_ = nullptr;
    return std::move(value_);
  }
  void finish() noexcept {
    if (state_ == nullptr) return;
    try {
      state_->wait(std::nullopt);
    } catch (...) {  // NOLINT: the communicator keeps the error, and its next call throws it
    }
    state_ = nullptr;
  }

  std::shared_ptr<detail::work_state> state_;
  Value value_;
};
template <>
class [[nodiscard]] work<void> {
 public:
  work() = default;
  explicit work(std::shared_ptr<detail::work_state> state) : inner_(std::move(state), nothing{}) {}
  bool done() const { return inner_.done(); }
  void get() { inner_.get(); }
  void get(double seconds) { inner_.get(seconds); }

 private:
  struct nothing {};
  work<nothing> inner_;
};

/// Ranks 0 to size() - 1 that call the same collectives in the same order; each element of the result is the same on
/// all. C is a handle: its copies are one communicator, all calls of which come from one thread of the program.
///
///     all_reduce(x, by, name)       the sum or maximum over the ranks, in the memory of x
///     broadcast(x, root, name)      x of rank root, in the memory of x
///     all_gather(x, name)           (n) on each => (size() n): x of rank 0, 1, ...
///     reduce_scatter(x, name)       (size() n) on each => (n): part r of the sum
///     send(x, to, tag)              nothing, once x may be freed
///     receive<T, D>(n, from, tag)   x of the sender; what one rank sends to another arrives in order
///     barrier(name)                 nothing, once all ranks called it
///     split(color, key)             a communicator of the ranks that gave the same color, in the order of (key, rank)
///     abort(reason)                 all ranks fail with "aborted by rank r: reason"
template <class C>
concept communicator =
    std::copy_constructible<C> && requires(C& c, const C& constant, std::string reason, std::string_view name) {
      { constant.rank() } -> std::same_as<int>;
      { constant.size() } -> std::same_as<int>;
      { constant.name() } -> std::convertible_to<std::string>;
      { C::template reaches<cpu> } -> std::convertible_to<bool>;
      { c.barrier(name) } -> std::same_as<work<void>>;
      { c.split(0, 0) } -> std::same_as<C>;
      c.abort(reason);
    };

/// A communicator that works on tensors in the memory of D.
template <class C, class D>
concept communicator_on =
    communicator<C> && device<D> && C::template reaches<D> && requires(C& c, tensor<float, 1, D> x) {
      { c.all_reduce(x, reduction::sum, "name") } -> std::same_as<work<tensor<float, 1, D>>>;
      { c.broadcast(x, 0, "name") } -> std::same_as<work<tensor<float, 1, D>>>;
      { c.all_gather(x, "name") } -> std::same_as<work<tensor<float, 1, D>>>;
      { c.reduce_scatter(x, "name") } -> std::same_as<work<tensor<float, 1, D>>>;
      { c.send(x, 0, 0) } -> std::same_as<work<void>>;
      { c.template receive<float, D>(index_t{1}, 0, 0) } -> std::same_as<work<tensor<float, 1, D>>>;
    };

namespace detail {

/// f(). Where it throws, give_up(text of the exception) runs before the exception goes on.
template <class F, class GiveUp>
decltype(auto) run_guarded(F&& f, const GiveUp& give_up) {
  try {
    return std::forward<F>(f)();
  } catch (const std::exception& e) {
    give_up(e.what());
    throw;
  } catch (...) {
    give_up("an exception that is no std::exception");
    throw;
  }
}

/// c.abort(reason), of a communicator that may have failed already. Where there is no memory for the reason the others
/// are told without it.
template <class C>
void abort_quietly(C& c, const char* reason) noexcept {
  for (const char* const text : {reason, "out of memory"}) {
    try {
      return c.abort(text);
    } catch (...) {  // NOLINT: it has failed already
    }
  }
}

/// run_rank(), with f in which `note` is called before the other ranks are told.
template <class C, class F, class Note>
decltype(auto) run_rank(C world, F&& f, const Note& note) {
  C given = world;  // f may move it away
  return run_guarded([&]() -> decltype(auto) { return std::forward<F>(f)(given); },
                     [&](const char* reason) {
                       note();
                       abort_quietly(world, reason);
                     });
}

}  // namespace detail

/// f(world), for a program that is one rank. An exception of f is told to the other ranks, whose calls throw "aborted
/// by rank r: its text"; without it they only see that this rank has ended. Returns what f returns. Errors: those of f.
///
///     socket_communicator world(socket_options::from_environment());
///     run_rank(world, [](socket_communicator& ranks) { train(ranks); });
template <communicator C, class F>
decltype(auto) run_rank(C world, F&& f) {
  return detail::run_rank(std::move(world), std::forward<F>(f), [] {});
}

// Names that appear in the error message of a deleted overload.
template <class D>
struct communicator_does_not_reach;
template <class T>
struct communicator_cannot_add_elements_of;
template <int Rank>
struct communicator_takes_flat_tensors_and_not_rank;
struct copy_it_with_dot_to_a_device_that_it_reaches;
struct pass_a_communicator_that_reaches_it_as_well;
struct convert_it_with_cast;
struct write_dot_flatten;
struct assign_it_to_a_tensor_first;

namespace detail {

/// What a rank has told is used as a number of something only if it can be one. Errors: a communication_error that
/// names rank `from`; -1: a sum of all.
template <class C, class... Part>
void require_told(bool is_right, const C& ranks, int from, const char* call, const Part&... what) {
  if (is_right) return;
  const std::string who = from < 0 ? "the ranks together tell " : joined({"rank ", from, " tells "});
  throw communication_error(
      joined({call, ", rank ", ranks.rank(), " of ", ranks.size(), ": ", who, what...,
              ", which cannot be; it was changed on the way (see the option integrity of socket_communicator), or the "
              "ranks run different programs"})
          .c_str(),
      communication_failure::backend, ranks.rank(), from, 0, call);
}

/// Elements that ranks can add.
template <class T>
inline constexpr bool can_be_summed = floating_element<T> || is_one_of<T, std::int32_t, std::int64_t>;

template <class C, class X, bool Adds>
constexpr auto find_communication_mistake() {
  if constexpr (!expression<X>) return no_operands<X>{};
  else if constexpr (!C::template reaches<device_of<X>>)
    return mistake<communicator_does_not_reach<device_of<X>>, copy_it_with_dot_to_a_device_that_it_reaches>{};
  else if constexpr (is_variable<X>)
    return mistake<updating_a_tracked_variable_in_place, write_through_dot_value_instead>{};
  else if constexpr (!is_tensor<X>)
    return mistake<expression_not_yet_evaluated_on<device_of<X>>, assign_it_to_a_tensor_first>{};
  else if constexpr (rank_of<X> != 1)
    return mistake<communicator_takes_flat_tensors_and_not_rank<rank_of<X>>, write_dot_flatten>{};
  else if constexpr (Adds && !can_be_summed<element_of<X>>)
    return mistake<communicator_cannot_add_elements_of<element_of<X>>, convert_it_with_cast>{};
  else return fitting<element_of<X>>{};
}
/// What is wrong with a tensor X for a call of communicator C; Adds: the call adds elements.
template <class C, class X, bool Adds = false>
using communication_mistake = decltype(find_communication_mistake<C, bare<X>, Adds>());

/// Errors: shape_error for a tensor without a value or whose elements do not lie side by side.
template <class T, class D>
void require_flat(const char* op, const tensor<T, 1, D>& x) {
  if (!x.defined()) refuse_undefined(op);
  if (!x.is_contiguous()) refuse<shape_error>({op, ": the elements do not lie side by side; call contiguous() first"});
}
/// Errors: index_error.
inline void require_rank(const char* op, int r, int size) {
  if (r < 0 || r >= size) refuse<index_error>({op, ": there is no rank ", r, " among ", size});
}
/// Errors: shape_error.
inline void require_equal_parts(const char* op, index_t n, int size) {
  if (n % size != 0)
    refuse<shape_error>({op, ": ", n, " elements are not ", size,
                         " equal parts; append zeros up to a multiple of the number of ranks"});
}
/// Errors: value_error.
inline void require_color(int color) {
  if (color < 0) refuse<value_error>({"split: the color is ", color, "; it must not be negative"});
}
/// The options that all communicators have. Errors: value_error, which names the option.
SINTER_COLD inline void require_options(const char* communicator, double timeout, index_t checked_calls) {
  if (!(timeout > 0)) refuse<value_error>({communicator, ": timeout is ", timeout, " seconds; give more than 0"});
  if (checked_calls < 0)
    refuse<value_error>({communicator, ": checked_calls is ", checked_calls, "; give 0 for none, or more"});
}

}  // namespace detail
}  // namespace sinter
