// tests/judge/tables.cpp: all tables together.
#include "tables.hpp"

namespace judge {

rows_by_name all_rows() {
  rows_by_name rows;
  for (const auto& table :
       {unary_rows(),  binary_rows(),   comparison_rows(), reduction_rows(),     order_rows(), index_rows(),
        layer_rows(),  quantile_rows(), shape_rows(),      conv_rows(),          norm_rows(),  distance_rows(),
        pool_rows(),   image_rows(),    sequence_rows(),   onnx_sequence_rows(), loss_rows(),  algebra_rows(),
        vision_rows(), pick_rows(),     layout_rows(),     linalg_rows()})
    for (const row& r : table)
      for (const std::string& name : split(r.names, ' ')) rows[name].push_back(r);
  return rows;
}

}  // namespace judge
