// sinter/cpu/detail/float_control.hpp: how a thread rounds, whether it flushes denormal numbers to zero, and which
// exceptions trap.
#pragma once

#include <cstdint>

namespace sinter::cpu_impl::detail {

#if defined(__SSE2__)

inline constexpr std::uint32_t mxcsr_flags = 0x3f;  ///< what has happened so far

inline std::uint64_t float_control() noexcept { return __builtin_ia32_stmxcsr() & ~mxcsr_flags; }
inline void set_float_control(std::uint64_t control) noexcept {
  __builtin_ia32_ldmxcsr(static_cast<std::uint32_t>(control) | (__builtin_ia32_stmxcsr() & mxcsr_flags));
}

#elif defined(__aarch64__)

inline std::uint64_t float_control() noexcept {
  std::uint64_t control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return control;
}
inline void set_float_control(std::uint64_t control) noexcept { asm volatile("msr fpcr, %0" : : "r"(control)); }

#else

inline std::uint64_t float_control() noexcept { return 0; }
inline void set_float_control(std::uint64_t) noexcept {}

#endif

}  // namespace sinter::cpu_impl::detail
