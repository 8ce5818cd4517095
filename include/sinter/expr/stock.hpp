// sinter/expr/stock.hpp: statements that a program with sinter::compiled holds once.
#pragma once

#include "sinter/config.hpp"

namespace sinter {

template <class Target, class E>
class assignment;

namespace detail {

/// Does sinter::compiled hold what runs E: a point, a statement, or an assignment(const tensor&, E)? This file then
/// only calls it. Stock expressions stand in the tables of cpu/stock.hpp. They are what ready-made layers, losses and
/// optimizers make, with their gradients; nothing of a formula of the user's own.
template <class E>
inline constexpr bool is_stock = false;

/// What one line of a table makes.
template <class E>
struct stock_functions;

}  // namespace detail
}  // namespace sinter

// A line of a table, in namespace sinter::detail: an expression is stock.
#define SINTER_STOCK(...) \
  template <>             \
  inline constexpr bool is_stock<__VA_ARGS__> = true;
// The same in the file of a program that makes its functions.
#define SINTER_STOCK_MADE(...) \
  SINTER_STOCK(__VA_ARGS__)    \
  template struct stock_functions<__VA_ARGS__>;
