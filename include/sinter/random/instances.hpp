// sinter/random/instances.hpp: random tensors of common types, which a program with sinter::compiled makes once.
#pragma once

#include "sinter/expr/stock.hpp"
#include "sinter/random/create.hpp"
#include "sinter/random/dropout.hpp"

#if SINTER_COMPILED
namespace sinter::detail {

#define SINTER_INSTANCES_OF(Numbers, R) \
  SINTER_INSTANCE tensor<Numbers::value_type, R> draw<cpu, Numbers, R>(generator&, const Numbers&, const extents<R>&);
#define SINTER_INSTANCES_OF_RANK(R)              \
  SINTER_INSTANCES_OF(uniform_numbers<float>, R) \
  SINTER_INSTANCES_OF(normal_numbers<float>, R)  \
  SINTER_INSTANCES_OF(integer_numbers<std::int64_t>, R)
SINTER_INSTANCES_OF_RANK(1)
SINTER_INSTANCES_OF_RANK(2)
SINTER_INSTANCES_OF_RANK(3)
SINTER_INSTANCES_OF_RANK(4)
#undef SINTER_INSTANCES_OF_RANK
#undef SINTER_INSTANCES_OF

#if SINTER_STOCK_PART == 6 || SINTER_STOCK_PART < 0
#define SINTER_STOCK_LINE SINTER_STOCK_MADE
#else
#define SINTER_STOCK_LINE SINTER_STOCK
#endif
#define SINTER_STOCK_TABLE(R)                       \
  SINTER_STOCK_LINE(dropout_expr<tensor<float, R>>) \
  SINTER_STOCK_LINE(dropout_expr<variable<float, R>>)
SINTER_STOCK_TABLE(2)
SINTER_STOCK_TABLE(3)
SINTER_STOCK_TABLE(4)
#undef SINTER_STOCK_TABLE
#undef SINTER_STOCK_LINE

}  // namespace sinter::detail
namespace sinter {

#define SINTER_INSTANCES_OF_RANK(R)                                                                        \
  SINTER_INSTANCE tensor<float, R> uniform<float, cpu, R>(generator&, std::type_identity_t<float>,         \
                                                          std::type_identity_t<float>, const extents<R>&); \
  SINTER_INSTANCE tensor<std::int64_t, R> randint<std::int64_t, cpu, R>(                                   \
      generator&, detail::number<std::int64_t>, detail::number<std::int64_t>, const extents<R>&);
SINTER_INSTANCES_OF_RANK(1)
SINTER_INSTANCES_OF_RANK(2)
SINTER_INSTANCES_OF_RANK(3)
SINTER_INSTANCES_OF_RANK(4)
#undef SINTER_INSTANCES_OF_RANK
SINTER_INSTANCE tensor<std::int64_t, 1> randperm<std::int64_t, cpu>(generator&, index_t);

}  // namespace sinter
#endif
