// sinter/nn/instances.hpp: layers of common types, whose members a program with sinter::compiled holds once.
#pragma once

#include "sinter/nn/conv.hpp"
#include "sinter/nn/embedding.hpp"
#include "sinter/nn/linear.hpp"

#if SINTER_COMPILED
namespace sinter {
SINTER_INSTANCE struct detail::row_state<float, cpu>;
SINTER_INSTANCE row_gradient<float, cpu> detail::joined_rows(index_t, const std::vector<row_gradient<float, cpu>>&);
}  // namespace sinter
namespace sinter::nn {

SINTER_INSTANCE struct linear<float>;
SINTER_INSTANCE struct embedding<float>;
SINTER_INSTANCE struct embedding_bag<float>;
namespace init {
SINTER_INSTANCE tensor<float, 1> fan_in_uniform<float, cpu, 1>(generator&, index_t, const extents<1>&);
SINTER_INSTANCE tensor<float, 2> fan_in_uniform<float, cpu, 2>(generator&, index_t, const extents<2>&);
SINTER_INSTANCE tensor<float, 3> fan_in_uniform<float, cpu, 3>(generator&, index_t, const extents<3>&);
SINTER_INSTANCE tensor<float, 4> fan_in_uniform<float, cpu, 4>(generator&, index_t, const extents<4>&);
}  // namespace init
namespace detail {
SINTER_INSTANCE struct table_of_rows<embedding<float>, embedding_settings, float, cpu, tracked>;
SINTER_INSTANCE struct table_of_rows<embedding_bag<float>, embedding_bag_settings, float, cpu, tracked>;
SINTER_INSTANCE tensor<float, 1> buffer_run::seen(const tensor<float, 1>&);
SINTER_INSTANCE tensor<std::int64_t, 0> buffer_run::seen(const tensor<std::int64_t, 0>&);
SINTER_INSTANCE tensor<float, 3> conv_weights<1, float, cpu>(const char*, index_t, index_t, index_t, const per_axis<1>&,
                                                             generator&, index_t&);
SINTER_INSTANCE tensor<float, 4> conv_weights<2, float, cpu>(const char*, index_t, index_t, index_t, const per_axis<2>&,
                                                             generator&, index_t&);
}  // namespace detail

}  // namespace sinter::nn
#endif
