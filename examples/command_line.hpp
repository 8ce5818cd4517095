// Reads the command line of an example: pairs of an option and its value, such as --epochs 5; and finds its folders.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <type_traits>

/// The program asks for its options one by one, then calls finish().
///
///     command_line line("convnet", help, argc, argv);
///     line.take("--epochs", epochs, 1, 1000);   // leaves `epochs` as it is where the option is not given
///     line.take("--out", folder);
///     line.finish();                            // refuses options that nobody took
///
/// `flags` are options without a value; has() tells which are given.
class command_line {
 public:
  command_line(const char* program, const char* help, int argc, char** argv, std::set<std::string> flags = {})
      : program_(program) {
    for (int i = 1; i < argc; ++i)
      if (const std::string option = argv[i]; option == "--help" || option == "-h")
        std::exit(std::fputs(help, stdout) < 0);
    for (int i = 1; i < argc; i += 2) {
      if (flags.contains(argv[i])) {
        given_.insert(argv[i--]);
        continue;
      }
      const std::string value = i + 1 < argc ? argv[i + 1] : "";  // take() tells where it is missing
      if (!values_.emplace(argv[i], value).second) refuse(std::string(argv[i]) + " is given twice");
    }
  }

  void take(const std::string& option, std::string& to) {
    const auto found = values_.find(option);
    if (found == values_.end()) return;
    if (found->second.empty()) refuse(option + " needs a value");
    to = found->second;
    values_.erase(found);
  }

  /// A number from `least` to `most`, a whole one where Number is an integer.
  template <class Number>
    requires std::is_arithmetic_v<Number>
  void take(const std::string& option, Number& to, double least, double most) {
    std::string text;
    take(option, text);
    if (text.empty()) return;
    char* end = nullptr;
    const double x = std::strtod(text.c_str(), &end);
    const bool in_range = *end == '\0' && x >= least && x <= most;
    if (!in_range || static_cast<double>(static_cast<Number>(x)) != x) {
      char range[64];
      std::snprintf(range, sizeof range, " number from %.12g to %.12g", least, most);
      refuse(option + " needs a" + (std::is_integral_v<Number> ? " whole" : "") + range + ", not '" + text + "'");
    }
    to = static_cast<Number>(x);
  }

  bool has(const std::string& flag) const { return given_.contains(flag); }

  void finish() const {
    if (!values_.empty()) refuse("unknown option " + values_.begin()->first);
  }

  /// Ends the program with exit code 2.
  [[noreturn]] void refuse(const std::string& what) const {
    std::fprintf(stderr, "%s: %s\nTry --help.\n", program_, what.c_str());
    std::exit(2);
  }

 private:
  const char* program_;
  std::map<std::string, std::string> values_;
  std::set<std::string> given_;
};

/// The folder of a file, such as the program's, argv[0].
inline std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

/// Where the data is unless --data says otherwise: $SINTER_DATA, else the folder `data` beside `source`, a __FILE__.
inline std::string default_data(const std::string& source) {
  const char* const given = std::getenv("SINTER_DATA");
  return given != nullptr ? given : folder_of(source) + "/data";
}
