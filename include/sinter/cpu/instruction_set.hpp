// sinter/cpu/instruction_set.hpp: the set of vector instructions for which the parts of a program that exist for
// several are run, and what the library was compiled for.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "sinter/config.hpp"

namespace sinter {

/// Sets of vector instructions, from the smallest.
enum class instruction_set { baseline, avx2, avx512 };

inline const char* name_of(instruction_set set) {
  constexpr const char* names[] = {"baseline", "avx2", "avx512"};
  return names[static_cast<int>(set)];
}

namespace detail {

/// Does this processor, and its operating system, have the set?
inline bool processor_has([[maybe_unused]] instruction_set set) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;  // not every compiler knows its name
  const bool avx2 = f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (set == instruction_set::avx2) return avx2;
  if (set == instruction_set::avx512)
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#endif
  return set == instruction_set::baseline;
}

/// What SINTER_ISA names, else the largest set that this processor has. Ends the program with a line on the standard
/// error where the processor lacks what SINTER_ISA names, as it runs before main, where nothing catches exceptions.
inline instruction_set choose_instruction_set() {
  constexpr instruction_set all[] = {instruction_set::avx512, instruction_set::avx2, instruction_set::baseline};
  const char* const wanted = std::getenv("SINTER_ISA");
  bool is_known = false;
  for (const instruction_set set : all) {
    if (wanted != nullptr && *wanted != '\0' && std::strcmp(wanted, name_of(set)) != 0) continue;
    if (processor_has(set)) return set;
    is_known = true;
  }
  std::fprintf(stderr, "sinter: SINTER_ISA is '%s', which %s; it has", wanted,
               is_known ? "this processor does not have" : "is none of the sets that this processor may have");
  for (const instruction_set set : all)
    if (processor_has(set)) std::fprintf(stderr, " %s", name_of(set));
  std::fprintf(stderr, "\n");
  std::_Exit(1);
}

/// Set by the parts of the program that exist for several sets; null where there are none.
inline const char*& chosen_instruction_set() {
  static constinit const char* name = nullptr;
  return name;
}

}  // namespace detail

/// What this program's copy of the library is: its version, what this file was compiled for, and which kernels run.
///
///     std::cout << build_info() << '\n';  // Sinter 0.2.0, compiled for sse2; kernels for avx2
inline std::string build_info() {
  std::string text = "Sinter " SINTER_VERSION_STRING ", compiled for " SINTER_DETAIL_VECTORS SINTER_DETAIL_FMA;
  const char* const chosen = detail::chosen_instruction_set();
  if (chosen == nullptr) return text + "; kernels for the same";
  return text + "; kernels for " + chosen;
}

}  // namespace sinter
