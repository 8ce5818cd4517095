// tests/ranks/communicator_checks.hpp: what every backend of communicators has to do, on each of its ranks.
#pragma once

#include <sinter/ranks/host_communicator.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace communicator_checks {

using namespace sinter;

/// Errors: std::runtime_error with `what`. Ranks are threads and processes, where Catch's macros do not work.
inline void require(bool is_true, const std::string& what) {
  if (!is_true) throw std::runtime_error("not so: " + what);
}

/// The text of what f throws, an Error; empty where it throws nothing.
template <class Error = error, class F>
std::string text_of_error(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}
inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Values that are not exact in T, other ones on each rank.
template <class T>
T value_of(int rank, index_t i) {
  return static_cast<T>(static_cast<float>((i * 7 + rank * 13) % 31 - 15) / (std::is_integral_v<T> ? 1.f : 7.f));
}
template <class T>
tensor<T, 1> values_of(int rank, index_t n) {
  auto x = tensor<T, 1>::uninitialized({{n}});
  for (index_t i = 0; i < n; ++i) x.data()[i] = value_of<T>(rank, i);
  return x;
}

/// The sum in rank order, half and bfloat16 in float.
template <class T>
T sum_at(int ranks, index_t i, bool is_max) {
  auto sum = static_cast<compute_type<T>>(value_of<T>(0, i));
  for (int r = 1; r < ranks; ++r) {
    const auto x = static_cast<compute_type<T>>(value_of<T>(r, i));
    sum = is_max ? std::max(sum, x) : sum + x;
  }
  return static_cast<T>(sum);
}

template <class T>
bool is_near(T a, T b, bool exactly) {
  if (exactly || std::is_integral_v<T>) return a == b;
  const auto x = static_cast<double>(a), y = static_cast<double>(b);
  return std::abs(x - y) <= 0.02 * (1 + std::abs(y));
}

template <class T, class C>
void check_sums(C& ranks, index_t n, bool in_rank_order) {
  const int R = ranks.size(), me = ranks.rank();
  const std::string what = std::string(element_name<T>()) + " x " + std::to_string(n);
  for (const bool is_max : {false, true}) {
    tensor x = values_of<T>(me, n);
    const rank_reduction by = is_max ? rank_reduction(reduction::max) : rank_reduction(reduction::sum);
    tensor total = ranks.all_reduce(x, by, "sums").get();
    require(total.data() == x.data(), "all_reduce works in place, " + what);
    for (index_t i = 0; i < n; i += n > 2000 ? 97 : 1)
      require(is_near(total(i), sum_at<T>(R, i, is_max), in_rank_order), "all_reduce, " + what);
  }
  const index_t all = n * R;
  tensor part = ranks.reduce_scatter(values_of<T>(me, all), "part").get();
  require(part.numel() == n, "length of reduce_scatter");
  for (index_t i = 0; i < n; i += n > 2000 ? 97 : 1)
    require(is_near(part(i), sum_at<T>(R, me * n + i, false), in_rank_order), "reduce_scatter, " + what);
}

template <class T, class C>
void check_moves(C& ranks, index_t n) {
  const int R = ranks.size(), me = ranks.rank();
  const auto same = [&](const tensor<T, 1>& x, index_t from, int rank) {
    for (index_t i = 0; i < n; ++i)
      if (x.data()[from + i] != value_of<T>(rank, i)) return false;
    return true;
  };
  for (int root = 0; root < R; ++root)
    require(same(ranks.broadcast(values_of<T>(me, n), root, "root").get(), 0, root), "broadcast");
  tensor all = ranks.all_gather(values_of<T>(me, n), "all").get();
  for (int r = 0; r < R; ++r) require(same(all, r * n, r), "all_gather");
  // Around the ring in both directions, twice, with a collective between send and receive.
  const int next = (me + 1) % R, before = (me + R - 1) % R;
  std::vector<work<void>> sent;
  for (int tag = 0; tag < 2; ++tag) {
    sent.push_back(ranks.send(values_of<T>(me + tag, n), next, tag));
    sent.push_back(ranks.send(values_of<T>(me + 5, n), before, 7 + tag));
  }
  ranks.barrier("between").get();
  // What one rank sends to another arrives in order; with two ranks, both directions are one.
  std::vector<work<tensor<T, 1>>> came;
  for (int tag = 0; tag < 2; ++tag) {
    came.push_back(ranks.template receive<T>(n, before, tag));
    came.push_back(ranks.template receive<T>(n, next, 7 + tag));
  }
  for (int tag = 0; tag < 2; ++tag) {
    require(same(came[std::size_t(2 * tag)].get(), 0, before + tag), "receive from the rank before");
    require(same(came[std::size_t(2 * tag + 1)].get(), 0, next + 5), "receive from the next rank");
  }
  for (auto& s : sent) s.get();
}

/// All that a communicator does where nothing goes wrong.
template <class C>
void check_all(C ranks, bool in_rank_order) {
  static_assert(communicator<C> && communicator_on<C, cpu> && communicator_on<C, numa<1>>);
  static_assert(!communicator_on<C, cuda<0>> && !C::template reaches<cuda<0>>);
  for (const index_t n : {0, 1, 5, 1000}) {
    check_sums<float>(ranks, n, in_rank_order);
    check_sums<sinter::half>(ranks, n, in_rank_order);
  }
  check_sums<float>(ranks, 70001, in_rank_order);
  check_sums<double>(ranks, 17, in_rank_order);
  check_sums<bfloat16>(ranks, 17, in_rank_order);
  check_sums<std::int32_t>(ranks, 17, in_rank_order);
  check_sums<std::int64_t>(ranks, 17, in_rank_order);
  for (const index_t n : {0, 3, 40000}) check_moves<float>(ranks, n);
  check_moves<std::uint8_t>(ranks, 9);
  tensor<bool, 1> flags{ranks.rank() == 0, true};
  require(ranks.broadcast(flags, 0).get()(0), "broadcast of bool");

  // Several calls at a time, and results nobody asks for.
  std::vector<work<tensor<double, 1>>> sums;
  for (int i = 0; i < 20; ++i) sums.push_back(ranks.all_reduce(tensor<double, 1>{double(i)}, reduction::sum, "many"));
  for (int i = 0; i < 20; i += 2) require(sums[std::size_t(i)].get()(0) == i * ranks.size(), "all_reduce, many");
  {
    const auto ignored = ranks.all_reduce(tensor<double, 1>{1.0});
  }

  // Even and odd ranks, the last one first.
  const int me = ranks.rank(), R = ranks.size();
  C half_of_them = ranks.split(me % 2, -me);
  require(half_of_them.size() == (R + 1 - me % 2) / 2, "size of split");
  require(half_of_them.rank() == half_of_them.size() - 1 - me / 2, "rank of split");
  float expected = 0;
  for (int r = me % 2; r < R; r += 2) expected += static_cast<float>(r);
  require(half_of_them.all_reduce(tensor<float, 1>{float(me)}).get()(0) == expected, "all_reduce of split");
  ranks.barrier("end").get();
}

/// The error that f() throws. Errors: std::runtime_error where it throws none.
inline communication_error error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const communication_error& e) {
    return e;
  }
  throw std::runtime_error("no communication_error was thrown");
}
inline bool has(const communication_error& e, const std::string& text) {
  return std::string(e.what()).find(text) != std::string::npos;
}
inline void require_text(const communication_error& e, const std::string& text) {
  require(has(e, text), "'" + text + "' in '" + e.what() + "'");
}

}  // namespace communicator_checks
