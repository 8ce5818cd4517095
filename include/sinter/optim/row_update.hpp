// sinter/optim/row_update.hpp: an optimizer's update of the rows of a table that have a gradient.
#pragma once

#include "sinter/optim/update.hpp"

namespace sinter::optim::detail {

/// Room for the rows of a parameter that have a gradient, and for those of so many running sums. A step reserves it
/// before it changes anything.
template <class T, device D, int Sums>
struct row_room {
  tensor<T, 2, D> values;
  tensor<compute_type<T>, 2, D> sums[std::size_t{Sums > 0 ? Sums : 1}];

  void reserve(const row_gradient<T, D>& g) {
    const extents<2>& shape = g.values.shape();
    values = tensor<T, 2, D>::uninitialized(shape);
    for (int i = 0; i < Sums; ++i) sums[i] = tensor<compute_type<T>, 2, D>::uninitialized(shape);
  }
};

/// run_update() of the rows of p that have a gradient, and of the same rows of running sums, as many as `room` is for:
/// K makes of values, gradient and sums new values and sums.
template <class K, class T, device D, int Sums, class... Running>
void run_row_update(const K& k, const flat_parameter<T, D>& p, const row_gradient<T, D>& g, row_room<T, D, Sums>& room,
                    const Running&... sums) {
  static_assert(Sums == sizeof...(Running));
  const at_once passes;  // what they make is put back here
  const row_room<T, D, Sums> here = std::exchange(room, {});
  const tensor<T, 2, D> table = p.table();
  const auto each = [&](ops::move_rows::way to) {
    sinter::detail::move_rows(to, table, row_gradient<T, D>{g.rows, here.values});
    int i = 0;
    (sinter::detail::move_rows(to, sums.as_table(table.shape()),
                               row_gradient<compute_type<T>, D>{g.rows, here.sums[i++]}),
     ...);
  };
  each(ops::move_rows::way::take);
  [&]<int... I>(std::integer_sequence<int, I...>) {
    run_update<D>(k, g.values.numel(),
                  {access::data(here.values), access::data(g.values), access::data(here.sums[I])...},
                  {access::data(here.values), access::data(here.sums[I])...});
  }(std::make_integer_sequence<int, Sums>());
  each(ops::move_rows::way::put);
}

}  // namespace sinter::optim::detail
