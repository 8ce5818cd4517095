// sinter/cuda/group.hpp: passes of one formula over many flat arrays, as one kernel: the step of an optimizer.
#pragma once

#include "sinter/cuda/map.hpp"
#include "sinter/expr/independent.hpp"

namespace sinter::cuda_impl {

/// Arrays that lie dense, all to 16 bytes or not, and are overwritten: an operand_table and its modes, in fewer bytes.
template <int N>
struct flat_table {
  struct ones {
    SINTER_WORD index_t operator[](int) const { return 1; }
  };
  char* data[N];
  [[no_unique_address]] ones step;
};
struct mode_of_all {
  bool aligned;
  SINTER_WORD access_mode operator[](int) const { return aligned ? access_mode::whole_chunks : access_mode::strided; }
};
struct add_to_none {
  SINTER_WORD bool operator[](int) const { return false; }
};

/// Item i, the frame of a chunk_machine, is a pass over arrays of n elements; blocks [end of item i - 1, end of item i) work on it.
template <class Pass>
struct group_body {
  static constexpr int lanes = lanes_of<Pass>;
  struct item {
    static constexpr int inputs = Pass::inputs, outputs = Pass::outputs, lanes = group_body::lanes;
    using input_types = typename Pass::input_types;  // to check the lists that optimizers write by hand
    Pass pass;
    index_t n, end;
    flat_table<Pass::inputs> in;
    flat_table<Pass::outputs> out;
    mode_of_all in_mode, out_mode;
    [[no_unique_address]] add_to_none add;
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
      chunk_machine<item> m(at);
      for (index_t& to : m.in_at) to = c;
      for (index_t& to : m.out_at) to = c;
      m.index_of_chunk = c;
      m.valid = at.n - c < lanes ? static_cast<int>(at.n - c) : lanes;
      run_lanes<lanes>(m, at.pass);
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
    std::uintptr_t bits = 0;
    for (int s = 0; s < Pass::inputs; ++s) bits |= reinterpret_cast<std::uintptr_t>(item.in.data[s] = in[s]);
    for (int s = 0; s < Pass::outputs; ++s) bits |= reinterpret_cast<std::uintptr_t>(item.out.data[s] = out[s]);
    item.in_mode.aligned = item.out_mode.aligned = bits % 16 == 0;
    item.end = blocks_ += blocks;
  }
  void run() override {
    const index_t blocks = std::exchange(blocks_, 0);
    if (body_.count > 0) gpu<D>::launch("a step of an optimizer", body_, {blocks, 0});
    body_.count = 0;
  }

 private:
  group_body<Pass> body_{};
  index_t blocks_ = 0;
};

}  // namespace sinter::cuda_impl
