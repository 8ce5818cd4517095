// tests/train/summary_writer_test.cpp: files for TensorBoard, read back by a reader of the test's own.
// reference/tensorboard.py lets TensorBoard read what the first test writes.
#include "../catch.hpp"

#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstdlib>

#include <sinter/metrics.hpp>
#include <sinter/train.hpp>

#include "../io/folder.hpp"
#include "events.hpp"

using namespace sinter;
using Catch::Contains;
using detail::read_file;
using namespace events;

namespace {

/// One of the test, or that which SINTER_EVENTS names.
std::string folder_for_events(const folder& dir) {
  const char* const told = std::getenv("SINTER_EVENTS");
  return told != nullptr ? told : dir.file("runs/first");
}

}  // namespace

TEST_CASE("TensorBoard finds scalars, texts, histograms and images in a file") {
  CHECK(crc32c("123456789") == 0xE3069283u);
  const folder dir;
  const std::string runs = folder_for_events(dir);
  const double before = static_cast<double>(std::time(nullptr));
  const tensor<float, 3> grey = {{{0, 0.5f}, {1, 2}, {-1, NAN}}};
  const tensor<std::uint8_t, 3> red = {{{255, 255}}, {{0, 9}}, {{0, 0}}};
  std::string path;
  {
    summary_writer writer(runs);
    path = writer.path();
    writer.add_scalar("loss/train", 0.75, 0);
    writer.add_scalar("loss/train", 0.1, 300);
    writer.add_scalar("loss/train", -INFINITY, std::numeric_limits<index_t>::max());
    writer.add_text("note", "# Größe\n\nsmall", 3);
    writer.add_histogram("weights", tensor<double, 2>{{-2, 0, 0.5}, {0.5, 1, INFINITY}}, 7);
    writer.add_image("grey", grey, 1);
    writer.add_image("red", red, 2);
    CHECK(events_in(path).size() == 8);  // without a flush
    writer.flush();
  }
  const auto all = events_in(path);
  REQUIRE(all.size() == 8);
  for (const message& e : all) {
    CHECK(e.real(1) >= before);
    CHECK(e.real(1) < before + 600);
  }
  CHECK(all[0].pieces.at(3) == "brain.Event:2");
  CHECK(all[1].numbers.at(2) == 0);
  CHECK(value_in(all[1]).pieces.at(1) == "loss/train");
  CHECK(scalar_in(value_in(all[1])) == 0.75f);
  CHECK(all[2].numbers.at(2) == 300);
  CHECK(scalar_in(value_in(all[2])) == 0.1f);
  CHECK(all[3].numbers.at(2) == std::numeric_limits<std::uint64_t>::max() / 2);
  CHECK(scalar_in(value_in(all[3])) == -INFINITY);

  const message text = value_in(all[4]);
  CHECK(text.pieces.at(1) == "note/text_summary");
  CHECK(text.at(9).at(1).pieces.at(1) == "text");
  CHECK(text.at(8).numbers.at(1) == 7);
  CHECK(text.at(8).at(2).at(2).numbers.at(1) == 1);
  CHECK(text.at(8).pieces.at(8) == "# Größe\n\nsmall");

  const message histogram = value_in(all[5]).at(5);
  CHECK(histogram.real(1) == -2);
  CHECK(histogram.real(2) == 1);
  CHECK(histogram.real(3) == 5);
  CHECK(histogram.real(4) == 0);
  CHECK(histogram.real(5) == 5.5);
  const auto limits = histogram.reals(6), counts = histogram.reals(7);
  REQUIRE(limits.size() == counts.size());
  CHECK(counts.front() == 0);
  CHECK(limits.front() <= -2);
  CHECK(counts[1] == 1);
  CHECK(limits[1] > -2);
  CHECK(limits[1] / limits[2] == Approx(1.1));
  CHECK(counts.back() == 1);
  CHECK(limits.back() > 1);
  CHECK(limits.back() < 1.1);
  for (std::size_t i = 1; i < limits.size(); ++i) {
    const bool holds_zero = limits[i - 1] == 0, holds_half = limits[i - 1] <= 0.5 && limits[i] > 0.5;
    if (i > 1 && i + 1 < limits.size()) CHECK(counts[i] == (holds_zero ? 1 : holds_half ? 2 : 0));
    CHECK(limits[i] > limits[i - 1]);
  }

  const message picture = value_in(all[6]).at(4), colours = value_in(all[7]).at(4);
  CHECK(picture.numbers.at(1) == 3);
  CHECK(picture.numbers.at(2) == 2);
  CHECK(picture.numbers.at(3) == 1);
  const std::uint8_t levels[] = {0, 128, 255, 255, 0, 0}, rgb[] = {255, 0, 0, 255, 9, 0};
  CHECK(picture.pieces.at(4) == detail::png_bytes(levels, 3, 2, 1));
  CHECK(colours.numbers.at(3) == 3);
  CHECK(colours.pieces.at(4) == detail::png_bytes(rgb, 1, 2, 3));
}

TEST_CASE("histograms take any elements and devices, and record nothing") {
  const folder dir;
  summary_writer writer(dir.file("runs/"));
  const auto last = [&] { return value_in(events_in(writer.path()).back()).at(5); };
  const variable weights = tensor<float, 1>{1, 2, 3};
  writer.add_histogram("w", weights * 2.f, 0);
  CHECK(last().real(4) == 12);
  CHECK_THROWS_AS(weights.grad(), autograd_error);
  writer.add_histogram("w", weights.value().to<numa<0>>(), 0);
  CHECK(last().real(4) == 6);
  writer.add_histogram("w", tensor<half, 1>{half(0.5f), half(NAN)}, 0);
  CHECK(last().real(3) == 1);
  CHECK(last().real(2) == 0.5);
  writer.add_histogram("w", tensor<std::int64_t, 1>{-4, std::int64_t{1} << 40}, 0);
  CHECK(last().real(2) == std::ldexp(1, 40));
  writer.add_histogram("w", tensor<bool, 1>{true, false, true}, 0);
  CHECK(last().real(3) == 3);
  CHECK(last().reals(7).back() == 2);
  writer.add_histogram("w", arange<float>(5000), 0);
  CHECK(last().real(4) == 5000.0 * 4999 / 2);
  writer.add_histogram("w", tensor<double, 1>{-1e300, 1e300, std::numeric_limits<double>::max()}, 0);  // the outer bins
  CHECK(last().reals(6).back() == std::numeric_limits<double>::max());
  CHECK(last().reals(7).back() == 2);
  CHECK(last().reals(7)[0] == 0);
  CHECK(last().reals(7)[1] == 1);
  for (const auto& nothing : {tensor<double, 1>{NAN}, zeros<double>({0})}) {
    writer.add_histogram("w", nothing, 0);
    CHECK(last().real(3) == 0);
    CHECK(last().reals(7) == std::vector<double>{0});
  }
}

TEST_CASE("each writer has a file of its own, which folders are made for") {
  const folder dir;
  const std::string runs = folder_for_events(dir), begin = runs + "/events.out.tfevents.";
  summary_writer first(runs);
  for (const index_t step : {10, 11, 12, 13, 14}) first.add_scalar("x", 1, step);
  summary_writer second(runs, {.purge_step = 12});
  CHECK(first.path() != second.path());
  CHECK(first.path().starts_with(begin));
  const std::string numbers = first.path().substr(begin.size());
  CHECK(numbers.find_first_not_of("0123456789") == 10);
  CHECK(numbers[10] == '.');
  const auto all = events_in(second.path());
  REQUIRE(all.size() == 2);
  CHECK(all[1].numbers.at(2) == 12);
  CHECK(all[1].at(7).numbers.at(1) == 1);  // a session starts
  summary_writer third = std::move(second);
  third.add_scalar("x", 2, 12);
  third.add_scalar("x", 2, 13);
  CHECK(events_in(third.path()).size() == 4);
  CHECK(events_in(first.path()).size() == 6);
}

TEST_CASE("what a summary_writer refuses names the cause, and leaves the file as it was") {
  const folder dir;
  const std::string taken = dir.file("taken", "a file");
  CHECK_THROWS_WITH(summary_writer(""), Contains("the folder has no name"));
  CHECK_THROWS_AS(summary_writer(taken + "/runs"), io_error);
  CHECK_THROWS_WITH(summary_writer(taken + "/runs"), Contains(taken + "/runs: cannot make the folder"));
  CHECK_THROWS_WITH(summary_writer("/proc/runs"), Contains("/proc/runs: cannot make the folder /proc/runs: "));
  CHECK_THROWS_WITH(summary_writer("/proc"), Contains("/proc/events.out.tfevents."));

  summary_writer writer(dir.file("runs"));
  writer.add_scalar("loss", 1, 0);
  const std::string before = read_file(writer.path());
  CHECK_THROWS_AS(writer.add_scalar("", 1, 0), value_error);
  CHECK_THROWS_WITH(writer.add_scalar("", 1, 0), Contains("add_scalar: the tag is empty"));
  CHECK_THROWS_WITH(writer.add_scalar("a\xff", 1, 0), "add_scalar: the tag is not UTF-8 at byte 1");
  CHECK_THROWS_WITH(writer.add_text("a", "\xe4", 0), "add_text: the text is not UTF-8 at byte 0");
  CHECK_THROWS_WITH(writer.add_image("a", zeros<float>({2, 4, 4}), 0),
                    Contains("add_image: shape (2, 4, 4) is neither"));
  CHECK_THROWS_AS(writer.add_image("a", zeros<float>({1, 0, 4}), 0), shape_error);
  CHECK_THROWS_WITH(writer.add_histogram("a", tensor<float, 1>(), 0),
                    Contains("add_histogram: an operand is an empty"));
  CHECK(read_file(writer.path()) == before);

  rlimit was, small;
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &was) == 0);
  small = was;
  small.rlim_cur = before.size() + 20;  // less than an event
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string full = message_of<io_error>([&] { writer.add_scalar("loss", 2, 1); }, "wrote");
  ::setrlimit(RLIMIT_FSIZE, &was);
  std::signal(SIGXFSZ, handler);
  CHECK(full == writer.path() + ": writing failed: File too large");
  CHECK(read_file(writer.path()) == before);
  writer.add_scalar("loss", 3, 2);
  CHECK(events_in(writer.path()).size() == 3);

  writer.close();
  writer.close();
  writer.flush();
  CHECK_THROWS_AS(writer.add_scalar("loss", 4, 3), value_error);
  CHECK_THROWS_WITH(writer.add_scalar("loss", 4, 3), Contains(writer.path() + " is closed; make another writer"));
  CHECK(events_in(writer.path()).size() == 3);
}
