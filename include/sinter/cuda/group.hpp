// sinter/cuda/group.hpp: passes of one formula over many flat arrays, as one kernel: the step of an optimizer.
#pragma once

#include "sinter/cuda/map.hpp"
#include "sinter/cuda/spill.hpp"
#include "sinter/expr/independent.hpp"

namespace sinter::cuda_impl {

/// Where operands lie that are dense arrays, all to 16 bytes or not, and are overwritten: what operand_place says, in
/// fewer bytes.
template <int N>
struct flat_places {
  struct place {
    static constexpr bool dense = true, add = false, wide = false;
    bool whole;
  };
  char* data[std::size_t{N}];
  bool aligned;
  SINTER_WORD place operator[](int) const { return {aligned}; }
};

/// Item i is a pass over arrays of n elements; blocks [end of item i - 1, end of item i) work on it.
template <class Pass>
struct group_body {
  static constexpr int lanes = lanes_of<Pass>;
  struct item {
    static constexpr bool shared = false;
    Pass pass;
    index_t n, end;
    flat_places<Pass::inputs> in;
    flat_places<Pass::outputs> out;
    std::uint64_t whole_inputs, overwritten_outputs;

    SINTER_WORD index_t row_length() const { return n; }
    SINTER_WORD index_t find(index_t, index_t column, addresses<Pass::inputs>& to_in,
                             addresses<Pass::outputs>& to_out) const {
      each_size(typename Pass::input_types{}, [&](int s, index_t size) { to_in.of[s] = in.data[s] + column * size; });
      each_size(typename Pass::output_types{},
                [&](int s, index_t size) { to_out.of[s] = out.data[s] + column * size; });
      return column;
    }
    template <class... T, class F>
    static SINTER_WORD void each_size(type_list<T...>, const F& f) {
      int s = 0;
      (f(s++, index_t{sizeof(T)}), ...);
    }
  };
  /// Checks the lists of elements, which optimizers write by hand; those of other passes follow from the formula.
  struct machine : lane_machine<Pass> {
    template <int S, class T>
    SINTER_WORD compute_type<T> load() const {
      static_assert(std::is_same_v<T, typename Pass::input_types::template at<S>>);
      return lane_machine<Pass>::template load<S, T>();
    }
    template <int O, class T>
    SINTER_WORD void put(compute_type<T> x) const {
      static_assert(std::is_same_v<T, typename Pass::output_types::template at<O>>);
      lane_machine<Pass>::template put<O, T>(x);
    }
  };
  static constexpr int most = 64;

  int count = 0;
  item items[most];

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    int i = 0;
    while (g.block() >= items[i].end) ++i;
    const item& at = items[i];
    const index_t first = i > 0 ? items[i - 1].end : 0;
    const index_t stride = (at.end - first) * g.threads() * lanes;
    for (index_t c = ((g.block() - first) * g.threads() + g.thread()) * lanes; c < at.n; c += stride) {
      machine m;
      run_chunk(m, at.pass, at, 0, c);
    }
  }
};

/// Passes that wait to run as one kernel on D.
template <device D, class Pass>
class grouped final : public sinter::detail::independent_passes::kind {
 public:
  void add(const Pass& pass, index_t n, char* const* in, char* const* out) {
    if (n == 0) return;
    constexpr int lanes = lanes_of<Pass>;
    const index_t blocks = blocks_for((n + lanes - 1) / lanes, block_threads);
    if (body_.count == body_.most || blocks_ + blocks > most_blocks) run();
    auto& item = body_.items[body_.count++];
    item.pass = pass;
    item.n = n;
    static_assert(reads_of<Pass> == Pass::inputs);
    std::uintptr_t bits = 0;
    for (int s = 0; s < Pass::inputs; ++s) bits |= reinterpret_cast<std::uintptr_t>(item.in.data[s] = in[s]);
    for (int s = 0; s < Pass::outputs; ++s) bits |= reinterpret_cast<std::uintptr_t>(item.out.data[s] = out[s]);
    item.in.aligned = item.out.aligned = bits % 16 == 0;
    item.whole_inputs = item.overwritten_outputs = bits % 16 == 0 ? ~std::uint64_t{0} : 0;
    item.end = blocks_ += blocks;
  }
  void run() override {
    const index_t blocks = std::exchange(blocks_, 0);
    if (body_.count > 0) launch_on<D>("a step of an optimizer", body_, {blocks, 0});
    body_.count = 0;
  }

 private:
  group_body<Pass> body_{};
  index_t blocks_ = 0;
};

}  // namespace sinter::cuda_impl
