// sinter/ranks/plan/network_model.hpp: seconds that messages and sums over ranks take, by formulas and as measured.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "sinter/core/create.hpp"
#include "sinter/ranks/communicator.hpp"

namespace sinter {

/// A message of n bytes takes latency + n / bandwidth seconds.
struct link_model {
  double latency = 0;    ///< seconds
  double bandwidth = 0;  ///< bytes per second; 0: no limit

  double transfer(double bytes) const { return bandwidth > 0 ? bytes / bandwidth : 0; }
  double seconds(double bytes) const { return latency + transfer(bytes); }
};

/// The links of ranks on nodes. Each rank sends and receives one message at a time, both at once. The bandwidth between
/// nodes is that of one rank while all ranks of its node send. Not modelled: contention with other traffic or between
/// distant nodes, and topology. Over a network without any numbers sums take no time.
///
///     network_model network{.between_nodes = {5e-6, 3e9}, .within_node = {1e-6, 100e9}, .ranks_per_node = 8};
struct network_model {
  link_model between_nodes = {};
  link_model within_node = {};
  int ranks_per_node = 1;
  double adding = 0;  ///< bytes per second that a rank adds to others; 0: no limit
  double call = 0;    ///< seconds of each sum besides its messages, as for threads that wake
};

/// How a sum over ranks is made. n bytes on R ranks, messages of latency a and b seconds per byte, g seconds to add
/// one:
///
/// | | seconds | source |
/// | --- | --- | --- |
/// | ring | 2 (R - 1) a + 2 (R - 1) / R n b + (R - 1) / R n g | Thakur, Rabenseifner, Gropp 2005 |
/// | recursive_doubling | log2 R (a + n b + n g) | the same |
/// | rabenseifner | 2 log2 R a + 2 (R - 1) / R n b + (R - 1) / R n g | Rabenseifner 2004 |
/// | double_tree | 2 (2 h + 2 k) (a + n / (2 k) b) + n g | Sanders, Speck, Träff 2009, reduction and broadcast |
/// | hierarchical | within nodes a ring; between nodes n / L bytes by the cheapest of the others | |
///
/// For R that is no power of two, recursive_doubling and rabenseifner run on the largest power of two below; the other
/// ranks send their values there before and get the sum after: 2 a + 2 n b + n g more. network_model::call is added to
/// each. double_tree: trees of height h = ceil(log2 R), each with k = max(1, sqrt(h n b / (2 a))) parts of half of the
/// bytes. hierarchical: L ranks on each node, 2 (L - 1) messages of n / L within it. The others use links between nodes
/// for all messages if there are several nodes.
enum class all_reduce_algorithm { ring, recursive_doubling, rabenseifner, double_tree, hierarchical };

inline const char* name_of(all_reduce_algorithm by) {
  const char* const names[] = {"ring", "recursive doubling", "Rabenseifner", "double tree", "hierarchical"};
  return names[static_cast<int>(by)];
}

/// Seconds of one sum, in parts.
struct all_reduce_cost {
  all_reduce_algorithm by = all_reduce_algorithm::ring;
  double latency = 0;   ///< grows with the number of messages
  double transfer = 0;  ///< grows with bytes
  double adding = 0;

  double seconds() const { return latency + transfer + adding; }
};

all_reduce_cost cheapest_all_reduce(const network_model& network, int ranks, double bytes);

namespace detail {

inline void require_ranks(const char* call, int ranks) {
  if (ranks < 1) refuse<value_error>({call, ": ", ranks, " ranks; there must be one or more"});
}
/// Seconds, bytes per second and the like.
inline void require_measure(const char* call, const char* name, double x) {
  if (!(x >= 0) || !std::isfinite(x))
    refuse<value_error>({call, ": ", name, " is ", x, "; it must be a finite number and not negative"});
}
/// Both kinds of links have times, or none has: sums over links that were forgotten would take no time.
inline void require_network(const char* call, const network_model& network) {
  if (network.ranks_per_node < 1)
    refuse<value_error>({call, ": ranks_per_node is ", network.ranks_per_node, "; it must be 1 or more"});
  require_measure(call, "between_nodes.latency", network.between_nodes.latency);
  require_measure(call, "between_nodes.bandwidth", network.between_nodes.bandwidth);
  require_measure(call, "within_node.latency", network.within_node.latency);
  require_measure(call, "within_node.bandwidth", network.within_node.bandwidth);
  require_measure(call, "adding", network.adding);
  require_measure(call, "call", network.call);
  const auto takes_time = [](const link_model& l) { return l.latency > 0 || l.bandwidth > 0; };
  if (network.ranks_per_node > 1 && takes_time(network.between_nodes) && !takes_time(network.within_node))
    refuse<value_error>({call, ": ", network.ranks_per_node, " ranks on each node, and within_node has no latency and ",
                         "no bandwidth; give them, or ranks_per_node = 1"});
}

inline all_reduce_cost flat_all_reduce_cost(all_reduce_algorithm by, const link_model& link, double adding, int ranks,
                                            double bytes) {
  const auto add = [adding](double n) { return adding > 0 ? n / adding : 0; };
  const double R = ranks;
  const double turns = std::floor(std::log2(R)), rest = std::exp2(turns) == R ? 0 : 1;
  const double power = std::exp2(turns);
  all_reduce_cost c{by};
  switch (by) {
    case all_reduce_algorithm::ring:
      c.latency = 2 * (R - 1) * link.latency;
      c.transfer = link.transfer(2 * (R - 1) / R * bytes);
      c.adding = add((R - 1) / R * bytes);
      break;
    case all_reduce_algorithm::recursive_doubling:
      c.latency = (turns + 2 * rest) * link.latency;
      c.transfer = link.transfer((turns + 2 * rest) * bytes);
      c.adding = add((turns + rest) * bytes);
      break;
    case all_reduce_algorithm::rabenseifner:
      c.latency = (2 * turns + 2 * rest) * link.latency;
      c.transfer = link.transfer((2 * (power - 1) / power + 2 * rest) * bytes);
      c.adding = add(((power - 1) / power + rest) * bytes);
      break;
    case all_reduce_algorithm::double_tree: {
      // Links without latency take infinitely many parts, those without limit one.
      const double height = std::ceil(std::log2(R)), whole = link.transfer(bytes);
      if (link.latency <= 0) {
        c.transfer = 2 * whole;
      } else {
        const double parts = std::max(1., std::sqrt(height * whole / (2 * link.latency)));
        const double steps = 2 * (2 * height + 2 * parts);
        c.latency = steps * link.latency;
        c.transfer = steps * whole / (2 * parts);
      }
      c.adding = add(bytes);
      break;
    }
    case all_reduce_algorithm::hierarchical:
      break;
  }
  return c;
}

}  // namespace detail

/// What one sum over `ranks` takes. Errors: value_error for no ranks, for a number of the network that is negative or
/// no number, for several ranks on a node whose links were not given, and for hierarchical where ranks are on one node
/// or each has a node of its own.
inline all_reduce_cost all_reduce_cost_of(all_reduce_algorithm by, const network_model& network, int ranks,
                                          double bytes) {
  detail::require_ranks("all_reduce_cost_of", ranks);
  detail::require_network("all_reduce_cost_of", network);
  detail::require_measure("all_reduce_cost_of", "bytes", bytes);
  const int per_node = network.ranks_per_node;
  if (by == all_reduce_algorithm::hierarchical) {
    if (per_node < 2 || ranks <= per_node)
      detail::refuse<value_error>({"all_reduce_cost_of: hierarchical, for ", ranks, " ranks, ", per_node,
                                   " on each node; it needs several nodes with several ranks each"});
    const network_model flat{network.between_nodes, {}, 1, network.adding, network.call};
    const all_reduce_cost inside =
        detail::flat_all_reduce_cost(all_reduce_algorithm::ring, network.within_node, network.adding, per_node, bytes);
    const all_reduce_cost across = cheapest_all_reduce(flat, (ranks + per_node - 1) / per_node, bytes / per_node);
    return {by, inside.latency + across.latency, inside.transfer + across.transfer, inside.adding + across.adding};
  }
  if (ranks == 1) return {by};
  all_reduce_cost c = detail::flat_all_reduce_cost(by, ranks > per_node ? network.between_nodes : network.within_node,
                                                   network.adding, ranks, bytes);
  c.latency += network.call;
  return c;
}

/// The algorithm that takes least.
inline all_reduce_cost cheapest_all_reduce(const network_model& network, int ranks, double bytes) {
  all_reduce_cost best = all_reduce_cost_of(all_reduce_algorithm::ring, network, ranks, bytes);
  const auto consider = [&](all_reduce_algorithm by) {
    const all_reduce_cost c = all_reduce_cost_of(by, network, ranks, bytes);
    if (c.seconds() < best.seconds()) best = c;
  };
  consider(all_reduce_algorithm::recursive_doubling);
  consider(all_reduce_algorithm::rabenseifner);
  consider(all_reduce_algorithm::double_tree);
  if (network.ranks_per_node > 1 && ranks > network.ranks_per_node) consider(all_reduce_algorithm::hierarchical);
  return best;
}

/// So many messages one after the other, of so many bytes together, took so long.
struct link_sample {
  double bytes = 0, seconds = 0, messages = 1;
};

struct link_fit {
  link_model link;
  double call = 0;   ///< see network_model
  double error = 0;  ///< root of the mean square of (fitted - measured) / measured
};

namespace detail {

/// Least squares of rows (1, m, b) x = 1, each divided by its seconds, for those unknowns that `used` names.
struct fit_equations {
  std::array<std::array<double, 3>, 3> products = {};
  std::array<double, 3> targets = {};

  void add(const std::array<double, 3>& row) {
    for (std::size_t i = 0; i < 3; ++i) {
      targets[i] += row[i];
      for (std::size_t j = 0; j < 3; ++j) products[i][j] += row[i] * row[j];
    }
  }
  /// False where several solutions are as good.
  bool solve(const std::array<bool, 3>& used, std::array<double, 3>& x) const {
    auto a = products;
    x = targets;
    for (std::size_t i = 0; i < 3; ++i) {
      if (!used[i]) continue;
      if (!(a[i][i] > 1e-9 * products[i][i])) return false;  // no pivoting: the matrix is positive semidefinite
      for (std::size_t k = 0; k < 3; ++k) {
        if (k == i || !used[k]) continue;
        const double factor = a[k][i] / a[i][i];
        for (std::size_t j = 0; j < 3; ++j) a[k][j] -= factor * a[i][j];
        x[k] -= factor * x[i];
      }
    }
    for (std::size_t i = 0; i < 3; ++i) x[i] = used[i] ? x[i] / a[i][i] : 0;
    return true;
  }
};

}  // namespace detail

/// The latency and bandwidth that fit samples best, and where these have different numbers of messages, what each call
/// takes besides: least squares of relative differences, so that short samples count as much as long ones. None becomes
/// negative. Errors: value_error for samples whose messages all have one size, and for times that are not positive.
///
///     const link_fit fit = fit_link({{1e3, 6e-6}, {1e6, 105e-6}});  // about 5.9 us and 1e10 bytes per second
inline link_fit fit_link(const std::vector<link_sample>& samples) {
  detail::fit_equations equations;
  for (const link_sample& s : samples) {
    if (!(s.seconds > 0) || !(s.messages > 0) || !(s.bytes >= 0))
      detail::refuse<value_error>({"fit_link: a sample of ", s.messages, " messages, ", s.bytes, " bytes and ",
                                   s.seconds, " seconds; all must be positive"});
    equations.add({1 / s.seconds, s.messages / s.seconds, s.bytes / s.seconds});
  }
  std::array<double, 3> x;
  if (samples.empty() || !equations.solve({false, true, true}, x))
    detail::refuse<value_error>({"fit_link: ", static_cast<index_t>(samples.size()),
                                 " samples of messages of one size; measure two sizes or more"});
  link_fit best{{}, 0, std::numeric_limits<double>::infinity()};
  // The best of all solutions without negative numbers has some unknowns at 0, and solves the equations of the others.
  for (const bool with_call : {false, true})
    for (const bool with_latency : {true, false})
      for (const bool with_bytes : {true, false}) {
        if (!equations.solve({with_call, with_latency, with_bytes}, x)) continue;
        if (*std::min_element(x.begin(), x.end()) < 0) continue;
        double squares = 0;
        for (const link_sample& s : samples) {
          const double off = (x[0] + s.messages * x[1] + s.bytes * x[2]) / s.seconds - 1;
          squares += off * off;
        }
        const double error = std::sqrt(squares / static_cast<double>(samples.size()));
        if (error < best.error * (1 - 1e-9)) best = {{x[1], x[2] > 0 ? 1 / x[2] : 0}, x[0], error};
      }
  return best;
}

/// A sum of n bytes over R ranks as a sample: the 2 (R - 1) messages of n / R bytes of a ring.
inline link_sample all_reduce_sample(int ranks, double bytes, double seconds) {
  return {2. * (ranks - 1) / ranks * bytes, seconds, 2. * (ranks - 1)};
}

/// Times sums of floats, so many bytes each, and gives samples that are the same on all ranks: of each size the median
/// of `repeats`, on the rank where it is longest. All ranks call it. Errors: value_error for one rank alone, for no
/// repeats and for sizes below 4; communication_error.
///
///     const link_fit fit = fit_link(measure_all_reduce(world, {1 << 10, 1 << 15, 1 << 20}));
template <communicator_on<cpu> C>
std::vector<link_sample> measure_all_reduce(C& world, const std::vector<index_t>& sizes, int repeats = 9) {
  if (world.size() < 2 || repeats < 1)
    detail::refuse<value_error>({"measure_all_reduce: ", world.size(), " ranks and ", repeats,
                                 " repeats; it needs two ranks or more, and one repeat or more"});
  std::vector<link_sample> samples;
  for (const index_t bytes : sizes) {
    if (bytes < 4) detail::refuse<value_error>({"measure_all_reduce: ", bytes, " bytes; the smallest sum has 4"});
    const tensor<float, 1> values = zeros<float>(extents<1>{{bytes / 4}});
    std::vector<double> seconds;
    for (int i = -1; i < repeats; ++i) {  // the first one, with new memory, does not count
      world.barrier("before a sum is timed").get();
      const auto start = std::chrono::steady_clock::now();
      world.all_reduce(values, reduction::sum, "a sum that is timed").get();
      if (i >= 0) seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    const double longest = world.all_reduce(tensor<double, 1>{*middle}, reduction::max, "seconds").get().item();
    samples.push_back(all_reduce_sample(world.size(), static_cast<double>(bytes / 4 * 4), longest));
  }
  return samples;
}

}  // namespace sinter
