// sinter/ranks/nccl/group.hpp: a group of NCCL, and what watches it: a deadline, NCCL's own errors, and the ranks'
// calls, which are compared over a communicator of the host.
#pragma once

#include "sinter/cuda/nccl.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <future>
#include <limits>
#include <thread>

#include "sinter/ranks/host_ranks.hpp"

#if NCCL_VERSION_CODE < 21400
#error "sinter: nccl_communicator needs NCCL 2.14 or newer, whose communicators need not block"
#endif

namespace sinter {

/// Options of nccl_communicator.
struct nccl_options {
  std::chrono::duration<double> timeout = std::chrono::seconds(300);  ///< of a call, and of the start
  index_t checked_calls = 100;  ///< so many collectives are compared before they begin; SINTER_COMM_CHECK=1: all
};

namespace detail {

class nccl_group;

/// One call. Its memory is given back once its work on the GPU is over, and never where that is not known.
struct nccl_call final : work_state {
  using start = std::function<ncclResult_t(ncclComm_t, cudaStream_t)>;

  explicit nccl_call(std::shared_ptr<nccl_group> g) : group(std::move(g)) {}
  nccl_call(const nccl_call&) = delete;
  nccl_call& operator=(const nccl_call&) = delete;
  ~nccl_call() override {
    if (is_started && !is_over) static_cast<void>(new std::shared_ptr<void>(std::move(memory)));
  }
  bool done() const override;
  void wait(std::optional<double> limit) override;
  bool is_message() const { return detail::is_message(header.op); }

  std::shared_ptr<nccl_group> group;
  call_header header;
  std::string name;
  start run;                     ///< gives the work to NCCL; empty where there is none
  std::function<void()> finish;  ///< puts what is left to do on the device's stream, once the work is over
  std::shared_ptr<void> memory;
  communication_clock::time_point started = communication_clock::now();
  std::shared_ptr<work_state> beside;   ///< on the host: over once the other ranks made the call
  std::shared_ptr<CUevent_st> arrived;  ///< recorded behind the work; null before it was given to NCCL
  bool is_started = false, is_over = false;
};

/// The ranks of one communicator. Its work has a stream of its own. Each collective is accompanied by a barrier of the
/// host, and each message by one of the host: so a rank that is missing, has ended or makes another call is known by
/// its number, which NCCL does not tell, and what a rank gives up for is told to the others.
class nccl_group : public std::enable_shared_from_this<nccl_group> {
 public:
  /// All ranks of `host` make one.
  template <class Context>
  nccl_group(const Context& context_of, std::unique_ptr<host_ranks> host, const nccl_options& options)
      : host_(std::move(host)), options_(options) {
    const char* const always = std::getenv("SINTER_COMM_CHECK");
    if (always != nullptr && std::string_view(always) == "1")
      options_.checked_calls = std::numeric_limits<index_t>::max();
    try {
      require_options("nccl_communicator", options.timeout.count(), options.checked_calls);
      refuse_capture("nccl_communicator", "make it before");
      on_ = &context_of();
      begin();
    } catch (const std::exception& e) {
      if (failure_ == nullptr) tell(e.what());
      end_by_force();
      throw;
    }
  }
  nccl_group(const nccl_group&) = delete;
  nccl_group& operator=(const nccl_group&) = delete;
  /// Where all ranks are here the group ends in good order; otherwise by force, as NCCL waits for those that are not.
  ~nccl_group() {
    if (std::uncaught_exceptions() > exceptions_) abort("an exception left the block of its communicator");
    if (failure_ == nullptr) {
      try {
        flush();
        host_->barrier("the end of the communicator")->wait(std::nullopt);
        const cuda_impl::use_gpu current(on_->gpu());
        nccl_call last(nullptr);
        accept(ncclCommFinalize(comm_), last);
        watch(last, end_of(last, std::nullopt), [](ncclResult_t state) { return state != ncclInProgress; });
        static_cast<void>(ncclCommDestroy(std::exchange(comm_, nullptr)));
      } catch (...) {  // NOLINT: there is nobody left to tell
      }
    }
    end_by_force();
  }

  int rank() const { return host_->rank(); }
  int size() const { return host_->size(); }
  cuda_impl::context& on() const { return *on_; }
  const nccl_options& options() const { return options_; }

  /// Starts a collective. Errors: the failure of the communicator.
  std::shared_ptr<work_state> post(const std::shared_ptr<nccl_call>& c) {
    require_usable(*c);
    if (c->run) flush();
    c->header.number = ++calls_;
    guarded(*c, [&] { newest_ = c->beside = host_->barrier(text_of(c->header)); });
    if (c->header.number <= options_.checked_calls)
      watch(*c, end_of(*c, std::nullopt), [](ncclResult_t) { return true; });
    if (c->run) launch({c});
    return c;
  }
  /// Messages wait for the next collective, or for who asks for one of them: NCCL starts them together, so that two
  /// ranks may both send first.
  std::shared_ptr<work_state> post_message(const std::shared_ptr<nccl_call>& c, int peer) {
    require_usable(*c);
    guarded(*c, [&] {
      c->beside = c->header.op == operation::send ? host_->announce(c->header, peer) : host_->expect(c->header, peer);
    });
    if (c->run) waiting_.push_back(c);
    return c;
  }
  void flush() {
    if (!waiting_.empty()) launch(std::exchange(waiting_, {}));
  }

  bool is_done(const nccl_call& c) {
    if (c.is_over || failure_ != nullptr) return true;
    if (c.run && c.arrived == nullptr) flush();
    return (c.beside == nullptr || c.beside->done()) && has_arrived(c);
  }
  void wait(nccl_call& c, std::optional<double> limit) {
    if (c.is_over) return;
    if (failure_ != nullptr) throw_failure();
    const auto end = end_of(c, limit);
    if (c.run && c.arrived == nullptr) flush();
    watch(c, end, [&](ncclResult_t) { return has_arrived(c); });
    c.is_over = true;
    if (c.finish) c.finish();
  }

  std::shared_ptr<nccl_group> split(int color, int key) {
    nccl_call c(nullptr);
    c.header.op = operation::split;
    require_usable(c);
    flush();
    std::unique_ptr<host_ranks> part;
    guarded(c, [&] { part = host_->split(color, key); });
    return std::make_shared<nccl_group>([this]() -> cuda_impl::context& { return *on_; }, std::move(part), options_);
  }
  void abort(const std::string& reason) noexcept {
    if (failure_ != nullptr) return;
    const trouble t = trouble_of(communication_failure::aborted, rank(), {"aborted by rank ", rank(), ": ", reason});
    set_failure(t.kind, t.peer, t.text, nullptr);
    tell(reason);
    end_by_force();
  }

 private:
  using time_point = communication_clock::time_point;

  void begin() {
    nccl_call c(nullptr);
    ncclUniqueId id{};
    auto bytes = tensor<std::uint8_t, 1>::uninitialized({{static_cast<index_t>(sizeof id)}});
    if (rank() == 0) accept(ncclGetUniqueId(&id), c);
    std::memcpy(bytes.data(), &id, sizeof id);
    guarded(c, [&] { bytes = host_->broadcast(bytes); });
    std::memcpy(&id, bytes.data(), sizeof id);
    const cuda_impl::use_gpu current(on_->gpu());
    cuda_impl::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                     on_->name() + ": creating a stream for communication");
    ready_ = new_event();
    guarded(c, [&] { c.beside = host_->barrier("the start of NCCL"); });
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    accept(ncclCommInitRankConfig(&comm_, size(), id, rank(), &config), c);
    watch(c, end_of(c, std::nullopt), [](ncclResult_t state) { return state != ncclInProgress; });
  }

  std::shared_ptr<CUevent_st> new_event() const {
    cudaEvent_t event = nullptr;
    cuda_impl::check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), on_->name() + ": creating an event");
    return {event, [](cudaEvent_t e) { cuda_impl::ignore(cudaEventDestroy(e)); }};
  }

  void require_usable(const nccl_call& c) const {
    if (failure_ != nullptr) throw_failure();
    refuse_capture(operation_name(c.header.op), "a graph holds the work of one device; communicate after replay()");
  }

  /// Gives work to NCCL that runs once what is on the device's stream by now is over.
  void launch(const std::vector<std::shared_ptr<nccl_call>>& calls) {
    nccl_call& first = *calls.front();
    guarded(first, [&] {
      const auto held = on_->capture().enter(operation_name(first.header.op));
      const cuda_impl::use_gpu current(on_->gpu());
      const auto arrived = new_event();
      const std::string doing = on_->name() + ": " + operation_name(first.header.op);
      cuda_impl::check(cudaEventRecord(ready_.get(), on_->stream()), doing);
      cuda_impl::check(cudaStreamWaitEvent(stream_, ready_.get(), 0), doing);
      for (const auto& c : calls) c->is_started = true;
      accept(ncclGroupStart(), first);
      ncclResult_t status = ncclSuccess;
      for (const auto& c : calls) {
        if (status == ncclSuccess || status == ncclInProgress) status = c->run(comm_, stream_);
      }
      const ncclResult_t ended = ncclGroupEnd();
      accept(status, first);
      accept(ended, first);
      // The work is on the stream once NCCL says so, and not before.
      watch(first, end_of(first, std::nullopt), [](ncclResult_t state) { return state != ncclInProgress; }, false);
      cuda_impl::check(cudaEventRecord(arrived.get(), stream_), doing);
      for (const auto& c : calls) c->arrived = arrived;
      on_->count_launches();
    });
  }

  bool has_arrived(const nccl_call& c) {
    if (c.arrived == nullptr) return !c.run;
    const cuda_impl::use_gpu current(on_->gpu());
    const cudaError_t status = cudaEventQuery(c.arrived.get());
    if (status == cudaErrorNotReady) {
      cuda_impl::ignore(status);
      return false;
    }
    guarded(c, [&] { cuda_impl::check(status, on_->name() + ": " + operation_name(c.header.op)); });
    return true;
  }

  time_point end_of(const nccl_call& c, std::optional<double> limit) const {
    const time_point end = after(c.started, options_.timeout.count());
    const time_point sooner = limit.has_value() ? after(communication_clock::now(), *limit) : end;
    return sooner < end ? sooner : end;
  }
  /// Looks at NCCL, the host and the clock until is_over(state of NCCL), and the other ranks made the call.
  template <class IsOver>
  void watch(nccl_call& c, time_point end, const IsOver& is_over, bool with_others = true) {
    for (int looks = 0;; ++looks) {
      for (auto* const beside : {&c.beside, &newest_}) {
        if (*beside == nullptr || !(*beside)->done()) continue;
        const auto over = std::exchange(*beside, nullptr);
        guarded(c, [&] { over->wait(std::nullopt); });
      }
      ncclResult_t state = ncclSuccess;
      if (comm_ != nullptr) accept(ncclCommGetAsyncError(comm_, &state), c);
      accept(state, c);
      if (is_over(state) && (c.beside == nullptr || !with_others)) return;
      if (communication_clock::now() >= end) end_late(c);
      if (looks < 100) std::this_thread::yield();
      else std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  [[noreturn]] SINTER_COLD void end_late(nccl_call& c) {
    if (const auto beside = std::exchange(c.beside, nullptr); beside != nullptr)
      guarded(c, [&] { beside->wait(0.); });  // names who is missing
    try {
      host_->barrier(joined({operation_name(c.header.op), " number ", c.header.number, " has timed out"}))->wait(0.5);
    } catch (const communication_error& e) {
      // A rank may have failed in the middle of the call.
      if (e.kind() == communication_failure::aborted || e.kind() == communication_failure::peer_lost)
        fail(c, e.kind(), e.peer(), cause_in(e, c));
    }
    fail(c, communication_failure::timeout, -1,
         "timeout: all ranks made the call, and NCCL has not ended it; look at the other ranks' output, and at what "
         "NCCL_DEBUG=INFO says");
  }

  void accept(ncclResult_t status, const nccl_call& c) {
    if (status == ncclSuccess || status == ncclInProgress) return;
    cuda_impl::ignore(cudaGetLastError());
    std::string text = std::string("NCCL: ") + ncclGetErrorString(status);
    if (const char* const more = ncclGetLastError(comm_); more != nullptr && *more != '\0')
      text += std::string(" (") + more + ")";
    fail(c, communication_failure::backend, -1, text);
  }
  /// f(); what it throws is the communicator's failure.
  template <class F>
  void guarded(const nccl_call& c, const F& f) {
    try {
      f();
    } catch (const communication_error& e) {
      if (failure_ != nullptr) throw;
      fail(c, e.kind(), e.peer(), cause_in(e, c));
    } catch (const trouble& t) {
      fail(c, t.kind, t.peer, t.text);
    } catch (const std::exception& e) {
      const trouble t = trouble_of(communication_failure::backend, -1, {e.what()});
      fail(c, t.kind, t.peer, t.text);
    }
  }
  /// The text of an error of the host, without what says which of its calls met it.
  SINTER_COLD std::string cause_in(const communication_error& e, const nccl_call& c) const {
    std::string text = e.what();
    for (const std::string& head :
         {joined({" of ", size(), ": "}), "'" + e.name() + "': ", joined({" number ", e.number(), ": "}),
          std::string(operation_name(c.header.op)) + ": "}) {
      const std::size_t at = text.find(head);
      if (at != std::string::npos) text = text.substr(at + head.size());
    }
    return text;
  }

  [[noreturn]] SINTER_COLD void fail(const nccl_call& during, communication_failure kind, int peer,
                                     const std::string& text) {
    if (failure_ == nullptr) {
      set_failure(kind, peer, text, &during);
      tell(text);
      end_by_force();
    }
    throw_failure();
  }
  void set_failure(communication_failure kind, int peer, const std::string& text, const nccl_call* during) noexcept {
    waiting_.clear();
    newest_ = nullptr;
    try {
      failure_ = failure_of(kind, peer, text, during);
    } catch (const std::bad_alloc&) {
      failure_ = std::move(spare_failure_);
    }
  }
  std::unique_ptr<const communication_error> failure_of(communication_failure kind, int peer, const std::string& text,
                                                        const nccl_call* during) const {
    std::string whole = joined({"communicator (nccl), rank ", rank(), " of ", size(), ": "});
    const bool has_call = during != nullptr && (during->header.number > 0 || during->is_message());
    if (has_call) {
      whole += operation_name(during->header.op);
      if (during->header.number > 0) whole += joined({" number ", during->header.number});
      if (!during->name.empty()) whole += " '" + during->name + "'";
      whole += ": ";
    } else if (during != nullptr) {
      whole += during->header.op == operation::split ? "split: " : "beginning: ";
    }
    return std::make_unique<communication_error>((whole + text).c_str(), kind, rank(), peer,
                                                 has_call ? during->header.number : 0,
                                                 has_call ? during->name : std::string());
  }
  [[noreturn]] SINTER_COLD void throw_failure() const { throw communication_error(*failure_); }
  void tell(const std::string& reason) noexcept { host_->abort(reason); }

  /// Stops the work on the GPU. What NCCL may still use is left behind: it does not always come back where a rank is
  /// gone.
  void end_by_force() noexcept {
    if (comm_ == nullptr) {
      if (stream_ != nullptr && failure_ == nullptr) cuda_impl::ignore(cudaStreamDestroy(stream_));
      stream_ = nullptr;
      return;
    }
    try {
      auto ended = std::make_shared<std::promise<void>>();
      const auto over = ended->get_future();
      std::thread([comm = std::exchange(comm_, nullptr), gpu = on_->gpu(), ended] {
        const cuda_impl::use_gpu current(gpu, std::nothrow);
        cuda_impl::ignore(current.status());
        static_cast<void>(ncclCommAbort(comm));
        ended->set_value();
      }).detach();
      static_cast<void>(over.wait_for(std::chrono::seconds(5)));
    } catch (...) {  // NOLINT: no thread
    }
    stream_ = nullptr;
  }

  std::unique_ptr<host_ranks> host_;
  nccl_options options_;
  cuda_impl::context* on_ = nullptr;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::shared_ptr<CUevent_st> ready_;
  std::vector<std::shared_ptr<nccl_call>> waiting_;  ///< messages that NCCL was not given yet
  std::shared_ptr<work_state> newest_;               ///< of the host, for the last collective
  std::unique_ptr<const communication_error> failure_;
  std::unique_ptr<const communication_error> spare_failure_ =
      std::make_unique<communication_error>(joined({"communicator (nccl), rank ", rank(), " of ", size(),
                                                    ": a call failed, and memory was too short to say why"})
                                                .c_str(),
                                            communication_failure::backend, rank(), -1, 0, std::string());
  index_t calls_ = 0;
  int exceptions_ = std::uncaught_exceptions();
};

inline bool nccl_call::done() const {
  try {
    return group->is_done(*this);
  } catch (const error&) {
    return true;  // get() throws it
  }
}
inline void nccl_call::wait(std::optional<double> limit) { group->wait(*this, limit); }

}  // namespace detail
}  // namespace sinter
