// sinter/nn/summary.hpp: a table of the modules of a model: shapes, parameters, multiply-adds, bytes, device.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sinter/core/create.hpp"
#include "sinter/core/report.hpp"
#include "sinter/nn/module.hpp"
#include "sinter/nn/observe.hpp"

namespace sinter::nn {

/// A row of a summary: one module, with what is its own and not its submodules'.
struct summary_row {
  std::string name;             ///< the path to it; empty for the model itself
  std::string type;             ///< as in C++, without namespace and template arguments: "linear"
  std::vector<index_t> output;  ///< the shape of what it gave last
  bool called = false;
  index_t parameters = 0;     ///< elements; a parameter that stands in several places counts in the first
  index_t multiply_adds = 0;  ///< of all its calls; 0 where unknown
  index_t bytes = 0;          ///< of its parameters and buffers
  std::string device;
  bool replicated = false;  ///< copies of it run in its stead, as in data_parallel: what they give is not known
};

/// What summary() gives: a row for each module in the order of the lists, and their sums.
struct summary_table : sinter::detail::report<summary_table> {
  std::vector<summary_row> rows;
  index_t parameters = 0, multiply_adds = 0, bytes = 0;

  /// The table as text, a line for each row and one for the sums.
  std::string text() const;

 private:
  /// Row 0 is the head of the table, the last one the sums.
  std::string cell(std::size_t row, std::size_t column) const;
};

namespace detail {

/// "linear" for what __PRETTY_FUNCTION__ says of a function of M = sinter::nn::linear<float, ...>.
SINTER_SHARED_COLD std::string type_in(std::string_view text);
/// "linear" for sinter::nn::linear<float, ...>.
template <class M>
std::string type_text() {
  return type_in(__PRETTY_FUNCTION__);
}

class summary_builder final : public call_observer {
 public:
  summary_builder();
  summary_builder(const summary_builder&) = delete;
  summary_builder& operator=(const summary_builder&) = delete;
  ~summary_builder();

  summary_table table;

  /// A row for m, and for all that it lists.
  template <class M>
  void add(const member_name* name, const M& m) {
    if constexpr (is_erased<M>) {
      m.describe(name, *this);
    } else {
      const std::size_t at = table.rows.size();
      modules_.push_back(&m);
      marks_.push_back(&code_of<M>);
      table.rows.push_back(
          {name == nullptr ? std::string() : name->text(), type_text<M>(), {}, false, 0, 0, 0, {}, in_copies_});
      if constexpr (device<device_of<M>>) table.rows[at].device = device_name<device_of<M>>();
      const bool outer = in_copies_;
      in_copies_ = outer || requires { requires M::runs_copies; };
      M::visit(
          [&](sinter::detail::text_piece own, const auto& member) {
            using X = bare<decltype(member)>;
            const member_name path{name, own};
            if constexpr (is_module<X>) {
              add(&path, member);
            } else if constexpr (is_stored<X>) {
              if (member.defined() && seen_.add(sinter::detail::access::data(stored_value(member)))) {
                const index_t bytes = member.numel() * static_cast<index_t>(sizeof(element_of<X>));
                table.rows[at].bytes += bytes;
                table.bytes += bytes;
                if constexpr (is_parameter<X>) {
                  table.rows[at].parameters += member.numel();
                  table.parameters += member.numel();
                }
              }
            }
          },
          m);
      in_copies_ = outer;
    }
  }

  // Said here, too, as without `inline` the key function puts the virtual table into every object.
  SINTER_SHARED void called(const void* module, const void* mark, sinter::detail::shape_piece output,
                            index_t multiply_adds) override;

  /// The table, when all is in it.
  summary_table take();

 private:
  std::vector<const void*> modules_, marks_;
  sinter::detail::addresses seen_;
  bool in_copies_ = false;
};

/// While it lives, the observer is told of calls.
class observing {
 public:
  explicit observing(call_observer& o) : before_(call_observer_now()) { call_observer_now() = &o; }
  ~observing() { call_observer_now() = before_; }
  observing(const observing&) = delete;
  observing& operator=(const observing&) = delete;

 private:
  call_observer* before_;
};

}  // namespace detail

/// Runs a copy of the model, in eval() mode, once on zeros of that shape, and tells what each of its modules gave and
/// holds. T is the element type of the input. Errors: those of forward.
///
///     std::cout << nn::summary(model, {1, 784});
template <element T = float, is_module M, int R>
summary_table summary(const M& model, const extents<R>& input_shape) {
  using D = std::conditional_t<device<device_of<M>>, device_of<M>, cpu>;
  M copy = model;
  copy.eval();
  detail::summary_builder builder;
  builder.add(nullptr, copy);
  const no_grad guard;
  const detail::observing scope(builder);
  static_cast<void>(copy(zeros<T, D>(input_shape)));
  return builder.take();
}

template <element T = float, is_module M, std::size_t R>
summary_table summary(const M& model, const index_t (&input_shape)[R]) {
  return summary<T>(model, sinter::detail::to_extents(input_shape));
}

struct model_without_the_shape_of_its_input;
struct pass_the_shape_of_an_input_in_braces;
template <is_module M, class Problem = model_without_the_shape_of_its_input,
          class Fix = pass_the_shape_of_an_input_in_braces>
void summary(const M&) = delete;

struct model_that_is_printed;
struct print_nn_summary_of_the_model_and_the_shape_of_its_input;
template <is_module M, class Problem = model_that_is_printed,
          class Fix = print_nn_summary_of_the_model_and_the_shape_of_its_input>
std::ostream& operator<<(std::ostream&, const M&) = delete;

#if SINTER_DEFINES

namespace detail {

SINTER_SHARED_COLD std::string type_in(std::string_view text) {
  text.remove_prefix(text.find("M = ") + 4);
  text = text.substr(0, text.find_first_of("<;]"));
  const std::size_t scope = text.rfind("::");
  return std::string(scope == std::string_view::npos ? text : text.substr(scope + 2));
}

SINTER_SHARED summary_builder::summary_builder() = default;
SINTER_SHARED summary_builder::~summary_builder() = default;
SINTER_SHARED summary_table summary_builder::take() { return std::move(table); }
SINTER_SHARED void summary_builder::called(const void* module, const void* mark, sinter::detail::shape_piece output,
                                           index_t multiply_adds) {
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    if (modules_[i] != module || marks_[i] != mark) continue;
    summary_row& row = table.rows[i];
    row.output.assign(output.extents, output.extents + output.rank);
    row.called = true;
    row.multiply_adds += multiply_adds;
    table.multiply_adds += multiply_adds;
  }
}

}  // namespace detail

SINTER_SHARED std::string summary_table::text() const {
  constexpr std::size_t columns = 7;
  std::size_t width[columns] = {};
  for (std::size_t row = 0; row < rows.size() + 2; ++row)
    for (std::size_t column = 0; column < columns; ++column)
      if (const std::size_t n = cell(row, column).size(); n > width[column]) width[column] = n;
  std::string lines;
  for (std::size_t row = 0; row < rows.size() + 2; ++row) {
    std::string line;
    for (std::size_t column = 0; column < columns; ++column) {
      const std::string value = cell(row, column), space(width[column] - value.size(), ' ');
      const bool is_number = column >= 3 && column <= 5;
      line += (is_number ? space + value : value + space) + "  ";
    }
    lines += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return lines;
}

SINTER_SHARED std::string summary_table::cell(std::size_t row, std::size_t column) const {
  static constexpr const char* head[] = {"module", "type", "output", "parameters", "multiply-adds", "bytes", "device"};
  if (row == 0) return head[column];
  const bool is_sum = row > rows.size();
  if (is_sum && (column == 0 || column == 1 || column == 2 || column == 6)) return column == 0 ? "total" : "";
  if (is_sum) return std::to_string(column == 3 ? parameters : column == 4 ? multiply_adds : bytes);
  const summary_row& r = rows[row - 1];
  switch (column) {
    case 0:
      return r.name.empty() ? "(model)" : r.name;
    case 1:
      return r.type;
    case 2:
      return r.called ? sinter::detail::joined(
                            {sinter::detail::shape_piece{r.output.data(), static_cast<int>(r.output.size())}})
             : r.replicated ? "by copies"
                            : "not called";
    case 3:
      return std::to_string(r.parameters);
    case 4:
      return std::to_string(r.multiply_adds);
    case 5:
      return std::to_string(r.bytes);
    default:
      return r.device;
  }
}

#endif  // SINTER_DEFINES

}  // namespace sinter::nn
