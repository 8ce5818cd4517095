// tests/judge/tables.hpp: the tables of rows, each in a file rows_<name>.cpp of its own so that none compiles for long.
#pragma once

#include "row.hpp"

namespace judge {

std::vector<row> unary_rows();
std::vector<row> binary_rows();
std::vector<row> algebra_rows();
std::vector<row> comparison_rows();
std::vector<row> conv_rows();
std::vector<row> reduction_rows();
std::vector<row> order_rows();
std::vector<row> index_rows();
std::vector<row> quantile_rows();
std::vector<row> distance_rows();
std::vector<row> pick_rows();
std::vector<row> linalg_rows();
std::vector<row> layer_rows();
std::vector<row> layout_rows();
std::vector<row> loss_rows();
std::vector<row> norm_rows();
std::vector<row> pool_rows();
std::vector<row> image_rows();
std::vector<row> vision_rows();
std::vector<row> shape_rows();
std::vector<row> sequence_rows();
std::vector<row> onnx_sequence_rows();

/// The rows of all tables for each op, in their order.
using rows_by_name = std::map<std::string, std::vector<row>>;
rows_by_name all_rows();

}  // namespace judge
