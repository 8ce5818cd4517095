// sinter/ranks/host_ranks.hpp: a communicator of the host, free of its type, beside one that cannot compare calls.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "sinter/ranks/transport.hpp"

namespace sinter::detail {

/// A communicator of the host, free of its type.
class host_ranks {
 public:
  virtual ~host_ranks() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::shared_ptr<work_state> barrier(const std::string& name) = 0;
  /// Tells rank `to` what is sent to it.
  virtual std::shared_ptr<work_state> announce(const call_header& sent, int to) = 0;
  /// Errors: a trouble where rank `from` announces something else.
  virtual std::shared_ptr<work_state> expect(const call_header& expected, int from) = 0;
  virtual tensor<std::uint8_t, 1> broadcast(const tensor<std::uint8_t, 1>& of_rank_0) = 0;
  virtual std::unique_ptr<host_ranks> split(int color, int key) = 0;
  virtual void abort(const std::string& reason) noexcept = 0;
};

template <class C>
class host_ranks_of final : public host_ranks {
 public:
  explicit host_ranks_of(C ranks) : ranks_(std::move(ranks)) {}

  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  std::shared_ptr<work_state> barrier(const std::string& name) override {
    return watched(ranks_.barrier(name), [] {});
  }
  std::shared_ptr<work_state> announce(const call_header& sent, int to) override {
    const tensor<std::int64_t, 1> words{sent.count, static_cast<std::int64_t>(sent.element), sent.root};
    return watched(ranks_.send(words, to), [] {});
  }
  std::shared_ptr<work_state> expect(const call_header& expected, int from) override {
    return watched(ranks_.template receive<std::int64_t, cpu>(3, from), [expected, from, me = rank(), ranks = ranks_](
                                                                            const tensor<std::int64_t, 1>& words) {
      require_told(words(0) >= 0 && words(1) >= 0 && words(1) < static_cast<std::int64_t>(element_kind::other), ranks,
                   from, "receive", "of ", words(0), " elements of kind ", words(1));
      call_header sent = expected;
      sent.op = operation::send;
      sent.count = words(0);
      sent.element = static_cast<element_kind>(words(1));
      sent.root = static_cast<std::int32_t>(words(2));
      require_same_message(from, sent, me, expected);
    });
  }
  tensor<std::uint8_t, 1> broadcast(const tensor<std::uint8_t, 1>& of_rank_0) override {
    return ranks_.broadcast(of_rank_0, 0, "ncclUniqueId").get();
  }
  std::unique_ptr<host_ranks> split(int color, int key) override {
    return std::make_unique<host_ranks_of>(ranks_.split(color, key));
  }
  void abort(const std::string& reason) noexcept override { abort_quietly(ranks_, reason.c_str()); }

 private:
  template <class Work, class Look>
  struct watch final : work_state {
    watch(Work w, Look l) : coming(std::move(w)), look(std::move(l)) {}
    bool done() const override { return is_over || coming.done(); }
    void wait(std::optional<double> limit) override {
      if (is_over) return;
      const auto get = [&] { return limit.has_value() ? coming.get(*limit) : coming.get(); };
      if constexpr (std::is_void_v<decltype(coming.get())>) {
        get();
        look();
      } else {
        look(get());
      }
      is_over = true;
    }
    Work coming;
    Look look;
    bool is_over = false;
  };
  template <class Work, class Look>
  static std::shared_ptr<work_state> watched(Work w, Look l) {
    return std::make_shared<watch<Work, Look>>(std::move(w), std::move(l));
  }

  C ranks_;
};

}  // namespace sinter::detail
