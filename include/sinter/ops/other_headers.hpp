// sinter/ops/other_headers.hpp: functions of headers that a file does not include: the message names the header.
#pragma once

#include "sinter/expr/declare.hpp"

namespace sinter {

// Names in messages.
struct function_of_a_header_that_is_not_included;
struct include_sinter_linalg_hpp;
struct include_sinter_sequences_hpp;
struct include_sinter_io_hpp;
struct include_sinter_data_hpp;
struct include_sinter_parallel_hpp;

namespace detail {
// Each is complete where its header is included.
struct linalg_header;
struct sequences_header;
struct io_header;
struct data_header;
struct parallel_header;
template <class Header, class OfCall>
inline constexpr bool not_included = !requires { sizeof(Header); };
}  // namespace detail

// The weakest of overloads, so that each of a header's own is preferred; and none once the header is there.
#define SINTER_IN_HEADER(header, name)                                                                            \
  template <class Problem = function_of_a_header_that_is_not_included, class Fix = include_sinter_##header##_hpp, \
            std::enable_if_t<sinter::detail::not_included<sinter::detail::header##_header, Problem>, int> = 0>    \
  void name(...) = delete;
SINTER_IN_HEADER(linalg, inverse)
SINTER_IN_HEADER(linalg, det)
SINTER_IN_HEADER(linalg, slogdet)
SINTER_IN_HEADER(linalg, solve)
SINTER_IN_HEADER(linalg, cholesky)
SINTER_IN_HEADER(linalg, qr)
SINTER_IN_HEADER(linalg, svd)
SINTER_IN_HEADER(linalg, eigh)
SINTER_IN_HEADER(linalg, pinv)
SINTER_IN_HEADER(linalg, lstsq)
SINTER_IN_HEADER(sequences, scaled_dot_product_attention)
SINTER_IN_HEADER(sequences, ctc_loss)
SINTER_IN_HEADER(data, pad_sequence)
SINTER_IN_HEADER(sequences, pack_padded_sequence)
SINTER_IN_HEADER(parallel, checkpoint)
SINTER_IN_HEADER(io, read_csv)
SINTER_IN_HEADER(io, read_table)
SINTER_IN_HEADER(io, read_npy)
SINTER_IN_HEADER(io, write_npy)
SINTER_IN_HEADER(io, read_image)
SINTER_IN_HEADER(data, random_split)
SINTER_IN_HEADER(data, train_test_split)
SINTER_IN_HEADER(data, random_crop)
SINTER_IN_HEADER(data, random_horizontal_flip)
namespace nn {
SINTER_IN_HEADER(io, save)
SINTER_IN_HEADER(io, load)
}  // namespace nn
#undef SINTER_IN_HEADER

}  // namespace sinter
