// sinter/ops/boxes.hpp: box_area, box_iou, nms and batched_nms: boxes of images, given by two corners.
#pragma once

#include <vector>

#include "sinter/core/create.hpp"
#include "sinter/ops/add.hpp"
#include "sinter/ops/cast.hpp"
#include "sinter/ops/clamp_min.hpp"
#include "sinter/ops/cross_entropy.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/maximum.hpp"
#include "sinter/ops/minimum.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/sort.hpp"
#include "sinter/ops/subtract.hpp"

namespace sinter {

template <class>
struct nms_on_device;
template <int, int>
struct boxes_and_scores_of_ranks;
template <class, int>
struct classes_with_elements_and_rank;
struct copy_the_operands_to_the_host_with_dot_to_cpu;
struct use_boxes_of_rank_2_and_scores_of_rank_1;
struct nms_with_more_than_boxes_scores_and_threshold;
struct write_batched_nms_with_classes_before_the_threshold;
struct use_an_integer_for_each_box_on_the_same_device;

namespace detail {

template <class A>
using box_mistake = reals_mistake<A, 2, 2>;
/// Of two lists of boxes.
template <class A, class B>
constexpr auto find_box_pair_mistake() {
  if constexpr (!expression<A> || !expression<B>) return no_operands<A, B>{};
  else if constexpr (!fits<ops::subtract_op, A, B>) return mistake_of<ops::subtract_op, A, B>{};
  else if constexpr (!has_reals<A, 2, 2>) return box_mistake<A>{};
  else return box_mistake<B>{};
}
template <class A, class B>
using box_pair_mistake = decltype(find_box_pair_mistake<bare<A>, bare<B>>());

template <class B, class S>
constexpr auto find_nms_mistake() {
  if constexpr (!expression<B> || !expression<S>) return no_operands<B, S>{};
  else if constexpr (!fits<ops::subtract_op, B, S>) return mistake_of<ops::subtract_op, B, S>{};
  else if constexpr (!is_cpu_v<device_of<B>>)
    return mistake<nms_on_device<device_of<B>>, copy_the_operands_to_the_host_with_dot_to_cpu>{};
  else if constexpr (rank_of<B> != 2 || rank_of<S> != 1)
    return mistake<boxes_and_scores_of_ranks<rank_of<B>, rank_of<S>>, use_boxes_of_rank_2_and_scores_of_rank_1>{};
  else return reals_mistake<B, 2, 2>{};
}
template <class B, class S>
using nms_mistake = decltype(find_nms_mistake<bare<B>, bare<S>>());
template <class B, class S, class K>
constexpr auto find_batched_nms_mistake() {
  if constexpr (!is_fitting<nms_mistake<B, S>>) return nms_mistake<B, S>{};
  else if constexpr (!expression<K>) return no_operands<K>{};
  else if constexpr (!integer_element<element_of<K>> || rank_of<K> != 1 || !same_device<B, K>)
    return mistake<classes_with_elements_and_rank<element_of<K>, rank_of<K>>,
                   use_an_integer_for_each_box_on_the_same_device>{};
  else return fitting<element_of<B>>{};
}
template <class B, class S, class K>
using batched_nms_mistake = decltype(find_batched_nms_mistake<bare<B>, bare<S>, bare<K>>());

template <class B>
void check_boxes(const char* op, const B& boxes) {
  check_defined(op, boxes);
  if (boxes.shape()[1] != 4)
    refuse<shape_error>({op, ": boxes of shape ", boxes.shape(), "; a box is four numbers, x1, y1, x2, y2"});
}
template <class B>
auto area_of_boxes(const B& boxes) {
  return (boxes.select(1, 2) - boxes.select(1, 0)) * (boxes.select(1, 3) - boxes.select(1, 1));
}

/// The boxes (n,4) that stay, of those in this order: one after the other, unless it overlaps one before it, of its
/// class where there are classes, by more than the threshold.
template <class C>
std::vector<std::int64_t> boxes_kept(const C* boxes, const std::int64_t* order, const std::int64_t* classes,
                                     std::size_t n, double threshold) {
  struct box {
    C x1, y1, x2, y2, area;
  };
  std::vector<box> sorted(n);
  std::vector<std::int64_t> of_class(classes ? n : 0), kept;
  for (std::size_t i = 0; i < n; ++i) {
    const C* const b = boxes + 4 * order[i];
    sorted[i] = {b[0], b[1], b[2], b[3], (b[2] - b[0]) * (b[3] - b[1])};
    if (classes) of_class[i] = classes[order[i]];
  }
  std::vector<char> is_out(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (is_out[i]) continue;
    kept.push_back(order[i]);
    const box a = sorted[i];
    for (std::size_t j = i + 1; j < n; ++j) {
      const box& b = sorted[j];
      const C left = a.x1 < b.x1 ? b.x1 : a.x1, right = b.x2 < a.x2 ? b.x2 : a.x2;
      const C top = a.y1 < b.y1 ? b.y1 : a.y1, bottom = b.y2 < a.y2 ? b.y2 : a.y2;
      const C width = right > left ? right - left : C(0), height = bottom > top ? bottom - top : C(0);
      const C common = width * height;
      const bool overlaps = static_cast<double>(common / (a.area + b.area - common)) > threshold;
      is_out[j] |= static_cast<char>(overlaps && (!classes || of_class[i] == of_class[j]));
    }
  }
  return kept;
}

template <class B, class S>
tensor<std::int64_t, 1, device_of<B>> nms_of(const char* op, const B& boxes, const S& scores,
                                             const tensor<std::int64_t, 1, device_of<B>>* classes, double threshold) {
  using C = compute_type<element_of<B>>;
  using D = device_of<B>;
  check_boxes(op, boxes);
  check_defined(op, scores);
  const index_t n = boxes.shape()[0];
  if (scores.shape()[0] != n || (classes && classes->shape()[0] != n))
    refuse<shape_error>({op, ": boxes of shape ", boxes.shape(), " with ", scores.shape()[0], " scores",
                         classes ? " and " : "", classes ? std::to_string(classes->shape()[0]) : "",
                         classes ? " classes" : "", "; each box has one"});
  const no_grad guard;
  const auto corners = plain(eval(cast<C>(boxes))).contiguous();
  const auto order = argsort(plain(eval(cast<C>(scores))), 0, true);
  const auto kept = boxes_kept(corners.data(), order.data(), classes ? classes->data() : nullptr,
                               static_cast<std::size_t>(n), threshold);
  return from_data<std::int64_t, D>(kept, {static_cast<index_t>(kept.size())});
}

}  // namespace detail

/// The areas of boxes (N,4) => (N): (x2 - x1) (y2 - y1), of corners (x1, y1, x2, y2) with x1 <= x2 and y1 <= y2, as
/// torchvision.ops.box_area. Floating point. Derivative: that of the formula. Errors: shape_error unless a box is four
/// numbers.
///
///     tensor areas = box_area(found);
template <class A>
  requires(detail::is_fitting<detail::box_mistake<A>>)
auto box_area(const A& boxes) {
  detail::check_boxes("box_area", boxes);
  return eval(detail::area_of_boxes(detail::eval_to_read(boxes)));
}
SINTER_FIRST_OPERAND_REJECTIONS(box_area, box_mistake)

/// The intersection over union of all boxes of a with all of b: (N,4) and (M,4) => (N,M), of corners (x1, y1, x2, y2),
/// as torchvision.ops.box_iou. Floating point; NaN of two boxes without area. Derivative: that of the formula. Errors:
/// as box_area.
///
///     tensor overlaps = box_iou(found, true_boxes);
template <class A, class B>
  requires(detail::is_fitting<detail::box_pair_mistake<A, B>>)
auto box_iou(const A& a, const B& b) {
  detail::check_boxes("box_iou", a);
  detail::check_boxes("box_iou", b);
  const auto first = detail::eval_to_read(a).unsqueeze(1);
  const auto second = detail::eval_to_read(b).unsqueeze(0);
  const auto side = [&](int axis) {
    return clamp_min(minimum(first.select(2, axis + 2), second.select(2, axis + 2)) -
                         maximum(first.select(2, axis), second.select(2, axis)),
                     0);
  };
  const auto common = eval(side(0) * side(1));  // (N,M)
  const auto area_a = eval(detail::area_of_boxes(first.squeeze(1))).unsqueeze(1);
  const auto area_b = eval(detail::area_of_boxes(second.squeeze(0)));
  return eval(common / (area_a + area_b - common));
}
SINTER_REJECTIONS_OF_TWO(box_iou, detail::box_pair_mistake)

/// Non-maximum suppression: the indices, int64, of the boxes (N,4) that overlap no box with a higher score that stays,
/// highest score first. Two overlap where their box_iou is above the threshold; of equal scores (N) the first counts as
/// higher. As torchvision.ops.nms. Floating point on host devices; runs at once, on one thread. No derivative. Errors:
/// shape_error unless boxes are four numbers and each has a score. On a GPU it does not compile; copy to the host.
///
///     tensor stay = nms(found, confidence, 0.5);
template <class B, class S>
  requires(detail::is_fitting<detail::nms_mistake<B, S>>)
tensor<std::int64_t, 1, device_of<B>> nms(const B& boxes, const S& scores, double iou_threshold) {
  return detail::nms_of("nms", boxes, scores, nullptr, iou_threshold);
}
SINTER_REJECTIONS_OF_TWO(nms, detail::nms_mistake)
template <class B, class S, class N, class... More, class Problem = nms_with_more_than_boxes_scores_and_threshold,
          class Fix = write_batched_nms_with_classes_before_the_threshold>
  requires(detail::is_fitting<detail::nms_mistake<B, S>>)
void nms(const B&, const S&, double, const N&, const More&...) = delete;

/// nms of the boxes of each class alone, whose numbers (N) are of any integer type, as torchvision.ops.batched_nms: the
/// indices of all that stay, highest score first.
///
///     tensor stay = batched_nms(found, confidence, kinds, 0.5);
template <class B, class S, class K>
  requires(detail::is_fitting<detail::batched_nms_mistake<B, S, K>>)
tensor<std::int64_t, 1, device_of<B>> batched_nms(const B& boxes, const S& scores, const K& classes,
                                                  double iou_threshold) {
  detail::check_defined("batched_nms", classes);
  const tensor<std::int64_t, 1, device_of<B>> numbers = detail::int64_labels(classes);
  return detail::nms_of("batched_nms", boxes, scores, &numbers, iou_threshold);
}
SINTER_REJECTIONS_OF_THREE(batched_nms, detail::batched_nms_mistake)

}  // namespace sinter
