// sinter/ranks/mpi/communicator.hpp: ranks that mpirun, srun or the like has started, over MPI.
#pragma once

#include "sinter/config.hpp"

#if !SINTER_WITH_MPI
#error \
    "sinter: sinter/ranks/mpi/communicator.hpp needs MPI: compile with mpicxx -DSINTER_WITH_MPI=1, or link sinter::mpi"
#endif

#include <algorithm>
#include <chrono>
#include <limits>

#include "sinter/ranks/host_communicator.hpp"
#include "sinter/ranks/mpi/runtime.hpp"
#include "sinter/ranks/rank_sum.hpp"

namespace sinter {

/// Options of mpi_communicator.
struct mpi_options {
  std::chrono::duration<double> timeout = std::chrono::seconds(300);
  index_t checked_calls = 100;  ///< so many collectives are compared before they begin; SINTER_COMM_CHECK=1: all
  int largest_count = std::numeric_limits<int>::max();  ///< elements that one call of MPI gets; more are cut
};

namespace detail {

/// The greater one; NaN where one is.
template <class T>
void mpi_max(void* from, void* to, int* n, MPI_Datatype*) {
  const T* const a = static_cast<const T*>(from);
  T* const b = static_cast<T*>(to);
  for (int i = 0; i < *n; ++i) b[i] = joined_elements(b[i], a[i], true);
}

template <class A>
MPI_Datatype mpi_type() {
  if constexpr (std::is_same_v<A, float>) return MPI_FLOAT;
  else if constexpr (std::is_same_v<A, double>) return MPI_DOUBLE;
  else if constexpr (std::is_same_v<A, std::int32_t>) return MPI_INT32_T;
  else return MPI_INT64_T;
}
/// For elements that only move.
inline MPI_Datatype mpi_type_of_size(std::size_t width) {
  return width == 1 ? MPI_UINT8_T : width == 2 ? MPI_UINT16_T : width == 4 ? MPI_UINT32_T : MPI_UINT64_T;
}

class mpi_transport final : public transport {
 public:
  /// All ranks of `among` make one.
  mpi_transport(MPI_Comm among, int largest_count) : largest_(static_cast<std::size_t>(largest_count)) {
    for (MPI_Comm* made : {&sums_, &mail_, &control_}) {
      check_mpi(MPI_Comm_dup(among, made), "MPI_Comm_dup");
      MPI_Comm_set_errhandler(*made, MPI_ERRORS_RETURN);
    }
    MPI_Comm_rank(sums_, &rank_);
    MPI_Comm_size(sums_, &size_);
  }

  const char* name() const override { return "mpi"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool keeps_time() const override { return false; }
  void wake() override {
    if (is_interrupted()) mpi_runtime::fail();
  }

  std::vector<call_header> exchange(const call_header& h, const deadline& until) override {
    // No collective: whoever is missing can be named, and who gives up can say so.
    struct state {
      call_header mine;
      std::vector<call_header> theirs;
      std::vector<MPI_Request> sends, receives;
    };
    auto s = std::make_unique<state>();
    s->mine = h;
    s->theirs.resize(static_cast<std::size_t>(size_), h);
    s->sends.resize(static_cast<std::size_t>(size_), MPI_REQUEST_NULL);
    s->receives = s->sends;
    constexpr int bytes = sizeof(call_header);
    try {
      for (int r = 0; r < size_; ++r) {
        if (r == rank_) continue;
        const auto i = static_cast<std::size_t>(r);
        check_mpi(MPI_Irecv(&s->theirs[i], bytes, MPI_BYTE, r, header_tag, control_, &s->receives[i]), "MPI_Irecv");
        check_mpi(MPI_Isend(&s->mine, bytes, MPI_BYTE, r, header_tag, control_, &s->sends[i]), "MPI_Isend");
      }
      while (true) {
        std::vector<int> missing;
        for (int r = 0; r < size_; ++r)
          if (!is_over(s->receives[static_cast<std::size_t>(r)])) missing.push_back(r);
        bool is_sent = true;
        for (MPI_Request& one : s->sends) is_sent = is_over(one) && is_sent;
        if (missing.empty() && is_sent) break;
        look_for_trouble();
        give_up(until, "waited for", missing);
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    } catch (...) {
      static_cast<void>(s.release());  // MPI may still write there
      throw;
    }
    for (int r = 0; r < size_; ++r) require_call(r, s->theirs[static_cast<std::size_t>(r)]);
    return s->theirs;
  }

  void all_reduce(const call_header& h, std::byte* data, const deadline&) override {
    look_for_trouble();
    each_sum(h, [&](auto zero, MPI_Datatype type, MPI_Op op) {
      using T = decltype(zero);
      using A = compute_type<T>;
      in_pieces(static_cast<std::size_t>(h.count), largest_, [&](std::size_t at, std::size_t n) {
        if constexpr (std::is_same_v<T, A>) {
          check_mpi(MPI_Allreduce(MPI_IN_PLACE, data + at * sizeof(T), static_cast<int>(n), type, op, sums_),
                    "MPI_Allreduce");
        } else {
          std::vector<A> wide(n);
          convert<T, A>(data + at * sizeof(T), n, wide.data());
          check_mpi(MPI_Allreduce(MPI_IN_PLACE, wide.data(), static_cast<int>(n), type, op, sums_), "MPI_Allreduce");
          convert_back<T, A>(wide.data(), n, data + at * sizeof(T));
        }
      });
    });
  }
  void broadcast(const call_header& h, std::byte* data, const deadline&) override {
    look_for_trouble();
    const std::size_t width = element_size(h.element);
    in_pieces(static_cast<std::size_t>(h.count), largest_, [&](std::size_t at, std::size_t n) {
      check_mpi(MPI_Bcast(data + at * width, static_cast<int>(n), mpi_type_of_size(width), h.root, sums_), "MPI_Bcast");
    });
  }
  void all_gather(const call_header& h, const std::byte* from, std::byte* all, const deadline&) override {
    look_for_trouble();
    const std::size_t width = element_size(h.element);
    const MPI_Datatype one = mpi_type_of_size(width);
    in_pieces(static_cast<std::size_t>(h.count), largest_, [&](std::size_t at, std::size_t n) {
      // Blocks of n elements, which begin h.count elements after each other.
      MPI_Datatype block, spaced;
      check_mpi(MPI_Type_contiguous(static_cast<int>(n), one, &block), "MPI_Type_contiguous");
      check_mpi(
          MPI_Type_create_resized(block, 0, static_cast<MPI_Aint>(static_cast<std::size_t>(h.count) * width), &spaced),
          "MPI_Type_create_resized");
      check_mpi(MPI_Type_commit(&spaced), "MPI_Type_commit");
      const int code = MPI_Allgather(from + at * width, static_cast<int>(n), one, all + at * width, 1, spaced, sums_);
      MPI_Type_free(&spaced);
      MPI_Type_free(&block);
      check_mpi(code, "MPI_Allgather");
    });
  }
  void reduce_scatter(const call_header& h, const std::byte* all, std::byte* to, const deadline&) override {
    look_for_trouble();
    each_sum(h, [&](auto zero, MPI_Datatype type, MPI_Op op) {
      using T = decltype(zero);
      using A = compute_type<T>;
      const auto ranks = static_cast<std::size_t>(size_), n = static_cast<std::size_t>(h.count) / ranks;
      in_pieces(n, std::max<std::size_t>(1, largest_ / ranks), [&](std::size_t at, std::size_t m) {
        std::vector<A> packed(m * ranks), sums(m);
        for (std::size_t r = 0; r < ranks; ++r) convert<T, A>(all + (r * n + at) * sizeof(T), m, packed.data() + r * m);
        check_mpi(MPI_Reduce_scatter_block(packed.data(), sums.data(), static_cast<int>(m), type, op, sums_),
                  "MPI_Reduce_scatter_block");
        convert_back<T, A>(sums.data(), m, to + at * sizeof(T));
      });
    });
  }
  std::unique_ptr<transport> split(const call_header&, int color, int key, const deadline&) override {
    MPI_Comm part;
    check_mpi(MPI_Comm_split(sums_, color, key, &part), "MPI_Comm_split");
    auto made = std::make_unique<mpi_transport>(part, static_cast<int>(largest_));
    MPI_Comm_free(&part);
    return made;
  }

  // A message is its header, and then its elements; so a receiver sees what does not fit it.
  void start(transfer& t) override {
    auto m = std::make_shared<message>();
    m->header = t.header;
    t.state = m;
    if (t.outgoing) {
      check_mpi(MPI_Isend(&m->header, sizeof m->header, MPI_BYTE, t.peer, header_tag, mail_, &m->head), "MPI_Isend");
      send_or_receive(t, *m);
    } else {
      check_mpi(MPI_Irecv(&m->header, sizeof m->header, MPI_BYTE, t.peer, header_tag, mail_, &m->head), "MPI_Irecv");
    }
  }
  bool test(transfer& t) override {
    message& m = *static_cast<message*>(t.state.get());
    look_for_trouble();
    if (!m.has_head) {
      if (!is_over(m.head)) return false;
      m.has_head = true;
      if (!t.outgoing) {
        require_call(t.peer, m.header);
        require_same_message(t.peer, m.header, rank_, t.header);
        send_or_receive(t, m);
      }
    }
    while (!m.pieces.empty() && is_over(m.pieces.back())) m.pieces.pop_back();
    return m.pieces.empty();
  }

  void tell(const trouble& why) noexcept override {
    try {
      // Kept for ever: nobody may be there to receive it.
      auto* const said = new std::vector<char>(sizeof(told) + std::min(why.text.size(), longest_text));
      const told head{static_cast<int>(why.kind), why.peer};
      std::memcpy(said->data(), &head, sizeof head);
      std::copy_n(why.text.begin(), said->size() - sizeof head, said->begin() + sizeof head);
      std::vector<MPI_Request>& requests = *new std::vector<MPI_Request>;
      for (int r = 0; r < size_; ++r) {
        if (r == rank_) continue;
        MPI_Isend(said->data(), static_cast<int>(said->size()), MPI_BYTE, r, trouble_tag, control_,
                  &requests.emplace_back());
      }
      const auto end = after(communication_clock::now(), 0.5);
      int all = 0;
      while (all == 0 && communication_clock::now() < end) {
        MPI_Testall(static_cast<int>(requests.size()), requests.data(), &all, MPI_STATUSES_IGNORE);
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    } catch (...) {  // NOLINT: the job ends with this process
    }
  }
  void close() override {
    for (MPI_Comm* one : {&sums_, &mail_, &control_}) MPI_Comm_free(one);
  }

 private:
  static constexpr int header_tag = 0, trouble_tag = 1, data_tag = 2;
  struct told {
    int kind, peer;
  };
  struct message {
    call_header header;
    MPI_Request head = MPI_REQUEST_NULL;
    std::vector<MPI_Request> pieces;
    bool has_head = false;
  };

  /// Errors: a trouble.
  static void require_call(int from, const call_header& h) {
    if (!is_call(h))
      throw trouble{communication_failure::backend, from, joined({"rank ", from, " sent what is no call"})};
  }
  static bool is_over(MPI_Request& r) {
    if (r == MPI_REQUEST_NULL) return true;
    int done = 0;
    check_mpi(MPI_Test(&r, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
  }
  void look_for_trouble() {
    int is_there = 0;
    MPI_Status status;
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, trouble_tag, control_, &is_there, &status), "MPI_Iprobe");
    if (is_there == 0) return;
    int size = 0;
    MPI_Get_count(&status, MPI_BYTE, &size);
    std::vector<char> text(static_cast<std::size_t>(size));
    check_mpi(MPI_Recv(text.data(), size, MPI_BYTE, status.MPI_SOURCE, trouble_tag, control_, MPI_STATUS_IGNORE),
              "MPI_Recv");
    told head{};
    std::memcpy(&head, text.data(), std::min(text.size(), sizeof head));
    const bool is_kind = head.kind >= 0 && head.kind <= static_cast<int>(communication_failure::backend);
    throw trouble{is_kind ? static_cast<communication_failure>(head.kind) : communication_failure::backend, head.peer,
                  std::string(text.begin() + std::min<std::ptrdiff_t>(size, sizeof head), text.end())};
  }
  void send_or_receive(const transfer& t, message& m) {
    const std::size_t width = element_size(t.header.element);
    const MPI_Datatype type = mpi_type_of_size(width);
    in_pieces(static_cast<std::size_t>(t.header.count), largest_, [&](std::size_t at, std::size_t n) {
      MPI_Request& r = m.pieces.emplace_back(MPI_REQUEST_NULL);
      std::byte* const p = t.data + at * width;
      const int count = static_cast<int>(n);
      if (t.outgoing) check_mpi(MPI_Isend(p, count, type, t.peer, data_tag, mail_, &r), "MPI_Isend");
      else check_mpi(MPI_Irecv(p, count, type, t.peer, data_tag, mail_, &r), "MPI_Irecv");
    });
  }

  template <class F>
  static void in_pieces(std::size_t n, std::size_t most, const F& f) {
    for (std::size_t at = 0; at < n; at += most) f(at, std::min(most, n - at));
  }
  template <class T, class A>
  static void convert(const std::byte* from, std::size_t n, A* to) {
    if constexpr (std::is_same_v<T, A>) {
      std::memcpy(to, from, n * sizeof(T));
    } else {
      const T* const values = reinterpret_cast<const T*>(from);
      for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<A>(values[i]);
    }
  }
  template <class T, class A>
  static void convert_back(const A* from, std::size_t n, std::byte* to) {
    if constexpr (std::is_same_v<T, A>) {
      std::memcpy(to, from, n * sizeof(T));
    } else {
      T* const values = reinterpret_cast<T*>(to);
      for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<T>(from[i]);
    }
  }
  /// f(T{}, the MPI type in which T is summed, the operation).
  template <class F>
  static void each_sum(const call_header& h, const F& f) {
    with_summed_element(h.element, [&](auto zero) {
      using A = compute_type<decltype(zero)>;
      MPI_Op op = MPI_SUM;
      if (h.is_max != 0) check_mpi(MPI_Op_create(&mpi_max<A>, 1, &op), "MPI_Op_create");
      f(zero, mpi_type<A>(), op);
      if (h.is_max != 0) MPI_Op_free(&op);
    });
  }

  MPI_Comm sums_ = MPI_COMM_NULL, mail_ = MPI_COMM_NULL, control_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  std::size_t largest_;
};

}  // namespace detail

/// The ranks of MPI_COMM_WORLD. The first communicator initialises MPI where the program has not, and the last one
/// finalises it. All calls of MPI come from one thread, which all communicators share: every rank makes the calls of
/// all its communicators in one order. MPI adds in an order of its own, and the last bits may differ between runs.
/// After a failure the end of the process ends the whole job. See the concept `communicator`.
///
///     mpi_communicator ranks;                                   // mpirun -n 4 ./program
///     tensor sum = ranks.all_reduce(gradients).get();
class mpi_communicator : public detail::host_communicator<mpi_communicator> {
 public:
  /// Errors: value_error for wrong options; communication_error where MPI does not begin.
  explicit mpi_communicator(const mpi_options& options = {}) : mpi_communicator(runtime(options), options) {}

 private:
  using base = detail::host_communicator<mpi_communicator>;
  friend base;
  using base::base;
  mpi_communicator(const std::shared_ptr<detail::mpi_runtime>& mpi, const mpi_options& options)
      : base(world(*mpi, options), {options.timeout.count(), options.checked_calls},
             std::shared_ptr<detail::communication_thread>(mpi, &mpi->thread())) {}

  /// f(), and its trouble as an error.
  template <class F>
  static auto beginning(const F& f) {
    try {
      return f();
    } catch (const detail::trouble& t) {
      throw communication_error(("communicator (mpi): beginning: " + t.text).c_str(), t.kind, -1, t.peer, 0, {});
    }
  }
  static std::shared_ptr<detail::mpi_runtime> runtime(const mpi_options& options) {
    detail::require_options("mpi_communicator", options.timeout.count(), options.checked_calls);
    if (options.largest_count < 1)
      detail::refuse<value_error>(
          {"mpi_communicator: largest_count is ", options.largest_count, "; give at least 1 element"});
    return beginning([&] { return detail::mpi_runtime::get(options.timeout.count()); });
  }
  static std::unique_ptr<detail::transport> world(detail::mpi_runtime& mpi, const mpi_options& options) {
    return beginning([&] {
      std::unique_ptr<detail::transport> made;
      mpi.thread().call_last(
          [&] { made = std::make_unique<detail::mpi_transport>(MPI_COMM_WORLD, options.largest_count); });
      return made;
    });
  }
  static std::shared_ptr<detail::communication_thread> thread_of_split(
      const std::shared_ptr<detail::communication_thread>& thread) {
    return thread;
  }
};

}  // namespace sinter
