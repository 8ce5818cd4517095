// Reads the command line of an example: pairs of an option and its value, such as --epochs 5; and finds its folders.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

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
  command_line(const char* program, const char* help, int argc, char** argv,
               std::initializer_list<const char*> flags = {})
      : program_(program) {
    for (int i = 1; i < argc; ++i)
      if (const std::string option = argv[i]; option == "--help" || option == "-h")
        std::exit(std::fputs(help, stdout) < 0);
    for (int i = 1; i < argc; ++i) {
      pair next{argv[i], {}, false};
      for (const char* const flag : flags) next.is_flag = next.is_flag || next.option == flag;
      if (!next.is_flag && ++i < argc) next.value = argv[i];  // take() tells where it is missing
      if (find(next.option) != nullptr && !next.is_flag) refuse(next.option + " is given twice");
      given_.push_back(next);
    }
  }

  void take(const char* option, std::string& to) {
    pair* const found = find(option);
    if (found == nullptr) return;
    if (found->value.empty()) refuse(found->option + " needs a value");
    to = found->value;
    found->is_taken = true;
  }

  /// A number from `least` to `most`, a whole one where Number is an integer.
  template <class Number>
    requires std::is_arithmetic_v<Number>
  void take(const char* option, Number& to, double least, double most) {
    double x = 0;
    if (take_number(option, x, least, most, std::is_integral_v<Number>)) to = static_cast<Number>(x);
  }

  bool has(const char* flag) { return find(flag) != nullptr; }

  void finish() const {
    for (const pair& each : given_)
      if (!each.is_flag && !each.is_taken) refuse("unknown option " + each.option);
  }

  /// Ends the program with exit code 2.
  [[noreturn]] void refuse(const std::string& what) const {
    std::fprintf(stderr, "%s: %s\nTry --help.\n", program_, what.c_str());
    std::exit(2);
  }

 private:
  struct pair {
    std::string option, value;
    bool is_flag, is_taken = false;
  };

  pair* find(const std::string& option) {
    for (pair& each : given_)
      if (each.option == option) return &each;
    return nullptr;
  }

  bool take_number(const char* option, double& to, double least, double most, bool whole) {
    std::string text;
    take(option, text);
    if (text.empty()) return false;
    char* end = nullptr;
    to = std::strtod(text.c_str(), &end);
    if (*end != '\0' || !(to >= least && to <= most) || (whole && to != std::floor(to))) {
      char range[96];
      std::snprintf(range, sizeof range, " needs a%s number from %.12g to %.12g, not '", whole ? " whole" : "", least,
                    most);
      refuse(option + (range + text) + "'");
    }
    return true;
  }

  const char* program_;
  std::vector<pair> given_;
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
