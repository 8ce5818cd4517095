// sinter/io/svg.hpp: line plots and grids of small images as SVG files, for learning curves and looking at mistakes.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "sinter/io/png.hpp"
#include "sinter/io/utf8.hpp"

namespace sinter {

/// One line of a plot. Without x the points stand at 1, 2, 3, ...; what is not finite leaves a gap.
struct plot_line {
  std::string name;  ///< in the legend; left out of it where empty
  std::vector<double> y;
  std::vector<double> x = {};
};

struct line_plot {
  std::string title;
  std::string x_label;
  std::vector<plot_line> lines;
};

namespace detail {

/// Number of bytes of the character that begins `text`, 0 if it is not UTF-8 or not allowed in XML: U+FFFE and U+FFFF.
/// XML 1.0, 2.2.
SINTER_SHARED_COLD std::size_t xml_character(std::string_view text);

/// U+FFFD stands for each byte that is no part of a character.
SINTER_SHARED_COLD std::string xml_escaped(std::string_view text);

/// As printf's %g writes it in the C locale.
SINTER_SHARED_COLD std::string number_text(double x, int digits = 6);

SINTER_SHARED_COLD std::string svg_text(double x, double y, std::string_view text, const char* anchor = "middle",
                                        const char* style = "");

SINTER_SHARED_COLD std::string svg_document(double width, double height, const std::string& body);

SINTER_SHARED_COLD std::string base64(std::string_view bytes);

/// The range of an axis: wide enough for every finite value, with a step of 1, 2 or 5 times a power of ten. Between the
/// largest and the smallest of doubles a range would overflow, or its step vanish; there finish() has the axis count in
/// units of 10^power.
struct plot_axis {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity(), step = 1;
  int power = 0;

  void include(double v);
  void finish(bool whole_steps);
  double in_units(double v) const { return power > 0 ? v * 1e-40 : power < 0 ? v * 1e40 : v; }
  /// 0 to 1 along the axis, of a v in its units.
  double place(double v) const { return (v - low) / (high - low); }
  /// A tick v, which is in units, as text: enough digits to tell it from the next.
  std::string text(double v) const;

 private:
  double largest() const { return std::fmax(std::fabs(low), std::fabs(high)); }
};

SINTER_SHARED_COLD std::string plot_body(const line_plot& plot, double left, double width, double height);

#if SINTER_DEFINES

SINTER_SHARED_COLD std::string number_text(double x, int digits) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, x, std::chars_format::general, digits).ptr};
}

SINTER_SHARED_COLD std::string svg_text(double x, double y, std::string_view text, const char* anchor,
                                        const char* style) {
  return "<text x=\"" + number_text(x) + "\" y=\"" + number_text(y) + "\" text-anchor=\"" + anchor + "\"" + style +
         ">" + xml_escaped(text) + "</text>\n";
}

SINTER_SHARED_COLD void plot_axis::include(double v) {
  if (!std::isfinite(v)) return;
  low = v < low ? v : low;
  high = v > high ? v : high;
}
SINTER_SHARED_COLD void plot_axis::finish(bool whole_steps) {
  if (!(low <= high)) low = 0, high = 1;
  const double size = largest();
  power = size > 1e290 ? 40 : size > 0 && size < 1e-290 ? -40 : 0;
  low = in_units(low);
  high = in_units(high);
  if (!(high - low > 1e-9 * (std::fabs(low) + std::fabs(high)))) {  // one value only
    const double room = low == 0 ? 1 : std::fabs(low) / 2;
    low -= room;
    high += room;
  }
  const double rough = (high - low) / 5;
  const double ten = std::pow(10.0, std::floor(std::log10(rough)));
  step = (rough <= ten ? 1 : rough <= 2 * ten ? 2 : rough <= 5 * ten ? 5 : 10) * ten;
  if (!whole_steps) return;
  low = std::floor(low / step) * step;
  high = std::ceil(high / step) * step;
}
SINTER_SHARED_COLD std::string plot_axis::text(double v) const {
  if (std::fabs(v) < step / 2) return "0";
  const int digits = static_cast<int>(std::log10(largest() / step)) + 2;
  std::string number = number_text(v, digits > 6 ? digits : 6);
  const std::size_t e = number.find('e');
  if (power == 0 || e == std::string::npos) return number;
  const int exponent = std::atoi(number.c_str() + e + 1) + power;
  return number.substr(0, e) + (exponent < 0 ? "e" : "e+") + std::to_string(exponent);
}

SINTER_SHARED_COLD std::size_t xml_character(std::string_view text) {
  return text.starts_with("\xEF\xBF\xBE") || text.starts_with("\xEF\xBF\xBF") ? 0 : utf8_size(text);
}

SINTER_SHARED_COLD std::string xml_escaped(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const std::size_t size = xml_character(text);
    switch (text[0]) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += size == 0 ? "\xEF\xBF\xBD" : size == 1 && text[0] < ' ' ? " " : text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return safe;
}

SINTER_SHARED_COLD std::string svg_document(double width, double height, const std::string& body) {
  const std::string w = number_text(width), h = number_text(height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + w + "\" height=\"" + h + "\" viewBox=\"0 0 " + w + " " +
         h +
         "\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n<rect width=\"100%\" height=\"100%\" "
         "fill=\"#fff\"/>\n" +
         body + "</svg>\n";
}

SINTER_SHARED_COLD std::string base64(std::string_view bytes) {
  const char* const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) text += i + k > bytes.size() ? '=' : digits[group >> (18 - 6 * k) & 63];
  }
  return text;
}

SINTER_SHARED_COLD std::string plot_body(const line_plot& plot, double left, double width, double height) {
  const char* const colours[] = {"#1f6fb4", "#d95f02", "#1b9e77", "#7b3294", "#666666", "#b8860b"};
  plot_axis x, y;
  const auto x_at = [](const plot_line& l, std::size_t i) { return l.x.empty() ? static_cast<double>(i + 1) : l.x[i]; };
  for (const plot_line& l : plot.lines) {
    if (!l.x.empty() && l.x.size() != l.y.size())
      refuse<value_error>({"write_plots: line '", l.name, "' has ", l.x.size(), " x and ", l.y.size(), " y values"});
    for (std::size_t i = 0; i < l.y.size(); ++i) x.include(x_at(l, i)), y.include(l.y[i]);
  }
  x.finish(false);
  y.finish(true);
  const double x0 = left + 56, x1 = left + width - 16, y0 = height - 46, y1 = 36;
  const auto px = [&](double v) { return x0 + x.place(v) * (x1 - x0); };
  const auto py = [&](double v) { return y0 + y.place(v) * (y1 - y0); };
  std::string s = svg_text((x0 + x1) / 2, 22, plot.title, "middle", " font-size=\"14\" font-weight=\"bold\"");
  s += svg_text((x0 + x1) / 2, height - 10, plot.x_label);
  for (int i = 0; i <= 10; ++i) {
    const double v = y.low + i * y.step;
    if (v > y.high + y.step / 2) break;
    const std::string at = number_text(py(v));
    s += "<path d=\"M" + number_text(x0) + " " + at + "H" + number_text(x1) + "\" stroke=\"#ddd\"/>\n";
    s += svg_text(x0 - 6, py(v) + 4, y.text(v), "end");
  }
  for (int i = 0; i <= 10; ++i) {
    const double v = (std::ceil(x.low / x.step - 1e-9) + i) * x.step;
    if (v > x.high + 1e-9 * x.step) break;
    s += svg_text(px(v), y0 + 18, x.text(v));
  }
  s += "<path d=\"M" + number_text(x0) + " " + number_text(y1) + "V" + number_text(y0) + "H" + number_text(x1) +
       "\" stroke=\"#444\" fill=\"none\"/>\n";
  std::size_t n = 0, named = 0;
  for (const plot_line& l : plot.lines) {
    const char* const colour = colours[n++ % 6];
    std::string path;
    bool pen_down = false;
    for (std::size_t i = 0; i < l.y.size(); ++i) {
      const double vx = x_at(l, i), vy = l.y[i];
      if (std::isfinite(vx) && std::isfinite(vy))
        path += (pen_down ? "L" : "M") + number_text(px(x.in_units(vx))) + " " + number_text(py(y.in_units(vy)));
      pen_down = std::isfinite(vx) && std::isfinite(vy);
    }
    if (!path.empty())
      s += "<path d=\"" + path + "\" stroke=\"" + colour +
           "\" stroke-width=\"2\" stroke-linecap=\"round\" stroke-linejoin=\"round\" fill=\"none\"/>\n";
    if (l.name.empty()) continue;
    const double ly = y1 + 10 + 18 * static_cast<double>(named++);
    s += "<path d=\"M" + number_text(x1 - 22) + " " + number_text(ly - 4) + "h20\" stroke=\"" + colour +
         "\" stroke-width=\"2\"/>\n";
    s += svg_text(x1 - 28, ly, l.name, "end");
  }
  return s;
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// Writes plots side by side. Errors: value_error when a line's x and y differ in number, io_error when the file
/// cannot be written; then none is left behind.
///
///     write_plots("curve.svg", {{"loss", "epoch", {{"train", train_loss}, {"test", test_loss}}}});
SINTER_SHARED_COLD void write_plots(const std::string& path, const std::vector<line_plot>& plots);

/// Writes grey images (n, height, width) as a grid, each with its caption; pixels show as squares. Errors: shape_error
/// when there are not as many captions as images, io_error when the file cannot be written.
template <int R>
  requires(R == 3)
SINTER_COLD void write_image_grid(const std::string& path, const tensor<std::uint8_t, R>& images,
                                  const std::vector<std::string>& captions, const std::string& title = "") {
  const index_t n = images.shape()[0], h = images.shape()[1], w = images.shape()[2];
  if (n != static_cast<index_t>(captions.size()))
    detail::refuse<shape_error>({"write_image_grid: ", n, " images and ", captions.size(), " captions"});
  constexpr index_t columns = 8;
  constexpr double tile = 80, pitch_x = 96, pitch_y = 110;
  const auto dense = images.contiguous();
  std::string body = detail::svg_text(12, 22, title, "start", " font-size=\"14\" font-weight=\"bold\"");
  for (index_t i = 0; i < n; ++i) {
    const double x = 8 + pitch_x * static_cast<double>(i % columns) + 8,
                 y = 40 + pitch_y * static_cast<double>(i / columns);
    body += "<image x=\"" + detail::number_text(x) + "\" y=\"" + detail::number_text(y) + "\" width=\"" +
            detail::number_text(tile) + "\" height=\"" + detail::number_text(tile) +
            "\" style=\"image-rendering:pixelated\" href=\"data:image/png;base64," +
            detail::base64(detail::png_bytes(dense.data() + i * h * w, h, w, 1)) + "\"/>\n";
    body += detail::svg_text(x + tile / 2, y + tile + 15, captions[static_cast<std::size_t>(i)]);
  }
  const index_t used = n < columns ? (n < 3 ? 3 : n) : columns, rows = (n + columns - 1) / columns;
  detail::write_file(path, detail::svg_document(16 + pitch_x * static_cast<double>(used),
                                                44 + pitch_y * static_cast<double>(rows), body));
}

#if SINTER_DEFINES

SINTER_SHARED_COLD void write_plots(const std::string& path, const std::vector<line_plot>& plots) {
  constexpr double width = 420, height = 300;
  std::string body;
  double left = 0;
  for (const line_plot& plot : plots) {
    body += detail::plot_body(plot, left, width, height);
    left += width;
  }
  detail::write_file(path, detail::svg_document(left > 0 ? left : width, height, body));
}

#endif  // SINTER_DEFINES

}  // namespace sinter
