// sinter/cpu/detail/attention_mask_backward.hpp: the gradient of a mask that is added to the scores of attention.
//
// It is that of the scores, summed over what the mask is broadcast along. Scores are made once more for it, since here
// a task owns a part of the mask, and not of the keys: it adds what all heads give in their order.
#pragma once

#include "sinter/cpu/detail/attention_backward.hpp"

namespace sinter::cpu_impl::detail {

template <class T, class Rule>
struct attention_mask_backward : attention_backward<T, Rule, true> {
  using base = attention_backward<T, Rule, true>;
  using typename base::C;
  ops::mask_gradient_of<T> mask;
  C* sums = nullptr;

  void compute() {
    const index_t of_head = mask.queries * mask.keys, n = mask.batch * mask.heads * of_head;
    const index_t heads = this->e.batch * this->e.key_heads, size = this->of_keys + this->group * this->of_queries;
    const index_t at_once = heads_at_once(heads, size * static_cast<index_t>(sizeof(C)), this->pool.size());
    const temporary_array<C> memory(at_once * size), gradient(n);
    const temporary_array<bool> are_finite(at_once * (this->key_blocks + this->group * this->query_blocks));
    this->packed = memory.data();
    this->finite_keys = are_finite.data();
    this->finite_queries = this->finite_keys + at_once * this->key_blocks;
    sums = gradient.data();
    std::memset(sums, 0, static_cast<std::size_t>(n) * sizeof(C));
    const index_t rows = mask.queries > 1 ? this->query_blocks : 1, columns = mask.keys > 1 ? this->key_blocks : 1;
    for (index_t first = 0; first < heads; first += at_once) {
      const index_t count = smaller(at_once, heads - first);
      this->pack_heads(first, count);
      this->pool.parallel_for(rows * columns, [&](index_t task) {
        for (index_t place = 0; place < count; ++place) add_part(first + place, place, task / columns, task % columns);
      });
    }
    const index_t lines = mask.batch * mask.heads * mask.queries;
    this->pool.parallel_for(lines, [&](index_t line) {
      const index_t head = line / mask.queries;
      const auto to = mask.to.of(head / mask.heads, head % mask.heads).from_row(line % mask.queries);
      for (index_t j = 0; j < mask.keys; ++j) {
        const C sum = sums[line * mask.keys + j];
        T& element = to.data[j * to.column];
        element = static_cast<T>(mask.add ? static_cast<C>(element) + sum : sum);
      }
    });
  }

 private:
  /// Block `row` of the queries, or all where the mask has one row; likewise of the keys.
  void add_part(index_t head, index_t place, index_t row, index_t column) const {
    C* const room = scratch<C>(0, static_cast<std::size_t>(2 * base::score_size));
    typename base::work t{head / this->e.key_heads,
                          head % this->e.key_heads,
                          place,
                          room,
                          room + base::score_size,
                          nullptr,
                          nullptr,
                          nullptr};
    t.mask_query = mask.queries > 1 ? mask.keys : 0;
    t.mask_key = mask.keys > 1 ? 1 : 0;
    const index_t last_row = mask.queries > 1 ? row + 1 : this->query_blocks;
    const index_t last_column = mask.keys > 1 ? column + 1 : this->key_blocks;
    for (index_t h = 0; h < this->group; ++h) {
      const index_t of_mask =
          (mask.batch > 1 ? t.batch * mask.heads : 0) + (mask.heads > 1 ? t.key_head * this->group + h : 0);
      t.mask = sums + of_mask * mask.queries * mask.keys;
      for (index_t b = column; b < last_column; ++b)
        for (index_t r = row; r < last_row; ++r) this->run_block(t, b, h, r);
    }
  }
};

}  // namespace sinter::cpu_impl::detail
