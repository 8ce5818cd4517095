// sinter/train/summary_writer.hpp: numbers, texts, histograms and images of a training run, for TensorBoard.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>

#include "sinter/core/host_tensor.hpp"
#include "sinter/expr/operands.hpp"
#include "sinter/io/folder.hpp"
#include "sinter/metrics/operands.hpp"

#if SINTER_DEFINES
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "sinter/io/png.hpp"
#include "sinter/io/utf8.hpp"
#include "sinter/train/detail/protobuf.hpp"
#endif  // SINTER_DEFINES

namespace sinter {

// Names in messages.
template <class, int>
struct image_of_elements_and_rank;
struct pass_uint8_or_floating_point_elements_of_shape_c_h_w;

namespace detail {

template <class E>
constexpr auto find_picture_mistake() {
  if constexpr (!expression<E>) return no_operands<E>{};
  else if constexpr (rank_of<E> != 3 ||
                     !(floating_element<element_of<E>> || std::is_same_v<element_of<E>, std::uint8_t>))
    return mistake<image_of_elements_and_rank<element_of<E>, rank_of<E>>,
                   pass_uint8_or_floating_point_elements_of_shape_c_h_w>{};
  else return fitting<E>{};
}
template <class E>
using picture_mistake = decltype(find_picture_mistake<bare<E>>());

class protobuf_message;

/// Part of the name of a file, so that each writer of this process has its own.
inline constinit std::atomic<unsigned> summary_writers{0};

}  // namespace detail

struct summary_writer_options {
  /// Of a run that goes on from this step: what earlier files in the folder say of it and later steps is not shown.
  std::optional<index_t> purge_step = {};
};

/// Writes what a run tells to a file in a folder, as torch.utils.tensorboard.SummaryWriter does; `tensorboard --logdir
/// runs` shows it. The folder is made. Every writer has a file of its own, so a run that goes on names the same folder
/// again. Each call is in the file when it returns. Call one writer from one thread at a time.
///
/// Errors: io_error, which names the file, where the system does not write; the file is then as before the call.
/// value_error for a tag or text that is not UTF-8, for an empty tag, and after close().
///
///     summary_writer writer("runs/first");
///     writer.add_scalar("loss/train", loss.item(), step);
///     writer.add_histogram("weights", model.get<0>().weight, step);
class [[nodiscard]] summary_writer {
 public:
  explicit summary_writer(const std::string& folder, const summary_writer_options& options = {});
  summary_writer(summary_writer&&) noexcept = default;
  summary_writer& operator=(summary_writer&&) noexcept = default;
  ~summary_writer() = default;  // closes the file; close() tells of errors

  /// A point of the curve `tag`; held as a float. Tags of one name before the first slash are shown together.
  void add_scalar(std::string_view tag, double value, index_t step);

  /// A text, which is shown as Markdown.
  void add_text(std::string_view tag, std::string_view text, index_t step);

  /// How the elements of x are spread: a tensor, variable or expression of any elements, on any device; nothing is
  /// recorded. The bins are TensorFlow's, which torch calls 'tensorflow': they grow by a tenth from 1e-12 on, to both
  /// sides of 0. NaN and infinity are left out.
  template <expression E>
  void add_histogram(std::string_view tag, const E& x, index_t step) {
    add_histogram_of(tag, detail::metric_operand("add_histogram", x), step);
  }
  template <class E, class Problem = typename detail::no_operands<E>::problem,
            class Fix = typename detail::no_operands<E>::fix>
  void add_histogram(std::string_view tag, const E& x, index_t step) = delete;

  /// A picture (1, H, W) in grey or (3, H, W) in RGB, on any device: of uint8, or of floating-point numbers from 0 to
  /// 1, to which others are clipped; NaN is 0. Errors: shape_error for other extents.
  template <class E>
    requires(detail::is_fitting<detail::picture_mistake<E>>)
  void add_image(std::string_view tag, const E& image, index_t step) {
    add_image_of(tag, detail::metric_operand("add_image", image), step);
  }
  template <class E, class M = detail::picture_mistake<E>, class Problem = typename M::problem,
            class Fix = typename M::fix>
  void add_image(std::string_view tag, const E& image, index_t step) = delete;

  /// Waits until all is on the disk.
  void flush();
  /// Ends the file. A second call does nothing.
  void close();

  const std::string& path() const { return path_; }  ///< of the file

 private:
  void add_histogram_of(std::string_view tag, const host_tensor& x, index_t step);
  void add_image_of(std::string_view tag, const host_tensor& image, index_t step);
  /// Writes an event whose field `what` is this message.
  void add_event(std::uint32_t what, std::string_view message, index_t step);
  void add_value(const detail::protobuf_message& value, index_t step);
  [[noreturn]] void refuse_writing(int problem) const;

  std::string path_;
  detail::descriptor file_;
  std::uint64_t size_ = 0;  ///< of what is written wholly
};

#if SINTER_DEFINES

namespace detail {

/// As TFRecords hold it: a sum of a file that holds sums would else be less telling.
inline std::uint32_t masked_crc32c(std::string_view bytes) {
  constexpr std::uint32_t castagnoli = 0x82F63B78u;
  const std::uint32_t crc = crc32(bytes, castagnoli);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/// The upper ends of the bins, each 1.1 times as far from 0 as the one before.
inline std::vector<double> histogram_limits() {
  std::vector<double> above;
  for (double v = 1e-12; v < 1e20; v *= 1.1) above.push_back(v);
  above.push_back(std::numeric_limits<double>::max());
  std::vector<double> all;
  for (auto v = above.rbegin(); v != above.rend(); ++v) all.push_back(-*v);
  all.push_back(0);
  all.insert(all.end(), above.begin(), above.end());
  return all;
}

inline void check_summary_text(const char* op, const char* what, std::string_view text) {
  if (const std::size_t at = valid_utf8(text); at < text.size())
    refuse<value_error>({op, ": the ", what, " is not UTF-8 at byte ", at});
}
/// The value of an event, whose kind and content are still to be put.
inline protobuf_message value_called(const char* op, std::string_view tag, std::string_view ending = "") {
  if (tag.empty()) refuse<value_error>({op, ": the tag is empty; name what is shown, such as \"loss/train\""});
  check_summary_text(op, "tag", tag);
  protobuf_message value;
  value.bytes(1, joined({tag, ending}));
  return value;
}

}  // namespace detail

SINTER_SHARED_COLD summary_writer::summary_writer(const std::string& folder, const summary_writer_options& options) {
  using namespace detail;
  if (folder.empty()) refuse<value_error>({"summary_writer: the folder has no name; name one such as \"runs/first\""});
  make_folders(folder);
  char host[256];
  host_name(host, sizeof host);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::string seconds = std::to_string(std::chrono::duration_cast<std::chrono::seconds>(now).count());
  seconds.insert(0, seconds.size() < 10 ? 10 - seconds.size() : 0, '0');  // files are read in the order of their names
  const char* const between = folder.find_last_of(ends_of_folders) + 1 == folder.size() ? "" : "/";
  do {  // a process of another machine or container may have the same names
    path_ = joined({folder, between, "events.out.tfevents.", seconds, ".", static_cast<const char*>(host), ".",
                    process_number(), ".", summary_writers++});
    file_ = open_file(path_, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0666);
  } while (!file_.is_open() && errno == EEXIST);
  if (!file_.is_open()) refuse<io_error>({path_, ": cannot open for writing: ", system_text(errno)});
  constexpr std::uint32_t file_version = 3, session_log = 7, status = 1, start = 1;
  const index_t step = options.purge_step.value_or(0);
  add_event(file_version, "brain.Event:2", step);
  if (options.purge_step) {
    protobuf_message log;
    log.integer(status, start);
    add_event(session_log, log.bytes(), step);
  }
}

SINTER_SHARED_COLD void summary_writer::refuse_writing(int problem) const {
  detail::refuse<io_error>({path_, ": writing failed: ", detail::system_text(problem)});
}

// A record is the size of an event, its sum, the event, its sum.
SINTER_SHARED_COLD void summary_writer::add_event(std::uint32_t what, std::string_view message, index_t step) {
  using namespace detail;
  if (!file_.is_open())
    refuse<value_error>({"summary_writer: the file ", path_, " is closed; make another writer of its folder"});
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  protobuf_message event;
  event.real(1, now.count());
  event.integer(2, step);
  event.bytes(what, message);
  std::string record;
  put_little_endian(record, event.bytes().size(), 8);
  put_little_endian(record, masked_crc32c(record), 4);
  record += event.bytes();
  put_little_endian(record, masked_crc32c(event.bytes()), 4);
  if (const int problem = write_all(file_, record); problem != 0) {
    if (set_file_size(file_, size_) != 0) file_.close();  // readers end at half a record, so none may follow
    refuse_writing(problem);
  }
  size_ += record.size();
}

SINTER_SHARED_COLD void summary_writer::add_value(const detail::protobuf_message& value, index_t step) {
  constexpr std::uint32_t summary = 5;
  detail::protobuf_message values;
  values.message(1, value);
  add_event(summary, values.bytes(), step);
}

SINTER_SHARED_COLD void summary_writer::add_scalar(std::string_view tag, double value, index_t step) {
  constexpr std::uint32_t simple_value = 2;
  detail::protobuf_message entry = detail::value_called("add_scalar", tag);
  entry.single(simple_value, static_cast<float>(value));
  add_value(entry, step);
}

SINTER_SHARED_COLD void summary_writer::add_text(std::string_view tag, std::string_view text, index_t step) {
  constexpr std::uint32_t metadata = 9, tensor_value = 8, type_of_texts = 7;
  detail::protobuf_message entry = detail::value_called("add_text", tag, "/text_summary");
  detail::check_summary_text("add_text", "text", text);
  detail::protobuf_message plugin, about, extent, shape, texts;
  plugin.bytes(1, "text");
  about.message(1, plugin);
  extent.integer(1, 1);
  shape.message(2, extent);
  texts.integer(1, type_of_texts);
  texts.message(2, shape);
  texts.bytes(8, text);
  entry.message(metadata, about);
  entry.message(tensor_value, texts);
  add_value(entry, step);
}

SINTER_SHARED_COLD void summary_writer::add_histogram_of(std::string_view tag, const host_tensor& x, index_t step) {
  using namespace detail;
  const std::vector<double> limits = histogram_limits();
  std::vector<double> counts(limits.size());
  double least = 0, most = 0, sum = 0, squares = 0, number = 0;
  const auto add = [&](double v) {
    if (!std::isfinite(v)) return;
    least = number == 0 ? v : std::min(least, v);
    most = number == 0 ? v : std::max(most, v);
    sum += v;
    squares += v * v;
    number += 1;
    const auto bin = std::upper_bound(limits.begin(), limits.end() - 1, v);  // the last has its upper end, too
    counts[static_cast<std::size_t>(bin - limits.begin())] += 1;
  };
  const std::size_t size = element_size(x.element), all = x.bytes.size() / size;
  double piece[1024];
  for (std::size_t i = 0; i < all; i += std::size(piece)) {
    const std::size_t n = std::min(std::size(piece), all - i);
    with_element(x.element, [&](auto from) { convert_elements<decltype(from)>(&x.bytes[i * size], n, piece); });
    std::for_each(piece, piece + n, add);
  }
  // From an empty bin, whose end is where the first that is not empty begins.
  const auto filled = [](double n) { return n > 0; };
  const auto begin = std::find_if(counts.begin(), counts.end(), filled);
  const auto end = std::find_if(counts.rbegin(), counts.rend(), filled).base();
  std::size_t from = static_cast<std::size_t>(begin - counts.begin()),
              to = static_cast<std::size_t>(end - counts.begin());
  if (from > 0 && from < counts.size()) --from;
  if (number == 0) from = 0, to = 1;
  protobuf_message histogram;
  histogram.real(1, least);
  histogram.real(2, most);
  histogram.real(3, number);
  histogram.real(4, sum);
  histogram.real(5, squares);
  histogram.reals(6, std::span(limits).subspan(from, to - from));
  histogram.reals(7, std::span(counts).subspan(from, to - from));
  constexpr std::uint32_t histogram_value = 5;
  protobuf_message entry = value_called("add_histogram", tag);
  entry.message(histogram_value, histogram);
  add_value(entry, step);
}

SINTER_SHARED_COLD void summary_writer::add_image_of(std::string_view tag, const host_tensor& image, index_t step) {
  using namespace detail;
  const index_t channels = image.shape[0], height = image.shape[1], width = image.shape[2];
  if (channels != 1 && channels != 3)
    refuse<shape_error>({"add_image: shape ", shape_piece{image.shape.data(), 3},
                         " is neither (1, height, width) nor (3, height, width); permute({2, 0, 1}) of an image "
                         "brings its last axis to the front"});
  const std::size_t size = element_size(image.element), plane = static_cast<std::size_t>(height * width);
  std::vector<std::uint8_t> pixels(plane * static_cast<std::size_t>(channels));
  std::vector<double> numbers(plane);
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels) && plane > 0; ++c) {
    with_element(image.element, [&](auto from) {
      convert_elements<decltype(from)>(&image.bytes[c * plane * size], plane, numbers.data());
    });
    const double whole = image.element == element_kind::uint8 ? 1 : 255;
    for (std::size_t i = 0; i < plane; ++i) {
      const double v = numbers[i] * whole;
      pixels[i * static_cast<std::size_t>(channels) + c] =
          static_cast<std::uint8_t>(v > 0 ? std::min(v, 255.0) + 0.5 : 0);
    }
  }
  protobuf_message picture;
  picture.integer(1, height);
  picture.integer(2, width);
  picture.integer(3, channels);
  picture.bytes(4, png_bytes(pixels.data(), height, width, static_cast<int>(channels)));
  constexpr std::uint32_t image_value = 4;
  protobuf_message entry = value_called("add_image", tag);
  entry.message(image_value, picture);
  add_value(entry, step);
}

SINTER_SHARED_COLD void summary_writer::flush() {
  if (!file_.is_open()) return;
  if (const int problem = detail::sync_file(file_); problem != 0) refuse_writing(problem);
}
SINTER_SHARED_COLD void summary_writer::close() {
  if (const int problem = file_.close(); problem != 0) refuse_writing(problem);
}

#endif  // SINTER_DEFINES

}  // namespace sinter
