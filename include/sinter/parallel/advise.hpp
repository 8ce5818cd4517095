// sinter/parallel/advise.hpp: measures a chain on several devices and says on which of them its layers are best.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sinter/nn/summary.hpp"
#include "sinter/optim/sgd.hpp"
#include "sinter/parallel/advice.hpp"

namespace sinter {

// Names in messages.
template <class>
struct advice_on_what_is_no_chain;
template <class...>
struct advice_that_has_no_choice_but;
struct name_two_devices_or_more;
template <class, int>
struct candidate_cuts_that_do_not_fit_a_chain_of_layers;
struct write_layer_numbers_from_1_on_in_order;

namespace nn {

/// Layer numbers before which advise() may cut.
template <std::size_t... Layer>
struct cuts {};

struct advise_options {
  int repeats = 11;                 ///< runs that are timed
  int warmups = 2;                  ///< runs before them
  int microbatches = 1;             ///< above 1, pipelines of so many are looked at too
  std::vector<double> memory = {};  ///< bytes that each device has for the model; 0, or none: not limited
  bool every_cut = false;           ///< also runs each single cut between the first two devices
};

/// The optimizer of advise() unless another is given.
struct plain_sgd {
  template <is_module M>
  optim::sgd operator()(const M& model) const {
    return optim::sgd(model);
  }
};

namespace detail {

class multiply_add_counter final : public call_observer {
 public:
  index_t sum = 0;
  void called(const void*, const void*, sinter::detail::shape_piece, index_t multiply_adds) override {
    sum += multiply_adds;
  }
};

/// Measures, searches, and runs what was found. Nothing of it knows types, so it is compiled once.
class adviser {
 public:
  adviser(segment_set& set, const advise_options& o) : set_(set), runner_(set), o_(o), serial_(0, 0), pipelined_(0, 0) {
    const auto at_least = [](const char* option, index_t value, index_t least) {
      if (value < least)
        sinter::detail::refuse<value_error>({"advise: ", option, " is ", value, "; set it to ", least, " or more"});
    };
    at_least(".repeats", o.repeats, 1);
    at_least(".warmups", o.warmups, 0);
    at_least(".microbatches", o.microbatches, 1);
    if (o.microbatches > set.samples)
      sinter::detail::refuse<value_error>({"advise: .microbatches is ", o.microbatches, ", but the batch has only ",
                                           set.samples, " samples; ask for fewer, or pass a larger batch"});
    if (o.memory.size() > set.devices.size())
      sinter::detail::refuse<value_error>({"advise: .memory lists ", o.memory.size(), " devices, but advise was given ",
                                           set.devices.size(), "; list at most one number for each of them"});
  }

  advice run() {
    for (const erased_device& d : set_.devices) {
      a_.devices.push_back(d.name);
      in_code_.push_back(d.in_code);
      a_.multiply_adds_per_second.push_back(d.multiply_adds_per_second());
      a_.bytes_per_second.push_back(d.bytes_per_second());
    }
    describe_segments();
    measure_segments();
    add_placements();
    measure_placements();
    if (o_.every_cut) a_.rank_correlation = correlation_over_cuts();
    judge(a_);
    return std::move(a_);
  }

 private:
  std::size_t devices() const { return set_.devices.size(); }
  static int number(std::size_t i) { return static_cast<int>(i); }

  /// Multiply-adds, parameters and memory, by a step on each device.
  void describe_segments() {
    const microbatch m = runner_.all_samples();
    bytes_before_.assign(set_.count(), 0);
    for (std::size_t s = 0; s < set_.count(); ++s) {
      const std::size_t end = s + 1 < set_.count() ? set_.first_layers[s + 1] : set_.layers;
      a_.segments.push_back({set_.first_layers[s], end - 1, 0, set_.pieces[0][s]->parameter_bytes(),
                             std::vector<segment_advice::cost>(devices())});
    }
    for (std::size_t d = 0; d < devices(); ++d) {
      const auto in_use = [&] {
        set_.devices[d].wait();
        return static_cast<double>(set_.devices[d].bytes_in_use());
      };
      erased_value x, g;
      double before = in_use();
      const auto add = [&](std::size_t s) {
        const double now = in_use();
        a_.segments[s].on[d].bytes += now - before;
        before = now;
      };
      for (std::size_t s = 0; s < set_.count(); ++s) {
        multiply_add_counter counter;
        {
          const observing scope(counter);
          x = set_.pieces[d][s]->forward(x, m);
        }
        a_.segments[s].multiply_adds = counter.sum;
        if (d == 0 && s + 1 < set_.count()) bytes_before_[s + 1] = set_.value_bytes[s + 1](x);
        add(s);
      }
      x = nullptr;
      for (std::size_t s = set_.count(); s-- > 0;) g = set_.pieces[d][s]->backward(g, m);
      g = nullptr;
      before = in_use();
      for (std::size_t s = 0; s < set_.count(); ++s) {
        set_.pieces[d][s]->update();
        const double gradients = static_cast<double>(a_.segments[s].parameter_bytes);
        before -= gradients;  // they are gone, and what is there more is the state of the optimizer
        add(s);
        a_.segments[s].on[d].bytes += 2 * gradients;  // parameters and gradients
        a_.segments[s].on[d].bytes = std::max(0., a_.segments[s].on[d].bytes);
      }
    }
  }

  void measure_segments() {
    std::vector<std::vector<piece_samples>> all(devices()), parts(devices());
    std::vector<std::vector<std::vector<transfer_samples>>> copies(devices()), small_copies(devices());
    std::vector<std::vector<double>> whole(devices());
    const bool pipeline = o_.microbatches > 1;
    const microbatch m = runner_.samples_of(0, o_.microbatches);
    for (int round = -o_.warmups; round < o_.repeats; ++round)
      for (std::size_t d = 0; d < devices(); ++d) {
        if (round == 0) {
          all[d].clear();
          parts[d].clear();
          copies[d].clear();
          small_copies[d].clear();
          whole[d].clear();
        }
        runner_.time_pieces(d, runner_.all_samples(), all[d]);
        whole[d].push_back(runner_.time_whole(d));
        runner_.time_transfers(d, runner_.all_samples(), copies[d]);
        if (!pipeline) continue;
        runner_.time_pieces(d, m, parts[d]);
        runner_.time_transfers(d, m, small_copies[d]);
      }
    for (std::size_t d = 0; d < devices(); ++d) {
      double sum = 0;
      for (std::size_t s = 0; s < set_.count(); ++s) {
        segment_advice& segment = a_.segments[s];
        segment_advice::cost& c = segment.on[d];
        c.forward = median_of(all[d][s].forward);
        c.backward = median_of(all[d][s].backward);
        c.update = median_of(all[d][s].update);
        sum += c.seconds();
        const double arithmetic = 3 * static_cast<double>(segment.multiply_adds) / a_.multiply_adds_per_second[d];
        const double traffic =
            3 * static_cast<double>(segment.parameter_bytes) / a_.bytes_per_second[d] + c.update.median;
        const double rest = c.seconds() - arithmetic - traffic;
        c.limit = rest > std::max(arithmetic, traffic) ? "other work"
                  : arithmetic > traffic               ? "arithmetic"
                                                       : "weight traffic";
      }
      a_.additivity.push_back(sum / median_of(whole[d]).median);
    }
    serial_ = cost_table(all, copies, &a_.transfers);
    if (pipeline) pipelined_ = cost_table(parts, small_copies, nullptr);
  }

  placement_costs cost_table(const std::vector<std::vector<piece_samples>>& pieces,
                             const std::vector<std::vector<std::vector<transfer_samples>>>& copies,
                             std::vector<transfer_advice>* list) const {
    placement_costs c(number(set_.count()), number(devices()));
    for (int d = 0; d < c.devices(); ++d) {
      const auto of = static_cast<std::size_t>(d);
      if (of < o_.memory.size() && o_.memory[of] > 0) c.capacity(d) = o_.memory[of];
      for (int s = 0; s < c.segments(); ++s) {
        const auto& sample = pieces[of][static_cast<std::size_t>(s)];
        c.work(s, d) = median_of(sample.forward).median + median_of(sample.backward).median;
        c.update(s, d) = a_.segments[static_cast<std::size_t>(s)].on[of].update.median;
        c.bytes(s, d) = a_.segments[static_cast<std::size_t>(s)].on[of].bytes;
      }
    }
    for (int s = 1; s < c.segments(); ++s)
      for (int e = 0; e < c.devices(); ++e)
        for (int d = 0; d < c.devices(); ++d) {
          if (e == d) continue;
          const auto at = static_cast<std::size_t>(s);
          const auto from = static_cast<std::size_t>(e), to = static_cast<std::size_t>(d);
          const auto& gradients = copies[to][at][from].gradient;  // back; none where nothing before has parameters
          const measured_time value = median_of(copies[from][at][to].value);
          const measured_time gradient = gradients.empty() ? measured_time{} : median_of(gradients);
          c.transfer(s, e, d) = value.median + gradient.median;
          if (list != nullptr) list->push_back({set_.first_layers[at], e, d, bytes_before_[at], value, gradient});
        }
    return c;
  }

  placement_advice placed_on(placement_kind kind, std::vector<int> device) const {
    placement_advice p{kind, std::move(device), 0, {}, true, {}};
    p.code = placed_code(set_.first_layers, p.device, in_code_);
    if (kind == placement_kind::pipelined)
      p.code += "  // as a pipeline of " + std::to_string(o_.microbatches) + " microbatches";
    p.fits = fits(serial_, p.device);
    p.predicted = kind == placement_kind::pipelined ? pipelined_seconds(pipelined_, p.device, o_.microbatches)
                                                    : serial_seconds(serial_, p.device);
    return p;
  }
  static bool on_one_device(const std::vector<int>& device) {
    return std::all_of(device.begin(), device.end(), [&](int d) { return d == device[0]; });
  }

  /// The baselines, the two best serial placements over several devices, and the best pipeline.
  void add_placements() {
    for (int d = 0; d < number(devices()); ++d)
      a_.placements.push_back(placed_on(placement_kind::one_device, std::vector<int>(set_.count(), d)));
    int found = 0;
    for (placement& p : best_serial(serial_, 2 + number(devices()))) {
      if (on_one_device(p.device) || found == 2) continue;
      ++found;
      a_.placements.push_back(placed_on(placement_kind::serial, std::move(p.device)));
    }
    if (o_.microbatches == 1) return;
    placement p = best_pipelined(pipelined_, o_.microbatches);
    if (!p.device.empty() && !on_one_device(p.device))
      a_.placements.push_back(placed_on(placement_kind::pipelined, std::move(p.device)));
  }

  double time_of(const placement_advice& p) {
    if (p.kind == placement_kind::pipelined) return runner_.time_pipelined(p.device, o_.microbatches);
    if (p.kind == placement_kind::one_device) return runner_.time_whole(static_cast<std::size_t>(p.device[0]));
    return runner_.time_serial(p.device);
  }
  /// All in turns, so that what else the machine does falls on all of them.
  void measure(std::vector<placement_advice>& list) {
    std::vector<std::vector<double>> seconds(list.size());
    for (int round = -o_.warmups; round < o_.repeats; ++round)
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (!list[i].fits) continue;
        const double t = time_of(list[i]);
        if (round >= 0) seconds[i].push_back(t);
      }
    for (std::size_t i = 0; i < list.size(); ++i)
      if (list[i].fits) list[i].measured = median_of(seconds[i]);
  }
  void measure_placements() { measure(a_.placements); }

  /// Of the placements with the first k segments on the first device and the others on the second.
  double correlation_over_cuts() {
    std::vector<placement_advice> list;
    for (std::size_t k = 0; k <= set_.count(); ++k) {
      std::vector<int> device(set_.count(), 1);
      std::fill(device.begin(), device.begin() + static_cast<std::ptrdiff_t>(k), 0);
      list.push_back(placed_on(placement_kind::serial, std::move(device)));
      list.back().fits = true;
    }
    measure(list);
    std::vector<double> predicted, measured;
    for (const placement_advice& p : list) {
      predicted.push_back(p.predicted);
      measured.push_back(p.measured.median);
    }
    a_.cuts = std::move(list);
    return rank_correlation(predicted, measured);
  }

  segment_set& set_;
  segment_runner runner_;
  const advise_options& o_;
  advice a_;
  std::vector<std::string> in_code_;
  std::vector<index_t> bytes_before_;
  placement_costs serial_, pipelined_;
};

template <std::size_t... C>
constexpr bool cuts_fit(cuts<C...>, int layers) {
  const std::size_t list[] = {0, C..., static_cast<std::size_t>(layers)};
  for (std::size_t i = 1; i < sizeof list / sizeof *list; ++i)
    if (list[i - 1] >= list[i]) return false;
  return true;
}

template <class M, class D, class... Rest>
constexpr auto find_moving_mistakes() {
  using first = decltype(find_moving_mistake<cut_list<cut<0, D>>>(static_cast<const M*>(nullptr)));
  if constexpr (!sinter::detail::is_fitting<first>) return first{};
  else if constexpr (sizeof...(Rest) > 0) return find_moving_mistakes<M, Rest...>();
  else return sinter::detail::fitting<void>{};
}

template <class M, class Cuts, class... D>
constexpr auto find_advice_mistake() {
  using sinter::detail::mistake;
  if constexpr (!is_module<M>) return sinter::detail::not_operands{};
  else if constexpr (layers_of<M> < 0) return mistake<advice_on_what_is_no_chain<M>, give_an_nn_sequential>{};
  else if constexpr (sizeof...(D) < 2) return mistake<advice_that_has_no_choice_but<D...>, name_two_devices_or_more>{};
  else if constexpr (!sinter::detail::all_different<D...>)
    return mistake<a_device_is_listed_twice_in<D...>, name_each_device_once>{};
  else if constexpr (!cuts_fit(Cuts{}, layers_of<M>))
    return mistake<candidate_cuts_that_do_not_fit_a_chain_of_layers<Cuts, layers_of<M>>,
                   write_layer_numbers_from_1_on_in_order>{};
  else return find_moving_mistakes<M, D...>();
}
template <class M, class Cuts, class... D>
using advice_mistake = decltype(find_advice_mistake<bare<M>, Cuts, D...>());

}  // namespace detail

/// Measures on which of devices D the layers of a chain are best, and whether more than one device pays.
///
/// The chain is cut into segments before the given layers. Forward, backward and update of each segment run on each
/// device, on copies of the parameters, with the batch `inputs` and `targets`, loss(scores, targets) and an optimizer
/// make(module); copies of values and gradients between devices are timed at their sizes. From these times follow the
/// cheapest placements of a step, exactly; the best two over several devices, each device alone, and with
/// options.microbatches the best pipeline, are then run. The answer goes by what they took. Times are medians.
///
/// Every segment is compiled once for each device. Errors: value_error for options that make no sense, and where a
/// parameter is tied between segments; errors of the layers and of the loss.
///
///     const nn::advice a = nn::advise<cuda<0>, cpu>(chain, nn::cuts<2, 5, 8>{}, images, labels,
///         [](const auto& scores, const auto& l) { return cross_entropy(scores, l); }, {.memory = {2e9}},
///         [](const auto& module) { return optim::adam(module); });
///     std::cout << a;
template <device... D, class M, std::size_t... C, class X, class L, class Loss, class Make = plain_sgd>
  requires(sinter::detail::is_tensor<X> && sinter::detail::is_tensor<L> &&
           sinter::detail::is_fitting<detail::advice_mistake<M, cuts<C...>, D...>>)
advice advise(const M& chain, cuts<C...>, const X& inputs, const L& targets, const Loss& loss,
              const advise_options& options = {}, const Make& make = {}) {
  using batch = detail::segment_batch<X, L, Loss>;
  using builder = detail::segment_builder<M, std::index_sequence<C...>, batch, Make, D...>;
  detail::refuse_torn_ties(
      "advise", chain,
      [](std::size_t layer) {
        std::size_t segment = 0;
        while (segment + 1 < builder::count && builder::first[segment + 1] <= layer) ++segment;
        return "in segment " + std::to_string(segment);
      },
      "leave out the cuts between them");
  auto set = builder::build(chain, std::make_shared<const batch>(batch{inputs, targets, loss}), make);
  return detail::adviser(set, options).run();
}
template <device... D, class M, std::size_t... C, class X, class L, class Loss, class Make = plain_sgd,
          class Problem = typename detail::advice_mistake<M, cuts<C...>, D...>::problem,
          class Fix = typename detail::advice_mistake<M, cuts<C...>, D...>::fix>
void advise(const M&, cuts<C...>, const X&, const L&, const Loss&, const advise_options& = {},
            const Make& = {}) = delete;

}  // namespace nn
}  // namespace sinter
